"""The ``manifest.json`` of a folder of word vectors: its content, origin and digests.

It is written last and lists every other file with its digests: a folder without it, or with that
of another version, does not open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rejoinder.encode.static.mapped_files import Part
from rejoinder.errors import DataError
from rejoinder.files.checked import read_json
from rejoinder.version import __version__

FILE = "manifest.json"
KIND = "rejoinder word vectors"
FORMAT = 1

MAX_NGRAM = 100
_Count = Annotated[int, msgspec.Meta(ge=1, le=2**40)]
_NgramLength = Annotated[int, msgspec.Meta(ge=1, le=MAX_NGRAM)]


class Subwords(msgspec.Struct, frozen=True):
    """The character n-grams of fastText, from which unknown words are composed."""

    min_n: _NgramLength
    max_n: _NgramLength
    buckets: _Count


class VectorsManifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of ``manifest.json``."""

    kind: str
    format: int
    version: str
    """The version of Rejoinder that wrote the folder."""
    digest: str
    """12 hex digits of the content; where it came from is not part of it."""
    words: _Count
    dimensions: Annotated[int, msgspec.Meta(ge=1, le=2**20)]
    unknown_words: str
    """The policy for unknown words, for people to read."""
    subwords: Subwords | None = None
    rows: _Count | None = None
    """The number of vectors, if words share them (``rows.npy``)."""
    base_forms: bool = False
    """Whether Japanese words without a vector have that of their dictionary form."""
    languages: tuple[str, ...] = ()
    """ISO 639-1 codes of the languages of the texts; empty if unknown."""
    origin: dict[str, Any]
    """The settings of the training, or the converted file and notes about its defects."""
    parts: dict[str, Part]

    @classmethod
    def new(
        cls,
        words: int,
        dimensions: int,
        subwords: Subwords | None,
        origin: dict[str, Any],
        parts: dict[str, Part],
        languages: Collection[str] = (),
        rows: int | None = None,
        base_forms: bool = False,
    ) -> VectorsManifest:
        """Make the manifest of a new folder."""
        return cls(
            kind=KIND,
            format=FORMAT,
            version=__version__,
            digest=_digest(words, dimensions, subwords, parts, base_forms),
            words=words,
            dimensions=dimensions,
            unknown_words=_policy(subwords, base_forms),
            subwords=subwords,
            rows=rows,
            base_forms=base_forms,
            languages=tuple(sorted(languages)),
            origin=origin,
            parts=parts,
        )

    def write(self, folder: Path) -> None:
        """Write ``manifest.json``."""
        text = msgspec.json.format(msgspec.json.encode(self), indent=1)
        (folder / FILE).write_bytes(text + b"\n")

    @classmethod
    def read(cls, folder: Path) -> VectorsManifest:
        """Read and check ``manifest.json``."""
        path = folder / FILE
        _check_kind(read_json(path, dict[str, Any]), path)
        manifest: VectorsManifest = read_json(path, cls)
        content = (
            manifest.words, manifest.dimensions, manifest.subwords, manifest.parts,
            manifest.base_forms,
        )  # fmt: skip
        if manifest.digest != _digest(*content):
            raise DataError("is damaged: its digest does not fit its content", path=str(path))
        if manifest.subwords and manifest.subwords.min_n > manifest.subwords.max_n:
            raise DataError("is damaged: min_n of the n-grams exceeds max_n", path=str(path))
        return manifest


def is_vectors_folder(folder: Path) -> bool:
    """Return whether any version of Rejoinder wrote this folder of word vectors."""
    try:
        return bool(read_json(folder / FILE, dict[str, Any]).get("kind") == KIND)
    except DataError:
        return False


def _check_kind(record: dict[str, Any], path: Path) -> None:
    if record.get("kind") != KIND:
        raise DataError("is not the manifest of a folder of word vectors", path=str(path))
    if record.get("format") != FORMAT:
        raise DataError(
            f"the folder has format {record.get('format')}, written by Rejoinder"
            f" {record.get('version')}; version {__version__} reads format {FORMAT}:"
            " make the folder again",
            path=str(path),
        )


def _digest(
    words: int,
    dimensions: int,
    subwords: Subwords | None,
    parts: dict[str, Part],
    base_forms: bool,
) -> str:
    content: list[Any] = [FORMAT, words, dimensions, subwords, sorted(parts.items())]
    if base_forms:
        content.append("base forms")
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:12]


def _policy(subwords: Subwords | None, base_forms: bool) -> str:
    steps = ["as written", "in lower case"]
    if base_forms:
        steps.append("in the usual width, its dictionary form")
    if subwords is not None:
        steps.append(f"the mean of its n-grams of {subwords.min_n} to {subwords.max_n} characters")
    return ", else ".join([*steps, "unknown"])
