"""Whose answers can be trusted: agreement with the others, and planted distractors.

A pair has no first and second by nature. So each one counts in both directions here, and no figure
depends on which of the two was named first: with verdicts from -1 (the second) to 1 (the first),
Cohen's kappa with quadratic weights becomes 2 Σ x y / (Σ x² + Σ y²) over the pairs of both.
Without ties that is twice the share of equal answers, less 1.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from rejoinder.meta_evaluation.agreement import krippendorff_alpha, mean_known, mean_of_pairs
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    Agreement,
    Annotator,
    Bad,
    Limits,
    bad_ones,
)
from rejoinder.meta_evaluation.humans import FEWEST, MOST_ANNOTATORS, TOO_MANY
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints

FONDNESS = "preferred a distractor in {share:.2f} of {planted} comparisons"


def agreement(comparisons: Comparisons, distractor: str = DISTRACTOR) -> Agreement:
    """Agreement of those who gave these answers."""
    names = comparisons.annotators
    named = comparisons.annotator != UNNAMED
    counts = np.bincount(comparisons.annotator[named], minlength=len(names))
    why = None
    if len(names) > MOST_ANNOTATORS:
        why = TOO_MANY
        kappas = np.full((0, 0), np.nan)
        each: list[float | None] = [None] * len(names)
    else:
        kappas = pairwise_kappas(comparisons)
        each = [mean_known(row) for row in kappas]
    planted, preferred = _distractors(comparisons, distractor)
    return Agreement(
        [
            Annotator(
                name,
                int(counts[number]),
                each[number],
                int(planted[number]),
                float(preferred[number] / planted[number]) if planted[number] else None,
            )
            for number, name in enumerate(names)
            if counts[number]
        ],
        mean_of_pairs(kappas),
        _alpha(comparisons),
        why,
    )


def pairwise_kappas(comparisons: Comparisons) -> Floats:
    """[annotators, annotators] kappa of each two; NaN on the diagonal, with fewer than FEWEST
    pairs in common, and where both saw nothing but ties."""
    verdicts, known = _verdicts(comparisons)
    common = (known @ known.T).toarray()
    products = (verdicts @ verdicts.T).toarray()
    squares = (verdicts**2 @ known.T).toarray()
    sums = squares + squares.T
    defined = (common >= FEWEST) & (sums > 0) & ~np.eye(len(common), dtype=bool)
    return np.where(defined, 2 * products / np.where(defined, sums, 1), np.nan)


def bad_annotators(
    comparisons: Comparisons,
    *,
    least_kappa: float | None = None,
    most_preferred: float | None = None,
    distractor: str = DISTRACTOR,
) -> list[Bad]:
    """Those whose answers had better not count."""
    found = agreement(comparisons, distractor)
    kappas = pairwise_kappas(comparisons) if found.left_out is None else np.zeros((0, 0))
    limits = Limits(least_kappa, most_preferred)
    return bad_ones(found, comparisons.annotators, kappas, limits, FONDNESS)


def _verdicts(comparisons: Comparisons) -> tuple[csr_array, csr_array]:
    """[annotators, pairs] -1 to 1, the average of one's own answers, and 1 where there is any."""
    named = comparisons.annotator != UNNAMED
    who, pair = comparisons.annotator[named], _pairs(comparisons)[named]
    shape = len(comparisons.annotators), int(pair.max(initial=-1)) + 1
    votes = (comparisons.weight * (2 * comparisons.outcome - 1))[named]
    verdicts = csr_array((votes, (who, pair)), shape=shape)
    known = csr_array((np.ones(who.size), (who, pair)), shape=shape)
    known.data[:] = 1  # the parts of one's own answers are summed up
    return verdicts, known


def _pairs(comparisons: Comparisons) -> Ints:
    """The number of each answer's pair."""
    keys = comparisons.first * len(comparisons.candidates) + comparisons.second
    return np.asarray(np.unique(keys, return_inverse=True)[1], np.int64)


def _alpha(comparisons: Comparisons) -> float | None:
    """Alpha does not ask who answered: the first, second … answer about a pair are its rows. Of
    several answers of one annotator to one question the first counts."""
    pair, who = _pairs(comparisons), comparisons.annotator
    own = np.where(who == UNNAMED, -1 - np.arange(who.size), who)
    chosen = np.sort(np.unique(np.stack([own, pair]), axis=1, return_index=True)[1])
    pair, outcome = pair[chosen], comparisons.outcome[chosen]
    order = np.argsort(pair, kind="stable")
    counts = np.bincount(pair, minlength=1)
    begin = np.cumsum(counts) - counts
    row = np.arange(pair.size) - begin[pair[order]]
    table = np.full((int(counts.max(initial=0)), counts.size), np.nan)
    table[row, pair[order]] = 2 * outcome[order] - 1
    return krippendorff_alpha(np.hstack([table, -table]), "ordinal")


def _distractors(comparisons: Comparisons, distractor: str) -> tuple[Floats, Floats]:
    """[annotators] how often distractors stood against others, and were preferred."""
    systems = np.array([item.system == distractor for item in comparisons.candidates], bool)
    first, second = systems[comparisons.first], systems[comparisons.second]
    chosen = (first != second) & (comparisons.annotator != UNNAMED)
    liked = np.where(first, comparisons.outcome, 1 - comparisons.outcome)[chosen]
    who, size = comparisons.annotator[chosen], len(comparisons.annotators)
    planted = np.bincount(who, minlength=size).astype(np.float64)
    return planted, np.asarray(np.bincount(who, liked, size), np.float64)
