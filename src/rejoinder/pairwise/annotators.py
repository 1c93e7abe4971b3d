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

from rejoinder.meta_evaluation.agreement import (
    MAX_PAIRED,
    alpha_interval,
    krippendorff_alpha,
    mean_defined,
    mean_of_pairs,
)
from rejoinder.meta_evaluation.agreement_sums import (
    Interval,
    PairSums,
    mean_over_pairs,
    rating_pairs,
    resampled_interval,
)
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    MAX_ANNOTATORS,
    MIN_COMMON,
    RESAMPLING,
    TOO_MANY,
    Annotator,
    AnnotatorAgreement,
    AnnotatorLimits,
    Resampling,
    UnreliableAnnotator,
    find_unreliable,
)
from rejoinder.meta_evaluation.correlate import Integers
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints

PREFERRED = "preferred a distractor in {share:.2f} of {count} comparisons"


def comparison_agreement(
    comparisons: Comparisons,
    distractor: str = DISTRACTOR,
    resampling: Resampling = RESAMPLING,
) -> AnnotatorAgreement:
    """Return the agreement of the annotators; ``distractor`` names the system of distractors.

    Intervals are resampled by context, so that there are none with a single context.
    """
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
    table, contexts = _answer_table(comparisons)
    size, seed = resampling.resamples, resampling.seed
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
        krippendorff_alpha(table, "ordinal"),
        why,
        _kappa_interval(comparisons, resampling) if why is None else None,
        alpha_interval(table, contexts, "ordinal", size, seed),
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
    agreement = comparison_agreement(comparisons, distractor, Resampling(0))
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


def _contexts(comparisons: Comparisons) -> Ints:
    """Return the context of each pair."""
    first = np.unique(_pairs(comparisons), return_index=True)[1]
    return np.asarray(comparisons.context[comparisons.first[first]], np.int64)


def _kappa_interval(comparisons: Comparisons, resampling: Resampling) -> Interval | None:
    """Return the interval of the mean kappa of the annotators who have enough pairs in common.

    None with more than MAX_PAIRED pairs of answers.
    """
    verdicts = _verdicts(comparisons)[0].T.tocsr()  # [pairs, annotators], ties are stored zeros
    sizes = np.diff(verdicts.indptr)
    if int((sizes * (sizes - 1)).sum()) > 2 * MAX_PAIRED:
        return None
    item = np.repeat(np.arange(sizes.size), sizes)
    left, right = rating_pairs(item)
    who = verdicts.indices.astype(np.int64)
    names = who[left] * len(comparisons.annotators) + who[right]
    _, pair, common = np.unique(names, return_inverse=True, return_counts=True)
    enough = common[pair] >= MIN_COMMON
    left, right, pair = left[enough], right[enough], np.unique(pair[enough], return_inverse=True)[1]
    kept, place = np.unique(item[left], return_inverse=True)
    x, y = verdicts.data[left], verdicts.data[right]
    sums = PairSums.of(pair, place, [2 * x * y, x**2 + y**2], kept.size)

    def mean_kappas(drawn: Integers) -> Floats:
        products, squares = sums.drawn(drawn)
        kappas = np.full(products.shape, np.nan)
        np.divide(products, squares, out=kappas, where=squares > 0)
        return mean_over_pairs(kappas)

    return resampled_interval(
        mean_kappas,
        _contexts(comparisons)[kept],
        row_bytes=sums.row_bytes,
        resamples=resampling.resamples,
        seed=resampling.seed,
    )


def _answer_table(comparisons: Comparisons) -> tuple[Floats, Ints]:
    """Return all answers [most answers to a pair, 2 pairs] and the context of each column.

    Krippendorff's alpha does not depend on who answered, so the rows are the first, second, …
    answer to a pair, also of people without a name. Of several answers of one annotator to one
    pair the first counts. Every pair has a column for each direction.
    """
    pair, annotator = _pairs(comparisons), comparisons.annotator
    own = np.where(annotator == UNNAMED, -1 - np.arange(annotator.size), annotator)
    chosen = np.sort(np.unique(np.stack([own, pair]), axis=1, return_index=True)[1])
    pair, outcome = pair[chosen], comparisons.outcome[chosen]
    order = np.argsort(pair, kind="stable")
    counts = np.bincount(pair)
    begin = np.cumsum(counts) - counts
    row = np.arange(pair.size) - begin[pair[order]]
    table = np.full((int(counts.max(initial=0)), counts.size), np.nan)
    table[row, pair[order]] = 2 * outcome[order] - 1
    return np.hstack([table, -table]), np.tile(_contexts(comparisons), 2)


def _distractors(comparisons: Comparisons, distractor: str) -> tuple[Floats, Floats]:
    """Return [annotators] how often a distractor met another reply, and was preferred."""
    systems = np.array([item.system == distractor for item in comparisons.candidates], bool)
    first, second = systems[comparisons.first], systems[comparisons.second]
    chosen = (first != second) & (comparisons.annotator != UNNAMED)
    preferred = np.where(first, comparisons.outcome, 1 - comparisons.outcome)[chosen]
    annotator, size = comparisons.annotator[chosen], len(comparisons.annotators)
    planted = np.bincount(annotator, minlength=size).astype(np.float64)
    return planted, np.asarray(np.bincount(annotator, preferred, size), np.float64)
