"""Coverage: how similar an evaluator's logs are to the contexts of a test set.

- ``nearest``: mean similarity of the utterances that are nearest to the context, by the evaluator's
  retriever. If it is low, the logs have nothing like this context.
- ``agreement``: mean cosine between the vectors of the retrieved replies, over all pairs. If it is
  low, they have little in common, and say little about what a good reply is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.files.paths import is_file
from rejoinder.retrieve.retrieved_references import DIGITS, RetrievedReference
from rejoinder.retrieve.retriever import RESPONSE, Hits

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

Floats = NDArray[np.float64]

NEAREST = 5
"""Number of utterances that ``nearest`` averages over."""
QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9)
OUTSIDE = "0.1"
"""A test set is out of domain if its median is below this quantile of held-out contexts."""


@dataclass(frozen=True)
class Coverage:
    """The coverage of some items; NaN where there is none, as for an item without context."""

    nearest: Floats
    agreement: Floats

    def record(self, number: int) -> dict[str, float] | None:
        """Return the coverage of one item as it is written into a scores file."""
        values = {"nearest": self.nearest[number], "agreement": self.agreement[number]}
        finite = {key: round(float(v), DIGITS) for key, v in values.items() if np.isfinite(v)}
        return finite or None


@dataclass
class CoverageTally:
    """Collects the coverage of a test set by one evaluator, batch by batch."""

    usual: Mapping[str, float]
    """Quantiles of ``nearest`` over the evaluator's own held-out contexts."""
    _nearest: list[Floats] = field(default_factory=list)
    _agreement: list[Floats] = field(default_factory=list)

    def add(self, coverage: Coverage) -> None:
        self._nearest.append(coverage.nearest)
        self._agreement.append(coverage.agreement)

    def summary(self) -> CoverageSummary:
        nearest, agreement = _median(self._nearest), _median(self._agreement)
        bound = self.usual.get(OUTSIDE)
        outside = nearest is not None and bound is not None and nearest < bound
        return CoverageSummary(nearest, agreement, self.usual.get("0.5"), bound, outside)


@dataclass(frozen=True)
class CoverageSummary:
    """Medians of the coverage of a test set."""

    nearest: float | None
    agreement: float | None
    usual: float | None
    """The median of ``nearest`` over the evaluator's own held-out contexts."""
    bound: float | None
    """Nine in ten of those are above it."""
    outside: bool
    """Whether the test set is from another domain than the evaluator's logs."""


def _median(pieces: Sequence[Floats]) -> float | None:
    values = np.concatenate(pieces) if pieces else np.zeros(0)
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def quantiles(nearest: Floats) -> dict[str, float]:
    """Return the quantiles of held-out contexts for the manifest."""
    finite = nearest[np.isfinite(nearest)]
    if not finite.size:
        return {}
    values = np.quantile(finite, QUANTILES)
    return {f"{q:g}": round(float(v), DIGITS) for q, v in zip(QUANTILES, values, strict=True)}


def nearest(hits: Hits) -> Floats:
    """Return [queries] the mean similarity of the best few rows; NaN if there are none."""
    there = hits.rows[:, :NEAREST] >= 0
    total = np.where(there, hits.scores[:, :NEAREST], 0.0).sum(axis=1, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / there.sum(axis=1))


def agreements(evaluator: Evaluator, retrieved: Sequence[Sequence[RetrievedReference]]) -> Floats:
    """Return [items] the mean cosine of the retrieved replies; NaN for fewer than two."""
    texts: dict[str, int] = {}
    first_row: list[int] = []
    for some in retrieved:
        for each in some:
            if each.row is not None and texts.setdefault(each.text, len(texts)) == len(first_row):
                first_row.append(each.row)
    values = np.full(len(retrieved), np.nan)
    vectors = reply_vectors(evaluator, list(texts), np.array(first_row, np.int64))
    if vectors is None:
        return values
    agreement_of: dict[tuple[int, ...], float] = {}
    for number, some in enumerate(retrieved):
        which = tuple(texts[each.text] for each in some if each.row is not None)
        if which not in agreement_of:
            agreement_of[which] = _mean_cosine(vectors[list(which)])
        values[number] = agreement_of[which]
    return values


def _mean_cosine(vectors: NDArray[np.float32]) -> float:
    """Return the mean cosine of all pairs of unit vectors, without zero vectors: the square of
    their sum is the sum of all cosines."""
    some = vectors[vectors.any(axis=1)].astype(np.float64)
    n = len(some)
    total = some.sum(axis=0)
    return float((total @ total - n) / (n * (n - 1))) if n > 1 else float("nan")


def reply_vectors(
    evaluator: Evaluator, texts: list[str], rows: NDArray[np.int64]
) -> NDArray[np.float32] | None:
    """Return [texts, d] unit vectors of replies of the pool: those of its index, or of the model
    that it is searched with, or of the scorer's model; None if none of them has vectors."""
    from rejoinder.retrieve.pool import index_name
    from rejoinder.retrieve.vector_file import VectorFile

    if not texts:
        return np.zeros((0, 1), np.float32)
    pool, retriever = evaluator.pool, evaluator.retriever
    stored = pool.folder / index_name(retriever) / f"{RESPONSE}.npy"
    if RESPONSE in retriever.keys and is_file(stored):
        return VectorFile(stored, pool.size).rows(rows)
    return None if evaluator.encode is None else evaluator.vectors(texts)
