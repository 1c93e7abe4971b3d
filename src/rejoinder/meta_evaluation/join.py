"""Join of an items file and a scores file into columns; missing scores are an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.items import Item, Score
from rejoinder.wording import option

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNRATED = Item("", "")
"""Stands for a set that nobody rated."""
MAX_NAMES = 5
"""Names that a message lists."""


@dataclass(frozen=True)
class Units:
    """Units of analysis: replies, or sets of replies of a system to a context, with rating and
    scores.

    Units with the same ``context`` are resampled together.
    """

    level: str
    human: Floats
    """[n] mean rating; NaN if unrated."""
    scores: dict[str, Floats]
    """By metric [n] values; NaN if unscored."""
    context: Ints
    system: Ints
    """[n] number of the unit's system in ``names``."""
    names: list[str]
    rated: Sequence[Item] | None = None
    """[n] items whose ratings are those of the units; None if a unit's rating is a mean over
    several items."""

    def of(self, system: str | None) -> NDArray[np.bool_]:
        """Return a mask of the units of one system."""
        number = self.names.index(system) if system in self.names else -1
        return np.asarray(self.system == number)

    def without(self, system: str | None) -> Units:
        """Return the units of all other systems."""
        keep = ~self.of(system)
        scores = {name: values[keep] for name, values in self.scores.items()}
        human, context = self.human[keep], self.context[keep]
        rated = self.rated and [self.rated[number] for number in np.flatnonzero(keep).tolist()]
        return Units(self.level, human, scores, context, self.system[keep], self.names, rated)


@dataclass(frozen=True)
class Joined:
    """Items with their scores as columns."""

    items: Sequence[Item]
    item_scores: dict[str, Floats]
    context_scores: dict[str, dict[tuple[str, str], float]]
    """By set metric, values by (context, system)."""
    system_scores: dict[str, dict[str, float]]
    order: list[str]
    """Metrics in the order of the scores file."""
    coverage: dict[str, dict[str, Floats]] = field(default_factory=dict)
    """By metric and kind, how well the evaluator's pool covers each item, if the scores say so."""
    signatures: dict[str, str] = field(default_factory=dict)
    """By metric, the signature in the scores file, empty if there is none."""
    reasons: dict[str, dict[tuple[str, str], str]] = field(default_factory=dict)
    """By metric, why an item (id, "") or a context of a system (id, system) is unscored."""
    rated_sets: Mapping[tuple[str, str], Item] | None = None
    """Ratings of sets by (context, system), instead of those of the items."""
    judging: dict[str, dict[str, Floats]] = field(default_factory=dict)
    """By metric and kind, how a language model judged each item, and what it cost."""

    @cached_property
    def human(self) -> Floats:
        """[items] mean rating; NaN if unrated."""
        return _mean_ratings(self.items)

    @cached_property
    def contexts(self) -> Ints:
        """[items] number of the context."""
        return numbered(item.group for item in self.items)[0]

    def replies(self) -> Units:
        """Return one unit per reply."""
        systems = numbered(item.system for item in self.items)
        return Units("item", self.human, self.item_scores, self.contexts, *systems, self.items)

    def sets(self) -> Units:
        """Return one unit per context and system, which set metrics score."""
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
        human = np.array([_mean(self.human[group]) for group in chosen])
        rated = None
        if self.rated_sets is not None:
            rated = [self.rated_sets.get(key, UNRATED) for key in numbers]
            human = _mean_ratings(rated)
        return Units(
            "context",
            human,
            {name: scores[name] for name in self.order if name in scores},
            np.array([self.contexts[group[0]] for group in chosen]),
            *numbered(system for _, system in numbers),
            rated,
        )


def abbreviated(names: Sequence[str]) -> str:
    """Return names for a message: the first few, and how many more there are."""
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def numbered(names: Iterable[str]) -> tuple[Ints, list[str]]:
    """Return a number for each name, in order of appearance, and the distinct names."""
    number: dict[str, int] = {}
    codes = [number.setdefault(name, len(number)) for name in names]
    return np.array(codes, np.int64), list(number)


