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
from rejoinder.pairwise.plan import (
    Question,
    assign_questions,
    judged_in_excess,
    next_pairs,
    plan_questions,
    unjudged_pairs,
)

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


def test_what_a_person_has_judged_more_than_others_by_hand() -> None:
    # four replies, three people, six answers about (0, 1) twice, (0, 2), (0, 3), (1, 2) and (2, 3):
    # pairs with each reply 4, 3, 3, 2, a third of them 4/3, 1, 1, 2/3. One person judged (0, 1),
    # (0, 2) and (0, 3): pairs 3, 1, 1, 1, so in excess 5/3, 0, 0, 1/3
    wins = table(4, [(0, 1), (1, 0), (0, 2), (3, 0), (1, 2), (2, 3)])
    own = [(0, 1), (0, 2), (0, 3)]
    assert judged_in_excess(wins, own, 3) == pytest.approx([5 / 3, 0, 0, 1 / 3])
    assert judged_in_excess(wins, [], 3).tolist() == [0, 0, 0, 0]
    # who answers alone has judged as much as people on average
    alone = table(4, own)
    assert judged_in_excess(alone, own, 1).tolist() == [0, 0, 0, 0]


def test_a_person_gets_replies_that_are_new_to_them() -> None:
    """Without answers all gains are equal; with unequal ones each is divided by its own number."""
    for pair in ([0, 1], [4, 2]):
        excess = np.ones(6)
        excess[pair] = 0
        assert {*next(next_pairs(np.zeros((6, 6)), rng(), excess=excess))[1:]} == {*pair}
    judged = table(6, [(0, 1), (2, 3), (1, 2), (4, 5)])
    gains = {frozenset((i, j)): _first_gain(judged, i, j) for i in range(6) for j in range(i)}
    excess = np.array([0.0, 2.0, 0.0, 0.0, 0.5, 0.0])
    open_pairs = [pair for pair in gains if not judged[*sorted(pair)]]
    best = max(open_pairs, key=lambda pair: gains[pair] / (1 + 3 * sum(excess[list(pair)])))
    assert best != max(open_pairs, key=gains.__getitem__)
    gain, i, j = next(next_pairs(judged, rng(), excess=excess))
    assert {i, j} == best and gain == pytest.approx(gains[best])


def _first_gain(judged: np.ndarray, i: int, j: int) -> float:
    """Return the gain of a pair by the formula of the module, without updates."""
    strength, covariance = solve(judged, PRIOR)
    changes = np.diag(expected_rates(strength)[1]) ** 2
    edge = np.zeros(len(judged))
    edge[i], edge[j] = 1, -1
    chance = expit(strength[i] - strength[j])
    information = chance * (1 - chance)
    fall = information * edge @ covariance * (covariance @ edge)
    return float(changes @ fall / (1 + information * edge @ covariance @ edge))


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


def test_questions_go_to_who_knows_the_replies_least() -> None:
    items = candidates(["a", "b", "c", "d", "e"])
    answered = [("a", "b", "a", "ann"), ("a", "b", "a", "cem"), ("c", "d", "a", "bob")]
    comparisons = compared(items, answered)
    questions = [Question("c", *pair, 1.0) for pair in ((0, 2), (0, 3), (2, 4), (3, 4))]
    people = ["ann", "bob", "cem"]
    # (a, c): each knows one of them, so ann is first; (a, d): bob knows d, cem knows a, bob is
    # first; cem is the only one without a question; then of (d, e) ann knows neither
    assigned = assign_questions(questions, people, 0, 1, comparisons)
    assert [name for _, name in assigned] == ["ann", "bob", "cem", "ann"]
    # (d, e): bob knows d, ann neither; bob is left for (c, e); of (a, d) bob knows d, from two
    # answers, ann a and d; of (a, c) bob would know c, but ann is left
    assigned = assign_questions(questions[::-1], ["bob", "ann"], 0, 1, comparisons)
    assert [name for _, name in assigned] == ["ann", "bob", "bob", "ann"]
    # of strangers' answers nothing is known, and nobody knows anything: in turn, until one does
    assigned = assign_questions(questions, ["dan", "eve"], 0, 1, comparisons)
    assert [name for _, name in assigned] == ["dan", "eve", "eve", "dan"]


def test_hardly_anybody_gets_a_reply_twice_before_all() -> None:
    """100 replies, 8 people, 297 pairs, 74 places of a person: in turn, a quarter is repeated."""
    questions = plan_questions(compared(candidates([f"{n:02}" for n in range(100)]), []), count=297)
    names = [*NAMES]

    def repeated(assigned: list[tuple[Question, str]]) -> float:
        judged = [(name, reply) for q, name in assigned for reply in (q.a, q.b)]
        return 1 - len(set(judged)) / len(judged)

    assert repeated(list(zip(questions, names * 38, strict=False))) > 0.2
    assert repeated(assign_questions(questions, names, 0)) < 0.1
