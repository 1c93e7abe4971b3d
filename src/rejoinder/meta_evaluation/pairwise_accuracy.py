"""Pairwise accuracy of a metric: does it order pairs of replies as people do, ties included?

Kendall's tau does not reward a metric for ties that people see, too.  Pairwise accuracy does:
acc_eq = (concordant + tied for both) / all pairs.  Real-valued metrics hardly ever tie, so scores
within a threshold count as tied; the threshold with the highest accuracy is used: tie calibration
(Deutsch, Foster & Freitag 2023, "Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy
and Tie Calibration", EMNLP).

Only items of the same group (such as replies to one context) are paired; all pairs count equally.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta_evaluation.correlate import Floats, finite, same_length

MAX_PAIRS = 5_000_000


@dataclass(frozen=True)
class Calibration:
    """The highest accuracy and the smallest threshold that gives it.

    None without pairs, and with more than MAX_PAIRS, which would have to be sorted.
    """

    accuracy: float | None
    eps: float | None
    pairs: int


def pairwise_accuracy(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None = None, *, eps: float = 0.0
) -> float | None:
    """Return acc_eq, where scores at most ``eps`` apart are tied; None if there is no pair."""
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    correct = pairs = 0
    for gaps, verdicts in _pairs(metric, human, groups):
        pairs += gaps.size
        signs = np.where(np.abs(gaps) <= eps, 0, np.sign(gaps))
        correct += int(np.count_nonzero(signs == verdicts))
    return correct / pairs if pairs else None


def tie_calibrated(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None = None
) -> Calibration:
    """Find the threshold that maximises `pairwise_accuracy`, exactly.

    Raising eps to the gap of a pair makes it a tie: one more correct if people tie it, one less if
    it was concordant.  With the pairs sorted by gap, cumulative sums of these changes give the
    accuracy at every possible threshold.
    """
    signed, verdicts, pairs = [], [], 0
    for gaps, verdict in _pairs(metric, human, groups):
        pairs += gaps.size
        if pairs <= MAX_PAIRS:
            signed.append(gaps)
            verdicts.append(verdict)
    if not 0 < pairs <= MAX_PAIRS:
        return Calibration(None, None, pairs)
    apart, people = np.concatenate(signed), np.concatenate(verdicts)
    concordant = (people != 0) & (np.sign(apart) == people)
    order = np.argsort(np.abs(apart))
    gaps = np.abs(apart)[order]
    changes = (people == 0)[order].astype(np.int64) - concordant[order]
    right = np.count_nonzero(concordant) + np.cumsum(changes)
    ends = np.flatnonzero(np.append(gaps[1:] != gaps[:-1], True))
    thresholds, right = gaps[ends], right[ends]
    if thresholds[0] > 0:
        thresholds = np.append(0.0, thresholds)
        right = np.append(np.count_nonzero(concordant), right)
    best = int(np.argmax(right))
    return Calibration(float(right[best] / gaps.size), float(thresholds[best]), gaps.size)


def _pairs(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None
) -> Iterator[tuple[Floats, NDArray[np.int8]]]:
    """Yield score differences and human preferences of all pairs of items of the same group.

    Needs O(n log n + pairs) time and O(n) memory. With items sorted by group, the partners at
    distance 1, 2, … are taken for all items at once; an item without a partner at one distance has
    none at larger ones.
    """
    scores, people = finite(metric, "metric"), finite(human, "human")
    same_length("metric", scores.size, "human", people.size)
    labels = np.zeros(people.size) if groups is None else np.asarray(groups)
    if labels.ndim != 1:
        raise ValueError(f"groups: expected 1 dimension(s), got {labels.ndim}")
    same_length("groups", labels.size, "human", people.size)
    order = np.argsort(labels, kind="stable")
    scores, people, labels = scores[order], people[order], labels[order]
    left = np.arange(labels.size)
    distance = 0
    while left.size:
        distance += 1
        left = left[left + distance < labels.size]
        left = left[labels[left] == labels[left + distance]]
        right = left + distance
        verdicts = np.sign(people[left] - people[right]).astype(np.int8)
        yield scores[left] - scores[right], verdicts
