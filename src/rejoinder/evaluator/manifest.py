"""The manifest of an evaluator: what it was made of and with, and a digest of every part.

The digest of the manifest names the evaluator in signatures: it covers the digests of all parts,
so two evaluators that could give different numbers have different names.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.version import __version__

KIND = "evaluator"
FORMAT = 1
"""Another one cannot be read; raise it when the meaning of a part changes."""
MANIFEST = "manifest.json"
POOL, SCORER, RATER, CARD = "pool", "unreferenced", "rater", "README.md"
HELD_OUT = "held-out.json"
"""Utterances of the pairs held out (a list): they are not in the pool, and decided when training
ended and what the figures are."""
HASHED = 64 * 2**20
"""Larger parts are checked by their size alone whenever an evaluator is opened."""


class Part(msgspec.Struct, frozen=True):
    """A file, as it was written."""

    size: int
    sha256: str


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """How references are found in the pool."""

    by: str
    """The spec of the retriever."""
    k: int = 15
    parrot: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an evaluator was made of and with."""

    kind: str = KIND
    format: int = FORMAT
    rejoinder: str = __version__
    language: str | None = None
    preset: str = ""
    seed: int = 0
    retrieval: Retrieval
    settings: dict[str, Any] = {}
    data: dict[str, Any] = {}
    """Files, their digests, and counts."""
    ranges: dict[str, tuple[float, float]] = {}
    """For the spec of a metric the lowest and the highest value that held-out replies get."""
    coverage: dict[str, float] = {}
    """Quantiles ("0.1", "0.5" …) of ``nearest`` over held-out contexts; see coverage.py."""
    validation: dict[str, Any] = {}
    notes: list[str] = []
    """What a person should know, such as a rater that could not be trained."""
    parts: dict[str, Part] = {}
    """Every file but this one, by its path inside the folder."""


class _Versions(msgspec.Struct):
    """What is read first: the rest may mean something else in another format."""

    kind: str
    format: int
    rejoinder: str = "?"


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Seal a folder: note size and digest of every file that is there, and write the manifest.

    A folder may be sealed again, for example once the ranges are known.
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    parts = {
        path.relative_to(folder).as_posix(): Part(path.stat().st_size, sha256(path))
        for path in files
        if path != folder / MANIFEST
    }
    manifest = msgspec.structs.replace(manifest, parts=parts)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    beside = folder / f".{MANIFEST}"
    beside.write_bytes(text + b"\n")
    os.replace(beside, folder / MANIFEST)
    return manifest


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """The manifest of an evaluator that this version can read, and its digest."""
    path = folder / MANIFEST
    try:
        text = path.read_bytes()
    except OSError:
        what = "it has no manifest.json" if folder.is_dir() else "there is no such folder"
        raise DataError(
            f"not an evaluator: {what}; make one with 'rejoinder fit'", path=str(folder)
        ) from None
    try:
        versions = msgspec.json.decode(text, type=_Versions)
        if versions.kind != KIND:
            raise DataError(
                f"the folder is no evaluator, but '{versions.kind}'; 'rejoinder fit' makes one",
                path=str(folder),
            )
        if versions.format > FORMAT:
            raise DataError(
                f"rejoinder {versions.rejoinder} made it in format {versions.format}; this is"
                f" rejoinder {__version__}, which reads format {FORMAT}: update rejoinder",
                path=str(folder),
            )
        if versions.format < FORMAT:
            raise DataError(
                f"rejoinder {versions.rejoinder} made it in format {versions.format}, which is"
                " not read any more; make it anew with 'rejoinder fit'",
                path=str(folder),
            )
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise DataError(
            f"not the manifest of an evaluator ({error}); make it anew with 'rejoinder fit'",
            path=str(path),
        ) from None
    return manifest, hashlib.blake2b(text, digest_size=6).hexdigest()


def check_parts(folder: Path, manifest: Manifest) -> None:
    """DataError unless every part is as it was written."""
    for name, part in manifest.parts.items():
        path = folder / name
        if not path.is_file():
            raise _damaged(folder, f"{name} is missing")
        if (size := path.stat().st_size) != part.size:
            raise _damaged(folder, f"{name} has {size:,} bytes instead of {part.size:,}")
        if size < HASHED and sha256(path) != part.sha256:
            raise _damaged(folder, f"{name} is not the file that was written (sha256 differs)")


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(
        f"the evaluator is damaged or has a part of another one: {what};"
        " copy it once more, or make it anew with 'rejoinder fit'",
        path=str(folder),
    )


def sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
