"""Input encoders: subwords, frozen vectors, tokens of a transformer; saved and opened again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from learn.small import make_data
from learn.tiny import make_bert
from rejoinder.encode.static.train.train_vectors import Settings, read_corpus, train_vectors
from rejoinder.encode.text_encoders import SentenceEncoder
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.inputs import make_input
from rejoinder.learn.inputs.cross_encoder import CrossEncoderInput
from rejoinder.learn.inputs.input_encoder import InputEncoder
from rejoinder.learn.inputs.ragged import RaggedIds
from rejoinder.learn.inputs.subwords import (
    FIRST_SUBWORD,
    TURN_SEPARATOR,
    SubwordInput,
    train_subwords,
)
from rejoinder.learn.inputs.vectors import VectorInput
from rejoinder.learn.networks.cross_encoder import NO_TOKEN
from rejoinder.learn.networks.scorers import VectorScorer
from rejoinder.learn.settings import RaterSettings, ScorerSettings, TrainingSettings

pytestmark = pytest.mark.usefixtures("one_thread")

TRAINING = TrainingSettings(steps=1)
CONTEXTS = [["wa wb", "wc wd wa"], ["we"], ["wf wg", "wh", "wa wb wc wd we"]]
REPLIES = ["wa", "wb wc wd we wf", ""]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bert(tmp_path_factory.mktemp("models") / "tiny")


def options(name: str, bert: Path) -> tuple[str, dict[str, Any]]:
    return {
        "gru": ("gru", {"vocab_size": 50, "embedding_size": 8, "hidden_size": 8, "max_tokens": 20}),
        "sentences": ("vectors", {"model": str(bert)}),
        "words": ("vectors", {"vectors": str(bert), "tokenizer": "whitespace"}),
        "ngrams": (
            "vectors", {"vectors": str(bert), "tokenizer": "whitespace", "char_ngram_buckets": 64},
        ),
        "question": ("vectors", {"model": str(bert), "question_feature": True}),
        "extra-layer": ("vectors", {"model": str(bert), "extra_layer": 1}),
        "turns": ("vectors", {"model": str(bert), "concat_turns": False}),
        "encoder": ("encoder", {"model": str(bert), "max_tokens": 32, "frozen_layers": 1}),
    }[name]  # fmt: skip


NAMES = ["gru", "sentences", "words", "ngrams", "question", "extra-layer", "turns", "encoder"]


@pytest.fixture
def inputs(request: pytest.FixtureRequest, bert: Path, tmp_path: Path) -> InputEncoder:
    return make_input(*options(request.param, bert), make_data(), tmp_path / "work")


def test_question_feature_adds_a_sign(bert: Path, tmp_path: Path) -> None:
    """One more column, 1 or -1, after each view and each reply."""
    asked = {"model": str(bert), "question_feature": True}
    inputs = make_input("vectors", asked, make_data(), tmp_path / "work")
    plain = make_input("vectors", {"model": str(bert)}, make_data(), tmp_path / "work")
    contexts, replies = [["wa", "wb wc?"], ["wa wb? wc."]], ["wa?", "wa. wb", ""]
    rows = np.arange(2)
    found = inputs.encode_contexts(contexts, 2).batch(rows)
    assert torch.equal(found[..., :-1], plain.encode_contexts(contexts, 2).batch(rows))
    assert found[..., -1].tolist() == [[1, 1], [-1, -1]]
    assert inputs.encode_replies(replies).batch(np.arange(3))[:, -1].tolist() == [1, -1, -1]
    (tmp_path / "saved").mkdir()
    inputs.save(tmp_path / "saved")
    again = InputEncoder.open(tmp_path / "saved")
    assert torch.equal(again.encode_contexts(contexts, 2).batch(rows), found)


def test_extra_layer_is_appended_to_the_sentence_vector(bert: Path, tmp_path: Path) -> None:
    """Both have length 1, and so has the result. The cosine and neighbours use the sentence vector
    only."""
    inputs = make_input("vectors", {"model": str(bert), "extra_layer": 1}, make_data(), tmp_path)
    assert isinstance(inputs, VectorInput)
    texts, rows = ["wa wb", "wc", "wd we wf"], np.arange(3)
    whole = SentenceEncoder(model=str(bert)).encode(texts)
    lower = SentenceEncoder(model=str(bert), layer=1).encode(texts)
    assert np.abs(whole - lower).max() > 1e-3
    np.testing.assert_array_equal(inputs.sentence_vectors(texts), whole)
    found = inputs.encode_replies(texts).batch(rows)
    np.testing.assert_allclose(found, np.hstack([whole, lower]) / 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(found.norm(dim=1), 1, rtol=1e-6)
    scorer: Any = inputs.make_scorer(
        ScorerSettings(training=TRAINING, context_turns=1, hidden_size=8)
    )
    near = scorer.max_cosine(inputs.encode_contexts([["wa"]] * 3).batch(rows), found)
    expected = whole @ SentenceEncoder(model=str(bert)).encode(["wa"])[0] / 2
    np.testing.assert_allclose(near, expected, rtol=1e-5)


def test_turns_are_encoded_one_by_one_without_concat_turns(bert: Path, tmp_path: Path) -> None:
    """The last turn, the one before it, and zeros where there is none."""
    inputs = make_input(
        "vectors", {"model": str(bert), "concat_turns": False}, make_data(), tmp_path
    )
    found = inputs.encode_contexts([["wa", "wb wc"], ["wd"]], 3).batch(np.arange(2))
    wa, wbc, wd = SentenceEncoder(model=str(bert)).encode(["wa", "wb wc", "wd"])
    nothing = np.zeros_like(wa)
    np.testing.assert_array_equal(found, [[wbc, wa, nothing], [wd, nothing, nothing]])


def test_missing_turns_do_not_count_for_the_cosine() -> None:
    """The reply is at 120° from the only turn: that is the nearest one. Without any turn, the
    cosine is 0."""
    scorer = VectorScorer(2, 3, 4)
    turn, away = [1.0, 0.0], [-0.5, 0.75**0.5]
    contexts = torch.tensor([[turn, [0, 0], [0, 0]], [turn, away, [0, 0]], [[0.0, 0]] * 3])
    replies = torch.tensor([away, turn]).repeat(3, 1)
    expected = [-0.5, 1.0, 1.0, 1.0, 0.0, 0.0]
    assert scorer.max_cosine(contexts, replies).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("inputs", NAMES, indirect=True)
def test_save_and_open_give_the_same_input_encoder(inputs: InputEncoder, tmp_path: Path) -> None:
    folder, moved = tmp_path / "saved", tmp_path / "moved"
    folder.mkdir()
    inputs.save(folder)
    first = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    shutil.move(folder, moved)
    again = InputEncoder.open(moved)
    assert type(again) is type(inputs)
    assert (again.depends, again.to_dict()) == (inputs.depends, inputs.to_dict())
    rows = np.array([2, 0, 1])
    for one, other in (
        (inputs.encode_contexts(CONTEXTS, 2), again.encode_contexts(CONTEXTS, 2)),
        (inputs.encode_replies(REPLIES), again.encode_replies(REPLIES)),
    ):
        assert torch.equal(one.batch(rows), other.batch(rows))
    folder.mkdir()
    again.save(folder)
    assert first == {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("inputs", NAMES, indirect=True)
def test_networks_read_the_encoded_texts(inputs: InputEncoder) -> None:
    rows = np.arange(3)
    contexts, replies = inputs.encode_contexts(CONTEXTS, 2), inputs.encode_replies(REPLIES)
    scorer = inputs.make_scorer(ScorerSettings(training=TRAINING, context_turns=2, hidden_size=8))
    assert scorer(contexts.batch(rows), replies.batch(rows)).shape == (3,)
    rater = inputs.make_rater(RaterSettings(training=TRAINING, context_turns=2, hidden_size=8))
    u, r = contexts.batch(rows), replies.batch(rows)
    assert [part.shape for part in rater(u, r, u, r)] == [(3, 2), (3, 2)]


@pytest.mark.parametrize("inputs", NAMES, indirect=True)
def test_only_the_last_turns_are_encoded(inputs: InputEncoder) -> None:
    long = [["wx wy", *context] for context in CONTEXTS]
    rows = np.array([2])
    for turns in (1, 2):
        one, other = inputs.encode_contexts(CONTEXTS, turns), inputs.encode_contexts(long, turns)
        assert torch.equal(one.batch(rows), other.batch(rows))
    assert not torch.equal(
        inputs.encode_contexts(CONTEXTS, 1).batch(rows),
        inputs.encode_contexts(CONTEXTS, 2).batch(rows),
    )
    empty = inputs.encode_contexts([[]], 1)
    assert empty.batch(np.array([0])).shape[0] == 1


@pytest.mark.parametrize("inputs", NAMES, indirect=True)
def test_no_texts_can_be_encoded(inputs: InputEncoder) -> None:
    assert len(inputs.encode_replies([]).lengths) == len(inputs.encode_contexts([], 2).lengths) == 0


def test_a_batch_reads_its_own_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ragged = RaggedIds.of([[5, 6, 7], [], [8], [9, 9, 9, 9]], padding=0)
    assert ragged.lengths.tolist() == [3, 0, 1, 4]
    assert ragged.lengths is ragged.lengths, "computed once"
    monkeypatch.setattr(RaggedIds, "lengths", property(lambda self: pytest.fail("of all rows")))
    assert ragged.batch(np.array([2, 0, 1])).tolist() == [[8, 0, 0], [5, 6, 7], [0, 0, 0]]
    assert ragged.batch(np.array([1])).tolist() == [[0]]


@pytest.mark.parametrize("inputs", ["gru"], indirect=True)
def test_subwords_of_turns_are_joined_by_a_separator(inputs: SubwordInput) -> None:
    one, two = (
        inputs.encode_replies([text]).batch(np.array([0]))[0].tolist() for text in CONTEXTS[0]
    )
    joined = inputs.encode_contexts(CONTEXTS[:1], 2).batch(np.array([0]))[0].tolist()
    assert joined == [*one, TURN_SEPARATOR, *two]
    assert min(one + two) >= FIRST_SUBWORD
    long = inputs.encode_replies(["wa " * 50])
    assert long.lengths.tolist() == [20]
    kept = inputs.encode_contexts([["wb " * 50 + "wa"]]).batch(np.array([0]))[0].tolist()
    assert kept[-len(inputs.encode_replies(["wa"]).batch(np.array([0]))[0]) :] == (
        inputs.encode_replies(["wa"]).batch(np.array([0]))[0].tolist()
    ), "the end of a context is kept"


def test_subwords_are_trained_reproducibly(tmp_path: Path) -> None:
    texts = make_data().training.responses
    assert train_subwords(iter(texts), 60) == train_subwords(iter(texts), 60)
    inputs = SubwordInput.make(make_data(), tmp_path, vocab_size=60)
    (kept,) = tmp_path.glob("subwords-*.model")
    kept.write_bytes(train_subwords(iter(["other", "texts", "altogether"]), 20))
    assert SubwordInput.make(make_data(), tmp_path, vocab_size=60).digest != inputs.digest, "kept"
    assert SubwordInput.make(make_data(80), tmp_path, vocab_size=60).digest != inputs.digest


def test_vocabulary_is_smaller_if_texts_are_few(tmp_path: Path) -> None:
    inputs = SubwordInput.make(
        make_data(8), tmp_path, vocab_size=16_000, embedding_size=4, hidden_size=4
    )
    assert inputs.encode_replies(["wa \ud83d wb"]).lengths[0] > 0
    with pytest.raises(UsageError, match="vocab_size=3: SentencePiece cannot be trained"):
        SubwordInput.make(make_data(8), tmp_path, vocab_size=3)


@pytest.mark.parametrize("inputs", ["sentences", "words"], indirect=True)
def test_views_are_the_last_turns_concatenated(inputs: VectorInput) -> None:
    """The last turn, the last two …; a context with fewer turns repeats its longest view."""
    found = inputs.encode_contexts(CONTEXTS, 3).batch(np.arange(3))
    for row, texts in enumerate(
        [
            ["wc wd wa", "wa wb wc wd wa", "wa wb wc wd wa"],
            ["we"] * 3,
            ["wa wb wc wd we", "wh wa wb wc wd we", "wf wg wh wa wb wc wd we"],
        ]
    ):
        torch.testing.assert_close(found[row], torch.from_numpy(inputs.sentence_vectors(texts)))
    assert inputs.encode_contexts(CONTEXTS, 3).lengths.tolist() == [1, 1, 1]
    norms = np.linalg.norm(inputs.sentence_vectors(["wa", "wb wc", " "]), axis=1)
    np.testing.assert_allclose(norms, [1, 1, 0], atol=1e-6)


def test_own_vectors_are_found_after_the_evaluator_is_moved(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(make_data().training.responses))
    training = Settings(dimensions=6, min_count=1, epochs=2, tok="whitespace")
    work, home = tmp_path / "work", tmp_path / "work" / "unreferenced"
    home.mkdir(parents=True)
    corpus = read_corpus([str(texts)], training)
    train_vectors(corpus, work / "vectors", training, inputs=[str(texts)])
    inputs = VectorInput.make(vectors="evaluator", tokenizer="whitespace", home=home)
    inputs.save(home)
    shutil.move(work, tmp_path / "elsewhere")
    again = InputEncoder.open(tmp_path / "elsewhere" / "unreferenced")
    assert isinstance(again, VectorInput)
    np.testing.assert_array_equal(
        again.sentence_vectors(["wa wb"]), inputs.sentence_vectors(["wa wb"])
    )
    assert again.sentence_vectors(["wa wb"]).shape == (1, 6)


def ngram_rows(tmp_path: Path, texts: list[str], **options: Any) -> Any:
    """Return the n-gram features; the words of the vectors occur 6, 3 and 1 times in training."""
    learnt = tmp_path / "learnt.txt"
    learnt.write_text("no no no ma ma ab\nno no no ma\n")
    training = Settings(dimensions=4, min_count=1, epochs=1, tok="whitespace")
    folder = tmp_path / "vectors"
    train_vectors(read_corpus([str(learnt)], training), folder, training, inputs=[str(learnt)])
    inputs = VectorInput.make(vectors=str(folder), tokenizer="whitespace", **options)
    return inputs.encode_replies(texts).batch(np.arange(len(texts)))[:, 4:]


def test_char_ngrams_measure_shared_spelling(tmp_path: Path) -> None:
    """n-grams of two and three characters with the ends of words: 'ab' has <a, ab, b>, <ab, ab>;
    'ac' has <a, ac, c>, <ac, ac>. Of five each they share one: a cosine of 1/5. With many buckets,
    no two n-grams collide."""
    found = ngram_rows(tmp_path, ["ab", "ac", "xy", "ab ab", ""], char_ngram_buckets=65_536)
    cosines = (found @ found.T).numpy()
    np.testing.assert_allclose(cosines[0], [1, 0.2, 0, 1, 0], atol=1e-6)
    np.testing.assert_allclose(np.diag(cosines), [1, 1, 1, 1, 0], atol=1e-6)


def test_rare_words_have_more_weight(tmp_path: Path) -> None:
    """a / (a + p) with a = 0.1, of ten words: 'no' (six) has 0.1/0.7 = 1/7, 'ab' (one) 0.1/0.2,
    which is 1/2, and 'xy', an unknown word, 1. No word shares an n-gram with another, and
    each has five: 'no ab' is (1/7, 1/2)·√5, and its cosine with 'ab' (1/2) / √(1/49 + 1/4)."""
    found = ngram_rows(tmp_path, ["no ab", "ab", "ab xy"], char_ngram_buckets=65_536, sif_a=0.1)
    cosines = (found @ found.T).numpy()
    assert cosines[0, 1] == pytest.approx(0.5 / (1 / 49 + 1 / 4) ** 0.5)
    assert cosines[1, 2] == pytest.approx(0.5 / (1 / 4 + 1) ** 0.5)


@pytest.mark.parametrize("inputs", ["encoder"], indirect=True)
def test_cross_encoder_limits_the_tokens_of_each_text(inputs: CrossEncoderInput) -> None:
    """32 tokens, 4 of them special: half of the rest for the context, a quarter for a reply."""
    tokenizer = inputs._tokenizer
    ids = {word: tokenizer.convert_tokens_to_ids(word) for word in ("wa", "wb", "wc", "[SEP]")}
    found = inputs.encode_contexts([["wa wb", "wc"], ["wa"]], 2).batch(np.arange(2))
    assert found.tolist() == [
        [ids["wa"], ids["wb"], ids["[SEP]"], ids["wc"]],
        [ids["wa"], NO_TOKEN, NO_TOKEN, NO_TOKEN],
    ]
    assert inputs.encode_contexts([["wa " * 50]]).lengths.tolist() == [14]
    assert inputs.encode_replies(["wa " * 50]).lengths.tolist() == [7]


def test_a_fitted_cross_encoder_does_not_need_the_original_model(
    bert: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(bert, start)
    inputs = CrossEncoderInput.make(model=str(start))
    (tmp_path / "saved").mkdir()
    inputs.save(tmp_path / "saved")
    shutil.rmtree(start)
    assert InputEncoder.open(tmp_path / "saved").encode_replies(["wa"]).lengths.tolist() == [1]


def test_wrong_options_are_usage_errors(bert: Path, tmp_path: Path) -> None:
    def wrong(name: str, **options: Any) -> str:
        with pytest.raises(UsageError) as error:
            make_input(name, options, make_data(8), tmp_path)
        return str(error.value)

    assert "unknown input 'grus': did you mean 'gru'?" in wrong("grus")
    assert "input gru has no option 'hiden_size': did you mean 'hidden_size'" in wrong(
        "gru", hiden_size=3
    )
    assert "hidden_size must be above 0, not 0" in wrong("gru", hidden_size=0, vocab_size=50)
    assert "not both" in wrong("vectors", model=str(bert), vectors=str(bert))
    assert "char_ngram_buckets needs word vectors" in wrong(
        "vectors", model=str(bert), char_ngram_buckets=8
    )
    assert "extra_layer needs a model" in wrong("vectors", vectors=str(bert), extra_layer=1)
    for layer in (2, -1):  # of 2 layers
        found = wrong("vectors", model=str(bert), extra_layer=layer)
        assert f"extra_layer={layer} must be below the last" in found
    assert "must be from 0 to 65536" in wrong("vectors", vectors=str(bert), char_ngram_buckets=-1)
    assert "sif_a=0.0 is not a relative frequency" in wrong("vectors", vectors=str(bert), sif_a=0)
    assert "sif_a=much is not a number" in wrong("vectors", vectors=str(bert), sif_a="much")
    assert "char_ngram_buckets=true is not a whole" in wrong(
        "vectors", vectors=str(bert), char_ngram_buckets=True
    )
    assert "hidden_size=wide is not a whole" in wrong("gru", hidden_size="wide")
    assert "did you mean 'home'" not in wrong("vectors", nope=1)
    assert "has 2 layers" in wrong("encoder", model=str(bert), frozen_layers=3)
    assert "16 or more" in wrong("encoder", model=str(bert), max_tokens=8)


def test_a_damaged_input_file_is_a_data_error(bert: Path, tmp_path: Path) -> None:
    VectorInput.make(model=str(bert)).save(tmp_path)
    path = tmp_path / "input.json"
    record = json.loads(path.read_text())

    def opened(**changes: Any) -> str:
        path.write_text(json.dumps({**record, **changes}))
        with pytest.raises(DataError) as error:
            InputEncoder.open(tmp_path)
        return str(error.value)

    assert "newer version" in opened(format=99)
    assert "does not describe the input" in opened(input="telepathy")
    assert "does not describe the input" in opened(encoder="bm25")
    other = opened(depends={"model": "other@123"})
    assert "was fitted with model other@123, but found model" in other
    path.write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        InputEncoder.open(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        InputEncoder.open(tmp_path)
