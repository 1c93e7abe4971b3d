"""Which replies people should rate next: a random order of contexts, or replies, and its beginning.

For differences and rankings the units are whole contexts with the replies of all systems in
question, so that what makes a context easy or hard cancels out. For means they are single replies,
as many of each system. Units are taken in a random order (:mod:`rejoinder.estimation.sampling`)
until the budget is spent; rated replies cost nothing, and are not asked again.

Contexts that other systems answered are a stratum of their own, and so are the replies of each
system where units are replies: strata take turns, the j-th unit of a stratum having the place
(j + v) / share with a random v from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rejoinder.errors import DataError, UsageError
from rejoinder.estimation.people import single_ratings
from rejoinder.estimation.sampling import (
    Bools,
    Floats,
    Ints,
    after_random_choice,
    arrival,
    inclusion_probabilities,
    permanent_numbers,
)
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import abbreviated
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

Question = Literal["mean", "difference", "ranking"]
QUESTIONS: tuple[Question, ...] = ("mean", "difference", "ranking")


@dataclass(frozen=True)
class Planned:
    """What is to be rated next, and how probable that was."""

    chosen: list[int]
    """Numbers of the replies, in the order in which they are to be rated."""
    probability: Floats
    """[items] that a reply is rated before or chosen now; NaN for replies that nobody asks for."""
    cost: int
    """Ratings that the chosen replies need."""
    units: int
    """Contexts, or replies, among which the plan chooses."""
    asked: int
    """Of them, those that are rated already or chosen now."""
    elsewhere: int
    """Rated units that are not at the beginning of this plan's order: taken as a random choice."""


@dataclass(frozen=True)
class Units:
    """Replies that are asked about together."""

    names: list[str]
    members: list[list[int]]
    """Numbers of the replies."""
    stratum: Ints
    share: Floats
    """[strata] how many units of each are taken in a turn."""

    def __len__(self) -> int:
        return len(self.names)


def asked_about(
    items: Sequence[Item], named: Sequence[str], question: Question | None
) -> tuple[list[str], Question]:
    """Return the systems that the question is about, and the question."""
    known = list(dict.fromkeys(item.system for item in items))
    if unknown := [name for name in named if name not in known]:
        raise UsageError(*(f"{option('systems', n)}: {did_you_mean(n, known)}" for n in unknown))
    chosen = list(dict.fromkeys(named)) or known
    fitting: tuple[Question, ...] = ("mean", "difference", "ranking")
    asked = question or fitting[min(len(chosen), 3) - 1]
    if asked == "difference" and len(chosen) != 2:
        raise UsageError(
            f"a difference is between two systems, and here {_are(chosen)}: name two with"
            f" {option('systems')}, or ask for {option('question', 'ranking')}"
        )
    if asked == "ranking" and len(chosen) < 2:
        raise UsageError(f"a ranking needs several systems, and here {_are(chosen)}")
    return chosen, asked


def _are(names: Sequence[str]) -> str:
    return f"is only '{names[0]}'" if len(names) == 1 else f"are {abbreviated(names)}"


def units_of(items: Sequence[Item], question: Question, systems: Sequence[str]) -> Units:
    """Return the units that answer a question about systems."""
    wanted = set(systems)
    numbers = [number for number, item in enumerate(items) if item.system in wanted]
    if question == "mean":
        strata = [systems.index(items[number].system) for number in numbers]
        ids = [items[number].id for number in numbers]
        return Units(ids, [[n] for n in numbers], np.array(strata), np.ones(len(systems)))
    groups: dict[str, list[int]] = {}
    for number in numbers:
        groups.setdefault(items[number].group, []).append(number)
    answered = {name: tuple(sorted({items[n].system for n in own})) for name, own in groups.items()}
    if shared := {name: own for name, own in groups.items() if len(answered[name]) > 1}:
        groups = shared  # a context that one system answered says nothing about differences
    kinds: dict[tuple[str, ...], int] = {}
    strata = [kinds.setdefault(answered[name], len(kinds)) for name in groups]
    share = np.bincount(strata).astype(float)
    return Units(list(groups), list(groups.values()), np.array(strata), share)


def order_of(units: Units, sizes: Floats, seed: int) -> Ints:
    """Return the numbers of the units in the order in which they are taken."""
    time = arrival(permanent_numbers(units.names, seed), sizes)
    starts = permanent_numbers((f"stratum {n}" for n in range(len(units.share))), seed)
    place = np.empty(len(units))
    for number, (share, start) in enumerate(zip(units.share, starts, strict=True)):
        own = np.flatnonzero(units.stratum == number)
        own = own[np.lexsort((own, time[own]))]
        place[own] = (np.arange(len(own)) + start) / share
    return np.lexsort((time, place)).astype(np.int64)


