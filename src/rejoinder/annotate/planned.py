"""Studies that rate a random choice of their replies, and stop when a question is decided.

The order in which contexts, or replies, are asked about is that of ``rejoinder plan``: it depends
on ids and seed alone, so a larger budget continues it. What is decided is shown in intervals that
may be looked at all the time (:mod:`rejoinder.estimation.looks`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from rejoinder.annotate.study import STUDY_FILE, PlanSettings, Study
from rejoinder.annotate.tasks.kind import Json, NewTask
from rejoinder.errors import DataError, UsageError
from rejoinder.estimation.estimates import standard_scores
from rejoinder.estimation.looks import Look, StopRule, looks
from rejoinder.estimation.planning import (
    Question,
    Units,
    asked_about,
    choose,
    rated_probabilities,
    unit_sizes,
    units_of,
)
from rejoinder.estimation.prediction_powered import Floats
from rejoinder.files.checked import inside
from rejoinder.files.jsonl import read_scores
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import DISTRACTOR
from rejoinder.meta_evaluation.join import join


@dataclass(frozen=True)
class PlanStatus:
    """What a planned study has found out so far."""

    question: Question
    budget: int
    decided: bool
    """Whether the stop rule is met for all means, or pairs."""
    looks: list[Look]


class StudyPlan:
    """Which replies of a study are rated, and what their ratings decide."""

    def __init__(self, study: Study, plan: PlanSettings) -> None:
        self.study, self.plan = study, plan
        try:
            self.systems, self.question = asked_about(
                study.items, plan.systems, plan.question or None
            )
        except UsageError as error:
            raise DataError(f"[plan]: {error}", path=str(study.folder / STUDY_FILE)) from None

    @classmethod
    def of(cls, study: Study) -> StudyPlan | None:
        """Return the plan of a study; None if all of its replies are rated."""
        plan = study.settings.plan
        return None if plan is None else cls(study, plan)

    @cached_property
    def _scores(self) -> tuple[Floats | None, Floats]:
        """The mean score [items], and those of all metrics [metrics, items]; higher is better."""
        items = self.study.items
        if not self.plan.scores:
            return None, np.zeros((0, len(items)))
        path = str(inside(self.study.folder, self.plan.scores))
        joined = join(
            items, read_scores(path), items_name=self.study.settings.items, scores_name=path
        )
        names = self.plan.metrics or list(joined.item_scores)
        if missing := [name for name in names if name not in joined.item_scores]:
            raise DataError(f"has no scores of single replies by {', '.join(missing)}", path=path)
        rows = np.array([standard_scores(joined, [name]) for name in names])
        return standard_scores(joined, names), rows

    @cached_property
    def _units(self) -> Units:
        return units_of(self.study.items, self.question, self.systems)

    @cached_property
    def _sizes(self) -> Floats:
        return unit_sizes(self._units, self._scores[1], self.plan.uneven)

    def chosen_tasks(self, tasks: Sequence[NewTask]) -> list[tuple[NewTask, int]]:
        """Return the tasks about replies of the plan, with the place of each in its order.

        Distractors of a context come with its replies.
        """
        settings = self.study.settings
        planned = choose(
            self.study.items,
            self._units,
            self._sizes,
            self.plan.budget,
            ratings=settings.answers_per_task,
            seed=settings.seed,
        )
        unit_of = {n: unit for unit, own in enumerate(self._units.members) for n in own}
        place_of_unit: dict[int, int] = {}
        place: dict[str, int] = {}
        for number in planned.chosen:
            unit = unit_of[number]
            place[self.study.items[number].id] = place_of_unit.setdefault(unit, len(place_of_unit))
        of_context: dict[int, int] = {}
        found: list[tuple[NewTask, int | None]] = []
        for task in tasks:
            own = [place[each["item"]] for each in task.content["replies"] if each["item"] in place]
            if own:
                of_context.setdefault(task.context, min(own))
            found.append((task, min(own) if own else None))
        chosen = []
        for task, at in found:
            planted = all(each["system"] == DISTRACTOR for each in task.content["replies"])
            if at is None and planted:
                at = of_context.get(task.context)
            if at is not None:
                chosen.append((task, at))
        return chosen

    def status(self, rated: Sequence[Item]) -> PlanStatus:
        """Return what the ratings so far decide."""
        rule = StopRule(self.question, width=self.plan.width or None)
        found = looks(self._with_ratings(rated), self._scores[0], self.systems, rule)
        decided = bool(found) and all(look.decided for look in found)
        return PlanStatus(self.question, self.plan.budget, decided, found)

    def exported(self, records: Sequence[Json]) -> list[Json]:
        """Return exported items with ratings that they had before, and inclusion probabilities."""
        ratings = {record["id"]: record.get("ratings") for record in records}
        items = self._merged(ratings)
        chances = rated_probabilities(items, self._units, self._sizes)
        by_id = {
            item.id: _probability(item, float(chance))
            for item, chance in zip(items, chances, strict=True)
        }
        return [record | by_id.get(record["id"], {}) for record in records]

    def _with_ratings(self, rated: Sequence[Item]) -> list[Item]:
        """Return all items, with these ratings and the probabilities of having them."""
        items = self._merged({item.id: item.ratings for item in rated})
        chances = rated_probabilities(items, self._units, self._sizes)
        return [
            msgspec.structs.replace(item, **_probability(item, float(chance)))
            for item, chance in zip(items, chances, strict=True)
        ]

    def _merged(self, ratings: dict[str, Any]) -> list[Item]:
        merged = []
        for item in self.study.items:
            new = ratings.get(item.id)
            if isinstance(new, dict) and isinstance(item.ratings, dict):
                new = item.ratings | new
            merged.append(msgspec.structs.replace(item, ratings=new or item.ratings))
        return merged


def _probability(item: Item, chance: float) -> dict[str, Any]:
    """Return the fields of an item that the plan knows."""
    if not item.is_rated:
        return {}
    known = {} if math.isnan(chance) else {"inclusion_probability": chance}
    return {"ratings": item.ratings} | known
