"""Choice of the pairs to ask next, so that few answers determine the winning rates.

Every answer reduces the posterior variance of the strengths (bradley_terry.py) by an amount that
can be predicted: much if two replies are about equally strong and their difference is uncertain,
little if the winner is clear. The next pair is the one that reduces the summed variance of the
winning rates most, the one with the largest

    g = w (q_ii + q_jj - 2 q_ij) / (1 + w (s_ii + s_jj - 2 s_ij)),      q = s D s

where s is the covariance of the strengths, w = p (1 - p) the information of an answer and D the
squared derivatives of the winning rates by their strengths. Then s is updated as if the pair had
been answered, and the next pair is chosen, so that a batch has no redundant questions.

Without any answers all replies are paired once, then winners with winners and losers with losers:
the first rounds resemble a merge sort. Ties are broken at random.

A person has an opinion of each reply, which does not change from pair to pair, and with which
others disagree. So a further answer of one person about a reply tells less of what people think
than the first answer of another. The gain of a pair is therefore divided by 1 + c (e_i + e_j),
where e_i is how many pairs with reply i the person who is asked has judged more than people on
average, and c is DISCOUNT. Without it, 28 % of the replies that 8 people see in 297 pairs of 100
replies are ones that they have judged before, with it about 1 %.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rejoinder.pairwise.answers import Comparisons, Contest, Floats
from rejoinder.pairwise.bradley_terry import PRIOR, expected_rates, solve
from rejoinder.progress import Progress

DISCOUNT = 3.0
"""c above. Correlation of winning rates with the planted ones for 8 simulated people who disagree
as in the paper, 297 pairs, 16 seeds: c = 0 .873, 1 .881, 3 .884."""

DIGITS = 9
"""Gains that agree to this many digits are equal; further digits are rounding errors."""


@dataclass(frozen=True)
class Question:
    """A pair to ask about: the numbers of two candidates, in the order of presentation."""

    context: str
    a: int
    b: int
    gain: float
    """Expected reduction of the summed variance of the winning rates."""


def next_pairs(
    wins: Floats,
    rng: np.random.Generator,
    *,
    again: bool = False,
    prior: float = PRIOR,
    pending: Iterable[tuple[int, int]] = (),
    excess: Floats | None = None,
) -> Iterator[tuple[float, int, int]]:
    """Yield gain, i and j of the pairs of one context, each once, the most informative first.

    Pairs that have answers are skipped unless ``again``. ``pending`` pairs are being asked right
    now: they are skipped, and the gains of the others are those after each of them is answered.
    ``excess`` [n] is how many pairs with each reply the person who is asked has judged more than
    people on average (:func:`judged_in_excess`): of two equally informative pairs, the one that is
    new to them comes first. The gains that are returned are not divided by it.
    """
    size = len(wins)
    order = rng.permutation(size)
    known = None if excess is None else excess[order]
    state = _State.after(wins[np.ix_(order, order)], prior)
    answered = np.zeros(wins.shape, bool) if again else (wins + wins.T > 0)[np.ix_(order, order)]
    closed = answered | np.tri(size, dtype=bool)
    place = np.argsort(order)
    for i, j in pending:
        if i == j or not (0 <= i < size and 0 <= j < size):
            raise ValueError(f"pending: ({i}, {j}) is no pair of {size} replies")
        first, second = sorted((int(place[i]), int(place[j])))
        closed[first, second] = True
        state.update(first, second)
    for _ in range(int((~closed).sum())):
        gain, i, j = state.best(closed, known)
        yield gain, int(order[i]), int(order[j])
        closed[i, j] = True
        state.update(i, j)


@dataclass
class _State:
    """Posterior of the strengths after the planned pairs have been answered."""

    information: Floats
    """[n, n] w: information of one answer about each pair."""
    changes: Floats
    """[n] D: squared derivative of each winning rate by its strength."""
    covariance: Floats
    """[n, n] s"""
    uncertain: Floats
    """[n, n] q = s D s"""

    @classmethod
    def after(cls, wins: Floats, prior: float) -> _State:
        strength, covariance = solve(wins, prior)
        expected = expit(strength[:, np.newaxis] - strength)
        changes = np.diag(expected_rates(strength)[1]) ** 2
        uncertain = (covariance * changes) @ covariance
        return cls(expected * (1 - expected), changes, covariance, uncertain)

    def best(self, closed: NDArray[np.bool_], excess: Floats | None) -> tuple[float, int, int]:
        """Return gain, i and j of the open pair with the largest gain, divided by the excess."""
        spread = _of_differences(self.covariance)
        gains = self.information * _of_differences(self.uncertain)
        gains /= 1 + self.information * spread
        discounted = (
            gains if excess is None else gains / (1 + DISCOUNT * (excess[:, np.newaxis] + excess))
        )
        discounted[closed] = -1.0
        i, j = divmod(int(discounted.argmax()), len(gains))
        return float(gains[i, j]), i, j

    def update(self, i: int, j: int) -> None:
        """Update s and q as if the pair had been answered: s loses k c c'."""
        c = self.covariance[:, i] - self.covariance[:, j]
        k = self.information[i, j] / (1 + self.information[i, j] * (c[i] - c[j]))
        crossed = np.outer(c, self.covariance @ (self.changes * c))
        squared = np.outer(c, c)
        self.uncertain += k**2 * float(self.changes @ c**2) * squared - k * (crossed + crossed.T)
        self.covariance -= k * squared


