"""Word vectors in packages of the package index: Japanese and Chinese.

Their files are read from the installed packages, which are never imported: ``synonyms`` would load
all of its vectors, and ``ja_ginza`` spaCy. They are converted once, into the cache.

``chive`` are vectors of chiVe (Manabe et al. 2019) that are part of ``ja-ginza``: 480,443 words, of
which those after the 20,000 most frequent ones share the vector of one of these. The words are
dictionary forms in a normalised spelling, such as 有る, so that MeCab's words need two more steps:
conjugated words have the vector of their dictionary form, and a word in kana that is no entry has
that of the most frequent entry that is read like this.

``synonyms-zh`` are the word2vec vectors in ``synonyms``: 125,796 Chinese words.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rejoinder.encode.static.convert import open_converted
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.formats.word2vec_binary import read_word2vec_binary
from rejoinder.encode.static.vectors_folder import FolderWriter, new_vectors_folder
from rejoinder.encode.static.word_vectors import WordVectors
from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.paths import file_digest, is_file

VERSION = 1
"""Increased when the conversion changes."""
FREQUENT_WORDS = 40_000
"""Words whose reading finds them, too."""


@dataclass(frozen=True)
class PackagedVectors:
    """Word vectors in the files of an installed package."""

    package: str
    """Its name and version on the package index."""
    module: str
    extra: str
    language: str
    files: Mapping[str, str]
    """The files that are read, in the folder of the module, and the SHA-256 of each."""
    write: Callable[[Mapping[str, Path], FolderWriter], dict[str, Any]]
    """Writes the vectors of the files into a folder, and returns the origin."""
    base_forms: bool = False
    requires: tuple[str, ...] = ()
    """Modules without which the vectors can't be used."""

    @property
    def is_installed(self) -> bool:
        """Whether the package is installed, and whatever it requires."""
        return self._folder is not None

    def missing(self, name: str) -> MissingExtra:
        """Return the error for a package that is not installed."""
        return MissingExtra(
            f"word vectors '{name}' need {self.package}, not installed; run: pip install"
            f" 'rejoinder[{self.extra}]' (or, without packages that only its own code needs:"
            f" pip install 'rejoinder[{self.language}]' && pip install --no-deps {self.package})"
        )

    def open(self, name: str) -> WordVectors:
        """Open the vectors; convert them if that was not done before."""
        folder = self._folder
        if folder is None:
            raise self.missing(name)
        digest = sha256("".join([*self.files.values(), f"{VERSION}"]).encode()).hexdigest()[:32]
        return open_converted(name, lambda cache: digest, partial(self._convert, name, folder))

    @property
    def _folder(self) -> Path | None:
        """The folder of the module, found without importing it."""
        if any(importlib.util.find_spec(module) is None for module in self.requires):
            return None
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            return None
        return Path(spec.submodule_search_locations[0])

    def _convert(self, name: str, folder: Path, target: Path) -> None:
        paths = {file: folder / file for file in self.files}
        for file, digest in self.files.items():
            path = paths[file]
            if not is_file(path) or file_digest(path).hex() != digest:
                raise DataError(
                    "is missing or does not have the expected checksum; install it again:"
                    f" pip install --force-reinstall --no-deps {self.package}",
                    path=str(path),
                )
        with new_vectors_folder(target, name) as writer:
            origin = {"source": self.package, **self.write(paths, writer)}
            writer.finish(origin, [self.language], self.base_forms)


def _write_chive(paths: Mapping[str, Path], writer: FolderWriter) -> dict[str, Any]:
    """Write vectors of spaCy: ``vectors`` is an array, ``key2row`` has the row of the hash of each
    word, the most frequent first, and ``strings.json`` the words, among other strings."""
    from rejoinder.text.japanese import hiragana_reading

    vectors, key2row, strings = paths.values()
    words = json.loads(strings.read_bytes())
    by_hash = dict(zip(_spacy_hashes(words).tolist(), words, strict=True))
    rows: dict[int, int] = msgspec.msgpack.decode(key2row.read_bytes())
    known = {by_hash[key]: row for key, row in rows.items() if key in by_hash}
    frequent = list(known)[:FREQUENT_WORDS]
    counts = zipf_counts(len(known)).tolist()
    readings: dict[str, tuple[int, int]] = {}
    for word, count in zip(frequent, counts, strict=False):
        reading = hiragana_reading(word)
        if reading is not None and reading not in known:
            readings.setdefault(reading, (known[word], count))
    numbers = [*known.values(), *(row for row, _ in readings.values())]
    matrix = np.load(vectors, allow_pickle=False)
    writer.add_shared([word.encode() for word in (*known, *readings)], numbers, matrix)
    writer.add_counts(np.array([*counts, *(count for _, count in readings.values())]))
    return {"source_format": "spaCy", "words_by_reading": len(readings)}


def _write_word2vec(paths: Mapping[str, Path], writer: FolderWriter) -> dict[str, Any]:
    (path,) = paths.values()
    origin = read_word2vec_binary(Source(path, str(path)), writer)
    writer.add_counts(zipf_counts(writer.words))
    return origin


def zipf_counts(words: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Estimate how often words occur that are in the order of their frequency, by Zipf's law.

    The sources have no counts; smooth inverse frequency needs them.
    """
    return np.maximum(10**9 // np.arange(1, words + 1), 1)


def _spacy_hashes(words: list[str]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return spaCy's hash of each word: MurmurHash64A of its UTF-8 with the seed 1."""
    multiplier, shift = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
    encoded = [word.encode() for word in words]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    width = int(lengths.max(initial=0)) // 8 + 1
    hashes = np.uint64(1) ^ (lengths.astype(np.uint64) * multiplier)
    for block in range(width):
        some = np.flatnonzero(lengths > 8 * block)
        part = b"".join(encoded[i][8 * block : 8 * block + 8].ljust(8, b"\0") for i in some)
        numbers = np.frombuffer(part, "<u8").copy()
        whole = lengths[some] >= 8 * (block + 1)
        mixed = numbers[whole] * multiplier
        numbers[whole] = (mixed ^ (mixed >> shift)) * multiplier
        hashes[some] = (hashes[some] ^ numbers) * multiplier
    hashes = (hashes ^ (hashes >> shift)) * multiplier
    return np.asarray(hashes ^ (hashes >> shift))


PACKAGED_VECTORS: dict[str, PackagedVectors] = {
    "chive": PackagedVectors(
        package="ja-ginza==5.3.0",
        module="ja_ginza",
        extra="ja-vectors",
        language="ja",
        files={
            "ja_ginza-5.3.0/vocab/vectors": (
                "8c16f062e90069d86fc58df57af9c9c948aae9b0033684332c99538fbdcff4bf"
            ),
            "ja_ginza-5.3.0/vocab/key2row": (
                "dee5b86de2f94dac1f48db1115ad21a94755e370debb78b5cc46dbcf3950cad0"
            ),
            "ja_ginza-5.3.0/vocab/strings.json": (
                "b3ed16035cd82356d54c68b5c933f30a3ec931d67abb853a2bf2c6433f6c7b80"
            ),
        },
        write=_write_chive,
        base_forms=True,
        requires=("fugashi", "ipadic"),
    ),
    "synonyms-zh": PackagedVectors(
        package="synonyms==3.10.2",
        module="synonyms",
        extra="zh-vectors",
        language="zh",
        files={
            "data/words.vector": "b5eaa5e6e807ddfc4f63df5ddec5653e36da582ad13e254218524404e6e1ee31"
        },
        write=_write_word2vec,
    ),
}
