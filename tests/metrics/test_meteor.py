"""METEOR by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from by_hand import corpus, rows, value

from rejoinder.errors import MissingExtra
from rejoinder.metrics.metric import make_metric
from rejoinder.metrics.overlap import meteor

METEOR = "meteor(tok=whitespace)"
STRICT = "meteor(perfect=false,tok=whitespace)"


def f_mean(precision: float, recall: float) -> float:
    return precision * recall / (0.9 * precision + 0.1 * recall)


@pytest.mark.parametrize(
    ("reply", "reference", "expected"),
    [
        # the cat(s) sat in one chunk: m = 3, P = 3/4, R = 3/6, penalty ½ · (1/3)³
        ("the cats sat down", "the cat sat on a mat", f_mean(3 / 4, 1 / 2) * (1 - 0.5 / 27)),
        # all words, but in two chunks of three: F = 1, penalty ½ · (2/3)³ = 4/27
        ("b c a", "a b c", 23 / 27),
        # both a, last with last: one chunk of 2; P = 2/3, R = 1
        ("a a a", "a a", f_mean(2 / 3, 1) * (1 - 0.5 / 8)),
        # the last a takes the last a, so b a is one chunk, m = 2 of 2 and of 3
        ("b a", "a b a", f_mean(1, 2 / 3) * (1 - 0.5 / 8)),
        # case is ignored
        ("The CAT", "the cat", 1.0),
        ("a", "a", 1.0),
        ("a", "b", 0.0),
        ("", "a", 0.0),
    ],
)
def test_value(reply: str, reference: str, expected: float) -> None:
    assert value(METEOR, reply, reference) == pytest.approx(expected, abs=1e-12)


def test_without_the_rule_for_perfect_replies() -> None:
    # one chunk of four words: ½ · (1/4)³ = 1/128; one chunk of one word: ½
    assert value(STRICT, "a b c d", "a b c d") == pytest.approx(127 / 128)
    assert value(STRICT, "a", "a") == 0.5
    assert value(METEOR, "a b c d", "a b c d") == 1.0


def test_stemmers() -> None:
    assert value(METEOR, "running", "runs") == 1.0
    assert value("meteor(stem=none,tok=whitespace)", "running", "runs") == 0.0
    assert value("meteor(stem=german,tok=whitespace)", "häuser", "haus") == 1.0


def test_an_exact_match_comes_before_a_stem() -> None:
    # runs takes runs, not the later run, though both have its stem: m = 2 in two chunks, and
    # P = 2/2, R = 2/2; by stems alone, it would be one chunk of two
    assert value(METEOR, "runs x", "x runs") == pytest.approx(0.5)
    # runs-runs, then the first run takes the last by stem: crossed, two chunks of two
    assert value(METEOR, "run runs", "runs runner run") == pytest.approx(
        f_mean(1, 2 / 3) * (1 - 0.5)
    )


def test_parameters() -> None:
    # P = 3/4, R = 3/6, one chunk of 3; α = ½ is the F1 score 0.6; penalty 1 · 1/3
    spec = "meteor(alpha=0.5,beta=1,gamma=1,tok=whitespace)"
    found = value(spec, "the cats sat down", "the cat sat on a mat")
    assert found == pytest.approx(0.6 * 2 / 3)


def test_corpus_adds_up_matches_lengths_and_chunks() -> None:
    # m = 3 + 3, |h| = 4 + 3, |r| = 6 + 3, chunks 1 + 2: penalty ½ · (3/6)³ = 1/16
    pairs = ("the cats sat down", "the cat sat on a mat"), ("b c a", "a b c")
    assert corpus(METEOR, *pairs) == pytest.approx(f_mean(6 / 7, 6 / 9) * 15 / 16)


def test_a_corpus_of_perfect_replies_is_perfect() -> None:
    assert corpus(METEOR, ("a b c", "a b c"), ("d", "d")) == 1.0


def test_parts() -> None:
    metric, statistics = rows(METEOR, ("the cats sat down", "the cat sat on a mat"))
    parts = metric.parts(statistics)
    assert parts["precision"].tolist() == [0.75]
    assert parts["recall"].tolist() == [0.5]
    assert parts["penalty"].tolist() == [pytest.approx(1 / 54)]


def test_any_leading_shape() -> None:
    metric, statistics = rows(METEOR, ("a", "b"), ("a", "a"))
    stacked = np.broadcast_to(statistics, (3, 5, *statistics.shape))
    assert np.all(metric.values(stacked) == [0.0, 1.0])


def test_the_signature_has_the_version_of_the_stemmer() -> None:
    assert "|stem:porter-snowball" in make_metric("meteor").signature()
    assert "|stem:none|" in make_metric("meteor(stem=none)").signature()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("meteor(stem=portr)", "did you mean .porter."),
        ("meteor(synonyms=yes)", "synonyms=yes is not one of none, wordnet"),
        ("meteor(alpha=1.5)", "alpha=1.5 is not from 0 to 1"),
        ("meteor(gamma=2)", "gamma=2 is not from 0 to 1"),
    ],
)
def test_wrong_parameters(spec: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        make_metric(spec)


class Thesaurus:
    """Replaces WordNet: a few words, each with one sense."""

    meanings = (("car", "auto", "motor_car"), ("big", "great"), ("glad", "happy"))

    def synsets(self, word: str) -> list[Thesaurus.Meaning]:
        return [self.Meaning(words) for words in self.meanings if word in words]

    def get_version(self) -> str:
        return "0"

    class Meaning:
        def __init__(self, words: tuple[str, ...]) -> None:
            self.words = words

        def lemmas(self) -> list[Thesaurus.Lemma]:
            return [Thesaurus.Lemma(word) for word in self.words]

    class Lemma:
        def __init__(self, word: str) -> None:
            self.word = word

        def name(self) -> str:
            return self.word


@pytest.fixture
def thesaurus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    meteor._synonyms.cache_clear()
    monkeypatch.setattr(meteor, "_wordnet", Thesaurus)
    yield
    meteor._synonyms.cache_clear()


@pytest.mark.usefixtures("thesaurus")
def test_synonyms() -> None:
    spec = "meteor(synonyms=wordnet,tok=whitespace)"
    assert value(spec, "a big car", "a great auto") == 1.0
    assert value(METEOR, "a big car", "a great auto") == pytest.approx(1 / 3 * 0.5)
    # a lemma of two words is no synonym of one word
    assert value(spec, "motor_car", "auto") == 1.0
    assert value(spec, "auto", "motor_car") == 0.0
    # the last free synonym: car takes the second auto, so that b follows it in one chunk
    assert value(spec, "car b", "auto auto b") == pytest.approx(f_mean(1, 2 / 3) * (1 - 0.5 / 8))
    # each reference word only once: P = 1/2, R = 1
    assert value(spec, "car car", "auto") == pytest.approx(f_mean(1 / 2, 1) * 0.5)
    # stems are looked up, and happi is no word
    assert value(spec, "glad", "happy") == 0.0
    assert value("meteor(stem=none,synonyms=wordnet,tok=whitespace)", "glad", "happy") == 1.0
    assert "|synonyms:wordnet0|" in make_metric(spec).signature()


def test_without_wordnet_the_message_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk import corpus

    class Absent:
        def ensure_loaded(self) -> None:
            raise LookupError("Resource wordnet not found")

    monkeypatch.setattr(corpus, "wordnet", Absent())
    with pytest.raises(MissingExtra, match=r"python -m nltk\.downloader wordnet"):
        make_metric("meteor(synonyms=wordnet)")
