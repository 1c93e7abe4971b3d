"""Answers into scores: a winning rate for each candidate, by counting or by Bradley-Terry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from rejoinder.pairwise.answers import Comparisons, Floats, Ints
from rejoinder.pairwise.bradley_terry import bradley_terry
from rejoinder.pairwise.rates import winning_rates
from rejoinder.progress import Progress

Way = Literal["rate", "bradley-terry"]
WAYS: tuple[Way, ...] = ("rate", "bradley-terry")


@dataclass(frozen=True)
class Fit:
    """For each candidate [n]; NaN where nobody compared it."""

    way: Way
    rate: Floats
    """Winning rate, from 0 to 1: what becomes a rating, or a weight."""
    error: Floats
    votes: Floats
    strength: Floats
    """NaN where rates were only counted."""
    strength_error: Floats
    part: Ints
    """Scores are comparable inside one connected part of a context; -1 without comparison."""
    contexts: int
    unconnected: list[str]
    """Contexts that comparisons do not connect."""
    bounded: int
    """Candidates that only the prior keeps finite."""
    circles: int
    triples: int


def fit(
    comparisons: Comparisons,
    way: Way,
    on_progress: Progress | None = None,
) -> Fit:
    """The scores of all candidates. What answers contradict (parts, circles) is counted whichever
    way is chosen; strengths are kept for Bradley-Terry."""
    counted = winning_rates(comparisons)
    size = len(comparisons.candidates)
    columns = {name: np.full(size, np.nan) for name in ("rate", "error", "strength", "spread")}
    part = np.full(size, -1, np.int64)
    unconnected = []
    bounded = circles = triples = 0
    total = len(comparisons.contexts)
    for number, contest in enumerate(comparisons.contests()):
        found = bradley_terry(contest)
        own = contest.members
        columns["rate"][own], columns["error"][own] = found.rate, found.rate_error
        columns["strength"][own], columns["spread"][own] = found.strength, found.error
        part[own] = found.part
        if found.parts > 1:
            unconnected.append(contest.name)
        bounded += found.bounded
        circles, triples = circles + found.circles, triples + found.triples
        if on_progress is not None:
            on_progress(number + 1, total)
    if way == "rate":
        unknown = np.full(size, np.nan)
        columns = {"rate": counted.rate, "error": counted.error}
        columns |= {"strength": unknown, "spread": unknown}
    return Fit(
        way,
        columns["rate"],
        columns["error"],
        counted.votes,
        columns["strength"],
        columns["spread"],
        part,
        total,
        unconnected,
        bounded,
        circles,
        triples,
    )
