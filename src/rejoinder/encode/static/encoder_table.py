"""The input embeddings of an encoder as static word vectors.

The matrix is mapped straight from the weights, so neither torch nor transformers is imported.
Words are split by the encoder's own tokenizer: a word that is one token has its vector; a word of
several tokens has their mean; a word that the tokenizer does not know is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rejoinder.encode.static.word_vectors import Bools, Floats, Ints, WordVectors
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.safetensors_header import TensorInfo, read_header
from rejoinder.encode.transformer.tokenizer import open_tokenizer
from rejoinder.errors import DataError
from rejoinder.files.cache import open_cache
from rejoinder.files.checked import check_values, read_bytes, read_json
from rejoinder.files.paths import is_file

EMBEDDINGS = (
    "embeddings.word_embeddings.weight",
    "embeddings.tok_embeddings.weight",
    "embed_tokens.weight",
    "shared.weight",
    "wte.weight",
    "word_embedding.weight",
)
"""Endings of the names of input embeddings, by model family."""
TYPES = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "BF16": "<u2"}
MAX_TOKENS = 512
"""Longer words are truncated."""
MAX_REMEMBERED = 200_000
"""Words whose tokens are kept in memory."""


def open_encoder_table(name: str, path: Path) -> WordVectors:
    """Open the input embeddings of a model in the format of Hugging Face."""
    folder = ModelFolder(name, path)
    table = _EmbeddingTable(*_input_embeddings(folder))
    vocabulary = _Vocabulary(folder)
    words = _SubwordIndex(folder, vocabulary, table)
    return WordVectors(
        name=name,
        digest=folder.digest(open_cache()),
        dimensions=table.matrix.shape[1],
        words=vocabulary.words,
        index=words,
        table=table,
        composer=words,
        languages=folder.languages,
    )


class _EmbeddingTable:
    """Rows of the mapped weights, of any precision."""

    def __init__(self, matrix: np.ndarray[Any, Any], path: Path) -> None:
        self.matrix, self._path = matrix, path

    def take(self, rows: Ints) -> Floats:
        if rows.size and rows.max() >= len(self.matrix):
            raise DataError(
                f"the tokenizer has token {rows.max()}, but the weights have {len(self.matrix)}"
                " tokens",
                path=str(self._path),
            )
        taken = self.matrix[rows]
        if taken.dtype == np.uint16:  # bfloat16: the upper half of a float32
            vectors = (taken.astype(np.uint32) << 16).view(np.float32)
        else:
            vectors = taken.astype(np.float32)
        check_values(self._path, vectors, finite=True)
        return vectors


class _SubwordIndex:
    """Finds words that are one token, and composes all other words from their tokens."""

    def __init__(
        self, folder: ModelFolder, vocabulary: _Vocabulary, table: _EmbeddingTable
    ) -> None:
        self._table = table
        self._tokenizer = open_tokenizer(folder)
        self._skipped = vocabulary.skipped | self._tokenizer.special_ids(MAX_TOKENS)
        self._prefix = " " if vocabulary.marks_spaces else ""
        self._remembered: dict[str, tuple[int, ...]] = {}

    def rows(self, words: Sequence[str]) -> Ints:
        tokens = self._tokens(words)
        return np.array([t[0] if len(t) == 1 else -1 for t in tokens], np.int64)

    def compose(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        tokens = self._tokens(words)
        counts = np.array([len(t) for t in tokens], np.int64)
        has_vector = counts > 0
        vectors = np.zeros((len(words), self._table.matrix.shape[1]), np.float32)
        if has_vector.any():
            flat = np.array([number for t in tokens for number in t], np.int64)
            starts = (np.cumsum(counts) - counts)[has_vector]
            sums = np.add.reduceat(self._table.take(flat), starts, axis=0)
            vectors[has_vector] = sums / counts[has_vector, None].astype(np.float32)
        return vectors, has_vector

    def _tokens(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the tokens of each word without special and unknown ones."""
        by_word = {word: self._remembered.get(word) for word in words}
        new = [word for word, tokens in by_word.items() if tokens is None]
        if new:
            split = self._tokenizer.tokenize([self._prefix + word for word in new], MAX_TOKENS)
            ids, starts = split.ids.tolist(), split.starts.tolist()
            for word, (begin, end) in zip(new, pairwise(starts), strict=True):
                by_word[word] = tuple(n for n in ids[begin:end] if n not in self._skipped)
            if len(self._remembered) + len(new) > MAX_REMEMBERED:
                self._remembered = {}
            self._remembered.update({word: by_word[word] or () for word in new})
        return [by_word[word] or () for word in words]


