"""Whose judgements had better not count: those of people who hardly agree with the others, or who
favour a planted distractor. Ratings and comparisons have this in common (raters.py here, and
rejoinder/pairwise/annotators.py)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rejoinder.meta_evaluation.join import Floats

DISTRACTOR = "distractor"
"""The system of replies that were planted because they are bad."""
FEWEST_PLANTED = 5
"""Judgements of distractors below which somebody's share of them is chance."""


@dataclass(frozen=True)
class Annotator:
    """One who judged, and what speaks for or against the judgements."""

    name: str
    answers: int
    """How many comparisons, or ratings."""
    kappa: float | None
    """Mean with each other annotator; None with too few judgements in common with any."""
    planted: int
    """How often a distractor was judged …"""
    preferred: float | None
    """… and in which share of cases it was preferred to another reply; a tie is a half."""


@dataclass(frozen=True)
class Agreement:
    """How far annotators agree, all together."""

    annotators: list[Annotator]
    kappa: float | None
    """Cohen's, quadratic weights, mean over pairs of annotators."""
    alpha: float | None
    """Krippendorff's, ordinal."""
    left_out: str | None = None
    """Why kappa was not computed."""


@dataclass(frozen=True)
class Limits:
    """From where on an annotator is called bad; None: whatever they do."""

    least_kappa: float | None = None
    most_preferred: float | None = None


@dataclass(frozen=True)
class Bad:
    """An annotator whose judgements had better not count."""

    name: str
    reason: str


def bad_ones(
    found: Agreement, names: Sequence[str], kappas: Floats, limits: Limits, fondness: str
) -> list[Bad]:
    """Those who prefer distractors too often, then those with a kappa below the limit.

    ``kappas`` [names, names] has the kappa of each two, NaN where there is none; ``fondness`` says
    in words how a ``share`` of ``planted`` distractors was preferred.

    One whose judgements are bad lowers the kappa of all others, so the lowest goes first and the
    rest is computed again. Two who disagree both stay: nobody can say which of them is wrong.
    """
    bad: list[Bad] = []
    if limits.most_preferred is not None:
        for who in found.annotators:
            if who.planted >= FEWEST_PLANTED and (who.preferred or 0) > limits.most_preferred:
                reason = fondness.format(share=who.preferred, planted=who.planted)
                bad.append(Bad(who.name, reason))
    if limits.least_kappa is None or found.left_out is not None:
        return bad
    kappas = kappas.copy()
    gone = [names.index(each.name) for each in bad]
    while True:
        kappas[gone], kappas[:, gone] = np.nan, np.nan
        compared = np.flatnonzero((~np.isnan(kappas)).any(axis=1))
        if compared.size < 3:
            return bad
        means = np.nanmean(kappas[compared], axis=1)
        lowest = int(np.argmin(means))
        if means[lowest] >= limits.least_kappa:
            return bad
        gone.append(int(compared[lowest]))
        bad.append(Bad(names[gone[-1]], f"kappa with the others is {means[lowest]:.2f}"))
