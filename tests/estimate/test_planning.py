"""Which replies are chosen to be rated next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import DataError
from rejoinder.estimation.planning import (
    Planned,
    Question,
    choose,
    missing_ratings,
    rated_probabilities,
    ratings_until,
    unit_sizes,
    units_of,
)
from rejoinder.items import Item

SYSTEMS = ["a", "b", "c"]


def replies(contexts: int, systems: Sequence[str] = SYSTEMS, **ratings: Any) -> list[Item]:
    """A reply of each system to each context; ``ratings`` by id, as in c0_a=3."""
    return [
        Item(f"c{n}_{system}", "r", system=system, context_id=f"c{n}", ratings=each)
        for n in range(contexts)
        for system in systems
        for each in [ratings.get(f"c{n}_{system}")]
    ]


def plan(
    items: list[Item],
    budget: int,
    question: Question = "ranking",
    *,
    systems: list[str] = SYSTEMS,
    ratings: int = 1,
    seed: int = 1,
    sizes: np.ndarray | None = None,
) -> Planned:
    units = units_of(items, question, systems)
    sizes = np.ones(len(units)) if sizes is None else sizes
    return choose(items, units, sizes, budget, ratings=ratings, seed=seed)


def ids(items: list[Item], planned: Planned) -> list[str]:
    return [items[number].id for number in planned.chosen]


def test_whole_contexts_are_chosen_for_a_ranking() -> None:
    items = replies(10)
    planned = plan(items, 11)  # three contexts of three replies; the fourth costs too much
    assert (len(planned.chosen), planned.cost, planned.asked, planned.units) == (9, 9, 3, 10)
    assert set(Counter(items[n].context_id for n in planned.chosen).values()) == {3}
    assert planned.probability == pytest.approx(np.full(30, 0.3))


def test_only_the_systems_in_question_are_asked_about() -> None:
    items = replies(10)
    planned = plan(items, 8, "difference", systems=["c", "a"])
    assert {items[n].system for n in planned.chosen} == {"a", "c"}
    asked = np.array([item.system != "b" for item in items])
    assert np.isnan(planned.probability[~asked]).all()
    assert planned.probability[asked] == pytest.approx(np.full(20, 0.4))


def test_means_take_single_replies_as_many_of_each_system() -> None:
    items = [*replies(30, ["a"]), *replies(10, ["b"])]
    planned = plan(items, 10, "mean", systems=["a", "b"])
    assert Counter(items[n].system for n in planned.chosen) == {"a": 5, "b": 5}
    assert planned.probability == pytest.approx([*[5 / 30] * 30, *[5 / 10] * 10])


def test_contexts_with_one_reply_say_nothing_about_differences() -> None:
    items = [*replies(5, ["a", "b"]), Item("alone", "r", system="a", context_id="x")]
    planned = plan(items, 10, "difference", systems=["a", "b"])
    assert len(planned.chosen) == 10 and np.isnan(planned.probability[-1])


def test_systems_without_common_contexts_are_still_asked_about() -> None:
    items = [*replies(6, ["a"]), Item("y", "r", system="b", context_id="y")]
    assert len(plan(items, 7, "difference", systems=["a", "b"]).chosen) == 7


def test_kinds_of_contexts_take_turns_by_their_number() -> None:
    """20 contexts answered by all three and 10 by two of them: in any beginning, two of three."""
    items = replies(20) + [
        Item(f"d{n}_{s}", "r", system=s, context_id=f"d{n}") for n in range(10) for s in ("a", "b")
    ]
    for budget in (24, 40, 56):
        contexts = {items[n].context_id: None for n in plan(items, budget).chosen}
        large = sum(name.startswith("c") for name in contexts if name)
        assert abs(large - 2 / 3 * len(contexts)) < 1.5


@given(st.integers(1, 12), st.integers(0, 60), st.integers(0, 20), st.integers(0, 2**62))
def test_a_larger_budget_only_adds_replies(
    contexts: int, budget: int, more: int, seed: int
) -> None:
    items = replies(contexts)
    sizes = 1 + np.arange(contexts) % 3
    small = plan(items, max(budget, 3), seed=seed, sizes=sizes)
    large = plan(items, max(budget, 3) + more, seed=seed, sizes=sizes)
    assert large.chosen[: len(small.chosen)] == small.chosen
    assert (large.probability >= small.probability - 1e-12).all()
    # probabilities of contexts add up to the number of contexts
    assert large.probability[::3].sum() == pytest.approx(large.asked)


def test_a_plan_does_not_depend_on_the_order_of_the_items() -> None:
    items = replies(12)
    mixed = [items[n] for n in np.random.default_rng(3).permutation(len(items))]
    assert set(ids(items, plan(items, 9))) == set(ids(mixed, plan(mixed, 9)))


def test_rated_replies_are_not_asked_again_and_the_plan_goes_on() -> None:
    items = replies(10)
    first = plan(items, 9)
    rated = [
        Item(each.id, "r", system=each.system, context_id=each.context_id, ratings={"ann": 3})
        if n in first.chosen
        else each
        for n, each in enumerate(items)
    ]
    second = plan(rated, 6)
    together = plan(items, 15)
    assert [*first.chosen, *second.chosen] == together.chosen
    assert (second.asked, second.elsewhere) == (5, 0)
    assert second.probability == pytest.approx(together.probability)


def test_missing_replies_of_a_begun_context_come_first_in_its_place() -> None:
    items = replies(10)
    order = ids(items, plan(items, 30))
    started = replies(10, SYSTEMS, **{order[0]: 3.0})
    assert ids(started, plan(started, 2)) == order[1:3]


def test_more_ratings_of_each_reply() -> None:
    items = replies(4, c0_a=[3, 4], c0_b=[3.0], c0_c=2.0)
    planned = plan(items, 3 * 2 * 4, ratings=2)
    assert planned.cost == 1 + 1 + 3 * 3 * 2  # two replies lack one rating, nine lack two
    assert "c0_a" not in ids(items, planned)
    assert {"c0_b", "c0_c"} <= set(ids(items, planned))


def until(
    items: list[Item], count: int, question: Question, systems: list[str], ratings: int = 1
) -> int:
    units = units_of(items, question, systems)
    return ratings_until(
        items,
        units,
        np.ones(len(units)),
        count,
        of_each=question == "mean",
        ratings=ratings,
        seed=1,
    )


def test_the_budget_that_gets_to_so_many_units() -> None:
    """Three systems, two of whose ratings each reply is to have: a context costs 6. One is begun,
    at the third place of the order, with one rating of each reply: passing it costs 3."""
    order = ids(replies(10), plan(replies(10), 30))
    begun = {name: [3.0] for name in order[6:9]}
    items = replies(10, SYSTEMS, **begun)
    costs = [until(items, count, "ranking", SYSTEMS, 2) for count in (1, 2, 3, 4, 10)]
    # one context is begun; 2 and 3 take the first two places; 4 passes the begun one
    assert costs == [0, 6, 12, 12 + 3 + 6, 9 * 6 + 3]
    for count, cost in zip((2, 3, 4, 10), costs[1:], strict=True):
        planned = plan(items, cost, ratings=2)
        assert (planned.asked, planned.cost) == (count, cost)
    units = units_of(items, "ranking", SYSTEMS)
    assert missing_ratings(items, units, 2) == 57
    assert missing_ratings(items, units, 1) == 27
    # means: of a, which has 3 replies, all of them, and 5 of b
    uneven = [*replies(3, ["a"]), *replies(30, ["b"])]
    cost = until(uneven, 5, "mean", ["a", "b"])
    systems = Counter(uneven[n].system for n in plan(uneven, cost, "mean").chosen)
    assert systems == {"a": 3, "b": 5} and cost == 8


def test_empty_ratings_are_none() -> None:
    items = replies(4, ["a"], c0_a={}, c1_a=[], c2_a=0.0)
    assert [item.is_rated for item in items] == [False, False, True, False]
    planned = plan(items, 9, "mean", systems=["a"])
    assert {"c0_a", "c1_a", "c3_a"} == set(ids(items, planned))
    units = units_of(items, "mean", ["a"])
    # one of four is rated
    assert rated_probabilities(items, units, np.ones(4)) == pytest.approx([0.25] * 4)


def test_ratings_elsewhere_count_as_a_random_choice() -> None:
    items = replies(10)
    last = ids(items, plan(items, 30))[-3:]
    rated = replies(10, SYSTEMS, **dict.fromkeys(last, 4.0))
    planned = plan(rated, 6)
    assert (planned.elsewhere, planned.asked) == (1, 3)
    assert planned.probability == pytest.approx(np.full(30, 0.3))  # (1 rated + 2 new) of 10


def test_a_budget_below_one_context() -> None:
    with pytest.raises(DataError, match="budget of 2 does not suffice for one context"):
        plan(replies(4), 2)
    with pytest.raises(
        DataError, match="budget of 2 does not suffice for one reply, which needs 3 ra"
    ):
        plan(replies(4), 2, "mean", ratings=3)


def test_everything_is_rated() -> None:
    items = replies(2, ["a"], c0_a=1.0, c1_a=2.0)
    planned = plan(items, 5, "mean", systems=["a"])
    assert (planned.chosen, planned.asked) == ([], 2)
    assert planned.probability == pytest.approx([1, 1])


@pytest.mark.parametrize("uneven", [0.0, 0.8])
def test_estimates_from_a_plan_are_unbiased(uneven: float) -> None:
    """Ratings that grow with the size measure: the plain mean of what an uneven plan chooses is too
    high, the one weighted by 1 / probability is right, up to four standard errors of 1,500 plans
    and the error of the formula for the probabilities (below 1 %)."""
    items = replies(40, ["a", "b"])
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(1, 80))
    units = units_of(items, "difference", ["a", "b"])
    sizes = unit_sizes(units, rows, uneven)
    spread = np.abs(rows[0, ::2] - rows[0, 1::2])
    ratings = 3 + spread + rng.normal(size=40)  # of the 40 contexts
    plain, weighted = [], []
    for seed in range(1500):
        planned = choose(items, units, sizes, 24, ratings=1, seed=seed)
        contexts = np.unique(np.array(planned.chosen) // 2)
        assert len(contexts) == 12
        chance = planned.probability[2 * contexts]
        plain.append(ratings[contexts].mean())
        weighted.append((ratings[contexts] / chance).sum() / 40)
    error = np.std(weighted) / np.sqrt(1500)
    assert np.mean(weighted) == pytest.approx(ratings.mean(), abs=4 * error + 0.01)
    if uneven:
        assert np.mean(plain) > ratings.mean() + 0.1
    else:
        assert np.mean(plain) == pytest.approx(np.mean(weighted))


def test_sizes_by_hand() -> None:
    """Scores of two systems in three contexts: differences 0, 2 and 4, so deviations 0, 1, 2 with
    mean 1; with half of the choice by them sizes are .5, 1 and 1.5 (standardised alike)."""
    items = replies(3, ["a", "b"])
    units = units_of(items, "difference", ["a", "b"])
    rows = np.array([[5.0, 5, 6, 4, 7, 3]])
    assert unit_sizes(units, rows, 0.5) == pytest.approx([0.5, 1.0, 1.5])
    unscored = np.array([[5.0, 5, np.nan, 4, 7, 3]])
    assert unit_sizes(units, unscored, 0.5) == pytest.approx([0.5, 1.0, 1.5])
    assert unit_sizes(units, rows, 0.0) == pytest.approx([1, 1, 1])
    assert unit_sizes(units, np.zeros((0, 6)), 0.5) == pytest.approx([1, 1, 1])
    assert unit_sizes(units, np.full((1, 6), 2.0), 0.5) == pytest.approx([1, 1, 1])


def test_sizes_of_single_replies_are_by_how_far_metrics_disagree() -> None:
    """Two metrics with the standard scores ±1, and 0 0 0 against 1 1 -2 (over √2): deviations of
    the two are half of the differences."""
    items = replies(4, ["a"])
    units = units_of(items, "mean", ["a"])
    rows = np.array([[1.0, 1, 3, 3], [20.0, 20, 20, 40]])
    first = np.array([-1.0, -1, 1, 1])
    second = np.array([-1.0, -1, -1, 3]) / np.sqrt(3)
    spread = np.abs(first - second) / 2
    assert unit_sizes(units, rows, 0.4) == pytest.approx(0.6 + 0.4 * spread / spread.mean())
