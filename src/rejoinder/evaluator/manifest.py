"""The manifest of an evaluator: its data, settings and versions, and a digest of every part.

The digest of the manifest is part of signatures. It covers the digests of all parts, so evaluators
that may give different numbers have different signatures.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import inside, read_bytes, read_json
from rejoinder.files.output import open_output
from rejoinder.files.paths import file_digest, is_file, is_folder
from rejoinder.spec import parse
from rejoinder.text.languages import language
from rejoinder.version import __version__

KIND = "evaluator"
FORMAT = 1
"""Version of the folder's format; increase it when the meaning of a part changes."""
MANIFEST = "manifest.json"
POOL, SCORER, RATER, CARD = "pool", "unreferenced", "rater", "README.md"
HELD_OUT = "held-out.json"
"""List of the utterances of held-out pairs. They are not in the pool; training was stopped by them,
and validation figures were measured on them."""
MAX_HASHED_BYTES = 64 * 2**20
"""The digests of larger parts are not checked when an evaluator is opened, only their sizes."""

MAX_K = 1000
MAKE_AGAIN = "make it again with 'rejoinder fit'"


class Part(msgspec.Struct, frozen=True):
    """Size and digest of a file."""

    size: int
    sha256: str


class Retrieval(msgspec.Struct, frozen=True, kw_only=True):
    """How references are retrieved from the pool."""

    by: str
    """The spec of the retriever."""
    k: int = 15
    parrot: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Data, settings, versions, measured figures and parts of an evaluator."""

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
    """For the spec of a metric its lowest and highest usual value on held-out replies."""
    coverage: dict[str, float] = {}
    """Quantiles ("0.1", "0.5" …) of ``nearest`` over held-out contexts; see coverage.py."""
    validation: dict[str, Any] = {}
    notes: list[str] = []
    """What users should know, for example that no rater could be trained."""
    parts: dict[str, Part] = {}
    """All files but the manifest, by their path inside the folder."""


class _Versions(msgspec.Struct):
    """Read first, since other formats may have other fields."""

    kind: str
    format: int
    rejoinder: str = "?"


def write_manifest(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest with size and digest of every file in the folder.

    It may be written again, for example after the ranges were measured.
    """
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    parts = {
        path.relative_to(folder).as_posix(): Part(path.stat().st_size, sha256(path))
        for path in files
        if path != folder / MANIFEST
    }
    manifest = msgspec.structs.replace(manifest, parts=parts)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    with open_output(folder / MANIFEST) as stream:
        stream.write(text + b"\n")
    return manifest


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """Return the manifest of an evaluator and its digest; DataError if it cannot be read."""
    path = folder / MANIFEST
    if not is_file(path):
        what = "it has no manifest.json" if is_folder(folder) else "there is no such folder"
        raise DataError(
            f"is not an evaluator: {what}; make one with 'rejoinder fit'", path=str(folder)
        )
    path = inside(folder, MANIFEST)
    versions = read_json(path, _Versions)
    if versions.kind != KIND:
        raise DataError(
            f"is not an evaluator, but '{versions.kind}'; make one with 'rejoinder fit'",
            path=str(folder),
        )
    if versions.format != FORMAT:
        advice = "update rejoinder" if versions.format > FORMAT else MAKE_AGAIN
        raise DataError(
            f"was made by rejoinder {versions.rejoinder} in format {versions.format}; this is"
            f" rejoinder {__version__}, which reads format {FORMAT}: {advice}",
            path=str(folder),
        )
    manifest = read_json(path, Manifest)
    if manifest.language is not None:
        try:
            language(manifest.language)
        except UsageError as error:
            raise DataError(f"{error}; {MAKE_AGAIN}", path=str(path)) from None
    for spec in manifest.ranges:
        try:
            parse(spec)
        except UsageError as error:
            raise DataError(f"ranges: {error}; {MAKE_AGAIN}", path=str(path)) from None
    if not 1 <= manifest.retrieval.k <= MAX_K:
        raise DataError(
            f"retrieval.k is {manifest.retrieval.k:,}; expected 1 to {MAX_K:,}", path=str(path)
        )
    return manifest, hashlib.blake2b(read_bytes(path), digest_size=6).hexdigest()


def check_parts(folder: Path, manifest: Manifest) -> None:
    """Raise DataError unless every part is as it was written, inside of the folder."""
    for name, part in manifest.parts.items():
        path = inside(folder, name)
        if not is_file(path):
            raise _damaged(folder, f"{name} is missing")
        if (size := path.stat().st_size) != part.size:
            raise _damaged(folder, f"{name} has {size:,} bytes instead of {part.size:,}")
        if size < MAX_HASHED_BYTES and sha256(path) != part.sha256:
            raise _damaged(folder, f"{name} is not the file that was written (sha256 differs)")


def _damaged(folder: Path, what: str) -> DataError:
    return DataError(
        f"the evaluator is damaged, or has a part of another one: {what}; copy it again, or"
        f" {MAKE_AGAIN}",
        path=str(folder),
    )


def sha256(path: Path) -> str:
    """Return the digest of a file's content."""
    return file_digest(path).hex()