def unit_sizes(units: Units, rows: Floats, uneven: float) -> Floats:
    """Return how often units are taken: alike, but for the share ``uneven``, which is spent by how
    far scores are apart.

    ``rows`` [metrics, items] are scores, brought to the same deviation. Of a context that is the
    deviation of the mean score over systems; of a single reply, that over metrics. Unscored
    replies, and units of which that can't be said, count as average ones.
    """
    if not uneven or not len(rows):
        return np.ones(len(units))
    rows = np.array([_standard(row) for row in rows])
    mean = rows.mean(axis=0)
    spread = np.full(len(units), np.nan)
    for number, members in enumerate(units.members):
        values = rows[:, members[0]] if len(members) == 1 else mean[members]
        values = values[~np.isnan(values)]
        if len(values) > 1:
            spread[number] = values.std()
    known = spread[~np.isnan(spread)]
    if not known.size or not known.mean() > 0:
        return np.ones(len(units))
    relative = np.where(np.isnan(spread), 1.0, spread / known.mean())
    return np.asarray(1 - uneven + uneven * relative)


def _standard(values: Floats) -> Floats:
    known = values[~np.isnan(values)]
    spread = float(known.std()) if known.size else 0.0
    return np.asarray((values - known.mean()) / (spread or 1.0)) if known.size else values


def choose(
    items: Sequence[Item], units: Units, sizes: Floats, budget: int, *, ratings: int, seed: int
) -> Planned:
    """Choose replies for ``budget`` ratings; those with ``ratings`` ratings are not asked again.

    A unit is asked about as a whole: the plan ends at the first that the budget does not suffice
    for, so that which units are in it does not depend on what they cost.
    """
    lacking = [[n for n in members if _missing(items[n], ratings)] for members in units.members]
    begun = _begun(items, units)
    order = order_of(units, sizes, seed)
    taken = np.zeros(len(units), dtype=bool)
    chosen: list[int] = []
    left = budget
    for number in order.tolist():
        cost = sum(_missing(items[n], ratings) for n in lacking[number])
        if cost > left:
            if budget and not chosen:
                _check_first(cost, budget, len(units.members[number]))
            break
        left -= cost
        taken[number] = True
        chosen += lacking[number]
    outside = begun & ~taken
    probability = np.full(len(items), np.nan)
    for stratum in range(len(units.share)):
        own = np.flatnonzero(units.stratum == stratum)
        found = _probabilities(sizes[own], begun[own], taken[own], bool(outside[own].any()))
        for number, chance in zip(own.tolist(), found.tolist(), strict=True):
            probability[units.members[number]] = chance
    asked = int((taken | begun).sum())
    return Planned(chosen, probability, budget - left, len(units), asked, int(outside.sum()))


def ratings_until(
    items: Sequence[Item],
    units: Units,
    sizes: Floats,
    count: int,
    *,
    of_each: bool,
    ratings: int,
    seed: int,
) -> int:
    """Return the budget with which :func:`choose` gets to so many units that are asked about: of
    each stratum, as far as it has them, or of all together."""
    begun = _begun(items, units)
    part = units.stratum if of_each else np.zeros(len(units), np.int64)
    left = np.minimum(np.bincount(part), count) - np.bincount(part[begun], minlength=part.max() + 1)
    budget = 0
    for number in order_of(units, sizes, seed).tolist():
        if (left <= 0).all():
            break
        budget += sum(_missing(items[n], ratings) for n in units.members[number])
        left[part[number]] -= not begun[number]
    return budget


def missing_ratings(items: Sequence[Item], units: Units, ratings: int) -> int:
    """Return how many ratings all replies lack."""
    return sum(_missing(items[n], ratings) for members in units.members for n in members)


def rated_probabilities(items: Sequence[Item], units: Units, sizes: Floats) -> Floats:
    """Return the probability of each reply to be among as many as are rated; NaN for replies that
    nobody asks for.

    For replies that were asked about in the order of a plan, however many it has got to.
    """
    begun = _begun(items, units)
    probability = np.full(len(items), np.nan)
    for stratum in range(len(units.share)):
        own = np.flatnonzero(units.stratum == stratum)
        chances = inclusion_probabilities(sizes[own], float(begun[own].sum()))
        for number, chance in zip(own.tolist(), chances.tolist(), strict=True):
            probability[units.members[number]] = max(chance, 1e-12)
    return probability


def _probabilities(sizes: Floats, begun: Bools, taken: Bools, random_before: bool) -> Floats:
    """Return the probability of each unit of a stratum to be asked about."""
    if random_before:
        chances = after_random_choice(sizes, begun, float((taken & ~begun).sum()))
    else:
        chances = inclusion_probabilities(sizes, float(taken.sum()))
    return np.clip(chances, 1e-12, 1.0)


def _missing(item: Item, ratings: int) -> int:
    """Return how many ratings an item lacks; an averaged one counts as one."""
    return max(ratings - len(single_ratings(item)), 0)


def _begun(items: Sequence[Item], units: Units) -> Bools:
    """Return which units have a rating."""
    return np.array([any(items[n].is_rated for n in own) for own in units.members], dtype=bool)


def _check_first(cost: int, budget: int, replies: int) -> None:
    what = (
        "one reply, which needs" if replies == 1 else f"one context, whose {replies} replies need"
    )
    raise DataError(f"a budget of {budget:,} does not suffice for {what} {cost:,} ratings")
