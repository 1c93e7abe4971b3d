"""ROUGE-L, METEOR, chrF, RIBES and WER against other implementations, on real and odd texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
import snowballstemmer
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate import meteor_score
from nltk.translate.ribes_score import sentence_ribes
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric

CLOSE = {"rtol": 0, "atol": 1e-9}

# the first example of a test may have to wait for a kernel to be compiled
examples = settings(deadline=None, derandomize=True)


@pytest.fixture(scope="module")
def real(data: Path) -> list[tuple[str, str]]:
    """The 6,740 replies of HRED, each with its one reference."""
    folder = data / "dailydialog-multiref"
    replies = (folder / "hred_outputs.txt").read_text("utf-8").splitlines()
    marked = (folder / "single_reference.txt").read_text("utf-8").splitlines()
    references = [line.strip().removeprefix("_go ").removesuffix(" _eos") for line in marked]
    assert len(replies) == len(references) == 6740
    return list(zip(replies, references, strict=True))


def score(
    spec: str, replies: Sequence[str], *references: Sequence[str]
) -> tuple[np.ndarray, float]:
    """The score of each reply, and the corpus score."""
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    items = [
        Item(id=str(i), response=reply, references=[Reference(text=text) for text in texts])
        for i, (reply, *texts) in enumerate(zip(replies, *references, strict=True))
    ]
    results = [scored for _, [scored] in evaluate(items, [metric])]
    assert all(scored.scored.all() for scored in results)
    values = np.concatenate([scored.values for scored in results])
    return values, float(metric.values(sum(scored.rows.sum(axis=0) for scored in results)))


def columns(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [reply for reply, _ in pairs], [reference for _, reference in pairs]


def agree(spec: str, pairs: Sequence[tuple[str, str]], peer: Callable[[str, str], float]) -> None:
    replies, references = columns(pairs)
    expected = [peer(reply, reference) for reply, reference in pairs]
    np.testing.assert_allclose(score(spec, replies, references)[0], expected, **CLOSE)


def texts_of(words: Sequence[str], most: int = 14) -> st.SearchStrategy[list[tuple[str, str]]]:
    """Pairs of texts over few words, so that much is shared and repeated."""
    reply = st.lists(st.sampled_from(words), max_size=most).map(" ".join)
    reference = st.lists(st.sampled_from(words), min_size=1, max_size=most).map(" ".join)
    return st.lists(st.tuples(reply, reference), min_size=1, max_size=8)


# --- ROUGE-L


def rouge(reply: str, reference: str) -> float:
    return float(SCORER.score(reference, reply)["rougeL"].fmeasure)


SCORER = RougeScorer(["rougeL"], use_stemmer=False)


def test_rouge_l_on_real_replies(real: list[tuple[str, str]]) -> None:
    # rouge-score knows nothing but a-z and 0-9, so both get the text that it would see
    seen = [[" ".join(re.findall("[a-z0-9]+", text.lower())) for text in pair] for pair in real]
    agree("rouge-l(tok=whitespace)", [(a, b) for a, b in seen], rouge)


@examples
@given(texts_of("abcd12"))
def test_rouge_l(pairs: list[tuple[str, str]]) -> None:
    agree("rouge-l(tok=whitespace)", pairs, rouge)


# --- METEOR


class Porter:
    """Snowball's Porter stemmer, as NLTK wants to call it."""

    def __init__(self) -> None:
        self.stem = snowballstemmer.stemmer("porter").stemWord


class NoSynonyms:
    def synsets(self, word: str) -> list[str]:
        return []


def meteor(reply: str, reference: str) -> float:
    return float(
        meteor_score.single_meteor_score(
            reference.split(), reply.split(), stemmer=PORTER, wordnet=NoSynonyms()
        )
    )


PORTER = Porter()
METEOR = "meteor(perfect=false,lower=true,tok=whitespace)"
FAMILIES = ["run", "Run", "runs", "running", "runner", "cat", "cats", "the", "The", ",", "é"]


def test_meteor_on_real_replies(real: list[tuple[str, str]]) -> None:
    agree(METEOR, real, meteor)


@examples
@given(texts_of(FAMILIES))
def test_meteor(pairs: list[tuple[str, str]]) -> None:
    agree(METEOR, pairs, meteor)


@examples
@given(texts_of(FAMILIES))
def test_meteor_parameters(pairs: list[tuple[str, str]]) -> None:
    spec = "meteor(alpha=0.4,beta=1.5,gamma=0.9,perfect=false,tok=whitespace)"
    agree(
        spec,
        pairs,
        lambda reply, reference: meteor_score.single_meteor_score(
            reference.split(),
            reply.split(),
            stemmer=PORTER,
            wordnet=NoSynonyms(),
            alpha=0.4,
            beta=1.5,
            gamma=0.9,
        ),
    )


# --- chrF

CHRF = {
    "chrf": {},
    "chrf(words=2)": {"word_order": 2},
    "chrf(n=3,words=1,beta=3,lower=true)": {
        "char_order": 3,
        "word_order": 1,
        "beta": 3,
        "lowercase": True,
    },
}


ODD = st.text(st.sampled_from("aAbc .,(!é漢\u3000\t"), max_size=12)
PRESENT = ODD.filter(str.strip)


@pytest.mark.parametrize("spec", CHRF)
def test_chrf_on_real_replies(spec: str, real: list[tuple[str, str]]) -> None:
    peer = sacrebleu.CHRF(**CHRF[spec])
    replies, references = columns(real)
    values, corpus = score(spec, replies, references)
    expected = [peer.sentence_score(reply, [reference]).score / 100 for reply, reference in real]
    np.testing.assert_allclose(values, expected, **CLOSE)
    assert corpus == pytest.approx(peer.corpus_score(replies, [references]).score / 100, abs=1e-9)


