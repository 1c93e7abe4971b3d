"""Conformal intervals: where people's rating of a single reply is expected, with known coverage.

Cross-conformal (CV+, Barber et al. 2021): the ratings are divided into folds by context, and each
fold k has a model f₋ₖ that was fitted to the others. For a rated reply i, Rᵢ is the error of the
model that did not see it. The interval of another reply x with the coverage 1 - α is

    [ the ⌊α (n + 1)⌋-th smallest of f₋ₖ₍ᵢ₎(x) - Rᵢ,  the ⌈(1 - α) (n + 1)⌉-th of f₋ₖ₍ᵢ₎(x) + Rᵢ ]

If ratings have steps (1 to 5, or thirds of them where three people rated each reply), both ends
move inwards to the next step, which loses no rating that can occur: shorter, with the same coverage
(ordinal boundary adjustment: Sheng et al. 2025). What the theory promises (1 - 2α for any metric
and any data whose contexts are exchangeable) is measured when the calibration is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from rejoinder.metrics.calibrated.models import Floats, Model

MAX_CELLS = 4_000_000
"""Numbers that are sorted at once."""
_ROUNDING = 1e-9
"""Steps that a number may lie beside its place, as 2 + 1/3 does."""


class RatingScale(msgspec.Struct, frozen=True):
    """The lowest and highest rating, and the distance of ratings if all that can occur are
    equally far apart."""

    low: float
    high: float
    step: float | None = None

    def clip(self, values: Floats) -> Floats:
        """Return values on the scale."""
        return np.clip(values, self.low, self.high)

    def inwards(self, low: Floats, high: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Return the ends of intervals at the next ratings inside; at the rating nearest to the
        ``value`` if there is none."""
        low, high = self.clip(low), self.clip(high)
        if self.step is None:
            return low, high
        first = np.ceil((low - self.low) / self.step - _ROUNDING)
        last = np.floor((high - self.low) / self.step + _ROUNDING)
        nearest = np.rint((self.clip(value) - self.low) / self.step)
        first, last = (np.where(first > last, nearest, end) for end in (first, last))
        return self.clip(self.low + first * self.step), self.clip(self.low + last * self.step)


def cross_conformal(
    models: Sequence[Model],
    errors: Floats,
    folds: Sequence[int],
    scores: Floats,
    coverage: float,
) -> tuple[Floats, Floats]:
    """Return the ends of the intervals at ``scores`` [metrics, n], infinite if there are too few
    ``errors`` (of the rated replies, each in one of the ``folds``)."""
    count = len(errors)
    lower = int(np.floor((1 - coverage) * (count + 1) + _ROUNDING))
    upper = int(np.ceil(coverage * (count + 1) - _ROUNDING))
    size = scores.shape[1]
    low, high = np.full(size, -np.inf), np.full(size, np.inf)
    if lower < 1 or upper > count:
        return low, high
    predicted = np.array([model.predict(scores) for model in models])
    width = max(1, MAX_CELLS // count)
    for start in range(0, size, width):
        part = slice(start, start + width)
        centre = predicted[:, part][np.asarray(folds)]
        ends = centre - errors[:, np.newaxis], centre + errors[:, np.newaxis]
        low[part] = np.partition(ends[0], lower - 1, axis=0)[lower - 1]
        high[part] = np.partition(ends[1], upper - 1, axis=0)[upper - 1]
    return low, high
