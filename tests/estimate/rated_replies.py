"""Rated replies with scores, as calibration reads them."""

from __future__ import annotations

import numpy as np

from rejoinder.estimation.rated_scores import RatedScores


def rated(
    scores: np.ndarray, single: list[list[float]], context: np.ndarray | None = None
) -> RatedScores:
    """Return replies with the scores of one or more metrics."""
    scores = np.atleast_2d(np.asarray(scores, float))
    count = scores.shape[1]
    return RatedScores(
        [f"m{n}" for n in range(len(scores))],
        np.ones((len(scores), 1)),
        scores,
        np.array([np.mean(ratings) for ratings in single]),
        single,
        np.arange(count) if context is None else context,
        ["s"] * count,
        np.full(count, np.nan),
        scores,
    )