def _mean_ratings(items: Sequence[Item]) -> Floats:
    """Return the mean rating of each item; NaN if it has none."""
    ratings = [item.rating() for item in items]
    return np.array([np.nan if rating is None else rating for rating in ratings])


def _mean(values: Floats) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if defined.size else float("nan")


def _column(columns: dict[str, Floats], name: str, size: int) -> Floats:
    """Return the column of this name, created on first use."""
    if name not in columns:
        columns[name] = np.full(size, np.nan)
    return columns[name]


def _if_of_content(name: str) -> str:
    """Return a hint for ids that were made of the items' content, as 0e03be71d42e."""
    if not re.fullmatch(r"[0-9a-f]{12}(-\d+)?", name):
        return ""
    return (
        ". Items without an id have one made of context, dialogue, system and reply: these must be"
        f" read from the same columns as when they were scored (see {option('columns')})"
    )


def _undated(signature: str) -> str:
    """Return a signature without the dates of a language model's answers, which differ between
    the batches of one run."""
    return "|".join(part for part in signature.split("|") if not part.startswith("asked:"))


def join(
    items: Sequence[Item], scores: Iterable[tuple[int, Score]], *, items_name: str, scores_name: str
) -> Joined:
    """Join scores to items; ids that only one of the two files has are an error."""
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
    judging: dict[str, dict[str, Floats]] = {}
    reasons: dict[str, dict[tuple[str, str], str]] = {}
    for line, score in scores:
        key = score.metric, score.level, score.id, score.system or ""
        value = np.nan if score.value is None else score.value
        is_in_items = {
            "item": score.id in place,
            "context": (score.id, score.system) in sets,
            "system": score.id in systems,
        }[score.level]
        if not is_in_items:
            whose = f" of the system '{score.system}'" if score.level == "context" else ""
            raise DataError(
                f"the {score.level} '{score.id}'{whose} is not in {items_name};"
                f" give the items file that was scored{_if_of_content(score.id)}",
                path=scores_name,
                line=line,
            )
        if key in seen:
            raise DataError(
                f"a second score of '{score.id}' by {score.metric}; expected one per item",
                path=scores_name,
                line=line,
            )
        signature, first = signed.setdefault(score.metric, (score.signature, line))
        if _undated(score.signature) != _undated(signature):
            raise DataError(
                f"{score.metric} has the signature '{score.signature}', but in line {first}"
                f" '{signature}'; a metric's scores must have the same signature",
                path=scores_name,
                line=line,
            )
        seen.add(key)
        if score.unscored:
            by_id = reasons.setdefault(score.metric, {})
            by_id[score.id, score.system or ""] = score.unscored
        order.setdefault(score.metric)
        if score.level == "context":
            context_scores.setdefault(score.metric, {})[score.id, score.system or ""] = value
        elif score.level == "system":
            system_scores.setdefault(score.metric, {})[score.id] = value
        else:
            _column(columns, score.metric, len(items))[place[score.id]] = value
            for into, record in ((coverage, score.coverage), (judging, score.judging)):
                for kind, number in (record or {}).items():
                    known_as = into.setdefault(score.metric, {})
                    _column(known_as, kind, len(items))[place[score.id]] = number
    for name in columns:
        missing = [item.id for item in items if (name, "item", item.id, "") not in seen]
        if missing:
            raise DataError(
                f"{len(missing)} of {len(items)} items, the first is '{missing[0]}', have no"
                f" score by {name} in {scores_name}; score this items file",
                path=items_name,
            )
    signatures = {name: signature for name, (signature, _) in signed.items()}
    return Joined(
        items,
        columns,
        context_scores,
        system_scores,
        list(order),
        coverage,
        signatures,
        reasons,
        judging=judging,
    )
