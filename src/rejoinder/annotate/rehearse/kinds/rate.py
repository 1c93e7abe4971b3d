"""Simulated ratings of replies."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Estimate, Fields, Floats
from rejoinder.annotate.rehearse.opinions import Unit, plain
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.study import RateSettings
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.items import mean_rating
from rejoinder.meta_evaluation.annotators import DISTRACTOR


class RateBehaviour(Behaviour):
    """A reply is rated by its quality; distractors are bad."""

    @property
    def options(self) -> RateSettings:
        options = self.store.settings.rate
        assert options is not None
        return options

    def units(self) -> dict[Unit, str]:
        return {
            unit: reply["system"]
            for unit, reply in self._replies()
            if reply["system"] != DISTRACTOR
        }

    def _replies(self) -> list[tuple[Unit, dict[str, str]]]:
        """Return each reply of each task."""
        return [
            ((plain(task.content["context"]), plain(reply["text"])), reply)
            for task in self.tasks
            for reply in task.content["replies"]
        ]

    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        context = plain(page.turns)
        return {
            f"{dimension.name}-{place}": str(
                self.opinions.rating(
                    person, (context, plain(reply)), dimension.name, dimension.scale
                )
            )
            for place, reply in enumerate(page.replies)
            for dimension in self.options.dimensions
        }

    def answers(self, people: Sequence[str]) -> Floats:
        first = self.options.dimensions[0]
        return np.array(
            [
                [
                    self.opinions.rating(person, unit, first.name, first.scale)
                    for unit, _ in self._replies()
                ]
                for person in people
            ],
            np.float64,
        )

    def estimates(self, answers: Sequence[StoredAnswer]) -> list[Estimate]:
        found = []
        for item in self.store.kind.rated_items(answers):
            unit = plain(item.context), plain(item.response)
            rating = mean_rating(item.ratings)
            assert rating is not None
            found.append(Estimate(item.system, self.opinions.quality(unit), rating))
        return found
