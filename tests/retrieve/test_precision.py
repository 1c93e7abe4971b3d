"""Vectors stored with fewer bits: what is stored, how far it is off, what a search makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rejoinder.errors import DataError
from rejoinder.retrieve.dense import VectorRetriever
from rejoinder.retrieve.index_folder import build_index, open_pool
from rejoinder.retrieve.precision import PRECISIONS
from rejoinder.retrieve.retriever import Queries, make_retriever
from rejoinder.retrieve.vector_file import VectorFile, Vectors, blocks, write_vectors

INT8 = PRECISIONS["int8"]


def test_int8_by_hand() -> None:
    """The largest number is 1, so the scale is 1/127: .5 is 63.5, rounded to even 64, and .25 is
    31.75, rounded to 32."""
    packed = INT8.pack(np.array([[0.5, -1.0, 0.25], [0, 0, 0]], np.float32))
    assert packed[:, :3].tolist() == [[64, -127, 32], [0, 0, 0]]
    assert packed[:, 3:].tobytes() == np.array([1 / 127, 0], "<f4").tobytes()
    plain = INT8.unpack(packed)
    assert plain[0] == pytest.approx([64 / 127, -1.0, 32 / 127])
    assert not plain[1].any()


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 9)),
        elements=st.floats(-2.0, 2.0, width=32),
    )
)
def test_numbers_are_off_by_at_most_half_a_scale(vectors: Vectors) -> None:
    scales = np.abs(vectors).max(axis=1, keepdims=True) / 127
    off = np.abs(INT8.unpack(INT8.pack(vectors)) - vectors)
    assert (off <= 0.5 * scales * 1.001 + 1e-30).all()
    half = PRECISIONS["float16"]
    # float16 has 11 significant bits, and steps of 2^-24 next to 0
    assert (
        np.abs(half.unpack(half.pack(vectors)) - vectors) <= np.abs(vectors) / 2048 + 2**-25
    ).all()
    whole = PRECISIONS["float32"]
    assert (whole.unpack(whole.pack(vectors)) == vectors).all()


@pytest.mark.parametrize("name", PRECISIONS)
def test_an_interrupted_file_is_continued(tmp_path: Path, name: str) -> None:
    vectors = np.random.default_rng(1).normal(size=(20, 6)).astype(np.float32)

    def texts_from(row: int) -> Iterator[list[str]]:
        for first in range(row, 20, 8):
            yield [str(n) for n in range(first, min(first + 8, 20))]

    encoded: list[int] = []

    def encode(texts: list[str], progress: Any) -> Vectors:
        encoded.extend(map(int, texts))
        return np.asarray(vectors[[int(text) for text in texts]])

    path, whole = tmp_path / "part.npy", tmp_path / "whole.npy"
    write_vectors(whole, (20, 6), texts_from, 8, encode, None, PRECISIONS[name])
    stride = VectorFile(whole, 20)._stride
    path.write_bytes(whole.read_bytes()[: -9 * stride - 1])  # 11 rows, the last one cut
    encoded.clear()
    write_vectors(path, (20, 6), texts_from, 8, encode, None, PRECISIONS[name])
    assert encoded == list(range(8, 20))  # from the last whole batch on
    assert path.read_bytes() == whole.read_bytes()
    file = VectorFile(path, 20)
    assert (file.dimensions, file.precision.name) == (6, name)
    expected = PRECISIONS[name].unpack(PRECISIONS[name].pack(vectors))
    read = np.concatenate([block.copy() for _, (block,) in blocks([file], range(20), 7)])
    assert (read == expected).all()
    assert (file.rows([3, 19, 3]) == expected[[3, 19, 3]]).all()


@pytest.fixture
def words(tmp_path: Path) -> str:
    rng = np.random.default_rng(7)
    lines = [f"w{i} " + " ".join(f"{x:.4f}" for x in rng.normal(size=48)) for i in range(200)]
    path = tmp_path / "words.txt"
    path.write_text("200 48\n" + "\n".join(lines) + "\n")
    return str(path)


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{i}" for i in rng.integers(200, size=4)) for _ in range(count)]


@pytest.mark.parametrize(("name", "share"), [("float16", 0.51), ("int8", 0.29)])
@pytest.mark.parametrize("index", ["exact", "hnsw"])
def test_hits_are_nearly_those_of_float32(
    name: str, share: float, index: str, words: str, pairs: Any, tmp_path: Path
) -> None:
    path = pairs([(text, f"r{i}") for i, text in enumerate(texts(5000, 8))])
    queries = Queries(texts(60, 9), [None] * 60)
    sizes, found = {}, {}
    for precision in ("float32", name):
        extra = f"precision={precision}," if precision != "float32" else ""
        retriever = make_retriever(f'vectors(vectors="{words}",{extra}index={index})')
        build_index(path, retriever, tmp_path / precision)
        file = next((tmp_path / precision).glob("index-*/utterance.npy"))
        sizes[precision] = file.stat().st_size
        found[precision] = open_pool(tmp_path / precision).search(retriever, queries, 10)
    assert sizes[name] / sizes["float32"] < share  # int8: (48 + 4) / (4 * 48) = .27
    same = [
        len(set(a) & set(b)) / 10
        for a, b in zip(found["float32"].rows, found[name].rows, strict=True)
    ]
    assert np.mean(same) > 0.95
    assert np.abs(found[name].scores - found["float32"].scores).max() < 0.01
    if index == "exact":  # the similarities are those of the stored vectors
        stored = VectorFile(next((tmp_path / name).glob("index-*/utterance.npy")))
        retriever = make_retriever(f'vectors(vectors="{words}",precision={name})')
        assert isinstance(retriever, VectorRetriever)
        asked = retriever.encode_key("utterance", texts(60, 9)).astype(np.float64)
        rows = found[name].rows[5]
        products = stored.rows(rows).astype(np.float64) @ asked[5]
        assert found[name].scores[5] == pytest.approx(products, abs=1e-7)


def test_an_unknown_precision_is_refused(words: str) -> None:
    with pytest.raises(Exception, match="unknown precision 'int16': did you mean 'int8'"):
        make_retriever(f'vectors(vectors="{words}",precision=int16)')


def test_a_damaged_scale_is_refused(tmp_path: Path) -> None:
    packed = INT8.pack(np.ones((3, 2), np.float32))
    packed[1, 2:] = np.array([np.nan], "<f4").view("i1")
    np.save(tmp_path / "v.npy", packed)
    with pytest.raises(DataError, match="holds a value that is not a finite number"):
        VectorFile(tmp_path / "v.npy").rows([0, 1])
    np.save(tmp_path / "v.npy", packed[:, 2:])
    with pytest.raises(DataError, match="has rows without a vector"):
        VectorFile(tmp_path / "v.npy")
