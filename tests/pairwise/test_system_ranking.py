"""Rankings of systems from answers of several annotators: by hand, by simulation, bad input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from duels import Duel, compared
from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.ranking import compare_people
from rejoinder.pairwise import system_ranking
from rejoinder.pairwise.bradley_terry import PRIOR, solve
from rejoinder.pairwise.system_ranking import SystemRanking, rank_systems


def replies(systems: Sequence[str], contexts: int) -> list[Item]:
    return [
        Item(f"{c}{s}", "reply", system=s, context_id=str(c))
        for c in range(contexts)
        for s in systems
    ]


def ranked(
    duels: Sequence[Duel], systems: Sequence[str], contexts: int, **settings: object
) -> SystemRanking:
    return rank_systems(compared(replies(systems, contexts), duels), **settings)  # type: ignore[arg-type]


def votes(who: str, a: str, b: str, won: int, lost: int, first: int = 0) -> list[Duel]:
    """``who`` prefers a in ``won`` contexts, then b in ``lost``."""
    return [
        (f"{c}{a}", f"{c}{b}", "a" if c - first < won else "b", who)
        for c in range(first, first + won + lost)
    ]


def simulated(
    strength: Mapping[str, float],
    reliability: Mapping[str, float],
    contexts: int,
    rng: np.random.Generator,
) -> list[Duel]:
    """Every annotator compares two random systems in every context."""
    names = list(strength)
    duels: list[Duel] = []
    for c in range(contexts):
        for who, r in reliability.items():
            a, b = rng.choice(names, 2, replace=False)
            p = 1 / (1 + math.exp(-r * (strength[a] - strength[b])))
            duels.append((f"{c}{a}", f"{c}{b}", "a" if rng.random() < p else "b", who))
    return duels


def test_one_annotator_is_bradley_terry() -> None:
    duels = [
        *votes("ann", "x", "y", 7, 3),
        *votes("ann", "y", "z", 6, 2, first=10),
        *votes("ann", "x", "z", 4, 2, first=20),
    ]
    found = ranked(duels, "xyz", 30, resamples=0)
    strength = solve(np.array([[0.0, 7, 4], [3, 0, 6], [2, 2, 0]]))[0]
    strength -= strength.mean()
    assert [each.system for each in found.systems] == ["x", "y", "z"]
    assert [each.strength for each in found.systems] == pytest.approx(strength.tolist(), abs=1e-7)
    (only,) = found.judges
    assert (only.reliability, only.answers) == (1.0, 24)
    # x won 7 + 4, y 6 of 8 against z: the better one won 17 of 24
    assert only.agrees == pytest.approx(17 / 24)
    assert "one annotator: nothing is known about agreement" in " ".join(found.notes)
    assert found.systems[0].rank_ci is None and found.systems[0].group == ""


def test_two_annotators_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without priors, ann (30 of 40 for x) and bob (24 of 40): r_k (s_x - s_y) is the log odds of
    each, log 3 and log 1.5. Their mean reliability is 1, so s_x - s_y is the mean of both."""
    monkeypatch.setattr(system_ranking, "PRIOR", 1e3)
    monkeypatch.setattr(system_ranking, "SPREAD", 1e3)
    duels = [*votes("ann", "x", "y", 30, 10), *votes("bob", "x", "y", 24, 16, first=40)]
    found = ranked(duels, "xy", 80, resamples=0)
    mean = (math.log(3) + math.log(1.5)) / 2
    assert found.pairs[0].preferred == pytest.approx(1 / (1 + math.exp(-mean)), abs=1e-5)
    assert [each.reliability for each in found.judges] == pytest.approx(
        [math.log(3) / mean, math.log(1.5) / mean], abs=1e-4
    )


def test_it_is_the_maximum_a_posteriori() -> None:
    """No other strengths and reliabilities have a higher posterior density, up to the common
    factor by which reliabilities are brought to a mean of 1."""
    rng = np.random.default_rng(2)
    strength = {"x": 0.9, "y": 0.0, "z": -0.9}
    duels = simulated(strength, {"ann": 1.5, "bob": 0.8, "eve": -0.5}, 60, rng)
    found = ranked(duels, "xyz", 60, resamples=0)
    s = {each.system: each.strength for each in found.systems}
    r = {each.name: each.reliability for each in found.judges}

    def density(s: Mapping[str, float], r: Mapping[str, float]) -> float:
        total = 0.0
        for a, b, winner, who in duels:  # type: ignore[misc]
            sign = 1 if winner == "a" else -1
            total -= math.log1p(math.exp(-sign * r[who or ""] * (s[a[-1]] - s[b[-1]])))
        total -= sum(value**2 for value in s.values()) / (2 * PRIOR**2)
        return total - sum((value - 1) ** 2 for value in r.values()) / 2

    # the factor of the maximum
    factors = np.linspace(0.3, 3, 2701)
    best = max(
        factors,
        key=lambda c: density({k: v * c for k, v in s.items()}, {k: v / c for k, v in r.items()}),
    )
    s, r = {k: v * best for k, v in s.items()}, {k: v / best for k, v in r.items()}
    highest = density(s, r)
    for name in s:
        for step in (-0.02, 0.02):
            assert density({**s, name: s[name] + step}, r) < highest + 1e-6
    for name in r:
        for step in (-0.02, 0.02):
            assert density(s, {**r, name: r[name] + step}) < highest + 1e-6


