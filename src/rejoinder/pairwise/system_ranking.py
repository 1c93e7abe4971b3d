"""Ranking of systems from pairwise answers of people and models, each with its own reliability.

Annotator k prefers a reply of system i to one of system j with the probability

    P = 1 / (1 + exp(-r_k (strength_i - strength_j)))

which is Bradley-Terry with a scale for each annotator, as Chen et al. (2013, "Pairwise Ranking
Aggregation in a Crowdsourced Setting") have a chance of answering the wrong way round for each. An
annotator who answers at random has the reliability r = 0, one who answers the wrong way round a
negative one, and neither moves the ranking by the number of their answers. Reliabilities are
relative: their mean over people who are better than chance, weighted by answers, is 1. Strengths
have the normal prior of bradley_terry.py, and reliabilities one with mean 1, so that a few answers
do not make an expert. Strengths and reliabilities are computed in turn (Newton's steps) until both
stand still: the maximum a posteriori.

Intervals come from contexts drawn with replacement, with all answers about their replies, and
everything fitted again: replies to a context, and answers about one, are not independent. The rank
interval of a system holds the middle 95 % of its ranks. Two systems are tested by the difference of
their strengths over its standard deviation over draws, with Student's t for as many contexts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import expit, stdtr, stdtrit

from rejoinder.errors import DataError
from rejoinder.meta_evaluation.join import abbreviated
from rejoinder.meta_evaluation.significance import holm, letters
from rejoinder.pairwise.answers import UNNAMED, Comparisons, Floats, Ints
from rejoinder.pairwise.bradley_terry import PRIOR, expected_rates
from rejoinder.progress import Progress

SPREAD = 1.0
"""Standard deviation of the prior of reliabilities."""
UNNAMED_PEOPLE = "(without a name)"
MODEL = "judge"
"""With this the name of an annotator begins that is a language model."""
RESAMPLES = 2000
MIN_CONTEXTS = 10
"""Contexts below which intervals are not to be relied on."""
MAX_STEPS = 500
TOLERANCE = 1e-10
ROUGH = 1e-4
"""Tolerance for draws."""
LARGEST_STEP = 1.0
MIN_MEAN = 0.05
"""Mean reliability below which it is no measure."""
CELLS = 20_000_000
CONFIDENCE = 0.95

Bools = NDArray[np.bool_]
Interval = tuple[float, float]


@dataclass(frozen=True)
class RankedByPairs:
    """A system in the ranking."""

    system: str
    rank: int
    rank_ci: tuple[int, int] | None
    strength: float
    """The mean over systems is 0."""
    rate: float
    """How often the average person prefers its reply to that of another system."""
    rate_ci: Interval | None
    rate_by_people: float | None
    """The same from people's answers alone; None if models answered nothing, or everything, and for
    systems that no chain of people's answers connects with most of the others."""
    answers: float
    group: str
    """Letters: systems that share one can't be told apart at the 5 % level."""


@dataclass(frozen=True)
class JudgeReliability:
    """An annotator, person or model."""

    name: str
    model: bool
    answers: float
    reliability: float
    """1 is the average person, 0 an answer at random, below 0 the wrong way round."""
    ci: Interval | None
    agrees: float
    """Share of the answers that prefer the system that ranks higher; a tie is half a one."""


@dataclass(frozen=True)
class PairOfSystems:
    """How often the average person prefers a reply of ``a`` to one of ``b``."""

    a: str
    b: str
    preferred: float
    ci: Interval | None
    p: float | None
    p_adjusted: float | None
    """For all pairs (Holm)."""
    contexts: int
    """Contexts in which both were compared with each other."""


@dataclass(frozen=True)
class SystemRanking:
    """The ranking of the systems, the strongest first."""

    systems: list[RankedByPairs]
    pairs: list[PairOfSystems]
    judges: list[JudgeReliability]
    answers: float
    contexts: int
    resamples: int
    notes: list[str]


