"""The answer in words, from orders that are written by hand."""

from __future__ import annotations

from itertools import combinations

import pytest

from rejoinder.meta_evaluation.ranking import Order, Pair, Ranked
from rejoinder.reporting.page.findings import Placed
from rejoinder.reporting.page.words import answer, listed, others, plain


def placed(groups: dict[str, str], sure: set[tuple[str, str]] | None = None) -> Placed:
    """Systems best first, with their letters; two differ if they share no letter."""
    rows = [Ranked(name, 1.0, 0.9, 1.1, letters) for name, letters in groups.items()]
    pairs = []
    for better, worse in combinations(groups, 2):
        apart = not set(groups[better]) & set(groups[worse])
        if sure is not None:
            apart = (better, worse) in sure
        pairs.append(Pair(better, worse, 0.1, 0, 0.2, 0.5, 0.5, 0.01 if apart else 0.5))
    return Placed("m", rows, Order(10, 0, rows, pairs))


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"x": "a", "y": "a"}, "By m, x and y can’t be told apart."),
        ({"x": "a", "y": "b"}, "By m, x is better than y."),
        (dict.fromkeys("abcdefg", "a"), "By m, no two of the 7 systems can be told apart."),
        (
            {"x": "a", "y": "b", "z": "b"},
            "By m, x is better than y and z, which can’t be told apart.",
        ),
        (
            {"x": "a", "y": "a", "z": "b"},
            "By m, x and y, which can’t be told apart, are better than z.",
        ),
        ({"x": "a", "y": "b", "z": "c"}, "By m, x is better than y, which is better than z."),
        (
            {"w": "a", "x": "b", "y": "b", "z": "c"},
            "By m, w is better than x and y, which can’t be told apart and are better than z.",
        ),
        (
            {"w": "a", "x": "b", "y": "c", "z": "d"},
            "By m, from best to worst: w, x, y and z; each differs from the next.",
        ),
        # only the ends differ
        (
            {"hred": "a", "x": "ab", "dull": "b"},
            "By m, hred is better than dull; the others can’t be told apart.",
        ),
        (
            {"v": "a", "w": "b", "x": "bc", "y": "c", "z": "d"},
            "By m, v is better than all others; z is worse than all others.",
        ),
        (
            {"v": "a", "w": "ab", "x": "b", "y": "c", "z": "c"},
            "By m, v and w lead and can’t be told apart.",
        ),
    ],
)
def test_groups_in_words(groups: dict[str, str], said: str) -> None:
    assert plain(answer(placed(groups))) == said


def test_one_system_and_systems_that_were_not_compared() -> None:
    only = [Ranked("x", 1.0, 0.9, 1.1, "a")]
    assert "only system" in plain(answer(Placed("m", only, Order(3, 0, only, []))))
    unscored = Placed("m", only, None, "why", unplaced=1)
    assert plain(answer(unscored)) == "By m, only x could be scored."
    two = [Ranked("x", 1.0, 0.9, 1.1, ""), Ranked("y", 0.5, 0.4, 0.6, "")]
    assert "could not be tested" in plain(answer(Placed("m", two, None, "why")))
    assert plain(answer(Placed("m", [], None, "why"))) == "Nothing could be scored by m."


def test_a_letter_of_its_own_is_no_lead_over_all() -> None:
    """v differs from w, x and y but not from z, whose scores vary most."""
    groups = {"v": "a", "w": "b", "x": "bc", "y": "cd", "z": "d"}
    sure = {("v", "w"), ("v", "x"), ("v", "y"), ("w", "y")}
    assert plain(answer(placed(groups, sure))) == "By m, v leads."


def test_more_letters_than_the_alphabet_has() -> None:
    names = {f"s{n}": chr(97 + n % 26) + (str(n // 26) if n > 25 else "") for n in range(30)}
    said = plain(answer(placed(names)))
    assert said.startswith("By m, from best to worst: s0, s1, s2, s3, s4, s5 and 24 others")


def test_long_lists_are_cut() -> None:
    assert plain(listed(list("abc"))) == "a, b and c"
    assert plain(listed(list("abcdefg"))) == "a, b, c, d, e, f and g"
    assert plain(listed(list("abcdefgh"))) == "a, b, c, d, e, f and 2 others"


def test_who_disagrees() -> None:
    def first(metric: str, *names: str) -> Placed:
        return Placed(metric, [Ranked(n, 1.0, 0.9, 1.1, "a") for n in names], None)

    chosen = first("m", "x", "y")
    assert plain(others(chosen, [first("n", "x", "y")])) == "All other metrics put x first too."
    disagreeing = [first("n", "y", "x"), first("o", "y", "x"), first("p", "x", "y")]
    assert plain(others(chosen, disagreeing)) == "However, n and o put y first."
    assert others(chosen, []) == []
