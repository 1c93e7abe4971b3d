"""Agreement of the annotators of pairwise comparisons, and which of them are unreliable.

The order of the two replies of a pair carries no meaning, so every pair counts in both directions,
and no figure depends on which reply was named first. With verdicts x, y from -1 (the second is
better) to 1 (the first is better), Cohen's kappa with quadratic weights becomes

    kappa = 2 Σ x y / (Σ x² + Σ y²)

over the pairs that both annotators judged. Without ties that is twice the share of equal answers,
minus 1. Limits and the search for unreliable annotators are those of ratings
(rejoinder.meta_evaluation.annotators).
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from rejoinder.meta_evaluation.agreement import krippendorff_alpha, mean_defined, mean_of_pairs
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    MAX_ANNOTATORS,
    MIN_COMMON,
    TOO_MANY,
    Annotator,
    AnnotatorAgreement,
    AnnotatorLimits,
    UnreliableAnnotator,
    find_unreliable,
)
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints

PREFERRED = "preferred a distractor in {share:.2f} of {count} comparisons"


def comparison_agreement(
    comparisons: Comparisons, distractor: str = DISTRACTOR
) -> AnnotatorAgreement:
    """Return the agreement of the annotators; ``distractor`` names the system of distractors."""
    names = comparisons.annotators
    named = comparisons.annotator != UNNAMED
    counts = np.bincount(comparisons.annotator[named], minlength=len(names))
    why = None
    if len(names) > MAX_ANNOTATORS:
        why = TOO_MANY
        kappas = np.full((0, 0), np.nan)
        each: list[float | None] = [None] * len(names)
    else:
        kappas = pairwise_kappas(comparisons)
        each = [mean_defined(row) for row in kappas]
    planted, preferred = _distractors(comparisons, distractor)
    return AnnotatorAgreement(
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
    """Return the kappa of each two annotators [annotators, annotators].

    NaN on the diagonal, with fewer than MIN_COMMON pairs in common, and where both gave only ties.
    """
    verdicts, judged = _verdicts(comparisons)
    common = (judged @ judged.T).toarray()
    products = (verdicts @ verdicts.T).toarray()
    squares = (verdicts**2 @ judged.T).toarray()
    sums = squares + squares.T
    defined = (common >= MIN_COMMON) & (sums > 0) & ~np.eye(len(common), dtype=bool)
    return np.where(defined, 2 * products / np.where(defined, sums, 1), np.nan)


def unreliable_annotators(
    comparisons: Comparisons,
    *,
    min_kappa: float | None = None,
    max_distractor: float | None = None,
    distractor: str = DISTRACTOR,
) -> list[UnreliableAnnotator]:
    """Return the annotators whose answers should be left out."""
    agreement = comparison_agreement(comparisons, distractor)
    kappas = pairwise_kappas(comparisons) if agreement.left_out is None else np.zeros((0, 0))
    limits = AnnotatorLimits(min_kappa, max_distractor)
    return find_unreliable(agreement, comparisons.annotators, kappas, limits, PREFERRED)


def _verdicts(comparisons: Comparisons) -> tuple[csr_array, csr_array]:
    """Return [annotators, pairs] the mean verdict of an annotator on a pair, and 1 where judged."""
    named = comparisons.annotator != UNNAMED
    annotator, pair = comparisons.annotator[named], _pairs(comparisons)[named]
    shape = len(comparisons.annotators), int(pair.max(initial=-1)) + 1
    votes = (comparisons.weight * (2 * comparisons.outcome - 1))[named]
    verdicts = csr_array((votes, (annotator, pair)), shape=shape)
    judged = csr_array((np.ones(annotator.size), (annotator, pair)), shape=shape)
    judged.data[:] = 1  # several answers of one annotator to one pair were summed up
    return verdicts, judged


def _pairs(comparisons: Comparisons) -> Ints:
    """Return the number of each answer's pair."""
    keys = comparisons.first * len(comparisons.candidates) + comparisons.second
    return np.asarray(np.unique(keys, return_inverse=True)[1], np.int64)


def _alpha(comparisons: Comparisons) -> float | None:
    """Return Krippendorff's alpha of all answers, also those without an annotator.

    Alpha does not depend on who answered, so the rows of its table are the first, second, … answer
    to a pair. Of several answers of one annotator to one pair the first counts.
    """
    pair, annotator = _pairs(comparisons), comparisons.annotator
    own = np.where(annotator == UNNAMED, -1 - np.arange(annotator.size), annotator)
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
    """Return [annotators] how often a distractor met another reply, and was preferred."""
    systems = np.array([item.system == distractor for item in comparisons.candidates], bool)
    first, second = systems[comparisons.first], systems[comparisons.second]
    chosen = (first != second) & (comparisons.annotator != UNNAMED)
    preferred = np.where(first, comparisons.outcome, 1 - comparisons.outcome)[chosen]
    annotator, size = comparisons.annotator[chosen], len(comparisons.annotators)
    planted = np.bincount(annotator, minlength=size).astype(np.float64)
    return planted, np.asarray(np.bincount(annotator, preferred, size), np.float64)
