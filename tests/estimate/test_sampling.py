"""Random orders with known probabilities."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.estimation.sampling import (
    after_random_choice,
    arrival,
    inclusion_probabilities,
    permanent_numbers,
)

SIZES = st.lists(st.floats(0.2, 5.0), min_size=1, max_size=30).map(np.array)


@given(SIZES, st.floats(0, 1))
def test_probabilities_add_up_to_the_count(sizes: np.ndarray, share: float) -> None:
    count = round(share * len(sizes))
    chances = inclusion_probabilities(sizes, count)
    assert chances.sum() == pytest.approx(count, abs=1e-9)
    assert ((chances >= 0) & (chances <= 1)).all()
    # the larger, the more probable
    assert (np.diff(chances[np.argsort(sizes, kind="stable")]) >= -1e-12).all()


@given(SIZES, st.integers(0, 29))
def test_more_units_are_more_probable(sizes: np.ndarray, count: int) -> None:
    if count < len(sizes):
        fewer, more = (inclusion_probabilities(sizes, n) for n in (count, count + 1))
        assert (more > fewer).all()


def test_equal_sizes() -> None:
    assert inclusion_probabilities(np.full(8, 3.0), 2) == pytest.approx(np.full(8, 0.25))


def test_two_draws_from_three_units_by_hand() -> None:
    """Sizes 2, 1, 1. The large unit is missed if both small ones are drawn: 1/4 · 1/3 for each
    order, in all 1/6; so its probability is 5/6 = .8333, that of the others 7/12 = .5833. With
    x = exp(-τ) the formula is (1 - x²) + 2 (1 - x) = 2, so x = √2 - 1: .8284 and .5858."""
    x = np.sqrt(2) - 1
    chances = inclusion_probabilities(np.array([2.0, 1.0, 1.0]), 2)
    assert chances == pytest.approx([1 - x * x, 1 - x, 1 - x], abs=1e-12)
    assert chances == pytest.approx([5 / 6, 7 / 12, 7 / 12], rel=7e-3)


def exact(sizes: np.ndarray, count: int) -> np.ndarray:
    """Probabilities over all orders of drawing one after another."""
    found = np.zeros(len(sizes))
    for drawn in permutations(range(len(sizes)), count):
        chance, left = 1.0, sizes.sum()
        for unit in drawn:
            chance *= sizes[unit] / left
            left -= sizes[unit]
        found[list(drawn)] += chance
    return found


@pytest.mark.parametrize(("units", "count", "allowed"), [(5, 2, 0.06), (8, 4, 0.04), (9, 4, 0.04)])
def test_close_to_the_exact_probabilities(units: int, count: int, allowed: float) -> None:
    sizes = np.linspace(1, 3, units)
    formula = inclusion_probabilities(sizes, count)
    assert exact(sizes, count) == pytest.approx(formula, rel=allowed)


def test_the_order_draws_in_proportion_to_sizes() -> None:
    """Of 20,000 seeds, the share in which each of four units comes first, or among the first two,
    lies within four standard errors (.0141) of its probability."""
    sizes = np.array([1.0, 2.0, 3.0, 4.0])
    names = ["a", "b", "c", "d"]
    first, two = np.zeros(4), np.zeros(4)
    for seed in range(20_000):
        order = np.argsort(arrival(permanent_numbers(names, seed), sizes))
        first[order[0]] += 1
        two[order[:2]] += 1
    assert first / 20_000 == pytest.approx(sizes / 10, abs=0.0141)
    assert two / 20_000 == pytest.approx(exact(sizes, 2), abs=0.0141)


def test_permanent_numbers_depend_on_name_and_seed_alone() -> None:
    some = permanent_numbers(["x", "y"], 1)
    assert permanent_numbers(["z", "y", "x"], 1)[[2, 1]] == pytest.approx(some, abs=0)
    assert (permanent_numbers(["x", "y"], 2) != some).all()
    many = permanent_numbers(map(str, range(10_000)), 7)
    assert many.min() > 0 and many.max() < 1
    assert many.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / 10_000))


def test_after_a_random_choice() -> None:
    """Equal sizes: 3 of 10 before and 2 of the other 7 now are 5 of 10. Unequal sizes: those chosen
    before would have had a probability by their own sizes."""
    before = np.arange(10) < 3
    assert after_random_choice(np.ones(10), before, 2) == pytest.approx(np.full(10, 0.5))
    sizes = np.linspace(1, 3, 10)
    chances = after_random_choice(sizes, before, 2)
    later = inclusion_probabilities(sizes[3:], 2)
    assert chances[3:] == pytest.approx(0.3 + 0.7 * later)
    assert chances[0] < chances[3]


@pytest.mark.parametrize("count", [-1, 4])
def test_impossible_counts(count: int) -> None:
    with pytest.raises(ValueError, match="of 3 units"):
        inclusion_probabilities(np.ones(3), count)
