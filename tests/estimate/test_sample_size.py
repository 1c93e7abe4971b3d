"""How many ratings an answer needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.estimation.sample_size import Columns, Dialogues, Needed, Spread, Study, spread_of

NAN = math.nan


def study(units: int = 10_000, r: float = 0.0, sd: float = 1.0, **settings: object) -> Study:
    return Study(units, 2.0, Spread(sd, r, 0), **settings)  # type: ignore[arg-type]


def test_width_by_hand() -> None:
    """n = 25, s = 1: 2 · t(.975; 24) / 5 = 2 · 2.0639 / 5 = .8256. With r = .6 of 100 units the
    variance is .64 / 25 + .36 / 100 = .0292; of just these units .64 (1/25 - 1/100) = .0192."""
    assert study().width(25) == pytest.approx(0.8256, abs=1e-4)
    assert study(100, 0.6).variance(25) == pytest.approx(0.0292)
    assert study(100, 0.6, target="replies").variance(25) == pytest.approx(0.0192)
    assert study(100, 0.6, target="replies").width(100) == 0
    assert study().width(1) == math.inf


def test_power_as_published_for_the_paired_t_test() -> None:
    """Cohen (1988) and G*Power: an effect of .5 deviations at the 5 % level, two-sided, with a
    power of .80 takes 34 pairs, with .90 and .95 it takes 44 and 54."""
    for power, pairs in ((0.80, 34), (0.90, 44), (0.95, 54)):
        needed = study().needed(lambda n: study().power(n, 0.5) >= power, lambda n: 2 * n)  # noqa: B023
        assert needed == Needed(pairs, 2 * pairs, 2 * pairs)
    assert study().power(34, -0.5) == study().power(34, 0.5)
    assert study().power(30, 0) == pytest.approx(0.05)
    assert study().power(1, 3) == 0
    assert study().power(9000, 5) == 1


def test_what_is_needed_counts_what_is_rated() -> None:
    enough = study()
    needed = enough.needed(lambda n: enough.width(n) <= 0.8256 + 1e-4, lambda n: 2 * (n - 10))
    assert needed == Needed(25, 50, 30)
    none = Needed(None, None, None)
    assert study(20).needed(lambda n: study(20).width(n) <= 0.1, lambda n: n) == none
    assert study(1).needed(lambda n: True, lambda n: n) == none


@given(st.integers(2, 2000), st.floats(0, 0.95), st.integers(0, 500))
def test_curves_fall(units: int, r: float, rated: int) -> None:
    curve = study(units, r).curve(min(rated, units), 0.3)
    assert curve[-1].units == units
    widths = [point.width for point in curve]
    assert widths == sorted(widths, reverse=True)
    powers = [point.power for point in curve if point.power is not None]
    assert powers == pytest.approx(sorted(powers), abs=1e-9)
    assert all(p.anytime_width is None or p.anytime_width > p.width for p in curve)


def test_a_better_metric_needs_fewer_ratings() -> None:
    def units(r: float) -> int:
        found = study(100_000, r)
        return found.needed(lambda n: found.width(n) <= 0.2, lambda n: n).units or 0

    # nearly in proportion to 1 - r²
    assert units(0.6) / units(0.0) == pytest.approx(0.64, abs=0.01)


def columns(rating: list[float], score: list[float], systems: int = 2) -> Columns:
    system = np.arange(len(rating)) % systems
    return Columns(system, np.array(rating, float), np.array(score, float))


def test_spread_of_differences_by_hand() -> None:
    """12 contexts of two systems, whose differences are six times 1 and six times 3: mean 2,
    deviation √(12 · 1 / 11) = 1.0445. The scores' differences order them perfectly: r = 1."""
    rating = [value for n in range(12) for value in (4.0 + 2 * (n % 2), 3.0)]
    score = [value for n in range(12) for value in (0.5 * (n % 2), 0.0)]
    units = [[2 * n, 2 * n + 1] for n in range(12)]
    spread = spread_of(units, columns(rating, score), pairs=True)
    assert spread is not None and spread.known_from == 12
    assert (spread.sd, spread.correlation) == pytest.approx((math.sqrt(12 / 11), 1.0))
    # scores the wrong way round are as good as none: nobody should plan with them
    reversed_scores = columns(rating, [-each for each in score])
    assert spread_of(units, reversed_scores, pairs=True) == Spread(spread.sd, 0.0, 12)


def test_spread_of_replies_leaves_out_the_means_of_systems() -> None:
    """Ratings 1, 2, 1, 2, … of one system and 4, 5, 4, 5, … of the other: deviation .5 about each
    mean, √(20 · .25 / 18) = .5270."""
    rating = [value for n in range(10) for value in (1.0 + n % 2, 4.0 + n % 2)]
    spread = spread_of([[n] for n in range(20)], columns(rating, [0.0] * 20), pairs=False)
    assert spread is not None and spread.sd == pytest.approx(math.sqrt(5 / 18))
    assert (spread.correlation, spread.known_from) == (0.0, 20)


