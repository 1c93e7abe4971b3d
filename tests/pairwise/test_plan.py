"""Planned pairs: the most telling first, none twice, connected soon, by hand and at large."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from duels import candidates, compared
from rejoinder.pairwise.answers import Contest
from rejoinder.pairwise.bradley_terry import PRIOR, expected_rates, solve
from rejoinder.pairwise.plan import assign_questions, next_pairs, plan_questions, unjudged_pairs

NAMES = "abcdefgh"


def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def table(size: int, pairs) -> np.ndarray:
    wins = np.zeros((size, size))
    for i, j in pairs:
        wins[i, j] += 1
    return wins


def test_first_every_reply_is_paired_once_and_all_are_connected_soon() -> None:
    pairs = [(i, j) for _, i, j in islice(next_pairs(np.zeros((16, 16)), rng()), 15)]
    assert sorted(np.array(pairs[:8]).ravel()) == list(range(16))
    parts, _ = connected_components(table(16, pairs), directed=False)
    assert parts == 1  # with 15 pairs, the fewest that can


def test_then_winners_meet_winners() -> None:
    # 0 beat 1, 2 beat 3, 4 beat 5, 6 beat 7
    wins = table(8, [(0, 1), (2, 3), (4, 5), (6, 7)])
    for _, i, j in islice(next_pairs(wins, rng()), 4):
        assert i % 2 == j % 2


def test_the_first_gain_by_hand() -> None:
    # nothing known of two: strengths 0, s = 9 I, w = 1/4, a rate changes with its strength by 1/4
    # (one opponent), D = 1/16, q = 81/16 I; g = 1/4 * 2 * 81/16 / (1 + 1/4 * 18) = (81/32) / 5.5
    ((gain, i, j),) = next_pairs(np.zeros((2, 2)), rng())
    assert gain == pytest.approx(81 / 32 / 5.5)
    assert {i, j} == {0, 1}


def test_gains_are_what_the_plain_formula_gives() -> None:
    """Each gain is the fall of Σ D s_ii, with s inverted anew instead of updated."""
    judged = table(6, [(0, 1), (0, 1), (2, 3), (3, 4), (1, 2), (4, 5)])
    strength, covariance = solve(judged, PRIOR)
    changes = np.diag(expected_rates(strength)[1]) ** 2
    expected = expit(strength[:, None] - strength)
    information = np.linalg.inv(covariance)

    def after(i: int, j: int) -> np.ndarray:
        edge = np.zeros(6)
        edge[i], edge[j] = 1, -1
        return information + expected[i, j] * (1 - expected[i, j]) * np.outer(edge, edge)

    def left(matrix: np.ndarray) -> float:
        return float(changes @ np.diag(np.linalg.inv(matrix)))

    seen = 0
    for gain, i, j in next_pairs(judged, rng()):
        assert gain == pytest.approx(left(information) - left(after(i, j)), rel=1e-6)
        if not seen:
            open_pairs = [
                (a, b) for a in range(6) for b in range(a) if judged[a, b] + judged[b, a] == 0
            ]
            assert gain == pytest.approx(
                max(left(information) - left(after(a, b)) for a, b in open_pairs)
            )
        information = after(i, j)
        seen += 1
    assert seen == 15 - 5


def test_no_pair_twice_unless_asked() -> None:
    judged = table(5, [(0, 1), (2, 3)])
    pairs = [frozenset((i, j)) for _, i, j in next_pairs(judged, rng())]
    assert len(pairs) == len(set(pairs)) == 10 - 2
    assert not {frozenset((0, 1)), frozenset((2, 3))} & set(pairs)
    again = [frozenset((i, j)) for _, i, j in next_pairs(judged, rng(), again=True)]
    assert len(again) == len(set(again)) == 10


def test_pairs_in_flight_are_skipped_and_count_as_answered() -> None:
    """What remains is exactly what an uninterrupted plan would have asked after them."""
    judged = table(6, [(0, 1), (2, 3), (1, 2)])
    plan = list(next_pairs(judged, rng()))
    asked = [(i, j) for _, i, j in plan[:4]]
    rest = list(next_pairs(judged, rng(), pending=asked))
    assert [(i, j) for _, i, j in rest] == [(i, j) for _, i, j in plan[4:]]
    assert [gain for gain, *_ in rest] == pytest.approx([gain for gain, *_ in plan[4:]])
    # the order of the two replies, and that of the pairs, do not matter
    turned = list(next_pairs(judged, rng(), pending=[(j, i) for i, j in reversed(asked)]))
    assert [gain for gain, *_ in turned] == pytest.approx([gain for gain, *_ in rest])
    assert next(next_pairs(judged, rng(), pending=[(0, 5)]))[0] < plan[0][0]


def test_a_pair_in_flight_is_skipped_even_if_pairs_are_asked_again() -> None:
    judged = table(3, [(0, 1)])
    pairs = [{i, j} for _, i, j in next_pairs(judged, rng(), again=True, pending=[(0, 1), (2, 0)])]
    assert pairs == [{1, 2}]
    assert list(next_pairs(np.zeros((2, 2)), rng(), pending=[(1, 0)])) == []


def test_a_pair_that_several_people_are_asked_counts_for_each() -> None:
    # three replies, nothing known: s = 9 I, w = 1/4, D = 1/16. A pending answer on (0, 1) takes
    # k c c' from s, c = (9, -9, 0), k = (1/4) / (1 + 18/4) = 1/22; two of them take 81 k' with
    # k' = (1/2) / (1 + 18/2) = 1/20. The remaining gains for (0, 2) follow from s:
    def gain(drop: float) -> float:
        s = 9 * np.eye(3) - drop * 81 * np.outer([1, -1, 0], [1, -1, 0])
        edge = np.array([1, 0, -1])
        return float(edge @ s @ s @ edge / 16 / 4 / (1 + edge @ s @ edge / 4))

    for pending, drop in (([(0, 1)], 1 / 22), ([(0, 1), (1, 0)], 1 / 20)):
        assert next(next_pairs(np.zeros((3, 3)), rng(), pending=pending))[0] == pytest.approx(
            gain(drop)
        )


@pytest.mark.parametrize("pair", [(0, 0), (0, 3), (-1, 1)])
def test_a_wrong_pair_in_flight_is_named(pair: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"pending: .* is no pair of 3 replies"):
        next(next_pairs(np.zeros((3, 3)), rng(), pending=[pair]))


def test_seeds_repeat_and_differ() -> None:
    comparisons = compared(candidates(NAMES), [])
    one, same, other = (plan_questions(comparisons, count=6, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


def test_a_share_counts_what_is_judged() -> None:
    items = [*candidates(NAMES, "c"), *candidates("12", "d")]
    comparisons = compared(items, [("a", "b", "a", "ann"), ("a", "b", "b", "bob")])
    # c has 28 pairs: half are 14, one of them is judged; d has one pair, and half of it is none
    first, second = comparisons.contests()
    assert (unjudged_pairs(first, 0.5), unjudged_pairs(second, 0.5)) == (13, 0)
    questions = plan_questions(comparisons, share=0.5)
    assert [q.context for q in questions] == ["c"] * 13
    assert plan_questions(comparisons, share=0.01) == []
    assert len(plan_questions(comparisons, share=1)) == 28


def test_a_count_goes_to_the_most_informative_contexts() -> None:
    known = [(a, b, "a", who) for who in "12345" for a in "abcd" for b in "abcd" if a < b][:-1]
    items = [*candidates("abcd", "c"), *candidates("efgh", "d"), *candidates("ijkl", "e")]
    comparisons = compared(items, known[:-3])
    # c is nearly decided, d and e are not: they take turns
    questions = plan_questions(comparisons, count=6)
    assert [q.context for q in questions] == ["d", "e"] * 3
    # 6 pairs each of d and e; of c all have answers
    assert len(plan_questions(comparisons, count=1000)) == 12
    with pytest.raises(ValueError, match="either"):
        plan_questions(comparisons)


def test_the_order_of_presentation_is_random() -> None:
    """Every candidate stands first now and then: in 19 pairs, hardly ever fewer than 3 times."""
    questions = plan_questions(compared(candidates([f"{n:02}" for n in range(20)]), []), share=1)
    first = np.bincount([q.a for q in questions], minlength=20)
    assert first.sum() == 190
    assert 2 < first.min() <= first.max() < 17


def test_a_context_with_one_candidate_has_no_pairs() -> None:
    items = [*candidates("a", "c"), *candidates("bc", "d")]
    (question,) = plan_questions(compared(items, []), count=5)
    assert {question.a, question.b} == {1, 2}
    assert unjudged_pairs(Contest("c", np.array([0]), np.zeros((1, 1))), 1) == 0


def test_questions_are_assigned_in_turn_and_a_share_to_all() -> None:
    questions = plan_questions(compared(candidates(NAMES), []), count=20)
    assigned = assign_questions(questions, ["ann", "bob"], 0.2)
    assert len(assigned) == 20 + 4
    both = {q for q, _ in assigned if sum(q == other for other, _ in assigned) == 2}
    assert len(both) == 4
    loads = [sum(name == who for _, name in assigned) for who in ("ann", "bob")]
    assert loads == [12, 12]
    assert len(assign_questions(questions, ["ann", "bob"], 0)) == 20
