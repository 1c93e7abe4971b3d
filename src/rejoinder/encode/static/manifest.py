"""``manifest.json`` of a folder of word vectors: what is in it, where from, is it sound.

It is written last, and names every other file with its digests: a folder without it, or with
another version's, does not open.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from rejoinder.encode.static.blocks import Part
from rejoinder.errors import DataError
from rejoinder.io import explain
from rejoinder.version import __version__

FILE = "manifest.json"
KIND = "rejoinder word vectors"
FORMAT = 1


class Subwords(msgspec.Struct, frozen=True):
    """The character n-grams of fastText, by which unknown words are composed."""

    shortest: int
    longest: int
    buckets: int


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known of a folder."""

    kind: str
    format: int
    version: str
    """Of Rejoinder, when it wrote the folder."""
    digest: str
    """12 hex digits of the content, not of where it came from."""
    words: int
    dimensions: int
    unknown_words: str
    """The policy, for people."""
    subwords: Subwords | None = None
    origin: dict[str, Any]
    """The settings of the training, or the foreign file and what was odd about it."""
    parts: dict[str, Part]

    @classmethod
    def new(
        cls,
        words: int,
        dimensions: int,
        subwords: Subwords | None,
        origin: dict[str, Any],
        parts: dict[str, Part],
    ) -> Manifest:
        return cls(
            kind=KIND,
            format=FORMAT,
            version=__version__,
            digest=_digest(words, dimensions, subwords, parts),
            words=words,
            dimensions=dimensions,
            unknown_words=_policy(subwords),
            subwords=subwords,
            origin=origin,
            parts=parts,
        )

    def write(self, folder: Path) -> None:
        text = msgspec.json.format(msgspec.json.encode(self), indent=1)
        (folder / FILE).write_bytes(text + b"\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        path = str(folder / FILE)
        try:
            text = (folder / FILE).read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"cannot be read: {reason}", path=path) from None
        try:
            _check_kind(msgspec.json.decode(text, type=dict[str, Any]), path)
            manifest = msgspec.json.decode(text, type=cls)
        except msgspec.ValidationError as error:
            raise DataError(f"is damaged: {explain(str(error))}", path=path) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DataError(f"is no manifest ({error})", path=path) from None
        content = manifest.words, manifest.dimensions, manifest.subwords, manifest.parts
        if manifest.digest != _digest(*content):
            raise DataError("is damaged: its digest does not fit what it says", path=path)
        return manifest


def is_vectors_folder(folder: Path) -> bool:
    """Whether we wrote this folder, in whatever version."""
    try:
        record = msgspec.json.decode((folder / FILE).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND


def _check_kind(record: dict[str, Any], path: str) -> None:
    if record.get("kind") != KIND:
        raise DataError("is not the manifest of a folder of word vectors", path=path)
    if record.get("format") != FORMAT:
        raise DataError(
            f"the folder has format {record.get('format')}, written by Rejoinder"
            f" {record.get('version')}; version {__version__} reads format {FORMAT}:"
            " make the folder anew",
            path=path,
        )


def _digest(words: int, dimensions: int, subwords: Subwords | None, parts: dict[str, Part]) -> str:
    content = [FORMAT, words, dimensions, subwords, sorted(parts.items())]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:12]


def _policy(subwords: Subwords | None) -> str:
    steps = ["as written", "in lower case"]
    if subwords is not None:
        steps.append(
            f"the mean of its n-grams of {subwords.shortest} to {subwords.longest} characters"
        )
    return ", else ".join([*steps, "unknown"])
