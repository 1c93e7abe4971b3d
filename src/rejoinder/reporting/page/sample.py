"""Which items a page lets people browse, when there are more than it can hold.

Whole contexts are drawn by chance, so that the replies to one can be compared. What people look
for first comes before that: replies that could not be scored, the highest and lowest scores, and
those over which the metric and people disagree most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.reporting.page.material import Material

Floats = NDArray[np.float64]

SHARE = 20
"""Each kind of remarkable items takes at most one place in so many."""


@dataclass(frozen=True)
class Sample:
    """Numbers of items, the most wanted first."""

    chosen: list[int]
    of: int


def choose(material: Material, most: int, seed: int) -> Sample:
    """At most so many items; all of them, in the order of the file, if they are no more."""
    total = len(material.items)
    if total <= most:
        return Sample(list(range(total)), total)
    chance = np.random.default_rng(seed)
    chosen: dict[int, None] = {}
    each = max(1, most // SHARE)
    for numbers in (_unscored(material, chance), _extreme(material, each)):
        for number in list(numbers)[: 2 * each]:
            chosen.setdefault(number)
    for number in _disagreed(material)[:each]:
        chosen.setdefault(number)
    contexts = material.joined.contexts
    order = np.argsort(chance.permutation(int(contexts.max()) + 1)[contexts], kind="stable")
    for number in order.tolist():
        if len(chosen) >= most:
            break
        chosen.setdefault(number)
    return Sample(list(chosen)[:most], total)


def _unscored(material: Material, chance: np.random.Generator) -> Iterable[int]:
    """One of each metric and reason in turn, by chance."""
    place = {item.id: number for number, item in enumerate(material.items)}
    kinds: dict[tuple[str, str], list[int]] = {}
    for metric, reasons in material.notes.reasons.items():
        for name, reason in reasons.items():
            kinds.setdefault((metric, reason), []).append(place[name])
    drawn = [chance.permutation(numbers).tolist() for numbers in kinds.values()]
    longest = max(map(len, drawn), default=0)
    return (numbers[i] for i in range(longest) for numbers in drawn if i < len(numbers))


def _extreme(material: Material, each: int) -> list[int]:
    values = material.joined.item_scores[material.metric]
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    return [*order[:each].tolist(), *order[::-1][:each].tolist()]


def _disagreed(material: Material) -> list[int]:
    """By how far the ranks of score and rating lie apart."""
    values, human = material.joined.item_scores[material.metric], material.joined.human
    known = np.flatnonzero(~np.isnan(values + human))
    gap = np.abs(_ranks(values[known]) - _ranks(human[known]))
    return [int(number) for number in known[np.argsort(-gap, kind="stable")]]


def _ranks(values: Floats) -> Floats:
    """Ranks from 0, those of equal values averaged."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[codes])