@pytest.mark.parametrize("spec", CHRF)
def test_chrf_with_several_references(spec: str, real: list[tuple[str, str]]) -> None:
    peer = sacrebleu.CHRF(**CHRF[spec])
    replies, references = columns(real[:2000])
    # what was said a few turns later is a reference, too
    sets = [references, *([*references[k:], *references[:k]] for k in (1, 7))]
    values, corpus = score(spec, replies, *sets)
    expected = [
        peer.sentence_score(reply, texts).score / 100
        for reply, *texts in zip(replies, *sets, strict=True)
    ]
    np.testing.assert_allclose(values, expected, **CLOSE)
    assert corpus == pytest.approx(peer.corpus_score(replies, sets).score / 100, abs=1e-9)


@pytest.mark.parametrize("spec", CHRF)
@examples
@given(triples=st.lists(st.tuples(ODD, PRESENT, PRESENT), min_size=1, max_size=8))
def test_chrf(spec: str, triples: list[tuple[str, str, str]]) -> None:
    peer = sacrebleu.CHRF(**CHRF[spec])
    replies, *sets = (list(column) for column in zip(*triples, strict=True))
    values, corpus = score(spec, replies, *sets)
    expected = [peer.sentence_score(reply, texts).score / 100 for reply, *texts in triples]
    np.testing.assert_allclose(values, expected, **CLOSE)
    assert corpus == pytest.approx(peer.corpus_score(replies, sets).score / 100, abs=1e-9)


# --- RIBES


def test_ribes_on_real_replies(real: list[tuple[str, str]]) -> None:
    # NLTK gives the one word of a one-word reference 0, RIBES.py and we do not
    pairs = [(reply, text) for reply, text in real if len(text.split()) != 1]
    assert len(pairs) > 6000
    agree(
        "ribes(perfect=false,tok=whitespace)",
        pairs,
        lambda reply, reference: sentence_ribes([reference.split()], reply.split()),
    )


def ribes(reply: str, reference: str) -> float:
    """RIBES by counting, word by word: slow, and like nothing in the kernel."""
    h, r = reply.split(), reference.split()

    def places(gram: list[str], text: list[str]) -> list[int]:
        spots = range(len(text) - len(gram) + 1)
        return [k for k in spots if text[k : k + len(gram)] == gram]

    def rank(i: int) -> int | None:
        for window in range(len(h)):
            right, left = h[i : i + window + 1], h[max(i - window, 0) : i + 1]
            for gram, offset in (right, 0), (left, window):
                if len(gram) == window + 1 and len(places(gram, h)) == 1:
                    found = places(gram, r)
                    if len(found) == 1:
                        return found[0] + offset
        return None

    ranks = [rank for rank in map(rank, range(len(h))) if rank is not None]
    if len(ranks) < 2 and not len(ranks) == len(r) == 1:
        return 0.0
    pairs = list(combinations(ranks, 2))
    order = sum(a < b for a, b in pairs) / len(pairs) if pairs else 1.0
    brevity = min(1.0, math.exp(1 - len(r) / len(h)))
    return float(order * (len(ranks) / len(h)) ** 0.25 * brevity**0.1)


@settings(examples, max_examples=300)
@given(texts_of("abcde"))
def test_ribes(pairs: list[tuple[str, str]]) -> None:
    agree("ribes(perfect=false,tok=whitespace)", pairs, ribes)


@settings(examples, max_examples=25)
@given(texts_of("abc", most=40))
def test_ribes_of_long_texts(pairs: list[tuple[str, str]]) -> None:
    agree("ribes(perfect=false,tok=whitespace)", pairs, ribes)


# --- WER


def similarity(reply: str, reference: str) -> float:
    return float(Levenshtein.normalized_similarity(reply.split(), reference.split()))


def test_wer_on_real_replies(real: list[tuple[str, str]]) -> None:
    agree("wer(tok=whitespace)", real, similarity)
    agree("wer(signed=true,tok=whitespace)", real, lambda *pair: 2 * similarity(*pair) - 1)


@settings(examples, max_examples=30)
@given(texts_of("abcd", most=200))
def test_long_texts(pairs: list[tuple[str, str]]) -> None:
    """More words than one machine word has bits."""
    agree("wer(tok=whitespace)", pairs, similarity)
    agree("rouge-l(tok=whitespace)", pairs, rouge)


def test_very_long_texts_take_no_minutes() -> None:
    rng = np.random.default_rng(0)
    a, b = (" ".join(map(str, rng.integers(0, 5000, 100_000))) for _ in range(2))
    agree("wer(tok=whitespace)", [(a, b)], similarity)
    for spec in ("rouge-l(tok=whitespace)", "ribes(tok=whitespace)"):
        (value,), _ = score(spec, [a], [b])
        assert 0 < value < 1


@examples
@given(texts_of("abcd"))
def test_wer(pairs: list[tuple[str, str]]) -> None:
    agree("wer(tok=whitespace)", pairs, similarity)
    replies, references = columns(pairs)
    edits = sum(Levenshtein.distance(a.split(), b.split()) for a, b in pairs)
    length = sum(max(len(a.split()), len(b.split())) for a, b in pairs)
    expected = 1 - edits / length if length else 1.0
    assert score("wer(tok=whitespace)", replies, references)[1] == pytest.approx(expected)
