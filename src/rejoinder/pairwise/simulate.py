"""Simulated judges with a known ground truth, for tests and experiments.

Each reply has a quality, drawn from a standard normal distribution. A judge sees the quality with a
constant bias per reply (standard deviation VIEW) and compares two replies with an error that is
drawn anew for each comparison (standard deviation NOISE). So judges disagree systematically with
each other, and now and then with themselves. Errors are normal, not logistic, so that the data do
not come from the model that Bradley-Terry assumes.

VIEW and NOISE reproduce two figures of Sugiyama, Meguro & Higashinaka (2019, section 3.2): complete
winning rates of two judges correlate at .783, and those of one judge with the rates from 12 % of
the same judge's answers at .924.

If texts are needed, a reply is a few words, and its quality is the mean value of its words, which
differs between contexts: similar replies are about equally good.
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
    """The answers of one judge about all pairs of replies to one context."""

    wins: Floats
    """[n, n] 1 where the reply of the row is preferred to that of the column."""

    @classmethod
    def of(
        cls, quality: Floats, rng: np.random.Generator, *, view: float = VIEW, noise: float = NOISE
    ) -> Judge:
        perceived = quality + view * rng.normal(size=quality.size)
        i, j = np.triu_indices(quality.size, 1)
        better = perceived[i] - perceived[j] + noise * rng.normal(size=i.size) > 0
        wins = np.zeros((quality.size, quality.size))
        wins[i, j], wins[j, i] = better, ~better
        return cls(wins)

    @property
    def rates(self) -> Floats:
        """Winning rates over all pairs."""
        return np.asarray(self.wins.sum(axis=1) / (len(self.wins) - 1))


def two_judges(
    rng: np.random.Generator,
    *,
    references: int = REFERENCES,
    view: float = VIEW,
    noise: float = NOISE,
) -> tuple[Judge, Judge]:
    """Return two judges of the same replies."""
    quality = rng.normal(size=references)
    first, second = (Judge.of(quality, rng, view=view, noise=noise) for _ in range(2))
    return first, second


def asked_at_random(judge: Judge, rng: np.random.Generator, counts: Ints) -> Iterator[Floats]:
    """Yield the wins after each of ``counts`` pairs, drawn at random without replacement."""
    i, j = np.triu_indices(len(judge.wins), 1)
    order = rng.permutation(i.size)
    for count in counts:
        chosen = i[order[:count]], j[order[:count]]
        was_asked = np.zeros(judge.wins.shape)
        was_asked[chosen] = 1
        yield judge.wins * (was_asked + was_asked.T)


def asked_as_planned(
    judge: Judge, rng: np.random.Generator, counts: Ints, *, batch: int
) -> Iterator[Floats]:
    """Yield the wins after each of ``counts`` pairs, planned in batches from earlier answers."""
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
    """Return winning rates by counting; 0.5 for a reply without comparison."""
    games = (wins + wins.T).sum(axis=1)
    return np.asarray(np.where(games > 0, wins.sum(axis=1) / np.maximum(games, 1), 0.5))


def rates_by_strength(wins: Floats) -> Floats:
    """Return expected winning rates by Bradley-Terry."""
    return expected_rates(solve(wins)[0])[0]


WORDS = 60
"""Size of the vocabulary; word frequencies follow Zipf's law."""
SHORTEST, LONGEST = 3, 9


@dataclass(frozen=True)
class Replies:
    """Simulated replies to one context."""

    texts: list[str]
    quality: Floats
    """[n] with mean 0 and standard deviation 1."""

    @classmethod
    def of(cls, rng: np.random.Generator, size: int) -> Replies:
        frequency = 1 / np.arange(1, WORDS + 1)
        value = rng.normal(size=WORDS)
        word_lists = [
            rng.choice(WORDS, rng.integers(SHORTEST, LONGEST + 1), p=frequency / frequency.sum())
            for _ in range(size)
        ]
        quality = np.array([value[words].mean() for words in word_lists])
        texts = [" ".join(f"w{word}" for word in words) for words in word_lists]
        return cls(texts, (quality - quality.mean()) / quality.std())

    def items(self, context: str, first: int, end: int, *, rated: bool) -> list[Item]:
        """Return some of the replies as items, on demand with their quality as rating."""
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
    """Candidates, the comparisons of all their pairs by some judges, and further replies to the
    same contexts with known quality."""

    candidates: list[Item]
    answers: list[dict[str, str]]
    tests: list[Item]

    @classmethod
    def of(
        cls, rng: np.random.Generator, *, contexts: int, references: int, tests: int, judges: int
    ) -> Simulation:
        simulation = cls([], [], [])
        for number in range(contexts):
            name = f"context-{number}"
            replies = Replies.of(rng, references + tests)
            candidates = replies.items(name, 0, references, rated=False)
            simulation.candidates.extend(candidates)
            simulation.tests.extend(replies.items(name, references, references + tests, rated=True))
            for judge in range(judges):
                wins = Judge.of(replies.quality[:references], rng).wins
                simulation.answers.extend(_answers(candidates, wins, f"judge-{judge}"))
        return simulation


def _answers(candidates: list[Item], wins: Floats, annotator: str) -> Iterator[dict[str, str]]:
    """Yield the answers of a judge about all pairs."""
    context = candidates[0].group
    for i, j in zip(*np.triu_indices(len(candidates), 1), strict=True):
        yield {
            "context_id": context,
            "a": candidates[i].id,
            "b": candidates[j].id,
            "winner": "a" if wins[i, j] else "b",
            "annotator": annotator,
        }
