"""An index as a folder: texts, arrays, and a manifest that says what they were made of and with.

The folder needs nothing outside itself but the model that turns a query into numbers, and that
must be the one the pool was encoded with: a digest tells. It is whole or absent: it grows under a
hidden name, where a run that was interrupted goes on, and gets its own name at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rejoinder.errors import DataError, RejoinderError, ResourceError, UsageError
from rejoinder.machine import locked
from rejoinder.progress import Progress
from rejoinder.registry import RETRIEVERS
from rejoinder.retrieve.base import Retriever
from rejoinder.retrieve.pool import PAIRS, REPLIES, Pool, index_name, open_pool
from rejoinder.version import __version__

KIND = "rejoinder-index"
FORMAT = 1
"""Another one cannot be read; raise it when the meaning of a file changes."""
MANIFEST, MADE_OF, LOCK = "manifest.json", "made-of.json", "lock"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an index was made of and with."""

    kind: str = KIND
    format: int = FORMAT
    rejoinder: str = __version__
    retriever: str
    depends: dict[str, str]
    pairs: str
    """The file they came from."""
    digest: str
    """Of the pairs."""
    rows: int
    notes: dict[str, int] = {}
    """Rows of no use, by reason."""
    files: dict[str, int] = {}
    """Their sizes in bytes."""


class _Versions(msgspec.Struct):
    """What is read first: the rest may mean something else in another format."""

    kind: str
    format: int
    rejoinder: str = "?"


def build_index(
    pairs: str,
    retriever: Retriever,
    target: Path,
    *,
    split: str | None = None,
    on_progress: Progress | None = None,
) -> Manifest:
    """Make the folder ``target`` of a file of pairs.

    An index that stands there already is replaced once the new one is whole.
    """
    if target.exists() and not (target / MANIFEST).is_file():
        raise UsageError(f"{target} exists and is no index; choose another name")
    with working(target) as work, blaming(target):
        with open_pool(pairs, split=split, work=work) as pool:
            resume(work, pool)
            folder = work / index_name(retriever)
            folder.mkdir(exist_ok=True)
            notes = retriever.build(pool, folder, on_progress)
        for other in work.glob("index-*"):
            if other != folder:
                shutil.rmtree(other)
        (work / MADE_OF).unlink()
        files = [path for path in sorted(work.rglob("*")) if path.is_file() and path.name != LOCK]
        manifest = Manifest(
            retriever=str(retriever),
            depends=retriever.depends,
            pairs=pairs,
            digest=pool.digest,
            rows=pool.size,
            notes=notes,
            files={str(path.relative_to(work)): path.stat().st_size for path in files},
        )
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (work / MANIFEST).write_bytes(text + b"\n")
        (work / LOCK).unlink()
        old = target.with_name(f".{target.name}.old")
        if target.exists():
            os.replace(target, old)
        os.replace(work, target)
        shutil.rmtree(old, ignore_errors=True)
    return manifest


def resume(work: Path, pool: Pool) -> None:
    """Go on with the indexes in a work folder, unless they are of other pairs or of an older
    format; then forget them."""
    made_of = f"{FORMAT} {__version__} {pool.digest}"
    note = work / MADE_OF
    if not note.exists() or note.read_text() != made_of:
        for folder in work.glob("index-*"):
            shutil.rmtree(folder)
        note.write_text(made_of)


@contextlib.contextmanager
def working(target: Path) -> Iterator[Path]:
    """A hidden folder beside ``target`` for one run at a time. It stays, for the next run to go
    on with; who is done removes or renames it."""
    work = target.with_name(f".{target.name}.work")
    with blaming(target):
        work.mkdir(exist_ok=True)
        lock = open(work / LOCK, "wb")
    with lock:
        if not locked(lock):
            raise ResourceError(f"{target}: another run is making it; wait for it")
        try:
            yield work
        except BaseException:
            if not any(work.glob("index-*")):  # nothing to go on with
                shutil.rmtree(work, ignore_errors=True)
            raise


@contextlib.contextmanager
def blaming(target: Path) -> Iterator[None]:
    """What the system says of a folder that can't be written, as a message to the user."""
    from rejoinder.engine.base import machine_failure

    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        if failure := machine_failure(error, target.parent):
            raise failure from None
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{target}: cannot be written: {reason}") from None


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an index that this version can read."""
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except OSError:
        raise DataError(
            "the folder is no index: it has no manifest.json; make one with 'rejoinder index'",
            path=str(folder),
        ) from None
    try:
        versions = msgspec.json.decode(text, type=_Versions)
        if versions.kind != KIND:
            raise DataError(f"the folder is no index, but '{versions.kind}'", path=str(folder))
        if versions.format != FORMAT:
            raise _outdated(
                folder,
                f"rejoinder {versions.rejoinder} made it in format {versions.format},"
                f" this is rejoinder {__version__} with format {FORMAT}",
            )
        return msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError:
        raise DataError(
            "not the manifest of an index; make it anew with 'rejoinder index'", path=str(path)
        ) from None


def open_index(folder: Path) -> Pool:
    """The pool of an index, once it is sure that the index still means what it meant."""
    manifest = read_manifest(folder)
    for name, size in manifest.files.items():
        path = folder / name
        if not path.is_file() or path.stat().st_size != size:
            raise DataError(
                f"the index is damaged: {name} is not as it was written; make it anew",
                path=str(folder),
            )
    try:
        retriever: Retriever = RETRIEVERS.make(manifest.retriever).at(folder)
        depends = retriever.depends
    except UsageError as error:
        raise _outdated(folder, f"its retriever is unknown here: {error}") from None
    except RejoinderError as error:
        raise type(error)(f"{folder} was made with {manifest.retriever}: {error}") from None
    for name, digest in manifest.depends.items():
        if depends.get(name) != digest:
            raise _outdated(
                folder,
                f"it was made with the {name} {digest}, but here that is {depends.get(name)}",
                manifest,
            )
    if not {PAIRS, REPLIES} <= manifest.files.keys():
        raise DataError("the index is damaged: it has no texts; make it anew", path=str(folder))
    pool = Pool(str(folder), folder, manifest.rows, manifest.digest, retriever)
    pool.notes = manifest.notes
    return pool


def _outdated(folder: Path, reason: str, manifest: Manifest | None = None) -> DataError:
    command = f"rejoinder index PAIRS --by SPEC -o {folder}"
    if manifest is not None:
        command = f"rejoinder index {manifest.pairs} --by '{manifest.retriever}' -o {folder}"
    return DataError(
        f"the index can't be used: {reason}; make it anew: {command}", path=str(folder)
    )
