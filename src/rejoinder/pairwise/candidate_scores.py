"""Scores of candidates from pairwise comparisons, by counting wins or by Bradley-Terry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rejoinder.pairwise.answers import Comparisons, Floats, Ints
from rejoinder.pairwise.bradley_terry import bradley_terry
from rejoinder.pairwise.winning_rates import winning_rates
from rejoinder.progress import Progress

ScoringMethod = Literal["rate", "bradley-terry"]
METHODS: tuple[ScoringMethod, ...] = ("rate", "bradley-terry")


@dataclass(frozen=True)
class CandidateScores:
    """Scores of candidates [n]; NaN for a candidate without comparison."""

    method: ScoringMethod
    rate: Floats
    """Winning rate from 0 to 1, which becomes a rating or a reference weight."""
    error: Floats
    votes: Floats
    strength: Floats
    """Bradley-Terry strength; NaN with the method ``rate``."""
    strength_error: Floats
    component: Ints
    """Connected component; scores are comparable within one component of a context. -1 without
    comparison."""
    contexts: int
    disconnected: list[str]
    """Contexts with more than one connected component."""
    prior_bounded: int
    """Candidates whose strength only the prior keeps finite."""
    circular_triads: int
    triads: int


def score_candidates(
    comparisons: Comparisons,
    method: ScoringMethod,
    on_progress: Progress | None = None,
) -> CandidateScores:
    """Return the scores of all candidates.

    Components and circular triads are counted with either method; strengths are kept for
    Bradley-Terry only.
    """
    counted = winning_rates(comparisons)
    size = len(comparisons.candidates)
    columns = {name: np.full(size, np.nan) for name in ("rate", "error", "strength", "spread")}
    component = np.full(size, -1, np.int64)
    disconnected = []
    prior_bounded = circular_triads = triads = 0
    total = len(comparisons.contexts)
    for number, contest in enumerate(comparisons.contests()):
        fitted = bradley_terry(contest)
        own = contest.members
        columns["rate"][own], columns["error"][own] = fitted.rate, fitted.rate_error
        columns["strength"][own], columns["spread"][own] = fitted.strength, fitted.error
        component[own] = fitted.component
        if fitted.components > 1:
            disconnected.append(contest.name)
        prior_bounded += fitted.prior_bounded
        circular_triads += fitted.circular_triads
        triads += fitted.triads
        if on_progress is not None:
            on_progress(number + 1, total)
    if method == "rate":
        undefined = np.full(size, np.nan)
        columns = {"rate": counted.rate, "error": counted.error}
        columns |= {"strength": undefined, "spread": undefined}
    return CandidateScores(
        method,
        columns["rate"],
        columns["error"],
        counted.votes,
        columns["strength"],
        columns["spread"],
        component,
        total,
        disconnected,
        prior_bounded,
        circular_triads,
        triads,
    )
