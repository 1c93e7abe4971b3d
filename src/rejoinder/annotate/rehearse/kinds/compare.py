"""Simulated comparisons of two replies."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rejoinder.annotate.rehearse.kinds.behaviour import Behaviour, Estimate, Fields, Floats
from rejoinder.annotate.rehearse.opinions import NORMAL, Unit, plain
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.tasks.compare import Contest, contests_of
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.items import Item, mean_rating
from rejoinder.meta_evaluation.annotators import DISTRACTOR
from rejoinder.pairwise.simulate import NOISE

TIE = 0.2
"""Replies that seem to differ less than this are equally good, where that is an answer."""
MAX_PAIRS = 500
"""Pairs of a context from which the planted agreement is computed."""


class CompareBehaviour(Behaviour):
    """The reply that seems better to a person wins.

    The quality depends on the text of a reply alone: there are no replies to other contexts.
    """

    def units(self) -> dict[Unit, str]:
        return {
            _unit(item.response): item.system
            for item in self.store.study.items
            if item.system != DISTRACTOR
        }

    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        left, right = map(_unit, page.replies)
        preference = self.opinions.preference(person, left, right)
        if "tie" in page.choices["winner"] and abs(preference) < TIE:
            return {"winner": "tie"}
        return {"winner": "left" if preference > 0 else "right"}

    def answers(self, people: Sequence[str]) -> Floats:
        """Return 1, 0 or -1 for pairs of each context, in both directions."""
        options = self.store.settings.compare
        assert options is not None
        limit = TIE if options.ties else 0.0
        rng = np.random.default_rng(self.seed)
        pairs: list[tuple[Unit, Unit]] = []
        for contest in self._contests():
            every = list(combinations([_unit(item.response) for item in contest.items], 2))
            chosen = rng.permutation(len(every))[:MAX_PAIRS]
            pairs += [every[number] for number in chosen if every[number][0] != every[number][1]]
        seen = np.array(
            [[self.opinions.preference(person, *pair) for pair in pairs] for person in people]
        )
        table = np.sign(seen) * (np.abs(seen) >= limit)
        return np.hstack([table, -table])

    def _contests(self) -> list[Contest]:
        return contests_of(self.store.study.items, 1.0)

    def estimates(self, answers: Sequence[StoredAnswer]) -> list[Estimate]:
        rates = {
            item.id: mean_rating(item.ratings) for item in self.store.kind.rated_items(answers)
        }
        found = []
        for contest in self._contests():
            planted = self.planted_rates(contest.items)
            for item, rate in zip(contest.items, planted, strict=True):
                if (estimate := rates.get(item.id)) is not None:
                    found.append(Estimate(item.system, float(rate), estimate))
        return found

    def planted_rates(self, items: Sequence[Item]) -> Floats:
        """Return how often each reply wins if people without number compare all pairs."""
        spread = (2 * self.opinions.view**2 + NOISE**2) ** 0.5
        qualities = np.array([self.opinions.quality(_unit(item.response)) for item in items])
        wins = np.array(
            [[NORMAL.cdf((one - other) / spread) for other in qualities] for one in qualities]
        )
        return np.asarray((wins.sum(axis=1) - 0.5) / (len(items) - 1))


def _unit(reply: str) -> Unit:
    return "", plain(reply)