class _Vocabulary:
    """The tokens of a tokenizer in their order, and those that carry no meaning."""

    def __init__(self, folder: ModelFolder) -> None:
        path = folder.path / "tokenizer.json"
        self.marks_spaces = False
        tokens: dict[str, int] = {}
        unknown = str(folder.tokenizer_settings.get("unk_token", "[UNK]"))
        if is_file(path):
            record: _TokenizerFile = read_json(path, _TokenizerFile)
            # a byte-level tokenizer marks the beginning of a word by the space before it
            self.marks_spaces = b'"ByteLevel"' in bytes(record.pre_tokenizer)
            vocabulary = record.model.vocab
            if isinstance(vocabulary, list):  # Unigram: pairs of token and score
                tokens = {token: number for number, (token, _) in enumerate(vocabulary)}
                number = record.model.unk_id
                if number is not None and 0 <= number < len(vocabulary):
                    unknown = vocabulary[number][0]
            else:
                tokens = dict(vocabulary)
                unknown = record.model.unk_token or unknown
            tokens |= {token.content: token.id for token in record.added_tokens}
        elif is_file(plain := folder.path / "vocab.txt"):
            lines = read_bytes(plain).decode("utf-8", "replace").splitlines()
            tokens = {token: number for number, token in enumerate(lines)}
        # the unknown token, and the mark of a space alone, which is no part of a word
        self.skipped = frozenset(tokens[t] for t in (unknown, "▁", "Ġ") if t in tokens)
        self.words = sorted(tokens, key=tokens.__getitem__)


class _AddedToken(msgspec.Struct):
    id: int
    content: str


class _Model(msgspec.Struct):
    vocab: dict[str, int] | list[tuple[str, float]] = {}
    unk_token: str | None = None
    unk_id: int | None = None


class _TokenizerFile(msgspec.Struct):
    """The parts of ``tokenizer.json`` that are needed."""

    model: _Model = msgspec.field(default_factory=_Model)
    pre_tokenizer: msgspec.Raw = msgspec.Raw(b"null")
    added_tokens: list[_AddedToken] = []


def _input_embeddings(folder: ModelFolder) -> tuple[np.ndarray[Any, Any], Path]:
    """Return the mapped matrix [tokens, dimensions] and its file."""
    for path in folder.weights:
        tensors, begin = read_header(path)
        for ending in EMBEDDINGS:
            names = [name for name in tensors if f".{name}".endswith(f".{ending}")]
            if names:
                # an encoder-decoder has two; the encoder's name sorts after "decoder"
                return _map_matrix(path, tensors[max(names)], begin), path
    raise DataError("there are no input embeddings among the weights", path=str(folder.path))


def _map_matrix(path: Path, tensor: TensorInfo, begin: int) -> np.ndarray[Any, Any]:
    first, last = tensor.data_offsets
    if tensor.dtype not in TYPES or len(tensor.shape) != 2:
        raise DataError(
            f"has input embeddings of type {tensor.dtype} and shape {tensor.shape}", path=str(path)
        )
    dtype = np.dtype(TYPES[tensor.dtype])
    if last - first != tensor.elements * dtype.itemsize or not tensor.elements:
        raise DataError("the size of the input embeddings does not fit their shape", path=str(path))
    mapped = np.memmap(path, np.uint8, "r")
    # weights need not be aligned: bytes are, and a view of them may begin anywhere
    return np.ndarray(tensor.shape, dtype, mapped, begin + first)
