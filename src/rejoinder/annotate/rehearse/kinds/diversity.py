"""Simulated ratings of the diversity of sets of replies."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import numpy as np

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Estimate, Fields, Floats
from rejoinder.annotate.rehearse.opinions import NORMAL, Unit, draw, plain
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.study import DiversitySettings
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.items import mean_rating

FITS_FROM = -0.5
"""Quality from which a reply fits: about 70 % do."""
TOPICS = 4
"""What a reply to a context can be about; two replies about the same are not different."""
MISCOUNT = 0.4
"""Standard deviation of the error with which people count different replies."""


class DiversityBehaviour(Behaviour):
    """Replies of sufficient quality fit; the diversity is the number of their topics."""

    @property
    def options(self) -> DiversitySettings:
        options = self.store.settings.diversity
        assert options is not None
        return options

    def units(self) -> dict[Unit, str]:
        return {
            unit: task.content["system"]
            for task in self.tasks
            for unit in _units(task.content["context"], _texts(task.content))
        }

    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        units = _units(page.turns, page.replies)
        fits = [self._fits(person, unit) for unit in units]
        fields = {f"fits-{place}": "1" for place, mark in enumerate(fits) if mark}
        return fields | {"rating": str(self._rating(person, units))}

    def _fits(self, person: str, unit: Unit) -> bool:
        return self.opinions.seen(person, unit) + self.opinions.noise(person, *unit) > FITS_FROM

    def _topics(self, units: Iterable[Unit]) -> int:
        """Return the number of topics of some replies."""
        return len({int(NORMAL.cdf(draw(self.seed, "topic", *u)) * TOPICS) for u in units})

    def _rating(self, person: str, units: Sequence[Unit]) -> int:
        """Return how different the fitting replies seem to a person."""
        fitting = [unit for unit in units if self._fits(person, unit)]
        error = MISCOUNT * draw(self.seed, person, "count", *sorted(units)[0])
        count = min(self._topics(fitting) + error, len(fitting))
        return self._on_scale(count, len(fitting))

    def _on_scale(self, count: float, fitting: int) -> int:
        """Return a number of different replies on the study's scale."""
        scale = self.options.scale
        if self.options.at_most_fitting:
            allowed = [value for value in scale if value <= max(fitting, scale[0])]
            return min(allowed, key=lambda value: abs(value - count))
        if fitting < 2:
            return scale[0]
        share = (count - 1) / (min(TOPICS, self.options.replies) - 1)
        return scale[round(min(max(share, 0.0), 1.0) * (len(scale) - 1))]

    def answers(self, people: Sequence[str]) -> Floats:
        sets = [_units(task.content["context"], _texts(task.content)) for task in self.tasks]
        return np.array(
            [[self._rating(person, units) for units in sets] for person in people], np.float64
        )

    def estimates(self, answers: Sequence[StoredAnswer]) -> list[Estimate]:
        contents = {answer.key: answer.content for answer in answers}
        found = []
        for item in self.store.kind.rated_items(answers):
            units = _units(item.context, _texts(contents[item.id]))
            fitting = [unit for unit in units if self.opinions.quality(unit) > FITS_FROM]
            rating = mean_rating(item.ratings)
            assert rating is not None
            planted = self._on_scale(self._topics(fitting), len(fitting))
            found.append(Estimate(item.system, planted, rating))
        return found


def _texts(content: dict[str, list[dict[str, str]]]) -> list[str]:
    return [reply["text"] for reply in content["replies"]]


def _units(context: Sequence[str], replies: Sequence[str]) -> list[Unit]:
    return [(plain(context), plain(reply)) for reply in replies]
