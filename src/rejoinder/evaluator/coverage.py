"""How well a pool covers the contexts of a test set: can its evaluator know anything about them?

- ``nearest``: the mean similarity of the utterances that are nearest to the context, by the
  evaluator's own retriever. Low: nobody said such a thing in the logs.
- ``agreement``: the mean cosine between the vectors of the replies that were retrieved, pair by
  pair. Low: the replies have little in common, and say little about what a good one is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.retrieve.base import RESPONSE, Hits
from rejoinder.retrieve.references import DIGITS, Found

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator

Floats = NDArray[np.float64]

NEAREST = 5
"""Utterances that ``nearest`` is the mean of."""
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
OUTSIDE = "0.1"
"""A test set whose median lies below this quantile of held-out contexts is from elsewhere."""


@dataclass(frozen=True)
class Coverage:
    """Of some items; NaN where there is nothing to tell, such as for an item without context."""

    nearest: Floats
    agreement: Floats

    def record(self, number: int) -> dict[str, float] | None:
        """What a score says of the item."""
        values = {"nearest": self.nearest[number], "agreement": self.agreement[number]}
        known = {key: round(float(v), DIGITS) for key, v in values.items() if np.isfinite(v)}
        return known or None


@dataclass
class Tally:
    """The coverage of a test set by one evaluator, batch by batch."""

    usual: Mapping[str, float]
    """Quantiles of ``nearest`` over the evaluator's own held-out contexts."""
    _nearest: list[Floats] = field(default_factory=list)
    _agreement: list[Floats] = field(default_factory=list)

    def add(self, found: Coverage) -> None:
        self._nearest.append(found.nearest)
        self._agreement.append(found.agreement)

    def covered(self) -> Covered:
        nearest, agreement = _median(self._nearest), _median(self._agreement)
        bound = self.usual.get(OUTSIDE)
        outside = nearest is not None and bound is not None and nearest < bound
        return Covered(nearest, agreement, self.usual.get("0.5"), bound, outside)


@dataclass(frozen=True)
class Covered:
    """How well an evaluator's pool covers a test set: medians."""

    nearest: float | None
    agreement: float | None
    usual: float | None
    """The median of ``nearest`` over the evaluator's own held-out contexts."""
    bound: float | None
    """Nine in ten of those lie above it."""
    outside: bool
    """The test set is from another domain than the evaluator's logs."""


def _median(pieces: Sequence[Floats]) -> float | None:
    values = np.concatenate(pieces) if pieces else np.zeros(0)
    known = values[np.isfinite(values)]
    return float(np.median(known)) if known.size else None


def quantiles(nearest: Floats) -> dict[str, float]:
    """What the manifest says of held-out contexts."""
    known = nearest[np.isfinite(nearest)]
    if not known.size:
        return {}
    found = np.quantile(known, QUANTILES)
    return {f"{q:g}": round(float(v), DIGITS) for q, v in zip(QUANTILES, found, strict=True)}


def nearest(hits: Hits) -> Floats:
    """[queries] the mean similarity of the best few rows; NaN where none was found."""
    there = hits.rows[:, :NEAREST] >= 0
    total = np.where(there, hits.scores[:, :NEAREST], 0.0).sum(axis=1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / there.sum(axis=1))


def agreements(evaluator: Evaluator, found: Sequence[Sequence[Found]]) -> Floats:
    """[items] how alike the retrieved replies of each are; NaN for fewer than two of them."""
    texts: dict[str, int] = {}
    first_row: list[int] = []
    for some in found:
        for each in some:
            if each.row is not None and texts.setdefault(each.text, len(texts)) == len(first_row):
                first_row.append(each.row)
    values = np.full(len(found), np.nan)
    vectors = reply_vectors(evaluator, list(texts), np.array(first_row, np.int64))
    if vectors is None:
        return values
    known: dict[tuple[int, ...], float] = {}
    for number, some in enumerate(found):
        which = tuple(texts[each.text] for each in some if each.row is not None)
        if which not in known:
            known[which] = _alike(vectors[list(which)])
        values[number] = known[which]
    return values


def _alike(vectors: NDArray[np.float32]) -> float:
    """The mean cosine of all pairs of vectors of length 1, those of length 0 left out: the square
    of their sum is the sum of all cosines."""
    some = vectors[vectors.any(axis=1)].astype(np.float64)
    n = len(some)
    total = some.sum(axis=0)
    return float((total @ total - n) / (n * (n - 1))) if n > 1 else float("nan")


def reply_vectors(
    evaluator: Evaluator, texts: list[str], rows: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """[texts, d] vectors of replies of the pool, of length 1: from its index, from the model that
    it is searched with, or from the one that the scorer reads with; None where none has any."""
    from rejoinder.retrieve.pool import index_name

    if not texts:
        return np.zeros((0, 1), np.float32)
    pool, retriever = evaluator.pool, evaluator.retriever
    stored = pool.folder / index_name(retriever) / f"{RESPONSE}.npy"
    if RESPONSE in retriever.keys and stored.is_file():
        return np.array(np.load(stored, mmap_mode="r", allow_pickle=False)[rows], np.float32)
    return None if evaluator.encode is None else evaluator.encode(texts)
