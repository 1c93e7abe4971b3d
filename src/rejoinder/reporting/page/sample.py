"""Choice of the items that the page shows, if there are more than it has room for.

Whole contexts are drawn at random, so that the replies to one can be compared. Before that come
unscored replies, the highest and lowest scores, and the replies about which the metric and people
disagree most.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.reporting.page.report_data import ReportData

Floats = NDArray[np.float64]

SHARE = 20
"""Each kind of chosen items takes at most 1 / SHARE of the places."""


@dataclass(frozen=True)
class Sample:
    """Numbers of the chosen items, the most important first."""

    chosen: list[int]
    of: int


def choose(data: ReportData, max_items: int, seed: int) -> Sample:
    """Choose at most ``max_items`` items; all of them, in the order of the file, if possible."""
    total = len(data.items)
    if total <= max_items:
        return Sample(list(range(total)), total)
    rng = np.random.default_rng(seed)
    chosen: dict[int, None] = {}
    each = max(1, max_items // SHARE)
    for numbers in (_unscored(data, rng), _extreme(data, each)):
        for number in list(numbers)[: 2 * each]:
            chosen.setdefault(number)
    for number in _disputed(data)[:each]:
        chosen.setdefault(number)
    contexts = data.joined.contexts
    order = np.argsort(rng.permutation(int(contexts.max()) + 1)[contexts], kind="stable")
    for number in order.tolist():
        if len(chosen) >= max_items:
            break
        chosen.setdefault(number)
    return Sample(list(chosen)[:max_items], total)


def _unscored(data: ReportData, rng: np.random.Generator) -> Iterable[int]:
    """Return unscored items at random, from each metric and reason in turn."""
    place = {item.id: number for number, item in enumerate(data.items)}
    kinds: dict[tuple[str, str], list[int]] = {}
    for metric, reasons in data.notes.reasons.items():
        for name, reason in reasons.items():
            kinds.setdefault((metric, reason), []).append(place[name])
    drawn = [rng.permutation(numbers).tolist() for numbers in kinds.values()]
    longest = max(map(len, drawn), default=0)
    return (numbers[i] for i in range(longest) for numbers in drawn if i < len(numbers))


def _extreme(data: ReportData, each: int) -> list[int]:
    values = data.joined.item_scores[data.metric]
    scored = np.flatnonzero(~np.isnan(values))
    order = scored[np.argsort(values[scored], kind="stable")]
    return [*order[:each].tolist(), *order[::-1][:each].tolist()]


def _disputed(data: ReportData) -> list[int]:
    """Return items by the difference of their ranks by score and by rating."""
    values, human = data.joined.item_scores[data.metric], data.joined.human
    scored = np.flatnonzero(~np.isnan(values + human))
    gap = np.abs(_ranks(values[scored]) - _ranks(human[scored]))
    return [int(number) for number in scored[np.argsort(-gap, kind="stable")]]


def _ranks(values: Floats) -> Floats:
    """Return ranks from 0, averaged over equal values."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts + 1) / 2)[codes])
