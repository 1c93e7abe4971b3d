"""A calibration as a folder: manifest, model, card. Nothing in it is code.

The manifest has digests of the other files, the metrics with the signatures of their scores, and
what was measured when it was made; ``model.json`` has the numbers.
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.evaluator.manifest import Part, sha256
from rejoinder.files.checked import inside, read_bytes, read_json
from rejoinder.files.output import open_output
from rejoinder.files.paths import is_file, is_folder
from rejoinder.metrics.calibrated.intervals import RatingScale, cross_conformal
from rejoinder.metrics.calibrated.models import Floats, Model
from rejoinder.version import __version__

KIND = "calibration"
FORMAT = 1
MANIFEST, MODEL, CARD = "manifest.json", "model.json", "README.md"
AGAIN = "make it again with 'rejoinder calibrate'"


class Input(msgspec.Struct, frozen=True):
    """A metric whose scores are read."""

    metric: str
    signature: str
    higher_is_better: bool = True


class Numbers(msgspec.Struct, frozen=True):
    """Content of ``model.json``."""

    model: Model
    folds: list[Model]
    """Models that were fitted without one fold each."""
    errors: list[float]
    """[rated items] how far the model that did not see an item was from its rating."""
    fold: list[int]
    """[rated items] number of the fold."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics, scale, settings and measured figures of a calibration."""

    kind: str = KIND
    format: int = FORMAT
    rejoinder: str = __version__
    method: str
    metrics: list[Input]
    scale: RatingScale
    coverage: float
    """Share of ratings that intervals are to cover."""
    settings: dict[str, Any] = {}
    measured: dict[str, Any] = {}
    parts: dict[str, Part] = {}


class _Versions(msgspec.Struct):
    kind: str
    format: int
    rejoinder: str = "?"


class Calibration(msgspec.Struct, frozen=True, dict=True):
    """A calibration in memory."""

    manifest: Manifest
    numbers: Numbers
    digest: str = ""
    name: str = KIND

    @cached_property
    def signs(self) -> Floats:
        """[metrics, 1] -1 for metrics whose lower scores are better."""
        signs = [1.0 if each.higher_is_better else -1.0 for each in self.manifest.metrics]
        return np.array(signs)[:, np.newaxis]

    def predict(self, scores: Floats) -> Floats:
        """Scores [metrics, n] → [n] expected ratings."""
        return self.manifest.scale.clip(self.numbers.model.predict(self.signs * scores))

    def intervals(self, scores: Floats) -> tuple[Floats, Floats]:
        """Scores [metrics, n] → the ends of the intervals of ratings, [n] each."""
        numbers, scale = self.numbers, self.manifest.scale
        errors = np.array(numbers.errors)
        oriented = self.signs * scores
        ends = cross_conformal(
            numbers.folds, errors, numbers.fold, oriented, self.manifest.coverage
        )
        return scale.inwards(*ends, numbers.model.predict(oriented))


def write_calibration(folder: Path, calibration: Calibration, card: str) -> None:
    """Write the files of a calibration into a folder."""
    numbers = msgspec.json.encode(calibration.numbers)
    for name, content in ((MODEL, numbers), (CARD, card.encode())):
        with open_output(folder / name) as stream:
            stream.write(content)
    parts = {
        name: Part((folder / name).stat().st_size, sha256(folder / name)) for name in (MODEL, CARD)
    }
    manifest = msgspec.structs.replace(calibration.manifest, parts=parts)
    with open_output(folder / MANIFEST) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def open_calibration(path: str) -> Calibration:
    """Read a calibration; DataError if it is damaged, of another kind, or does not fit together."""
    folder = Path(path)
    if not is_file(folder / MANIFEST):
        what = "it has no manifest.json" if is_folder(folder) else "there is no such folder"
        raise DataError(f"is not a calibration: {what}; {AGAIN}", path=path)
    file = inside(folder, MANIFEST)
    versions = read_json(file, _Versions)
    if versions.kind != KIND:
        raise DataError(f"is not a calibration, but '{versions.kind}'; {AGAIN}", path=path)
    if versions.format != FORMAT:
        raise DataError(
            f"was made by rejoinder {versions.rejoinder} in format {versions.format}; this is"
            f" rejoinder {__version__}, which reads format {FORMAT}",
            path=path,
        )
    manifest = read_json(file, Manifest)
    if MODEL not in manifest.parts:
        raise _damaged(path, f"the manifest does not know {MODEL}")
    for name, part in manifest.parts.items():
        inner = inside(folder, name)
        if not is_file(inner):
            raise _damaged(path, f"{name} is missing")
        if inner.stat().st_size != part.size or sha256(inner) != part.sha256:
            raise _damaged(path, f"{name} is not the file that was written (sha256 differs)")
    numbers = read_json(inside(folder, MODEL), Numbers)
    if (problem := _problem(manifest, numbers)) is not None:
        raise DataError(f"{problem}; {AGAIN}", path=str(folder / MODEL))
    digest = hashlib.blake2b(read_bytes(file), digest_size=6).hexdigest()
    return Calibration(manifest, numbers, digest, folder.resolve().name)


def _problem(manifest: Manifest, numbers: Numbers) -> str | None:
    """Return what does not fit together; None if everything does."""
    for model in (numbers.model, *numbers.folds):
        if model.metrics != len(manifest.metrics):
            return f"a model reads {model.metrics} metrics, the manifest has another number"
        if (problem := model.problem()) is not None:
            return problem
    if len(numbers.errors) != len(numbers.fold):
        return "each rated item needs an error and a fold"
    if any(not 0 <= number < len(numbers.folds) for number in numbers.fold):
        return "an item is in a fold without a model"
    if min(numbers.errors, default=0.0) < 0:
        return "an error is below 0"
    scale = manifest.scale
    if not scale.low < scale.high or (scale.step is not None and scale.step <= 0):
        return "the scale of ratings must rise"
    if not 0 < manifest.coverage < 1:
        return "the coverage must be between 0 and 1"
    return None


def _damaged(path: str, what: str) -> DataError:
    return DataError(
        f"the calibration is damaged, or was changed: {what}; copy it again, or {AGAIN}", path=path
    )
