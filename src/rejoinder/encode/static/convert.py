"""Convert files of other programs once, into the user's cache, and map them from there.

The folder's name is the digest of the file's content, so a file that changed is another one. A
lock keeps processes from converting the same file at the same time. A folder in the cache that
turns out to be damaged, when it is opened or later, is converted again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path

from rejoinder.encode.static.formats import read_foreign
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors_folder import new_vectors_folder, open_vectors_folder
from rejoinder.encode.static.vectors_manifest import FORMAT
from rejoinder.encode.static.word_vectors import Bools, Floats, WordVectors
from rejoinder.encode.transformer.model_folder import cached_file_digest
from rejoinder.errors import DataError
from rejoinder.files.cache import Cache, cache_folder, open_cache
from rejoinder.files.output import locked

Convert = Callable[[Path], None]
"""Writes a new folder of word vectors."""


def open_foreign_file(path: Path, name: str) -> WordVectors:
    """Open the vectors of another program's file; convert it if that was not done before."""
    source = Source(path, name)
    source.head(1)

    def digest(cache: Cache) -> str:
        return cached_file_digest(path.resolve(), cache).hex()

    return open_converted(name, digest, lambda target: convert(source, target))


def open_converted(name: str, digest: Callable[[Cache], str], convert_into: Convert) -> WordVectors:
    """Open what ``convert_into`` writes into the cache, in the folder of this digest, if that was
    not done before; into a temporary folder if the cache can't be written."""
    root = _cached_vectors()
    if root is None:
        return _open_temporary(name, convert_into)
    folder = root / f"{digest(open_cache())}-{FORMAT}"
    return _CachedVectors(name, folder, convert_into)


def convert(source: Source, target: Path) -> None:
    """Convert a file into a new folder of word vectors."""
    with new_vectors_folder(target, source.name) as writer:
        writer.finish(read_foreign(source, writer))


class _CachedVectors(WordVectors):
    """Vectors in the cache, converted again if they are damaged."""

    def __init__(self, name: str, folder: Path, convert_into: Convert) -> None:
        self._opened_as, self._folder, self._convert = name, folder, convert_into
        self._open()

    def find(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        try:
            return super().find(words)
        except DataError:
            with locked(_lock(self._folder)):
                self._convert_again()
            self._open()
            return super().find(words)

    def _open(self) -> None:
        try:
            opened = open_vectors_folder(self._folder, self._opened_as)
        except DataError:
            with locked(_lock(self._folder)):
                try:  # another process may have converted it while we waited
                    opened = open_vectors_folder(self._folder, self._opened_as)
                except DataError:
                    self._convert_again()
                    opened = open_vectors_folder(self._folder, self._opened_as)
        vars(self).update(vars(opened))

    def _convert_again(self) -> None:
        if self._folder.exists():
            open_cache().repaired += 1
        _clear(self._folder)
        self._convert(self._folder)


def _cached_vectors() -> Path | None:
    """Return the folder of converted vectors in the cache; None if it can't be written."""
    root = cache_folder()
    if root is None:
        return None
    folder = root / "word-vectors"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else None


def _open_temporary(name: str, convert_into: Convert) -> WordVectors:
    """Convert into a temporary folder that is deleted together with the vectors."""
    home = tempfile.mkdtemp(prefix="rejoinder-vectors-")
    try:
        convert_into(Path(home) / "vectors")
        vectors = open_vectors_folder(Path(home) / "vectors", name)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    weakref.finalize(vectors, shutil.rmtree, home, ignore_errors=True)
    return vectors


def _lock(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


def _clear(folder: Path) -> None:
    """Delete a damaged folder and leftovers of killed processes; only the owner of the lock may."""
    shutil.rmtree(folder, ignore_errors=True)
    for leftover in folder.parent.glob(f".{folder.name[:40]}.*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
