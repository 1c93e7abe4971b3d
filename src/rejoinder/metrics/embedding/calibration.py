"""Calibration files: document frequencies of tokens, and the scores of random pairs.

Both depend on the model, the layer and the corpus, which the file names: a calibration of another
model or layer is refused. :mod:`.calibrate` makes it.
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.files.checked import read_bytes, read_json
from rejoinder.files.paths import expand_user
from rejoinder.metrics.batch import Floats, Ints

HOW = "make one with rejoinder train calibration"


class Calibration(msgspec.Struct, frozen=True, kw_only=True, tag="rejoinder-calibration"):
    """Token frequencies and baselines for ``idf=true`` and ``rescale=true`` of ``bertscore``."""

    model: str
    digest: str
    """Digest of the model's weights, configuration and tokenizer."""
    layer: int
    texts: int
    """Number of texts that were read."""
    pairs: int
    seed: int
    random_pairs: tuple[float, float, float]
    """Mean P, R and F of pairs of different texts."""
    random_pairs_idf: tuple[float, float, float]
    """The same with tokens weighted by their idf."""
    counts: dict[int, int]
    """Token number → number of texts with the token."""

    def idf(self) -> Floats:
        counts = np.zeros(max(self.counts, default=-1) + 1, np.int64)
        counts[list(self.counts)] = list(self.counts.values())
        return idf(counts, self.texts)

    def baseline(self, idf: bool) -> tuple[float, float, float]:
        return self.random_pairs_idf if idf else self.random_pairs


def idf(counts: Ints, texts: int) -> Floats:
    """Return log((N + 1) / (c + 1)) by token number; the last entry is that of unseen tokens."""
    return np.asarray(np.log((texts + 1) / (np.append(counts, 0) + 1)))


def open_calibration(path: str) -> Calibration:
    """Read a calibration file; it is kept in memory."""
    return _read(path)[0]


def calibration_digest(path: str) -> str:
    """Return 12 hex digits of the digest of the file's content."""
    return _read(path)[1]


@lru_cache
def _read(path: str) -> tuple[Calibration, str]:
    path = str(expand_user(path))
    try:
        content = read_bytes(path)
        calibration = read_json(path, Calibration)
    except DataError as error:
        raise DataError(f"{error}; {HOW}") from None
    numbers = [*calibration.random_pairs, *calibration.random_pairs_idf]
    whole = all(
        0 <= c <= calibration.texts and token >= 0 for token, c in calibration.counts.items()
    )
    if not whole or not all(math.isfinite(b) and b < 1 for b in numbers):
        raise DataError(f"is not a calibration: its numbers are out of range; {HOW}", path=path)
    return calibration, hashlib.sha256(content).hexdigest()[:12]


def check_calibration(path: str, digest: str, layer: int) -> None:
    """Raise DataError unless the calibration belongs to this model and layer."""
    calibration = open_calibration(path)
    if calibration.digest != digest:
        raise DataError(
            f"the calibration was made with the model {calibration.model}@{calibration.digest}, and"
            f" the metric uses one with the digest {digest}; {HOW}",
            path=path,
        )
    if calibration.layer != layer:
        raise DataError(
            f"the calibration was made with layer {calibration.layer}, and the metric uses layer"
            f" {layer}; {HOW}",
            path=path,
        )
