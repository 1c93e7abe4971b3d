"""Systems by the number of references: with how many of them does their order turn?

With one reference, a reply that happens to resemble it beats one that people prefer; with several,
that is less likely (Gupta et al. 2019, Table 6). References are drawn at random without
replacement, the same ones for all replies to a context, several times; the first one, which may be
the original reply, can be kept in each draw. A reply with fewer references uses all of them. A
system's value is the mean over its replies to the contexts that all systems have a value for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.reference_curve import draw_references, scored_draw
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.metric import ItemMetric

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import TestSet


@dataclass(frozen=True)
class SystemsPoint:
    """The systems with a number of references: means over draws, with their bands."""

    references: int
    draws: int
    contexts: int
    """Contexts that all systems have a value for, in the draw with the fewest."""
    mean: dict[str, float]
    low: dict[str, float]
    """2.5 % quantile of the draws."""
    high: dict[str, float]
    first: dict[str, float]
    """Share of the draws in which the system is ahead of all others."""


def system_curve(
    items: Sequence[Item],
    metrics: Sequence[ItemMetric],
    *,
    draws: int,
    seed: int,
    keep_first: bool = False,
    test_set: TestSet | None = None,
) -> list[list[SystemsPoint]]:
    """Return for each metric a point for each number of references, from 1 to the most that
    replies of every system have. All references can be drawn in one way only."""
    judged = [item for item in items if item.references]
    if not judged:
        raise DataError("no item has references; the curve draws some of them")
    systems = sorted({item.system for item in judged})
    if len(systems) < 2:
        raise DataError(f"the curve compares systems, and there is one: {systems[0]!r}")
    counts = dict.fromkeys(systems, 0)
    for item in judged:
        counts[item.system] = max(counts[item.system], len(item.references))
    most = min(counts.values())
    places = _places(judged, systems)
    curves: list[list[SystemsPoint]] = [[] for _ in metrics]
    for size in range(1, most + 1):
        rows: list[list[tuple[int, Floats]]] = [[] for _ in metrics]
        is_all = all(len(item.references) <= size for item in judged)
        for draw in range(1 if is_all else draws):
            rng = np.random.default_rng([seed, size, draw])
            some = draw_references(judged, size, rng, keep_first=keep_first)
            drawn = scored_draw(some, metrics, test_set)
            for row, values in zip(rows, drawn, strict=True):
                row.append(_means(values, places, len(systems)))
        for curve, metric, row in zip(curves, metrics, rows, strict=True):
            curve.append(_point(size, systems, row, 1 if metric.higher_is_better else -1))
    return curves


def _places(items: Sequence[Item], systems: Sequence[str]) -> NDArray[np.int64]:
    """[items, 2] number of the context and of the system of each reply."""
    contexts: dict[str, int] = {}
    columns = {system: number for number, system in enumerate(systems)}
    return np.array(
        [(contexts.setdefault(item.group, len(contexts)), columns[item.system]) for item in items],
        np.int64,
    )


def _means(values: Floats, places: NDArray[np.int64], systems: int) -> tuple[int, Floats]:
    """Return the number of contexts that all systems have a value for, and the mean of each
    system over them; several replies to a context count as their mean."""
    known = ~np.isnan(values)
    shape = int(places[:, 0].max()) + 1, systems
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, tuple(places[known].T), values[known])
    np.add.at(counts, tuple(places[known].T), 1.0)
    shared = (counts > 0).all(axis=1)
    if not shared.any():
        raise DataError("no context has a value for every system")
    return int(shared.sum()), (sums[shared] / counts[shared]).mean(axis=0)


def _point(
    size: int, systems: Sequence[str], rows: Sequence[tuple[int, Floats]], sign: int
) -> SystemsPoint:
    means = np.array([means for _, means in rows])
    # of two systems that are equal, none is ahead
    better = sign * means[:, :, None] > sign * means[:, None, :]
    ahead = better.sum(axis=2) == len(systems) - 1

    def named(values: Floats) -> dict[str, float]:
        return dict(zip(systems, values.tolist(), strict=True))

    return SystemsPoint(
        size,
        len(rows),
        min(contexts for contexts, _ in rows),
        named(means.mean(axis=0)),
        named(np.quantile(means, 0.025, axis=0)),
        named(np.quantile(means, 0.975, axis=0)),
        named(ahead.mean(axis=0)),
    )
