"""Which pairs to ask next, so that few answers tell the winning rates.

Every answer narrows what is known of the strengths (bradley_terry.py) by an amount that can be
foreseen: much if the two are about equally strong and their difference is uncertain, little if
everybody knows who wins. The next pair is the one after which the winning rates are least
uncertain: the one with the largest

    g = w (q_ii + q_jj - 2 q_ij) / (1 + w (s_ii + s_jj - 2 s_ij)),      q = s D s

where s is the covariance of the strengths, w = p (1 - p) the information of an answer and D the
squares of how much a winning rate changes with its strength. Then s is narrowed as if the pair had
been answered, and the next one is chosen: a batch asks no two questions with the same answer.

With nothing known all replies are paired once, then winners with winners and losers with losers:
the first rounds resemble a merge sort. Among equals chance decides.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rejoinder.pairwise.answers import Comparisons, Contest, Floats
from rejoinder.pairwise.bradley_terry import PRIOR, expected_rates, solve
from rejoinder.progress import Progress

DIGITS = 9
"""Gains that are equal so far are equal: what follows is rounding."""


@dataclass(frozen=True)
class Question:
    """A pair to be asked: the numbers of two candidates, in the order in which they are shown."""

    context: str
    a: int
    b: int
    gain: float
    """By how much the variances of the winning rates are expected to fall, summed up."""


def next_pairs(
    wins: Floats, rng: np.random.Generator, *, again: bool = False, prior: float = PRIOR
) -> Iterator[tuple[float, int, int]]:
    """Pairs of one context, the most telling first, each once, with their gains.

    Pairs that have answers are not asked, unless ``again``.
    """
    size = len(wins)
    order = rng.permutation(size)
    state = _Outlook.after(wins[np.ix_(order, order)], prior)
    answered = np.zeros(wins.shape, bool) if again else (wins + wins.T > 0)[np.ix_(order, order)]
    closed = answered | np.tri(size, dtype=bool)
    for _ in range(int((~closed).sum())):
        gain, i, j = state.best(closed)
        yield gain, int(order[i]), int(order[j])
        closed[i, j] = True
        state.narrow(i, j)


@dataclass
class _Outlook:
    """What is known of the strengths, and will be once the planned pairs have answers."""

    information: Floats
    """[n, n] w: of one answer about each pair."""
    changes: Floats
    """[n] D: squares of the change of a winning rate with its strength."""
    covariance: Floats
    """[n, n] s"""
    uncertain: Floats
    """[n, n] q = s D s"""

    @classmethod
    def after(cls, wins: Floats, prior: float) -> _Outlook:
        strength, covariance = solve(wins, prior)
        expected = expit(strength[:, np.newaxis] - strength)
        changes = np.diag(expected_rates(strength)[1]) ** 2
        uncertain = (covariance * changes) @ covariance
        return cls(expected * (1 - expected), changes, covariance, uncertain)

    def best(self, closed: NDArray[np.bool_]) -> tuple[float, int, int]:
        """The pair with the largest gain among those that are not closed."""
        spread = _of_differences(self.covariance)
        gains = self.information * _of_differences(self.uncertain)
        gains /= 1 + self.information * spread
        gains[closed] = -1.0
        i, j = divmod(int(gains.argmax()), len(gains))
        return float(gains[i, j]), i, j

    def narrow(self, i: int, j: int) -> None:
        """As if the pair had been answered: s loses k c c', and q what follows from that."""
        c = self.covariance[:, i] - self.covariance[:, j]
        k = self.information[i, j] / (1 + self.information[i, j] * (c[i] - c[j]))
        crossed = np.outer(c, self.covariance @ (self.changes * c))
        squared = np.outer(c, c)
        self.uncertain += k**2 * float(self.changes @ c**2) * squared - k * (crossed + crossed.T)
        self.covariance -= k * squared


def _of_differences(covariance: Floats) -> Floats:
    """[n, n] the variance of the difference of each two."""
    own = np.diag(covariance)
    return np.asarray(np.maximum(own[:, np.newaxis] + own - 2 * covariance, 0))


def plan(
    comparisons: Comparisons,
    *,
    count: int | None = None,
    share: float | None = None,
    seed: int = 12345,
    again: bool = False,
    on_progress: Progress | None = None,
) -> list[Question]:
    """The questions to ask next: ``count`` in all contexts together, the most telling first; or as
    many as bring each context to this ``share`` of its pairs, those with answers counted."""
    if (count is None) == (share is None):
        raise ValueError("either a count or a share of pairs is planned")
    contests = list(comparisons.contests())
    rngs = np.random.default_rng(seed).spawn(len(contests))
    walks = [
        _Walk(contest, next_pairs(contest.wins, rng, again=again), rng)
        for contest, rng in zip(contests, rngs, strict=True)
    ]
    if count is not None:
        return _best(walks, count, on_progress)
    assert share is not None
    chosen: list[Question] = []
    for number, walk in enumerate(walks):
        for _ in range(missing(walk.contest, share)):
            if (question := walk.next()) is not None:
                chosen.append(question)
        if on_progress is not None:
            on_progress(number + 1, len(walks))
    return chosen


def missing(contest: Contest, share: float) -> int:
    """How many pairs of a context are not judged yet, if this share of all is to be."""
    pairs = contest.members.size * (contest.members.size - 1) // 2
    judged = int(np.count_nonzero(np.triu(contest.games)))
    return max(round(share * pairs) - judged, 0)


@dataclass(frozen=True)
class _Walk:
    """The pairs of one context, as far as they have been asked for."""

    contest: Contest
    pairs: Iterator[tuple[float, int, int]]
    rng: np.random.Generator

    def next(self) -> Question | None:
        found = next(self.pairs, None)
        if found is None:
            return None
        gain, i, j = found
        if self.rng.random() < 0.5:  # people favour what they read first
            i, j = j, i
        a, b = int(self.contest.members[i]), int(self.contest.members[j])
        return Question(self.contest.name, a, b, gain)


def _best(walks: Sequence[_Walk], count: int, on_progress: Progress | None) -> list[Question]:
    """Each walk gives its best pair first, so the best of all stand at the heads of the walks.
    Among equals the context with the fewest questions is next."""
    heap: list[tuple[float, int, int, Question]] = []

    def wait(number: int, taken: int) -> None:
        if (question := walks[number].next()) is not None:
            heapq.heappush(heap, (-round(question.gain, DIGITS), taken, number, question))

    for number in range(len(walks)):
        wait(number, 0)
    chosen: list[Question] = []
    while heap and len(chosen) < count:
        _, taken, number, question = heapq.heappop(heap)
        chosen.append(question)
        if on_progress is not None:
            on_progress(len(chosen), count)
        wait(number, taken + 1)
    return chosen


def dealt(
    questions: Sequence[Question], annotators: Sequence[str], shared: float, seed: int = 12345
) -> list[tuple[Question, str]]:
    """Questions given out in turn. A ``shared`` part of them, drawn at random, goes to everybody:
    without it nobody's agreement with the others would be known."""
    rng = np.random.default_rng(seed)
    common = rng.permutation(len(questions)) < round(shared * len(questions))
    turn = 0
    out = []
    for question, everybody in zip(questions, common, strict=True):
        if everybody:
            out += [(question, name) for name in annotators]
        else:
            out.append((question, annotators[turn % len(annotators)]))
            turn += 1
    return out
