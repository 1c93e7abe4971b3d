"""A calibration file: in how many texts each token stands, and what random pairs score.

Both are facts of a model, a layer and a corpus, so the file names them all: a calibration of
another model or layer is refused, not silently applied. :mod:`.calibrate` makes it.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from pathlib import Path

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.files.jsonl import explain
from rejoinder.metrics.batch import Floats, Ints

HOW = "make one with rejoinder train calibration"


class Calibration(msgspec.Struct, frozen=True, kw_only=True, tag="rejoinder-calibration"):
    """What ``bertscore`` needs for ``idf=true`` and ``rescale=true``."""

    model: str
    digest: str
    """Of the model's weights, configuration and tokenizer."""
    layer: int
    texts: int
    """How many texts were read."""
    pairs: int
    seed: int
    random_pairs: tuple[float, float, float]
    """P, R and F of pairs of different texts, on average."""
    random_pairs_idf: tuple[float, float, float]
    """The same where tokens are weighted with their idf."""
    counts: dict[int, int]
    """Token number → how many texts have the token."""

    def idf(self) -> Floats:
        counts = np.zeros(max(self.counts, default=-1) + 1, np.int64)
        counts[list(self.counts)] = list(self.counts.values())
        return idf(counts, self.texts)

    def baseline(self, idf: bool) -> tuple[float, float, float]:
        return self.random_pairs_idf if idf else self.random_pairs


def idf(counts: Ints, texts: int) -> Floats:
    """log((N + 1) / (c + 1)) by token number; the last entry is that of an unseen token."""
    return np.asarray(np.log((texts + 1) / (np.append(counts, 0) + 1)))


def open_calibration(path: str) -> Calibration:
    return _read(path)[0]


def calibration_digest(path: str) -> str:
    """12 hex digits of the file's content."""
    return _read(path)[1]


@lru_cache
def _read(path: str) -> tuple[Calibration, str]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"the calibration cannot be read: {reason}; {HOW}", path=path) from None
    try:
        found = msgspec.json.decode(content, type=Calibration)
    except msgspec.ValidationError as error:
        raise DataError(f"is no calibration: {explain(str(error))}; {HOW}", path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise DataError(f"is no calibration: it is no JSON; {HOW}", path=path) from None
    numbers = [*found.random_pairs, *found.random_pairs_idf]
    whole = all(0 <= c <= found.texts and token >= 0 for token, c in found.counts.items())
    if not whole or not all(math.isfinite(b) and b < 1 for b in numbers):
        raise DataError(f"is no calibration: its numbers make no sense; {HOW}", path=path)
    return found, hashlib.sha256(content).hexdigest()[:12]


def check_calibration(path: str, digest: str, layer: int) -> None:
    """DataError unless the calibration belongs to this model and layer."""
    found = open_calibration(path)
    if found.digest != digest:
        raise DataError(
            f"the calibration was made with the model {found.model}@{found.digest}, and the metric"
            f" uses one with the digest {digest}; {HOW}",
            path=path,
        )
    if found.layer != layer:
        raise DataError(
            f"the calibration was made with layer {found.layer}, and the metric uses layer"
            f" {layer}; {HOW}",
            path=path,
        )
