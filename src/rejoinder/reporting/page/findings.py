"""What is found out from the material: orders of systems, agreement with people, what is missing.

All statistics are those of ``compare`` and ``meta``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.evaluator.coverage import Coverage, Covered, Tally
from rejoinder.evaluator.seen import Guarded
from rejoinder.items import Item
from rejoinder.meta_evaluation.curves import Point
from rejoinder.meta_evaluation.join import Joined
from rejoinder.meta_evaluation.ranking import NotComparable, Order, Ranked, rank_values
from rejoinder.meta_evaluation.study import Settings, Study, study
from rejoinder.reporting.page.material import Material, higher_is_better

Floats = NDArray[np.float64]

MOST_STUDIED = 10_000
"""Rated items that agreement is computed over: more would take minutes, and tell no more."""
PEOPLE = "people"


@dataclass(frozen=True)
class Placed:
    """The systems by one metric, or by people."""

    name: str
    systems: list[Ranked]
    """Best first; without groups where they can't be compared."""
    order: Order | None
    why_not: str | None = None
    higher_is_better: bool = True
    unplaced: int = 0
    """Systems none of whose replies have a value."""


@dataclass(frozen=True)
class Agreement:
    """How far metrics agree with people."""

    items: Study | None
    systems: Study | None
    joined: Joined
    """The items and scores that it was computed over."""
    rated: int
    """How many items have ratings, of which those are a sample if they are many."""
    missing: str | None = None
    """Why there is none."""


@dataclass(frozen=True)
class Evaluated:
    """What is known of the evaluator that was named."""

    name: str
    made_by: str
    digest: str
    language: str | None
    guarded: Guarded
    usual: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    material: Material
    settings: Settings
    placed: list[Placed]
    """By each metric, the ranking one first."""
    people: Placed | None
    agreement: Agreement
    covered: Covered | None
    evaluated: Evaluated | None = None
    curves: Mapping[str, Sequence[Point]] = field(default_factory=dict)


def find_out(
    material: Material,
    settings: Settings,
    *,
    evaluated: Evaluated | None = None,
    curves: Mapping[str, Sequence[Point]] | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> Findings:
    """Work, naming each ``step`` before it is taken."""
    placed = []
    for name in material.metrics:
        step(f"ranking systems by {name}")
        placed.append(
            _place(
                name,
                material.items,
                material.joined.item_scores[name],
                material.notes.reasons.get(name, {}),
                settings,
            )
        )
    step("comparing with people")
    people = None
    if not np.isnan(material.joined.human).all():
        rated = [i for i, value in enumerate(material.joined.human) if not np.isnan(value)]
        items = [material.items[i] for i in rated]
        people = _place(PEOPLE, items, material.joined.human[rated], {}, settings)
    return Findings(
        material,
        settings,
        placed,
        people,
        agree(material, settings),
        _covered(material, evaluated),
        evaluated,
        curves or {},
    )


def _place(
    name: str,
    items: Sequence[Item],
    values: Floats,
    reasons: Mapping[str, str],
    settings: Settings,
) -> Placed:
    better = name == PEOPLE or higher_is_better(name)
    resamples, seed = settings.resamples, settings.seed
    everyone = len({item.system for item in items})
    items, values = _of_systems_with_values(items, values)
    try:
        order = rank_values(
            items,
            values,
            higher_is_better=better,
            reasons=reasons,
            resamples=resamples,
            seed=seed,
        )
        return Placed(name, order.systems, order, None, better, everyone - len(order.systems))
    except NotComparable as error:
        why_not = str(error)
    alone: list[Ranked] = []
    systems = dict.fromkeys(item.system for item in items)
    for system in systems:
        own = [i for i, item in enumerate(items) if item.system == system]
        try:
            theirs = [items[i] for i in own]
            only = rank_values(theirs, values[own], resamples=resamples, seed=seed)
        except NotComparable:  # too few contexts to resample: an average without an interval
            scored = values[own][~np.isnan(values[own])]
            if scored.size:
                alone.append(Ranked(system, float(scored.mean()), math.nan, math.nan, ""))
            continue
        alone += [replace(row, group="") for row in only.systems]
    alone.sort(key=lambda row: -row.value if better else row.value)
    return Placed(name, alone, None, why_not, better, everyone - len(alone))


def _of_systems_with_values(items: Sequence[Item], values: Floats) -> tuple[Sequence[Item], Floats]:
    """A system without any value, such as people whose replies are the references, must not keep
    the others from being compared."""
    scored = ~np.isnan(values)
    systems = {items[i].system for i in np.flatnonzero(scored).tolist()}
    if not systems:
        return items, values
    theirs = [i for i, item in enumerate(items) if item.system in systems]
    return [items[i] for i in theirs], values[theirs]


def agree(material: Material, settings: Settings) -> Agreement:
    """Correlations over items and over systems, as far as there are any."""
    joined = material.joined
    rated = np.flatnonzero(~np.isnan(joined.human))
    if not rated.size:
        why = "No item has ratings, so nothing here says how far the metrics agree with people."
        return Agreement(None, None, joined, 0, why)
    some = _drawn(joined, rated, settings.seed) if rated.size > MOST_STUDIED else joined
    found: dict[str, Study | None] = {}
    missing: str | None = None
    for level in ("item", "system"):
        try:
            found[level] = study(some, level, settings, differences=False)
        except DataError as error:
            found[level] = None
            if level == "item":
                missing = f"The metrics can't be compared with people: {error}."
    return Agreement(found["item"], found["system"], some, int(rated.size), missing)


def _drawn(joined: Joined, rated: NDArray[np.intp], seed: int) -> Joined:
    """Rated items of contexts that were drawn by chance, in the order of the file."""
    chance = np.random.default_rng(seed)
    groups, sizes = np.unique(joined.contexts[rated], return_counts=True)
    order = chance.permutation(len(groups))
    within = np.cumsum(sizes[order]) <= MOST_STUDIED
    within[0] = True
    keep = rated[np.isin(joined.contexts[rated], groups[order[within]])]
    return Joined(
        [joined.items[i] for i in keep.tolist()],
        {name: values[keep] for name, values in joined.item_scores.items()},
        {},
        {},
        [name for name in joined.order if name in joined.item_scores],
        {
            name: {kind: values[keep] for kind, values in kinds.items()}
            for name, kinds in joined.coverage.items()
        },
    )


def _covered(material: Material, evaluated: Evaluated | None) -> Covered | None:
    """Coverage as the scores carry it; all metrics of one evaluator carry the same."""
    found = next(iter(material.joined.coverage.values()), None)
    if found is None:
        return None
    nothing = np.zeros(0)
    tally = Tally(evaluated.usual if evaluated else {})
    tally.add(Coverage(found.get("nearest", nothing), found.get("agreement", nothing)))
    return tally.covered()
