"""The input table of an encoder as word vectors: what it knows of a word before any context.

The table is mapped straight from the weights, so neither torch nor transformers is imported. Words
are split by the encoder's own tokenizer: one piece is a word with a vector; a word of several
pieces is their mean; what the tokenizer does not know is unknown.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.encode.cache import open_cache
from rejoinder.encode.static.vectors import Bools, Floats, Ints, WordVectors
from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.encode.transformer.pieces import Pieces, open_pieces
from rejoinder.errors import DataError, MissingExtra

TABLES = (
    "embeddings.word_embeddings.weight",
    "embeddings.tok_embeddings.weight",
    "embed_tokens.weight",
    "shared.weight",
    "wte.weight",
    "word_embedding.weight",
)
"""How the names of input tables end, by family of models."""
TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
MOST_PIECES = 512
"""Longer words are cut: they are no words."""
REMEMBERED = 200_000


def open_encoder_table(name: str, path: Path) -> WordVectors:
    """The word-piece table of a model in the format of Hugging Face."""
    folder = ModelFolder(name, path)
    table = _Table(_input_table(folder))
    vocabulary = _Vocabulary(folder)
    words = _PieceWords(folder, vocabulary, table)
    digest = folder.digest(open_cache())
    return WordVectors(name, digest, table.matrix.shape[1], vocabulary.words, words, table, words)


class _Table:
    """Rows of the mapped weights, whatever their precision."""

    def __init__(self, matrix: np.ndarray[Any, Any]) -> None:
        self.matrix = matrix

    def take(self, rows: Ints) -> Floats:
        taken = self.matrix[rows]
        if taken.dtype == np.uint16:  # bfloat16: the upper half of a float32
            return (taken.astype(np.uint32) << 16).view(np.float32)
        return taken.astype(np.float32)


class _PieceWords:
    """Words by their pieces: both index and composer."""

    def __init__(self, folder: ModelFolder, vocabulary: _Vocabulary, table: _Table) -> None:
        self._table = table
        self._pieces: Pieces = open_pieces(folder)
        self._empty = vocabulary.empty | self._pieces.special_ids(MOST_PIECES)
        self._before = " " if vocabulary.marks_spaces else ""
        self._known: dict[str, tuple[int, ...]] = {}

    def rows(self, words: Sequence[str]) -> Ints:
        pieces = self._split(words)
        return np.array([p[0] if len(p) == 1 else -1 for p in pieces], np.int64)

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        pieces = self._split(words)
        counts = np.array([len(p) for p in pieces], np.int64)
        known = counts > 0
        out = np.zeros((len(words), self._table.matrix.shape[1]), np.float32)
        if known.any():
            flat = np.array([number for p in pieces for number in p], np.int64)
            starts = (np.cumsum(counts) - counts)[known]
            sums = np.add.reduceat(self._table.take(flat), starts, axis=0)
            out[known] = sums / counts[known, None].astype(np.float32)
        return out, known

    def _split(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The numbers of each word's pieces, those without meaning left out."""
        found = {word: self._known.get(word) for word in words}
        new = [word for word, pieces in found.items() if pieces is None]
        if new:
            split = self._pieces.split([self._before + word for word in new], MOST_PIECES)
            ids, starts = split.ids.tolist(), split.starts.tolist()
            for word, (begin, end) in zip(new, pairwise(starts), strict=True):
                found[word] = tuple(n for n in ids[begin:end] if n not in self._empty)
            if len(self._known) + len(new) > REMEMBERED:
                self._known = {}
            self._known.update({word: found[word] or () for word in new})
        return [found[word] or () for word in words]


class _Vocabulary:
    """What the tokenizer's files say: its pieces in order, and which ones say nothing."""

    def __init__(self, folder: ModelFolder) -> None:
        path = folder.path / "tokenizer.json"
        self.marks_spaces = False
        pieces: dict[str, int] = {}
        unknown = str(folder.tokenizer_settings.get("unk_token", "[UNK]"))
        if path.is_file():
            record = _json(path)
            model = record.get("model", {})
            # a byte-level tokenizer tells words from the inside of words by the space before
            self.marks_spaces = '"ByteLevel"' in json.dumps(record.get("pre_tokenizer"))
            listed = model.get("vocab", {})
            if isinstance(listed, list):  # Unigram: pairs of piece and score
                pieces = {piece: number for number, (piece, _) in enumerate(listed)}
                number = model.get("unk_id")
                unknown = listed[number][0] if isinstance(number, int) else unknown
            else:
                pieces = dict(listed)
                unknown = model.get("unk_token") or unknown
            pieces |= {token["content"]: token["id"] for token in record.get("added_tokens", [])}
        elif (plain := folder.path / "vocab.txt").is_file():
            lines = plain.read_text("utf-8").splitlines()
            pieces = {piece: number for number, piece in enumerate(lines)}
        # beside the unknown piece, the bare mark of a space: it is no part of the word
        self.empty = frozenset(pieces[p] for p in (unknown, "▁", "Ġ") if p in pieces)
        self.words = sorted(pieces, key=pieces.__getitem__)


def _input_table(folder: ModelFolder) -> np.ndarray[Any, Any]:
    """The matrix [pieces, dimensions], mapped."""
    for path in folder.weights:
        if path.suffix != ".safetensors":
            raise MissingExtra(
                f"word vectors of model '{folder.name}' need model.safetensors, it has only"
                f" {path.name}; save it anew with safe_serialization=True"
            )
        header, first = _header(path)
        for ending in TABLES:
            names = [name for name in header if f".{name}".endswith(f".{ending}")]
            if names:
                # an encoder-decoder has two; the encoder's own name sorts after "decoder"
                return _mapped(path, header[max(names)], first)
    raise DataError("there is no table of word pieces among the weights", path=str(folder.path))


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """What safetensors says of its tensors, and where their numbers begin."""
    with path.open("rb") as stream:
        size = stream.read(8)
        (length,) = struct.unpack("<Q", size) if len(size) == 8 else (0,)
        text = stream.read(min(length, 10**8))
    try:
        header = json.loads(text) if len(text) == length else None
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise DataError("is no sound safetensors file", path=str(path))
    return header, 8 + length


def _mapped(path: Path, tensor: dict[str, Any], first: int) -> np.ndarray[Any, Any]:
    try:
        dtype, (rows, columns) = np.dtype(TYPES[tensor["dtype"]]), tensor["shape"]
        begin, end = tensor["data_offsets"]
        if end - begin != rows * columns * dtype.itemsize:
            raise ValueError("its size does not fit its shape")
        mapped = np.memmap(path, np.uint8, "r")
        # weights need not be aligned: bytes are, and a view of them may stand anywhere
        return np.ndarray((rows, columns), dtype, mapped, first + begin)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"has no sound table of word pieces: {error}", path=str(path)) from None


def _json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except ValueError as error:
        raise DataError(f"is no JSON ({error})", path=str(path)) from None
    if not isinstance(record, dict):
        raise DataError("is no JSON object", path=str(path))
    return record