def test_too_little_to_know_the_spread() -> None:
    units = [[2 * n, 2 * n + 1] for n in range(12)]
    nothing = columns([NAN] * 24, [0.0] * 24)
    assert spread_of(units, nothing, pairs=True) is None
    equal = columns([3.0] * 24, [0.0] * 24)
    assert spread_of(units, equal, pairs=True) is None
    few = columns([1.0, 2, 2, 1, 3, 1] + [NAN] * 18, [0.0] * 24)
    assert spread_of(units, few, pairs=True) is None
    one_system = columns([value for n in range(12) for value in (n % 3, NAN)], [0.0] * 24)
    assert spread_of(units, one_system, pairs=True) is None


def test_useless_scores_do_not_look_useful_with_few_ratings() -> None:
    """The corrected squared correlation of random scores is .04 or less on average, of 15 units."""
    rng = np.random.default_rng(4)
    found = []
    for _ in range(300):
        spread = spread_of(
            [[n] for n in range(15)],
            columns(rng.normal(size=15).tolist(), rng.normal(size=15).tolist(), 1),
            pairs=False,
        )
        assert spread is not None
        found.append(spread.correlation**2)
    assert np.mean(found) < 0.04


def test_dialogues_among_rated_units_by_hand() -> None:
    """Dialogues of 4, 2 and 2 units, none rated: half of them are of (1 - 1/2⁴) + 2 (1 - 1/2²)
    dialogues, with (4 · 3 + 2 + 2) / 4 / 4 = 1 other unit of it each.
    With the first dialogue rated, 4 units are that one, with 3 others each; 6 units are 1 + 2 · 3/4
    dialogues, with (12 + 2 · 2 / 4) / 6 others each. All units: 3 dialogues, 16 / 8 others."""
    none = Dialogues(np.array([4, 2, 2]), np.array([0, 0, 0]))
    assert none.among(4) == pytest.approx((15 / 16 + 3 / 2, 1))
    begun = Dialogues(np.array([4, 2, 2]), np.array([4, 0, 0]))
    assert begun.among(4) == pytest.approx((1, 3))
    assert begun.among(6) == pytest.approx((2.5, 13 / 6))
    assert none.among(8) == begun.among(8) == pytest.approx((3, 2))
    # of two systems with the same dialogues each has half of them
    both = Dialogues(np.array([4, 2, 2] * 2), np.zeros(6, int), 2)
    assert both.among(4) == pytest.approx(none.among(4))
    # dialogues of one unit change nothing
    single = Dialogues(np.ones(50, int), np.repeat([1, 0], 25), 1)
    for count in (5, 25, 40):
        assert single.among(count) == pytest.approx((count, 0))


def test_width_with_dialogues_by_hand() -> None:
    """6 dialogues of 15 units, all rated, correlation .5 within: 1 + .5 · 14 = 8 times the variance
    1 / 90, and Student's t with 5 degrees of freedom: 2 · 2.5706 · √(8 / 90) = 1.5328; as if units
    were independent it would be 2 · 1.9870 / √90 = .4189."""
    spread = Spread(1.0, 0.0, 90, 0.5)
    dialogues = Dialogues(np.full(6, 15), np.full(6, 15))
    assert Study(90, 2.0, spread, dialogues=dialogues).width(90) == pytest.approx(1.5328, abs=1e-4)
    assert Study(90, 2.0, spread).width(90) == pytest.approx(0.4189, abs=1e-4)
    # of just these replies those that are chosen one by one are independent
    these = Study(
        180, 2.0, spread, "replies", dialogues=Dialogues(np.full(12, 15), np.zeros(12, int))
    )
    assert these.variance(90) == pytest.approx(1 / 90 - 1 / 180)


def test_correlation_within_dialogues_by_hand() -> None:
    """Differences 1, 3 in each of three dialogues, and 5, 7 in each of three others: means 2 and 6
    about 4. Between, 6 · 2 · 2² / 5 = 9.6, within, 12 · 1 / 6 = 2: 7.6 / (9.6 + 2) = .6552."""
    differences = [1.0, 3] * 3 + [5.0, 7] * 3
    rating = [value for each in differences for value in (each, 0.0)]
    units = [[2 * n, 2 * n + 1] for n in range(12)]
    dialogue = np.repeat(np.arange(6), 2)
    spread = spread_of(units, columns(rating, [0.0] * 24), dialogue, pairs=True)
    assert spread is not None and spread.within_dialogues == pytest.approx(7.6 / 11.6)
    # scores that say all that dialogues have in common leave less than nothing of it
    score = [value for n in range(12) for value in (2.0 if n < 6 else 6.0, 0.0)]
    spread = spread_of(units, columns(rating, score), dialogue, pairs=True)
    assert spread is not None and spread.within_dialogues == 0
    alone = spread_of(units, columns(rating, [0.0] * 24), np.arange(12), pairs=True)
    assert alone is not None and alone.within_dialogues == 0
