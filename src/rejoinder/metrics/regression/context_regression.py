"""The regression of one context: from similarities to its references to their scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rejoinder.errors import UsageError
from rejoinder.metrics.batch import Floats, Ints
from rejoinder.metrics.regression.contexts import Context

MIN_REFERENCES = 3
TOLERANCE = 1e-6
"""Tolerance of the optimum; a tenth of it changes no score in its fifth decimal."""


@dataclass(frozen=True)
class ContextRegression:
    """Support vector regression over the references of one context, with its parameters."""

    c: float
    epsilon: float
    gamma: float | None

    def estimate(self, context: Context, columns: Ints, weight: Floats, texts: Ints) -> Floats:
        """Predict the scores of ``texts`` from the weights of references that can be compared."""
        from rejoinder.kernels.svr import svr_predict

        change = context.multiplicity - np.bincount(columns, minlength=context.references)
        changed = np.flatnonzero(change)
        predictions = svr_predict(
            context.filled,
            context.squared_distances,
            columns,
            columns,
            changed,
            change[changed].astype(np.float64),
            (weight + 1) / 2,
            texts,
            self.c,
            self.epsilon,
            self.gamma or 0.0,
            TOLERANCE,
        )
        if np.isnan(predictions).any():
            raise UsageError(f"the regression with c={self.c:g} does not converge: use a smaller c")
        return predictions
