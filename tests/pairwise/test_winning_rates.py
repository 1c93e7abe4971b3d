"""Winning rates by hand, and what must hold for any answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duels import candidates, compared
from rejoinder.pairwise.winning_rates import reference_weight, winning_rates

NAMES = "vwxyz"
duels = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.sampled_from(["a", "b", "tie"]),
        st.sampled_from(["ann", "bob", None]),
    ).filter(lambda duel: duel[0] != duel[1]),
    max_size=30,
)


def test_by_hand() -> None:
    # x beats y twice (two people), ties z: 2.5 of 3. y: 0 of 2. z: half of 1. w: never compared
    found = winning_rates(
        compared(
            candidates("xyzw"),
            [("x", "y", "a", "ann"), ("y", "x", "b", "bob"), ("x", "z", "tie", "ann")],
        )
    )
    assert found.rate[:3].tolist() == [2.5 / 3, 0, 0.5]
    assert found.votes.tolist() == [3, 2, 1, 0]
    assert math.isnan(found.rate[3])
    assert math.isnan(found.error[3])
    # y with two wins and two losses more: p = 2/6, sqrt(1/3 * 2/3 / 6) = sqrt(1/27)
    assert found.error[1] == pytest.approx(math.sqrt(1 / 27))


def test_complete_comparisons_of_one_judge_are_the_papers_rates() -> None:
    # each beats all that stand after it: 3/3, 2/3, 1/3, 0/3
    order = "abcd"
    found = winning_rates(
        compared(
            candidates(order),
            [(a, b, "a", "ann") for i, a in enumerate(order) for b in order[i + 1 :]],
        )
    )
    assert found.rate == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [reference_weight(rate) for rate in found.rate] == pytest.approx([1, 1 / 3, -1 / 3, -1])


@given(duels)
def test_wins_and_losses_balance(answers) -> None:
    found = winning_rates(compared(candidates(NAMES), answers))
    known = found.votes > 0
    assert np.all((found.rate[known] >= 0) & (found.rate[known] <= 1))
    # every vote is won by somebody and lost by somebody
    wins = (found.rate * found.votes)[known].sum()
    assert wins == pytest.approx(found.votes.sum() / 2)
    assert np.all(found.error[known] > 0)


@given(duels)
def test_rates_do_not_depend_on_the_order_of_the_pair(answers) -> None:
    turn = {"a": "b", "b": "a", "tie": "tie"}
    turned = [(b, a, turn[winner], who) for a, b, winner, who in answers]
    one, other = (winning_rates(compared(candidates(NAMES), d)) for d in (answers, turned))
    assert np.allclose(one.rate, other.rate, equal_nan=True)