@dataclass(frozen=True)
class _Rows:
    """What an annotator said about two systems, in all contexts together or in each [rows]."""

    first: Ints
    second: Ints
    judge: Ints
    incidence: Floats
    """[rows, systems] 1 for the first, -1 for the second."""
    judges: int
    anchor: Floats
    """[judges] share in the mean reliability that is 1."""


def rank_systems(
    comparisons: Comparisons,
    *,
    models: Collection[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Progress | None = None,
) -> SystemRanking:
    """Return the ranking of the systems whose replies were compared.

    Annotators whose name begins with ``judge``, and ``models``, are language models: they do not
    decide what a reliability of 1 is.
    """
    systems, system = _systems(comparisons)
    first, second = system[comparisons.first], system[comparisons.second]
    used = first != second
    if not used.any():
        raise DataError("no answer compares replies of two systems; there is nothing to rank")
    _check_connected(first[used], second[used], systems)
    names, is_model, judge = _judges(comparisons, models, used)
    won = np.where(first < second, comparisons.outcome, 1 - comparisons.outcome)[used]
    votes = comparisons.weight[used]
    low, high = np.minimum(first, second)[used], np.maximum(first, second)[used]
    context = np.unique(comparisons.context[comparisons.first[used]], return_inverse=True)[1]
    key = (judge * len(systems) + low) * len(systems) + high
    distinct, row = np.unique(key, return_inverse=True)
    contexts = int(context.max()) + 1
    shape = (contexts, len(distinct))
    wins = csr_array((votes * won, (context, row)), shape=shape)
    games = csr_array((votes, (context, row)), shape=shape)
    total = np.bincount(judge, votes, len(names)).astype(np.float64)
    rows = _rows(distinct, len(systems), len(names), np.where(is_model, 0.0, total), total)
    everything = np.ones((1, contexts))
    strength, reliability = fit(everything @ wins, everything @ games, rows, TOLERANCE)
    drawn = None
    if contexts > 1 and resamples:
        drawn = _draws(wins, games, rows, (strength, reliability), resamples, seed, on_progress)
    people = None
    if is_model.any() and not is_model.all():
        by_people = (~is_model[rows.judge]).astype(float)
        people = fit(
            (everything @ wins) * by_people, (everything @ games) * by_people, rows, TOLERANCE
        )[0][0]
        compared = ~is_model[judge]
        people[~_largest_part(first[used][compared], second[used][compared], len(systems))] = np.nan
    shared = np.zeros((len(systems), len(systems)), np.int64)
    for a, b in set(zip(low.tolist(), high.tolist(), strict=True)):
        shared[a, b] = shared[b, a] = len(np.unique(context[(low == a) & (high == b)]))
    order = np.argsort(-strength[0], kind="stable").tolist()
    pairs, group = _pairs(strength[0], drawn, order, systems, shared, contexts)
    played = np.zeros(len(systems))
    np.add.at(played, low, votes)
    np.add.at(played, high, votes)
    notes = _notes(names, is_model, total, contexts, int((~used).sum()))
    if people is not None and (apart := np.flatnonzero(np.isnan(people)).tolist()):
        notes.append(
            f"{abbreviated([systems[number] for number in apart])}: people's answers do not compare"
            " them with the others, so there is no rate by people"
        )
    return SystemRanking(
        _ranked(strength[0], drawn, people, order, systems, played, group),
        pairs,
        _reliabilities(rows, strength[0], reliability[0], drawn, names, is_model, wins, games),
        float(votes.sum()),
        contexts,
        0 if drawn is None else resamples,
        notes,
    )


def fit(wins: Floats, games: Floats, rows: _Rows, tolerance: float) -> tuple[Floats, Floats]:
    """Return strengths [draws, systems] and reliabilities [draws, judges] for wins of the first
    systems, and games, [draws, rows]."""
    draws, systems = len(wins), rows.incidence.shape[1]
    return _fit_from(
        wins, games, rows, np.zeros((draws, systems)), np.ones((draws, rows.judges)), tolerance
    )


def _fit_from(
    wins: Floats,
    games: Floats,
    rows: _Rows,
    strength: Floats,
    reliability: Floats,
    tolerance: float,
) -> tuple[Floats, Floats]:
    incidence, identity = rows.incidence, np.eye(rows.incidence.shape[1]) / PRIOR**2
    for _ in range(MAX_STEPS):
        before = strength, reliability
        own = reliability[:, rows.judge]
        apart = strength @ incidence.T
        expected = expit(own * apart)
        surplus = wins - games * expected
        gradient = (own * surplus) @ incidence - strength / PRIOR**2
        weight = own * own * games * expected * (1 - expected)
        information = (weight[:, :, np.newaxis] * incidence).transpose(0, 2, 1) @ incidence
        step = np.linalg.solve(information + identity, gradient[:, :, np.newaxis])[:, :, 0]
        strength = strength + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
        strength = strength - strength.mean(axis=1, keepdims=True)
        if rows.judges > 1:
            apart = strength @ incidence.T
            expected = expit(own * apart)
            pull = _by_judge(apart * (wins - games * expected), rows)
            pull -= (reliability - 1) / SPREAD**2
            mass = _by_judge(apart**2 * games * expected * (1 - expected), rows) + 1 / SPREAD**2
            reliability = reliability + np.clip(pull / mass, -LARGEST_STEP, LARGEST_STEP)
            factor = _best_factor(strength, reliability)
            strength, reliability = strength * factor, reliability / factor
        moved = max(
            float(np.abs(strength - before[0]).max()), float(np.abs(reliability - before[1]).max())
        )
        if moved < tolerance:
            break
    if rows.judges == 1:
        return strength, reliability
    better = np.maximum(reliability, 0.0)
    people = (reliability > 0) @ rows.anchor
    mean = np.divide(better @ rows.anchor, people, out=np.ones_like(people), where=people > 0)
    mean = np.where(mean > MIN_MEAN, mean, 1.0)[:, np.newaxis]
    return strength * mean, reliability / mean


def _best_factor(strength: Floats, reliability: Floats) -> Floats:
    """Return by what strengths are multiplied, and reliabilities divided, so that the priors like
    them best; answers are as probable with any factor.

    The root of c⁴ Σ s² / PRIOR² + (c Σ r - Σ r²) / SPREAD² by Newton's method.
    """
    fourth = (strength**2).sum(axis=1, keepdims=True) / PRIOR**2
    first = reliability.sum(axis=1, keepdims=True) / SPREAD**2
    constant = (reliability**2).sum(axis=1, keepdims=True) / SPREAD**2
    factor = np.ones_like(fourth)
    for _ in range(20):
        slope = 4 * fourth * factor**3 + first
        value = fourth * factor**4 + first * factor - constant
        step = np.divide(value, slope, out=np.zeros_like(value), where=slope > MIN_MEAN)
        factor = np.clip(factor - step, 0.5, 2.0)
    return np.asarray(factor)


def _by_judge(values: Floats, rows: _Rows) -> Floats:
    """Return the sums [draws, judges] of values [draws, rows]."""
    place = csr_array(
        (np.ones(len(rows.judge)), (np.arange(len(rows.judge)), rows.judge)),
        shape=(len(rows.judge), rows.judges),
    )
    return np.asarray(values @ place)


def _draws(
    wins: csr_array,
    games: csr_array,
    rows: _Rows,
    start: tuple[Floats, Floats],
    resamples: int,
    seed: int,
    on_progress: Progress | None,
) -> tuple[Floats, Floats]:
    """Return strengths and reliabilities from contexts drawn with replacement."""
    rng = np.random.default_rng(seed)
    contexts = wins.shape[0]
    size = max(1, min(resamples, CELLS // (rows.incidence.size or 1)))
    strengths, reliabilities = [], []
    for done in range(0, resamples, size):
        count = min(size, resamples - done)
        drawn = rng.multinomial(contexts, np.full(contexts, 1 / contexts), size=count).astype(float)
        found = _fit_from(
            np.asarray(drawn @ wins),
            np.asarray(drawn @ games),
            rows,
            np.repeat(start[0], count, axis=0),
            np.repeat(start[1], count, axis=0),
            ROUGH,
        )
        strengths.append(found[0])
        reliabilities.append(found[1])
        if on_progress is not None:
            on_progress(done + count, resamples)
    return np.concatenate(strengths), np.concatenate(reliabilities)


def _systems(comparisons: Comparisons) -> tuple[list[str], Ints]:
    """Return the systems with an answer, and the number of each candidate's system; -1 if none."""
    asked = np.zeros(len(comparisons.candidates), bool)
    asked[comparisons.first] = asked[comparisons.second] = True
    names: dict[str, int] = {}
    numbers = np.full(len(comparisons.candidates), -1, np.int64)
    for place in np.flatnonzero(asked).tolist():
        numbers[place] = names.setdefault(comparisons.candidates[place].system, len(names))
    return list(names), numbers


def _largest_part(first: Ints, second: Ints, systems: int) -> Bools:
    """Return which systems belong to the largest part that a chain of answers connects; of equally
    large ones that of the first system."""
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(systems, systems))
    part = connected_components(graph, directed=False)[1]
    return np.asarray(part == np.bincount(part).argmax())


def _check_connected(first: Ints, second: Ints, systems: Sequence[str]) -> None:
    graph = csr_array((np.ones(len(first)), (first, second)), shape=(len(systems),) * 2)
    count, part = connected_components(graph, directed=False)
    if count > 1:
        parts = [
            abbreviated([name for name, own in zip(systems, part, strict=True) if own == number])
            for number in range(count)
        ]
        raise DataError(
            f"no chain of answers connects {' with '.join(parts)}; a ranking needs comparisons"
            " between them"
        )


def _judges(
    comparisons: Comparisons, models: Collection[str], used: Bools
) -> tuple[list[str], Bools, Ints]:
    """Return the annotators of the answers that are used, those without a name as the last, which
    of them are models, and the number of each answer's annotator."""
    names = [*comparisons.annotators, UNNAMED_PEOPLE]
    known = np.array([name.startswith(MODEL) or name in models for name in names], bool)
    number = np.where(comparisons.annotator == UNNAMED, len(names) - 1, comparisons.annotator)[used]
    there, judge = np.unique(number, return_inverse=True)
    return [names[each] for each in there.tolist()], known[there], judge


def _rows(distinct: Ints, systems: int, judges: int, people: Floats, total: Floats) -> _Rows:
    first, second = distinct // systems % systems, distinct % systems
    incidence = np.zeros((len(distinct), systems))
    place = np.arange(len(distinct))
    incidence[place, first], incidence[place, second] = 1.0, -1.0
    weight = people if people.sum() > 0 else total
    judge = distinct // systems**2
    return _Rows(first, second, judge, incidence, judges, weight / weight.sum())


def _ends(values: Floats, confidence: float = CONFIDENCE) -> Interval:
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _ranked(
    strength: Floats,
    drawn: tuple[Floats, Floats] | None,
    people: Floats | None,
    order: Sequence[int],
    systems: Sequence[str],
    played: Floats,
    group: dict[int, str],
) -> list[RankedByPairs]:
    rate = expected_rates(strength)[0]
    by_people = np.full(len(systems), np.nan)
    if people is not None:
        there = np.flatnonzero(~np.isnan(people))
        by_people[there] = expected_rates(people[there])[0]
    ranks = rates = None
    if drawn is not None:
        ranks = (-drawn[0]).argsort(axis=1, kind="stable").argsort(axis=1) + 1
        rates = np.array([expected_rates(row)[0] for row in drawn[0]])
    found = []
    for place, number in enumerate(order, 1):
        rank_ci = None
        if ranks is not None:
            rank_ci = (
                int(np.quantile(ranks[:, number], (1 - CONFIDENCE) / 2, method="lower")),
                int(np.quantile(ranks[:, number], (1 + CONFIDENCE) / 2, method="higher")),
            )
        found.append(
            RankedByPairs(
                systems[number],
                place,
                rank_ci,
                float(strength[number]),
                float(rate[number]),
                None if rates is None else _ends(rates[:, number]),
                None if np.isnan(by_people[number]) else float(by_people[number]),
                float(played[number]),
                group.get(number, ""),
            )
        )
    return found


def _pairs(
    strength: Floats,
    drawn: tuple[Floats, Floats] | None,
    order: Sequence[int],
    systems: Sequence[str],
    shared: Ints,
    contexts: int,
) -> tuple[list[PairOfSystems], dict[int, str]]:
    """Return all pairs of systems, and letters by system."""
    couples = list(combinations(order, 2))
    p: list[float] = []
    ends: list[Interval | None] = []
    for a, b in couples:
        if drawn is None:
            ends.append(None)
            continue
        apart = float(strength[a] - strength[b])
        deviation = float((drawn[0][:, a] - drawn[0][:, b]).std(ddof=1))
        p.append(float(2 * stdtr(contexts - 1, -abs(apart) / deviation)) if deviation else 1.0)
        reach = float(stdtrit(contexts - 1, (1 + CONFIDENCE) / 2)) * deviation
        ends.append((float(expit(apart - reach)), float(expit(apart + reach))))
    adjusted = holm(p).tolist() if p else []
    matrix = np.full((len(systems), len(systems)), np.nan)
    pairs = []
    for place, (a, b) in enumerate(couples):
        corrected = adjusted[place] if adjusted else None
        if corrected is not None:
            matrix[a, b] = matrix[b, a] = corrected
        pairs.append(
            PairOfSystems(
                systems[a],
                systems[b],
                float(expit(strength[a] - strength[b])),
                ends[place],
                p[place] if p else None,
                corrected,
                int(shared[a, b]),
            )
        )
    if drawn is None:
        return pairs, {}
    return pairs, dict(zip(order, letters(order, matrix), strict=True))


def _reliabilities(
    rows: _Rows,
    strength: Floats,
    reliability: Floats,
    drawn: tuple[Floats, Floats] | None,
    names: Sequence[str],
    is_model: Bools,
    wins: csr_array,
    games: csr_array,
) -> list[JudgeReliability]:
    """Return the annotators with answers, the most reliable first."""
    played, won = games.sum(axis=0), wins.sum(axis=0)
    apart = rows.incidence @ strength
    right = np.where(apart > 0, won, np.where(apart < 0, played - won, played / 2))
    total = np.bincount(rows.judge, played, len(names))
    agreed = np.bincount(rows.judge, right, len(names))
    found = [
        JudgeReliability(
            name,
            bool(is_model[number]),
            float(total[number]),
            float(reliability[number]),
            None if drawn is None else _ends(drawn[1][:, number]),
            float(agreed[number] / total[number]),
        )
        for number, name in enumerate(names)
    ]
    return sorted(found, key=lambda each: -each.reliability)


def _notes(
    names: Sequence[str], is_model: Bools, total: Floats, contexts: int, same: int
) -> list[str]:
    notes = []
    if same:
        notes.append(f"{same:,} answers about two replies of one system say nothing about systems")
    if contexts < MIN_CONTEXTS:
        several = "1 context" if contexts == 1 else f"{contexts} contexts"
        why = "there are no intervals" if contexts == 1 else "intervals are too narrow"
        notes.append(f"answers about {several} only: {why}")
    if len(names) == 1:
        notes.append("all answers are of one annotator: nothing is known about agreement")
    if is_model.all():
        notes.append("all answers are of models: nothing is known about what people prefer")
    elif total[is_model].sum() > total[~is_model].sum():
        notes.append(
            f"{total[is_model].sum():,.0f} answers are of models and"
            f" {total[~is_model].sum():,.0f} of people: where both differ, see the rates by people"
        )
    return notes
