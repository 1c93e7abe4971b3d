"""Does a metric order pairs of replies as people do, and know when they are equally good?

Kendall's tau cannot reward a metric for a tie that people see too.  Pairwise accuracy does:
acc_eq = (concordant + tied for both) / all pairs.  Real-valued metrics hardly ever tie, so scores
that are close enough count as tied, with the threshold that serves the metric best: tie calibration
(Deutsch, Foster & Freitag 2023, "Ties Matter: Meta-Evaluating Modern Metrics with Pairwise Accuracy
and Tie Calibration", EMNLP).

Only items of the same group (replies to one context, say) are paired; all pairs count the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta_evaluation.correlate import Floats, finite, same_length

MOST_PAIRS = 5_000_000


@dataclass(frozen=True)
class Calibration:
    """The best accuracy, and the smallest threshold that reaches it; None without pairs, and with
    more than MOST_PAIRS: they would have to be sorted."""

    accuracy: float | None
    eps: float | None
    pairs: int


def pairwise_accuracy(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None = None, *, eps: float = 0.0
) -> float | None:
    """acc_eq, where scores at most ``eps`` apart are tied; None if there is no pair."""
    if not eps >= 0:
        raise ValueError(f"eps must not be negative, got {eps}")
    right = pairs = 0
    for gaps, verdicts in _walk(metric, human, groups):
        pairs += gaps.size
        found = np.where(np.abs(gaps) <= eps, 0, np.sign(gaps))
        right += int(np.count_nonzero(found == verdicts))
    return right / pairs if pairs else None


def tie_calibrated(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None = None
) -> Calibration:
    """The threshold that maximises `pairwise_accuracy`, exactly.

    Raising eps to a pair's gap makes it a tie: one more right if people tie it, one less if it was
    concordant.  With the pairs sorted by gap, running sums of these changes give the accuracy at
    every threshold that matters.
    """
    signed, verdicts, pairs = [], [], 0
    for gaps, verdict in _walk(metric, human, groups):
        pairs += gaps.size
        if pairs <= MOST_PAIRS:
            signed.append(gaps)
            verdicts.append(verdict)
    if not 0 < pairs <= MOST_PAIRS:
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


def _walk(
    metric: ArrayLike, human: ArrayLike, groups: ArrayLike | None
) -> Iterator[tuple[Floats, NDArray[np.int8]]]:
    """All pairs of items of the same group, in O(n log n + pairs) and the memory of the items: how
    far apart the metric puts them, and which one people prefer.

    With the groups side by side, the partners at distance 1, 2, … are found for all items at once;
    an item without a partner at one distance has none further on.
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
