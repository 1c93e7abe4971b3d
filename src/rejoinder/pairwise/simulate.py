"""Judges with a known truth, for what would need thousands of people's answers.

Each reply has a quality, drawn from a normal distribution with the standard deviation 1. A judge
has a view of it (the quality and something of his own, VIEW, which stays), and compares two views
with an error that is new each time (NOISE). So judges contradict each other for good, and
themselves now and then. Errors are normal, not logistic: Bradley-Terry is not given the very model
that it assumes.

VIEW and NOISE are such that two figures of Sugiyama, Meguro & Higashinaka (2019, section 3.2) come
out: complete winning rates of two judges correlate at .783, and those of one judge with the rates
from 12 % of his answers at .924.

Where texts are needed, too, a reply is a handful of words, and its quality the mean worth of them,
which is another one in every context: then similar replies are about equally good, and nothing
else can be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rejoinder.items import Item
from rejoinder.pairwise.answers import Floats, Ints
from rejoinder.pairwise.bradley_terry import expected_rates, solve
from rejoinder.pairwise.plan import next_pairs

REFERENCES = 100
VIEW, NOISE = 0.49, 0.38


@dataclass(frozen=True)
class Judge:
    """All that a judge would answer about the replies to one context."""

    wins: Floats
    """[n, n] 1 where the one of the row is preferred to the one of the column."""

    @classmethod
    def of(
        cls, quality: Floats, rng: np.random.Generator, *, view: float = VIEW, noise: float = NOISE
    ) -> Judge:
        seen = quality + view * rng.normal(size=quality.size)
        i, j = np.triu_indices(quality.size, 1)
        better = seen[i] - seen[j] + noise * rng.normal(size=i.size) > 0
        wins = np.zeros((quality.size, quality.size))
        wins[i, j], wins[j, i] = better, ~better
        return cls(wins)

    @property
    def rates(self) -> Floats:
        """Complete winning rates."""
        return np.asarray(self.wins.sum(axis=1) / (len(self.wins) - 1))


def two_judges(
    rng: np.random.Generator,
    *,
    references: int = REFERENCES,
    view: float = VIEW,
    noise: float = NOISE,
) -> tuple[Judge, Judge]:
    """Two who judge the same replies."""
    quality = rng.normal(size=references)
    first, second = (Judge.of(quality, rng, view=view, noise=noise) for _ in range(2))
    return first, second


def asked_at_random(judge: Judge, rng: np.random.Generator, counts: Ints) -> Iterator[Floats]:
    """Answers to this many pairs, drawn without replacement, each time some more."""
    i, j = np.triu_indices(len(judge.wins), 1)
    order = rng.permutation(i.size)
    for count in counts:
        chosen = i[order[:count]], j[order[:count]]
        asked = np.zeros(judge.wins.shape)
        asked[chosen] = 1
        yield judge.wins * (asked + asked.T)


def asked_as_planned(
    judge: Judge, rng: np.random.Generator, counts: Ints, *, batch: int
) -> Iterator[Floats]:
    """Answers to this many pairs, planned ``batch`` at a time from the answers before."""
    wins = np.zeros(judge.wins.shape)
    done = 0
    for count in counts:
        while done < count:
            pairs = next_pairs(wins, rng)
            chosen = [next(pairs) for _ in range(min(batch, int(count) - done))]
            for _, i, j in chosen:
                wins[i, j], wins[j, i] = judge.wins[i, j], judge.wins[j, i]
            done += len(chosen)
        yield wins.copy()


def rates_by_counting(wins: Floats) -> Floats:
    """Winning rates; a reply without comparisons is taken for an average one here, where all must
    be ranked."""
    games = (wins + wins.T).sum(axis=1)
    return np.asarray(np.where(games > 0, wins.sum(axis=1) / np.maximum(games, 1), 0.5))


def rates_by_strength(wins: Floats) -> Floats:
    """Expected winning rates by Bradley-Terry."""
    return expected_rates(solve(wins)[0])[0]


WORDS = 60
"""That can be said, the first ones most often."""
SHORTEST, LONGEST = 3, 9


@dataclass(frozen=True)
class Replies:
    """Replies to one context."""

    texts: list[str]
    quality: Floats
    """[n] with mean 0 and standard deviation 1."""

    @classmethod
    def of(cls, rng: np.random.Generator, size: int) -> Replies:
        often = 1 / np.arange(1, WORDS + 1)
        worth = rng.normal(size=WORDS)
        said = [
            rng.choice(WORDS, rng.integers(SHORTEST, LONGEST + 1), p=often / often.sum())
            for _ in range(size)
        ]
        quality = np.array([worth[words].mean() for words in said])
        texts = [" ".join(f"w{word}" for word in words) for words in said]
        return cls(texts, (quality - quality.mean()) / quality.std())

    def items(self, context: str, first: int, end: int, *, rated: bool) -> list[Item]:
        """Some of them, with the truth for a rating or without."""
        return [
            Item(
                f"{context}:{n}",
                self.texts[n],
                system="simulated",
                context_id=context,
                ratings=float(self.quality[n]) if rated else None,
            )
            for n in range(first, end)
        ]


@dataclass(frozen=True)
class Simulation:
    """What people would have given: candidates, all their comparisons by some judges, and further
    replies to the same contexts, whose quality is known."""

    candidates: list[Item]
    answers: list[dict[str, str]]
    tests: list[Item]

    @classmethod
    def of(
        cls, rng: np.random.Generator, *, contexts: int, references: int, tests: int, judges: int
    ) -> Simulation:
        found = cls([], [], [])
        for number in range(contexts):
            name = f"context-{number}"
            replies = Replies.of(rng, references + tests)
            candidates = replies.items(name, 0, references, rated=False)
            found.candidates.extend(candidates)
            found.tests.extend(replies.items(name, references, references + tests, rated=True))
            for judge in range(judges):
                wins = Judge.of(replies.quality[:references], rng).wins
                found.answers.extend(_answers(candidates, wins, f"judge-{judge}"))
        return found


def _answers(candidates: list[Item], wins: Floats, annotator: str) -> Iterator[dict[str, str]]:
    """Of a judge who was asked about all pairs."""
    context = candidates[0].group
    for i, j in zip(*np.triu_indices(len(candidates), 1), strict=True):
        yield {
            "context_id": context,
            "a": candidates[i].id,
            "b": candidates[j].id,
            "winner": "a" if wins[i, j] else "b",
            "annotator": annotator,
        }
