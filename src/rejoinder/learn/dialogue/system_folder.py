"""The folder of a trained dialogue system: network, vocabulary, manifest, card and curves.

``manifest.json`` has the settings, the origin of the data, the measured figures, and digests of all
files. ``contexts.npy`` has a hash of each context that the network was trained on, so that a test
set that it has seen is noticed; texts can't be read from it. No file has a date or a path of the
machine, so that the same run writes the same bytes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import inside, read_array, read_json
from rejoinder.files.paths import file_digest, is_file, is_folder
from rejoinder.learn.dialogue.settings import (
    NETWORKS,
    DialogueDataSettings,
    VocabularySettings,
)
from rejoinder.learn.preset_file import make_settings
from rejoinder.version import __version__

KIND = "dialogue system"
FORMAT = 1
MANIFEST, MODEL, CARD, CURVES = "manifest.json", "model.safetensors", "README.md", "curves.svg"
CONTEXTS = "contexts.npy"
RESPONSES, RESPONSE_VECTORS = "responses.arrow", "responses.npy"
"""The responses that a dual encoder chooses from, and their vectors."""
MAX_HASHED_BYTES = 64 * 2**20
"""The digests of larger files are not checked when a folder is opened, only their sizes."""
MAKE_AGAIN = "train it again with 'rejoinder train system'"
MIN_LETTERS = 20
"""A context of one turn is recognised only if it has this many letters: "How are you?" is
everywhere."""

CHUNK = 10_000

Hashes = NDArray[np.uint64]


class File(msgspec.Struct, frozen=True):
    """Size and digest of a file."""

    size: int
    sha256: str


class SystemManifest(msgspec.Struct, frozen=True, kw_only=True):
    """Origin, settings and figures of a trained system."""

    kind: str = KIND
    format: int = FORMAT
    rejoinder: str = __version__
    network: str
    preset: str
    seed: int
    vocabulary: str
    """SHA-256 of the vocabulary's file."""
    settings: dict[str, Any]
    data: dict[str, Any]
    result: dict[str, Any]
    """Measured on held-out dialogues."""
    files: dict[str, File] = {}


class _Versions(msgspec.Struct):
    kind: str
    format: int
    rejoinder: str = "?"


def write_manifest(folder: Path, manifest: SystemManifest) -> SystemManifest:
    """Write the manifest, with size and digest of every other file of the folder."""
    files = {
        path.name: File(path.stat().st_size, file_digest(path).hex())
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }
    manifest = msgspec.structs.replace(manifest, files=files)
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (folder / MANIFEST).write_bytes(text + b"\n")
    return manifest


def is_system_folder(folder: Path) -> bool:
    """Return whether this is the folder of a trained system, which another one may replace."""
    try:
        return bool(read_json(folder / MANIFEST, _Versions).kind == KIND)
    except DataError:
        return False


def read_manifest(folder: Path) -> SystemManifest:
    """Return the manifest of a folder; DataError if it is none of a trained system, of another
    version, or damaged."""
    path = folder / MANIFEST
    if not is_file(path):
        what = "it has no manifest.json" if is_folder(folder) else "there is no such folder"
        raise DataError(
            f"is not a trained dialogue system: {what}; make one with 'rejoinder train system'",
            path=str(folder),
        )
    path = inside(folder, MANIFEST)
    versions = read_json(path, _Versions)
    if versions.kind != KIND:
        raise DataError(
            f"is not a trained dialogue system, but '{versions.kind}'; make one with"
            " 'rejoinder train system'",
            path=str(folder),
        )
    if versions.format != FORMAT:
        advice = "update rejoinder" if versions.format > FORMAT else MAKE_AGAIN
        raise DataError(
            f"was made by rejoinder {versions.rejoinder} in format {versions.format}; this is"
            f" rejoinder {__version__}, which reads format {FORMAT}: {advice}",
            path=str(folder),
        )
    manifest: SystemManifest = read_json(path, SystemManifest)
    if manifest.network not in NETWORKS:
        raise DataError(
            f"has a network '{manifest.network}', which this version does not know",
            path=str(folder),
        )
    _check_files(folder, manifest)
    return manifest


def reading_settings(
    folder: Path, manifest: SystemManifest
) -> tuple[DialogueDataSettings, VocabularySettings]:
    """Return how the network reads contexts."""
    try:
        data, vocabulary = manifest.settings["data"], manifest.settings["vocabulary"]
        return (
            make_settings(DialogueDataSettings, data),
            make_settings(VocabularySettings, vocabulary),
        )
    except (KeyError, TypeError, UsageError) as error:
        raise DataError(
            f"the settings are damaged ({error}); {MAKE_AGAIN}", path=str(folder / MANIFEST)
        ) from None


def _check_files(folder: Path, manifest: SystemManifest) -> None:
    for name, file in manifest.files.items():
        path = inside(folder, name)
        if not is_file(path):
            problem = f"{name} is missing"
        elif (size := path.stat().st_size) != file.size:
            problem = f"{name} has {size:,} bytes instead of {file.size:,}"
        elif size < MAX_HASHED_BYTES and file_digest(path).hex() != file.sha256:
            problem = f"{name} is not the file that was written (sha256 differs)"
        else:
            continue
        raise DataError(
            f"the dialogue system is damaged: {problem}; copy it again, or {MAKE_AGAIN}",
            path=str(folder),
        )


def context_hashes(contexts: Iterable[Sequence[str]]) -> Iterator[int | None]:
    """Yield a hash of the last two turns of each context, by letters and digits only; None for a
    single short turn."""
    from rejoinder.logs.contamination import normalise  # loads compiled kernels

    for some in _parts(contexts):
        plain = normalise(["\n".join(context[-2:]) for context in some])
        for context, text in zip(some, plain, strict=True):
            if len(context) > 1 or len(text) >= MIN_LETTERS:
                digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
                yield int.from_bytes(digest.digest(), "little")
            else:
                yield None


def _parts(contexts: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    iterator = iter(contexts)
    while part := list(itertools.islice(iterator, CHUNK)):
        yield part


def write_contexts(folder: Path, contexts: Iterable[Sequence[str]]) -> None:
    """Write the hashes of the contexts of training."""
    hashes = {value for value in context_hashes(contexts) if value is not None}
    np.save(folder / CONTEXTS, np.array(sorted(hashes), np.uint64), allow_pickle=False)


def seen_contexts(folder: Path, contexts: Sequence[Sequence[str]]) -> int:
    """Return how many contexts end with two turns that the network was trained on."""
    known: Hashes = read_array(inside(folder, CONTEXTS), dtype="uint64", shape=(None,))
    values = [value for value in context_hashes(contexts) if value is not None]
    return int(np.isin(np.array(values, np.uint64), known).sum())
