"""Foreign files are converted once, into the user's cache, and mapped from there ever after.

The folder's name is the digest of the file's content, so a file that changed is another one. A
lock keeps processes from doing the same work at the same time; it ends with its process. A folder
in the cache that turns out to be damaged, now or when it is read, is made anew.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from rejoinder.encode.cache import cache_folder, open_cache
from rejoinder.encode.static.folder import new_folder, open_folder
from rejoinder.encode.static.formats import read_foreign
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.manifest import FORMAT
from rejoinder.encode.static.vectors import Bools, Floats, WordVectors
from rejoinder.encode.transformer.folder import remembered_digest
from rejoinder.errors import DataError, UsageError


def open_foreign(path: Path, name: str) -> WordVectors:
    """The vectors of a foreign file, converted if that was not done before."""
    source = Source(path, name)
    source.head(1)
    place = _place(path)
    return _converted_for_now(source) if place is None else _Cached(source, place)


def convert(source: Source, target: Path) -> None:
    """Read a foreign file into a new folder."""
    with new_folder(target, source.name) as writer:
        writer.finish(read_foreign(source, writer))


class _Cached(WordVectors):
    """Vectors in the cache, made anew where they are damaged."""

    def __init__(self, source: Source, place: Path) -> None:
        self._source, self._place = source, place
        self._open()

    def find(self, words: Sequence[str]) -> tuple[Floats, Bools]:
        try:
            return super().find(words)
        except DataError:
            with _locked(self._place):
                self._remake()
            self._open()
            return super().find(words)

    def _open(self) -> None:
        try:
            found = open_folder(self._place, self._source.name)
        except DataError:
            with _locked(self._place):
                try:  # another process may have made it while we waited
                    found = open_folder(self._place, self._source.name)
                except DataError:
                    self._remake()
                    found = open_folder(self._place, self._source.name)
        vars(self).update(vars(found))

    def _remake(self) -> None:
        if self._place.exists():
            open_cache().repaired += 1
        _clear(self._place)
        convert(self._source, self._place)


def _place(path: Path) -> Path | None:
    """Where in the cache the folder of a file belongs; None where nothing can be cached."""
    root = cache_folder()
    if root is None:
        return None
    folder = root / "word-vectors"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        return None
    return folder / f"{remembered_digest(path.resolve(), open_cache()).hex()}-{FORMAT}"


def _converted_for_now(source: Source) -> WordVectors:
    """Without a cache: a folder that lives as long as the vectors do."""
    home = tempfile.mkdtemp(prefix="rejoinder-vectors-")
    try:
        convert(source, Path(home) / "vectors")
        vectors = open_folder(Path(home) / "vectors", source.name)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    weakref.finalize(vectors, shutil.rmtree, home, ignore_errors=True)
    return vectors


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # not on Windows: the work may be done twice, the result is the same
        yield
        return
    lock = place.with_name(f".{place.name}.lock")
    try:
        stream = lock.open("wb")
    except OSError as error:
        raise UsageError(f"{lock}: cannot be written: {error.strerror}") from None
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _clear(place: Path) -> None:
    """What is damaged, and what killed processes left; only the owner of the lock writes here."""
    shutil.rmtree(place, ignore_errors=True)
    for left in place.parent.glob(f".{place.name[:40]}.*.part"):
        shutil.rmtree(left, ignore_errors=True)
