"""Damaged and random files either open or are refused with a DataError."""

from __future__ import annotations

import contextlib
import json
import struct
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.encode.static.convert import convert
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors_folder import open_vectors_folder
from rejoinder.errors import DataError

ROWS = np.arange(6, dtype="<f4").reshape(3, 2) / 8
FASTTEXT = (
    struct.pack("<2i", 793712314, 12)
    + struct.pack("<12id", 2, 5, 5, 1, 5, 1, 2, 2, 4, 2, 3, 100, 1e-4)
    + struct.pack("<3i2q", 3, 3, 0, 9, -1)
    + b"".join(word + b"\0" + struct.pack("<qb", 3, 0) for word in (b"</s>", b"ab", b"cd"))
    + struct.pack("<?2q", False, 7, 2)
    + np.arange(14, dtype="<f4").tobytes()
)
SOUND = {
    "word2vec text": b"3 2\nthe 0.5 1\nof -2e-1 .5\nand 3 4\n",
    "word2vec binary": b"3 2\n"
    + b"".join(b"%d " % i + row.tobytes() for i, row in enumerate(ROWS)),
    "GloVe": b"the 0.5 1\nof -2e-1 .5\nand 3 4\n",
    "fastText": FASTTEXT,
    "JSON": json.dumps({"dimensions": 2, "words": ["a"], "vectors": {"a": [1, 2, 3]}}).encode(),
}


def attempt(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "v"
        path.write_bytes(data)
        with contextlib.suppress(DataError):
            convert(Source(path, "v"), Path(home) / "folder")
            vectors = open_vectors_folder(Path(home) / "folder")
            words = list(vectors.words)
            found, known = vectors.find([*words, "ab", "zebra"])
            assert known[: len(words)].all() and np.isfinite(found).all()


@pytest.mark.parametrize("kind", SOUND)
def test_files_are_valid_before_they_are_damaged(kind: str, tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(SOUND[kind])
    convert(Source(tmp_path / "v", "v"), tmp_path / "folder")
    assert open_vectors_folder(tmp_path / "folder").dimensions == 2


@settings(max_examples=400)
@given(
    st.sampled_from(sorted(SOUND)),
    st.lists(st.tuples(st.integers(0, 250), st.binary(min_size=0, max_size=4)), max_size=4),
    st.integers(0, 300),
)
def test_damaged_files(kind: str, edits: list[tuple[int, bytes]], cut: int) -> None:
    data = bytearray(SOUND[kind])
    for place, piece in edits:
        data[place : place + max(1, len(piece))] = piece
    attempt(bytes(data[: len(data) - cut if cut < 40 else len(data)]))


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    attempt(data)
    attempt(b"2 3\n" + data)


@settings(max_examples=150)
@given(st.text(alphabet="ab01 .-e\t\r\n\u00a0é", max_size=60))
def test_random_text(text: str) -> None:
    attempt(text.encode())
