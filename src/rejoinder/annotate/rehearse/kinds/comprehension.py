"""Simulated ratings of how well an utterance is understood."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Estimate, Fields, Floats
from rejoinder.annotate.rehearse.opinions import Unit, plain
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.items import mean_rating

FIELD = "rating"


class ComprehensionBehaviour(Behaviour):
    """An utterance is rated by its quality."""

    @property
    def scale(self) -> list[int]:
        options = self.store.settings.comprehension
        assert options is not None
        return options.scale

    def units(self) -> dict[Unit, str]:
        return {("", plain(task.content["utterance"])): "" for task in self.tasks}

    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        return {FIELD: str(self._rating(person, ("", plain(page.replies[0]))))}

    def _rating(self, person: str, unit: Unit) -> int:
        return self.opinions.rating(person, unit, FIELD, self.scale)

    def answers(self, people: Sequence[str]) -> Floats:
        units = list(self.units())
        return np.array(
            [[self._rating(person, unit) for unit in units] for person in people], np.float64
        )

    def estimates(self, answers: Sequence[StoredAnswer]) -> list[Estimate]:
        found = []
        for item in self.store.kind.rated_items(answers):
            rating = mean_rating(item.ratings)
            assert rating is not None
            quality = self.opinions.quality(("", plain(item.response)))
            found.append(Estimate("", quality, rating))
        return found