def _of_differences(covariance: Floats) -> Floats:
    """Return the variance of the difference of each two strengths [n, n]."""
    own = np.diag(covariance)
    return np.asarray(np.maximum(own[:, np.newaxis] + own - 2 * covariance, 0))


def judged_in_excess(wins: Floats, own: Iterable[tuple[int, int]], people: int) -> Floats:
    """Return how many pairs with each reply [n] a person has judged more than people on average.

    ``wins`` has the answers of all ``people``, the person included; ``own`` are the pairs that the
    person has judged. Not more is 0, and so it is for somebody who answers alone.
    """
    size = len(wins)
    pairs = np.array(list(own), np.int64).reshape(-1)
    usual = (wins + wins.T).sum(axis=1) / people
    return np.asarray(np.maximum(np.bincount(pairs, minlength=size) - usual, 0))


def plan_questions(
    comparisons: Comparisons,
    *,
    count: int | None = None,
    share: float | None = None,
    seed: int = 12345,
    again: bool = False,
    left_out: Collection[tuple[int, int]] = (),
    on_progress: Progress | None = None,
) -> list[Question]:
    """Return the questions to ask next.

    Either the ``count`` most informative ones over all contexts, or as many as bring the judged
    pairs of each context, answered ones included, to this ``share``. Pairs of candidates that are
    ``left_out`` are not asked about, such as those that got no answer.
    """
    if (count is None) == (share is None):
        raise ValueError("give either count or share")
    contests = list(comparisons.contests())
    rngs = np.random.default_rng(seed).spawn(len(contests))
    plans = [
        _ContestPlan(contest, next_pairs(contest.wins, rng, again=again, pending=pending), rng)
        for contest, rng, pending in zip(
            contests, rngs, _by_contest(contests, left_out), strict=True
        )
    ]
    if count is not None:
        return _best(plans, count, on_progress)
    assert share is not None
    chosen: list[Question] = []
    for number, plan in enumerate(plans):
        for _ in range(unjudged_pairs(plan.contest, share)):
            if (question := plan.next()) is not None:
                chosen.append(question)
        if on_progress is not None:
            on_progress(number + 1, len(plans))
    return chosen


def _by_contest(
    contests: Sequence[Contest], pairs: Collection[tuple[int, int]]
) -> Iterator[list[tuple[int, int]]]:
    """Yield for each contest those of the pairs of candidates that are its own, by their places
    in it."""
    for contest in contests:
        place = {number: n for n, number in enumerate(contest.members.tolist())} if pairs else {}
        yield [(place[i], place[j]) for i, j in pairs if i in place and j in place]


def unjudged_pairs(contest: Contest, share: float) -> int:
    """Return how many more pairs of a context must be judged to reach this share of all pairs."""
    pairs = contest.members.size * (contest.members.size - 1) // 2
    judged = int(np.count_nonzero(np.triu(contest.games)))
    return max(round(share * pairs) - judged, 0)


@dataclass(frozen=True)
class _ContestPlan:
    """Iterator over the planned pairs of one context."""

    contest: Contest
    pairs: Iterator[tuple[float, int, int]]
    rng: np.random.Generator

    def next(self) -> Question | None:
        planned = next(self.pairs, None)
        if planned is None:
            return None
        gain, i, j = planned
        if self.rng.random() < 0.5:  # annotators favour the reply that they read first
            i, j = j, i
        a, b = int(self.contest.members[i]), int(self.contest.members[j])
        return Question(self.contest.name, a, b, gain)


def _best(
    plans: Sequence[_ContestPlan], count: int, on_progress: Progress | None
) -> list[Question]:
    """Merge the plans of all contexts by gain; ties go to the one with the fewest questions."""
    heap: list[tuple[float, int, int, Question]] = []

    def push(number: int, taken: int) -> None:
        if (question := plans[number].next()) is not None:
            heapq.heappush(heap, (-round(question.gain, DIGITS), taken, number, question))

    for number in range(len(plans)):
        push(number, 0)
    chosen: list[Question] = []
    while heap and len(chosen) < count:
        _, taken, number, question = heapq.heappop(heap)
        chosen.append(question)
        if on_progress is not None:
            on_progress(len(chosen), count)
        push(number, taken + 1)
    return chosen


def assign_questions(
    questions: Sequence[Question],
    annotators: Sequence[str],
    shared: float,
    seed: int = 12345,
    comparisons: Comparisons | None = None,
) -> list[tuple[Question, str]]:
    """Assign questions to annotators, to each the same number.

    A random share ``shared`` of them goes to every annotator, to measure their agreement. Each of
    the others goes to the one who knows its two replies least, from these questions and from the
    answers in ``comparisons``.
    """
    rng = np.random.default_rng(seed)
    common = rng.permutation(len(questions)) < round(shared * len(questions))
    known: dict[str, Counter[int]] = {name: Counter() for name in annotators}
    if comparisons is not None:
        names = [*comparisons.annotators]
        for pair in (comparisons.first, comparisons.second):
            for who, candidate in zip(comparisons.annotator, pair, strict=True):
                if who >= 0 and (counter := known.get(names[who])) is not None:
                    counter[int(candidate)] += 1
    free: list[str] = []
    """Who has one question less than the others."""
    out = []
    for question, for_all in zip(questions, common, strict=True):
        chosen = [*annotators]
        if not for_all:
            free = free or [*annotators]
            chosen = [min(free, key=lambda name: known[name][question.a] + known[name][question.b])]
            free.remove(chosen[0])
        for name in chosen:
            known[name].update((question.a, question.b))
            out.append((question, name))
    return out