def test_answers_at_random_do_not_count_and_reversed_ones_are_known() -> None:
    """Two careful people, five times as many answers at random: counted alike, they would bring
    the rates near to 1/2."""
    rng = np.random.default_rng(5)
    strength = {"x": 1.0, "y": 0.0, "z": -1.0}
    careful = {"ann": 1.2, "bob": 0.8}
    random = {f"judge-{n}": 0.0 for n in range(10)}
    duels = simulated(strength, {**careful, **random, "eve": -1.0}, 150, rng)
    found = ranked(duels, "xyz", 150, resamples=200)
    reliability = {each.name: each for each in found.judges}
    assert [each.system for each in found.systems] == ["x", "y", "z"]
    assert all(abs(reliability[name].reliability) < 0.45 for name in random)
    assert reliability["eve"].reliability < -0.5
    ends = reliability["eve"].ci
    assert ends is not None and ends[1] < 0
    assert reliability["ann"].reliability > 0.8
    # x is preferred to z with odds of e² by the average person, here with a mean of 1.0
    pair = next(each for each in found.pairs if (each.a, each.b) == ("x", "z"))
    assert 0.8 < pair.preferred < 0.95
    assert "1,500 answers are of models and 450 of people" in " ".join(found.notes)
    assert all(each.rate_by_people is not None for each in found.systems)


def test_rank_intervals_hold_the_rank_and_equal_systems_share_a_letter() -> None:
    """60 studies with two equal systems between a better and a worse one: the intervals of the
    outer two are their ranks in nearly all, those of the equal ones hold 2 and 3."""
    rng = np.random.default_rng(8)
    strength = {"best": 1.2, "one": 0.0, "two": 0.0, "worst": -1.2}
    apart, held, studies = 0, 0, 60
    for study in range(studies):
        duels = simulated(strength, {"ann": 1.0, "bob": 0.7, "judge-m": 0.5}, 120, rng)
        found = ranked(duels, list(strength), 120, resamples=200, seed=study)
        row = {each.system: each for each in found.systems}
        apart += not set(row["one"].group) & set(row["two"].group)
        ends = [row[name].rank_ci for name in strength]
        held += all(
            each is not None and each[0] <= rank <= each[1]
            for each, ranks in zip(ends, ((1,), (2, 3), (2, 3), (4,)), strict=True)
            for rank in ranks
        )
        assert not set(row["best"].group) & set(row["worst"].group)
    # 5 % of the studies, adjusted for 6 pairs: at most 7 of 60 with a probability of .99
    assert apart <= 7
    assert held >= 50


def test_agrees_with_the_letters_of_compare() -> None:
    """Answers that follow the ratings of the same replies lead to the same letters."""
    rng = np.random.default_rng(1)
    contexts, means = 120, {"x": 4.0, "y": 3.0, "z": 3.0, "w": 2.0}
    items, duels = [], []
    for c in range(contexts):
        value = {s: float(np.clip(np.rint(m + rng.normal()), 1, 5)) for s, m in means.items()}
        items += [
            Item(f"{c}{s}", "r", system=s, context_id=str(c), ratings=v) for s, v in value.items()
        ]
        for who in ("ann", "bob"):
            a, b = rng.choice(list(means), 2, replace=False)
            winner = "tie" if value[a] == value[b] else "a" if value[a] > value[b] else "b"
            duels.append((f"{c}{a}", f"{c}{b}", winner, who))
    by_pairs = rank_systems(compared(items, duels), resamples=1000)
    by_ratings = compare_people(items, resamples=1000)[0][0]
    letters = {row.system: row.group for row in by_ratings.systems}
    assert {row.system: row.group for row in by_pairs.systems} == letters
    assert letters["x"] == "a" and letters["y"] == letters["z"] == "b" and letters["w"] == "c"


def test_nothing_to_rank() -> None:
    same = [Item(f"{n}", "r", system="s", context_id="c") for n in range(2)]
    with pytest.raises(DataError, match="no answer compares replies of two systems"):
        rank_systems(compared(same, [("0", "1", "a", "ann")]))
    with pytest.raises(DataError, match="no chain of answers connects x, y with z, w"):
        ranked([*votes("ann", "x", "y", 2, 1), *votes("ann", "z", "w", 2, 1)], "xyzw", 3)


def test_one_context_has_no_intervals() -> None:
    found = ranked(votes("ann", "x", "y", 1, 0), "xy", 1)
    assert found.systems[0].rank_ci is None and found.pairs[0].p is None
    assert "1 context only: there are no intervals" in " ".join(found.notes)


def test_systems_that_people_never_compared_have_no_rate_by_people() -> None:
    """People compare x and y alone, and prefer x in 6 of 8 contexts; what they would say of z,
    which only the model compares, is unknown, and does not dilute the rate of x against y."""
    duels = [*votes("ann", "x", "y", 6, 2), *votes("judge-1", "y", "z", 4, 4)]
    found = ranked(duels, "xyz", 8, resamples=0)
    rates = {each.system: each.rate_by_people for each in found.systems}
    assert rates["z"] is None
    assert rates["x"] is not None and rates["y"] is not None
    assert rates["x"] + rates["y"] == pytest.approx(1)
    assert 0.6 < rates["x"] <= 0.75
    assert "z: people's answers do not compare them" in "\n".join(found.notes)
    chained = ranked([*duels, *votes("bob", "y", "z", 2, 2)], "xyz", 8, resamples=0)
    assert all(each.rate_by_people is not None for each in chained.systems)
    assert "no rate by people" not in "\n".join(chained.notes)
