"""Items and scores brought together as columns, with nothing missing unnoticed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item, Score

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NAMED = 5
"""How many names a message holds."""


@dataclass(frozen=True)
class Units:
    """What is correlated: replies, contexts or systems, each with a rating and scores.

    ``context`` groups units that must be resampled together; ``system`` says whose they are.
    """

    level: str
    human: Floats
    """[n] average rating; NaN where nobody rated."""
    scores: dict[str, Floats]
    """For each metric [n] its values; NaN where unscored."""
    context: Ints
    system: Ints
    """[n] the number of each unit's system in ``names``."""
    names: list[str]

    def of(self, system: str | None) -> NDArray[np.bool_]:
        """Which units are one system's."""
        number = self.names.index(system) if system in self.names else -1
        return np.asarray(self.system == number)

    def without(self, system: str | None) -> Units:
        keep = ~self.of(system)
        scores = {name: values[keep] for name, values in self.scores.items()}
        human, context = self.human[keep], self.context[keep]
        return Units(self.level, human, scores, context, self.system[keep], self.names)


@dataclass(frozen=True)
class Joined:
    """A scores file laid over its items file."""

    items: Sequence[Item]
    item_scores: dict[str, Floats]
    context_scores: dict[str, dict[tuple[str, str], float]]
    """For each set metric, values by (context, system)."""
    system_scores: dict[str, dict[str, float]]
    order: list[str]
    """Metrics as they first appear in the scores file."""
    coverage: dict[str, dict[str, Floats]] = field(default_factory=dict)
    """For each metric of an evaluator how well it covers each item, where the scores tell."""

    @cached_property
    def human(self) -> Floats:
        ratings = [item.rating() for item in self.items]
        return np.array([np.nan if rating is None else rating for rating in ratings])

    @cached_property
    def contexts(self) -> Ints:
        return _numbered(item.group for item in self.items)[0]

    def replies(self) -> Units:
        systems = _numbered(item.system for item in self.items)
        return Units("item", self.human, self.item_scores, self.contexts, *systems)

    def sets(self) -> Units:
        """One unit for each context and system: what set metrics judge."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, item in enumerate(self.items):
            numbers.setdefault((item.group, item.system), []).append(number)
        chosen = [np.array(group) for group in numbers.values()]
        scores = {
            name: np.array([_mean(values[group]) for group in chosen])
            for name, values in self.item_scores.items()
        } | {
            name: np.array([values.get(key, np.nan) for key in numbers])
            for name, values in self.context_scores.items()
        }
        return Units(
            "context",
            np.array([_mean(self.human[group]) for group in chosen]),
            {name: scores[name] for name in self.order if name in scores},
            np.array([self.contexts[group[0]] for group in chosen]),
            *_numbered(system for _, system in numbers),
        )


def listed(names: Sequence[str]) -> str:
    """Names in a message: the first few, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _numbered(names: Iterable[str]) -> tuple[Ints, list[str]]:
    """A number for each name, in the order in which they appear, and the names."""
    number: dict[str, int] = {}
    codes = [number.setdefault(name, len(number)) for name in names]
    return np.array(codes, np.int64), list(number)


def _mean(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _column(columns: dict[str, Floats], name: str, size: int) -> Floats:
    """The column of this name, made when it is first asked for."""
    if name not in columns:
        columns[name] = np.full(size, np.nan)
    return columns[name]


def join(
    items: Sequence[Item], scores: Iterable[tuple[int, Score]], *, items_name: str, scores_name: str
) -> Joined:
    """Lay scores over items; ids of one file that the other does not know are an error."""
    place = {item.id: number for number, item in enumerate(items)}
    sets = {(item.group, item.system) for item in items}
    systems = {item.system for item in items}
    columns: dict[str, Floats] = {}
    context_scores: dict[str, dict[tuple[str, str], float]] = {}
    system_scores: dict[str, dict[str, float]] = {}
    order: dict[str, None] = {}
    seen: set[tuple[str, str, str, str]] = set()
    signed: dict[str, tuple[str, int]] = {}
    coverage: dict[str, dict[str, Floats]] = {}
    for line, score in scores:
        key = score.metric, score.level, score.id, score.system or ""
        value = np.nan if score.value is None else score.value
        known = {
            "item": score.id in place,
            "context": (score.id, score.system) in sets,
            "system": score.id in systems,
        }[score.level]
        if not known:
            whose = f" of the system '{score.system}'" if score.level == "context" else ""
            raise DataError(
                f"the {score.level} '{score.id}'{whose} is not in {items_name};"
                " give the items that were scored",
                path=scores_name,
                line=line,
            )
        if key in seen:
            raise DataError(
                f"a second score of '{score.id}' by {score.metric}; expected one of each",
                path=scores_name,
                line=line,
            )
        signature, first = signed.setdefault(score.metric, (score.signature, line))
        if score.signature != signature:
            raise DataError(
                f"{score.metric} has the signature '{score.signature}', but in line {first}"
                f" '{signature}'; expected scores of one and the same metric under one name",
                path=scores_name,
                line=line,
            )
        seen.add(key)
        order.setdefault(score.metric)
        if score.level == "context":
            context_scores.setdefault(score.metric, {})[score.id, score.system or ""] = value
        elif score.level == "system":
            system_scores.setdefault(score.metric, {})[score.id] = value
        else:
            _column(columns, score.metric, len(items))[place[score.id]] = value
            for kind, share in (score.coverage or {}).items():
                known_as = coverage.setdefault(score.metric, {})
                _column(known_as, kind, len(items))[place[score.id]] = share
    for name in columns:
        missing = [item.id for item in items if (name, "item", item.id, "") not in seen]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(items)} items, the first is '{missing[0]}', have no"
                f" score by {name} in {scores_name}; run 'rejoinder score' on this file",
                path=items_name,
            )
    return Joined(items, columns, context_scores, system_scores, list(order), coverage)
