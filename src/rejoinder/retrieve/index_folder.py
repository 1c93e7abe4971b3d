"""Build and open index folders: texts, arrays, and a manifest of their sources.

Nothing outside the folder is needed but the model that encodes queries, which must be the one that
the pool was encoded with: its digest is checked. A folder appears whole or not at all: it grows
under a hidden name, where an interrupted run resumes, and is renamed at the end.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated

import msgspec

from rejoinder.errors import DataError, RejoinderError, UsageError
from rejoinder.files.checked import inside, read_bytes
from rejoinder.files.output import LOCK, only_run, replace_folder, unwritable
from rejoinder.files.paths import exists, is_file, is_folder, resolve, work_folder
from rejoinder.progress import Progress
from rejoinder.registry import RETRIEVERS
from rejoinder.retrieve.language_check import OnWarning, check_pool_language
from rejoinder.retrieve.pool import PAIRS, RESPONSE_IDS, Pool, index_name, open_pairs_pool
from rejoinder.retrieve.retriever import Retriever
from rejoinder.version import __version__
from rejoinder.wording import choose

KIND = "rejoinder-index"
FORMAT = 1
"""Increase it when the meaning of a file changes; other formats are refused."""
MANIFEST, SOURCE = "manifest.json", "made-of.json"
MAX_MANIFEST_BYTES = 64 * 2**20

Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Sources, settings and files of an index."""

    kind: str = KIND
    format: int = FORMAT
    rejoinder: str = __version__
    retriever: str
    depends: dict[str, str]
    pairs: str
    """The file of pairs."""
    digest: str
    """The digest of the pairs."""
    rows: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    notes: dict[str, Count] = {}
    """Rows that the retriever cannot use, by reason."""
    files: dict[str, Count] = {}
    """The size of each file in bytes."""


class _Versions(msgspec.Struct):
    """The fields that are read first: in another format, the others may have another meaning."""

    kind: str
    format: int
    rejoinder: str = "?"


def build_index(
    pairs: str,
    retriever: Retriever,
    target: Path,
    *,
    split: str | None = None,
    any_language: bool = False,
    on_warning: OnWarning | None = None,
    on_progress: Progress | None = None,
) -> Manifest:
    """Index a file of pairs in the folder ``target``; an index that is there is replaced.

    Pairs in a language that the retriever's encoder does not know are refused, or with
    ``any_language`` reported to ``on_warning``.
    """
    if exists(target) and not is_file(target / MANIFEST):
        raise UsageError(f"{target} exists and is not an index; choose another name")
    with work_on(target) as (work, lock), _explain_write_errors(target):
        with open_pairs_pool(pairs, split=split, work=work) as pool:
            discard_other_pairs(work, pool)
            check_pool_language(pool, retriever, any_language=any_language, on_warning=on_warning)
            folder = work / index_name(retriever)
            folder.mkdir(exist_ok=True)
            notes = retriever.build(pool, folder, on_progress)
        for other in work.glob("index-*"):
            if other != folder:
                shutil.rmtree(other)
        (work / SOURCE).unlink()
        files = [path for path in sorted(work.rglob("*")) if path.is_file() and path.name != LOCK]
        manifest = Manifest(
            retriever=str(retriever),
            depends=retriever.depends,
            pairs=pairs,
            digest=pool.digest,
            rows=pool.size,
            notes=notes,
            files={path.relative_to(work).as_posix(): path.stat().st_size for path in files},
        )
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (work / MANIFEST).write_bytes(text + b"\n")
        lock.close()  # Windows does not rename a folder with an open file
        (work / LOCK).unlink()
        replace_folder(work, resolve(target))
    return manifest


def discard_other_pairs(work: Path, pool: Pool) -> None:
    """Delete indexes in a work folder that an interrupted run made of other pairs, or in another
    format."""
    source = f"{FORMAT} {__version__} {pool.digest}"
    note = work / SOURCE
    if not note.exists() or note.read_text() != source:
        for folder in work.glob("index-*"):
            shutil.rmtree(folder)
        note.write_text(source)


@contextlib.contextmanager
def work_on(target: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield a hidden folder beside ``target``, and its lock, which keeps other runs out.

    The folder is kept for the next run to resume from, unless no index was begun; a run that
    succeeds removes or renames it.
    """
    work = work_folder(target)
    with only_run(work) as lock:
        try:
            yield work, lock
        except BaseException:
            if not any(work.glob("index-*")):
                shutil.rmtree(work, ignore_errors=True)
            raise


@contextlib.contextmanager
def _explain_write_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(target, error) from None


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of an index that this version can open."""
    path = folder / MANIFEST
    if not is_file(path):
        raise DataError(
            "the folder is no index: it has no manifest.json; make one with 'rejoinder index'",
            path=str(folder),
        )
    text = read_bytes(inside(folder, MANIFEST), MAX_MANIFEST_BYTES)
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DataError(
            "not the manifest of an index; make it anew with 'rejoinder index'", path=str(path)
        ) from None


def open_pool(path: str | Path, *, split: str | None = None, work: Path | None = None) -> Pool:
    """Open pairs (Parquet; see :func:`open_pairs_pool`) or an index folder."""
    if not is_folder(path):
        return open_pairs_pool(str(path), split=split, work=work)
    if split is not None:
        raise UsageError(
            f"{path} is an index, which was made of one split or of all; leave out the split"
        )
    return open_index(Path(path))


def open_index(folder: Path) -> Pool:
    """Open the pool of an index whose files, retriever and model are those it was built with."""
    manifest = read_manifest(folder)
    _check_files(folder, manifest)
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
    pool = Pool(str(folder), folder, manifest.rows, manifest.digest, retriever)
    pool.check_size()
    pool.notes = manifest.notes
    return pool


def _check_files(folder: Path, manifest: Manifest) -> None:
    """Raise DataError unless all files are inside the folder and have the size in the manifest."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            inside(folder, path.relative_to(folder).as_posix())
    for name, size in manifest.files.items():
        path = inside(folder, name)
        if not is_file(path) or path.stat().st_size != size:
            raise DataError(
                f"the index is damaged: {name} is not as it was written; make it anew",
                path=str(folder),
            )
    if not {PAIRS, RESPONSE_IDS} <= manifest.files.keys():
        raise DataError("the index is damaged: it has no texts; make it anew", path=str(folder))


def _outdated(folder: Path, reason: str, manifest: Manifest | None = None) -> DataError:
    pairs, by = ("PAIRS", "SPEC") if manifest is None else (manifest.pairs, str(manifest.retriever))
    command = choose(
        command_line=shlex.join(["rejoinder", "index", pairs, "--by", by, "-o", str(folder)]),
        python=f"rejoinder.index({pairs!r}, by={by!r}, output={str(folder)!r})",
    )
    return DataError(
        f"the index can't be used: {reason}; make it anew: {command}", path=str(folder)
    )
