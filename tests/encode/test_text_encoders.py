"""Text encoders: unit vectors by averaged word vectors or by a transformer, built from specs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rejoinder.encode.static.vectors_folder import Batch, new_vectors_folder
from rejoinder.encode.text_encoders import (
    OWN_VECTORS,
    VECTORS_FOLDER,
    SentenceEncoder,
    WordVectorEncoder,
    make_text_encoder,
)
from rejoinder.encode.transformer import open_encoder
from rejoinder.errors import UsageError


@pytest.fixture
def evaluator(tmp_path: Path) -> Path:
    """A folder with word vectors: the = (1, 0) six times, kitchen = (0, 1) twice, of ten tokens."""
    with new_vectors_folder(tmp_path / VECTORS_FOLDER, "test") as writer:
        writer.add(
            Batch([b"the", b"kitchen", b"a"], np.array([[1, 0], [0, 1], [1, 1]], np.float32))
        )
        writer.add_counts(np.array([6, 2, 2]))
        writer.finish({}, ["en"])
    return tmp_path


def test_average_of_word_vectors(evaluator: Path) -> None:
    encoder = WordVectorEncoder(vectors=str(evaluator / VECTORS_FOLDER))
    vectors = encoder.encode(["The kitchen", "the the", "unknown words", ""])
    half = 0.5**0.5
    np.testing.assert_allclose(vectors, [[half, half], [1, 0], [0, 0], [0, 0]], atol=1e-7)
    assert encoder.dimensions == 2 and encoder.languages == frozenset(["en"])
    assert set(encoder.depends) == {"tokenizer", "vectors"}


def test_smooth_inverse_frequency(evaluator: Path) -> None:
    """a = 0.2: the weighs 0.2/0.8 = 1/4, kitchen 0.2/0.4 = 1/2, so the direction is (1, 2)."""
    encoder = WordVectorEncoder(vectors=str(evaluator / VECTORS_FOLDER), sif_a=0.2)
    np.testing.assert_allclose(encoder.encode(["the kitchen"]), [[5**-0.5, 2 * 5**-0.5]], atol=1e-6)


def test_vectors_of_an_evaluator_are_found_relative_to_its_parts(evaluator: Path) -> None:
    encoder = WordVectorEncoder(vectors=OWN_VECTORS)
    with pytest.raises(UsageError, match="part of an evaluator"):
        encoder.encode(["the"])
    part = encoder.at(evaluator / "rater")
    assert part == encoder and str(part) == str(encoder) == "vectors(vectors=evaluator)"
    np.testing.assert_array_equal(part.encode(["the"]), [[1, 0]])
    moved = evaluator.rename(evaluator.with_name("moved"))
    np.testing.assert_array_equal(encoder.at(moved / "rater").encode(["the"]), [[1, 0]])


def test_texts_that_cannot_be_split_are_reported(evaluator: Path) -> None:
    encoder = WordVectorEncoder(vectors=str(evaluator / VECTORS_FOLDER))
    (number,) = encoder.problems(["the kitchen", "今日はとてもいい天気ですね"])
    assert number == 1


def test_sentence_vectors_of_a_transformer() -> None:
    encoder = SentenceEncoder()
    texts = ["hello there", " ", "how are you?"]
    vectors = encoder.encode(texts)
    np.testing.assert_array_equal(vectors[[0, 2]], open_encoder().sentences(texts)[[0, 2]])
    assert not vectors[1].any(), "a blank text has no vector"
    last, third = encoder.layered(texts, [None, 3])
    np.testing.assert_array_equal(last, vectors)
    np.testing.assert_array_equal(third[0], open_encoder().sentences(texts, layer=3)[0])
    assert encoder.languages == frozenset(["en"])
    assert encoder.depends == {"model": f"minilm@{open_encoder().digest}"}


@pytest.mark.parametrize(
    "spec",
    [
        "encoder",
        "encoder(model=mpnet,layer=3,pooling=cls)",
        "vectors(vectors=evaluator,tok=ja-mecab,lower=false,sif_a=0.001)",
    ],
)
def test_specs_are_parsed_and_printed(spec: str) -> None:
    assert str(make_text_encoder(spec)) == spec


@pytest.mark.parametrize(
    "spec", ["bm25", "encoder(pooling=max)", "vectors(sif_a=2)", "vectors(sif_a=0)", "encoder(k=3)"]
)
def test_bad_specs_are_refused(spec: str) -> None:
    with pytest.raises(UsageError):
        make_text_encoder(spec)


def test_vectors_that_are_read_together(evaluator: Path, tmp_path: Path) -> None:
    """The cosine of two texts is the mean of their cosines by each of the vectors: kitchen and a
    are at 45°, cosine .7071, by the first, at 90°, cosine 0, by the second."""
    with new_vectors_folder(tmp_path / "other", "test") as writer:
        rows = np.array([[2, 0, 0], [0, 3, 0]], np.float32)
        writer.add(Batch([b"kitchen", b"a"], rows))
        writer.finish({}, ["de"])
    names = f"{OWN_VECTORS}+{tmp_path / 'other'}"
    encoder = WordVectorEncoder(vectors=names, sif_a=0.2).at(evaluator / "unreferenced")
    kitchen, a, the, nothing = encoder.encode(["kitchen", "a", "the", "zebra"])
    assert encoder.dimensions == 5 and encoder.languages == frozenset(["en", "de"])
    assert kitchen @ a == pytest.approx(0.5**0.5 / 2)
    np.testing.assert_allclose(the, [1, 0, 0, 0, 0])  # known to the first only
    assert not nothing.any()
    # frequencies are those of the first: the weighs 1/4, kitchen 1/2, so the direction is (1, 2)
    both = encoder.encode(["the kitchen"])[0]
    np.testing.assert_allclose(both[:2] * 2**0.5, [5**-0.5, 2 * 5**-0.5], atol=1e-6)
    first, second = encoder.depends["vectors"].split("+")
    assert first.startswith("evaluator@") and second.startswith(f"{tmp_path / 'other'}@")


def test_a_path_may_contain_the_sign_between_names(tmp_path: Path, evaluator: Path) -> None:
    renamed = (evaluator / VECTORS_FOLDER).rename(tmp_path / "a+b")
    assert WordVectorEncoder(vectors=str(renamed)).dimensions == 2
