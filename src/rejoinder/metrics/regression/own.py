"""A context's own regression: from similarities to some of its references to their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.errors import UsageError
from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.regression.contexts import Context

FEWEST = 3
TOLERANCE = 1e-6
"""How far the optimum may be missed; a tenth as much moves no score in its fifth decimal."""


@dataclass(frozen=True)
class Own:
    """The parameters of a support vector regression."""

    c: float
    epsilon: float
    gamma: float | None

    def estimate(self, context: Context, columns: Ints, weight: Floats, asked: Ints) -> Floats:
        """The scores of the texts ``asked``, by references that can all be compared and have these
        weights."""
        from rejoinder.kernels.regression import estimate

        change = context.most - np.bincount(columns, minlength=context.references)
        changed = np.flatnonzero(change)
        found = estimate(
            context.filled,
            context.apart,
            columns,
            columns,
            changed,
            change[changed].astype(np.float64),
            (weight + 1) / 2,
            asked,
            self.c,
            self.epsilon,
            self.gamma or 0.0,
            TOLERANCE,
        )
        if np.isnan(found).any():
            raise UsageError(f"no regression is found with c={self.c:g}: take a smaller c")
        return found
