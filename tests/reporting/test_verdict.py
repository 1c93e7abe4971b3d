"""The verdict in words, from rankings written by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest

from rejoinder.meta_evaluation.ranking import RankedSystem, Ranking, SystemPair
from rejoinder.reporting.page.analysis import SystemOrder
from rejoinder.reporting.page.verdict import (
    answer,
    join_names,
    metric_against_people,
    other_metrics_against_people,
    other_metrics_on_the_best,
    plain,
    uncorrelated_metrics,
)


def order(groups: dict[str, str], sure: set[tuple[str, str]] | None = None) -> SystemOrder:
    """Systems best first, with their letters; two differ if they share no letter."""
    rows = [RankedSystem(name, 1.0, 0.9, 1.1, letters) for name, letters in groups.items()]
    pairs = []
    for better, worse in combinations(groups, 2):
        apart = not set(groups[better]) & set(groups[worse])
        if sure is not None:
            apart = (better, worse) in sure
        pairs.append(SystemPair(better, worse, 0.1, 0, 0.2, 0.5, 0.5, 0.01 if apart else 0.5, 10))
    return SystemOrder("m", rows, Ranking(10, 0, rows, pairs))


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
    assert plain(answer(order(groups))) == said


def test_one_system_and_systems_that_were_not_compared() -> None:
    only = [RankedSystem("x", 1.0, 0.9, 1.1, "a")]
    assert "only system" in plain(answer(SystemOrder("m", only, Ranking(3, 0, only, []))))
    unscored = SystemOrder("m", only, None, "why", unranked=1)
    assert plain(answer(unscored)) == "By m, only x could be scored."
    two = [RankedSystem("x", 1.0, 0.9, 1.1, ""), RankedSystem("y", 0.5, 0.4, 0.6, "")]
    assert "could not be tested" in plain(answer(SystemOrder("m", two, None, "why")))
    assert plain(answer(SystemOrder("m", [], None, "why"))) == "No reply could be scored by m."


def test_a_separate_group_is_not_a_lead_over_all_systems() -> None:
    """v differs from w, x and y but not from z, whose scores vary most."""
    groups = {"v": "a", "w": "b", "x": "bc", "y": "cd", "z": "d"}
    sure = {("v", "w"), ("v", "x"), ("v", "y"), ("w", "y")}
    assert plain(answer(order(groups, sure))) == "By m, v leads."


def test_more_letters_than_the_alphabet_has() -> None:
    names = {f"s{n}": chr(97 + n % 26) + (str(n // 26) if n > 25 else "") for n in range(30)}
    said = plain(answer(order(names)))
    assert said.startswith("By m, from best to worst: s0, s1, s2, s3, s4, s5 and 24 others")


def test_long_lists_are_cut() -> None:
    assert plain(join_names(list("abc"))) == "a, b and c"
    assert plain(join_names(list("abcdefg"))) == "a, b, c, d, e, f and g"
    assert plain(join_names(list("abcdefgh"))) == "a, b, c, d, e, f and 2 others"


def test_metrics_that_rank_another_system_first_are_named() -> None:
    def first(metric: str, *names: str) -> SystemOrder:
        return SystemOrder(metric, [RankedSystem(n, 1.0, 0.9, 1.1, "a") for n in names], None)

    chosen = first("m", "x", "y")
    assert (
        plain(other_metrics_on_the_best(chosen, [first("n", "x", "y")]))
        == "n ranks x first too, by the mean over replies."
    )
    two = [first("n", "x", "y"), first("o", "x", "y")]
    said = plain(other_metrics_on_the_best(chosen, two))
    assert said == "All other metrics rank x first too, by the mean over replies."
    partly = replace(first("p", "x", "y"), unranked=1)
    said = plain(other_metrics_on_the_best(chosen, [*two, partly]))
    assert said == "n and o rank x first too, by the mean over replies."
    disagreeing = [first("n", "y", "x"), first("o", "y", "x"), first("p", "x", "y")]
    said = plain(other_metrics_on_the_best(chosen, disagreeing))
    assert said == "However, by the mean over replies, n and o rank y first."
    assert other_metrics_on_the_best(chosen, []) == []


def differing(name: str, systems: str, *sure: str) -> SystemOrder:
    """Systems best first; the pairs ``sure`` differ significantly, the others do not."""
    found = order(dict.fromkeys(systems, "a"), {(pair[0], pair[1]) for pair in sure})
    return replace(found, name=name)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (differing("m", "xyz", "xy", "xz"), "m separates the same systems, in the same order."),
        (differing("m", "xyz", "xy"), "m can’t tell what people can: x is better than z."),
        (
            differing("m", "xyz"),
            "m can’t tell what people can: x is better than y, x is better than z.",
        ),
        (
            differing("m", "yxz", "yx", "xz"),
            "m contradicts people: it ranks x below y, significantly.",
        ),
    ],
)
def test_a_metric_against_people(metric: SystemOrder, said: str) -> None:
    people = replace(order({"x": "a", "y": "b", "z": "b"}), name="people")
    assert plain(answer(people)).startswith("By people’s ratings, x is better than")
    assert plain(metric_against_people(people, metric)) == said


def test_differences_that_people_do_not_see() -> None:
    equal = differing("people", "xyz")
    assert plain(metric_against_people(equal, differing("m", "xyz", "xz"))) == (
        "m sees differences that people do not: x above z."
    )
    assert metric_against_people(equal, differing("m", "xyz")) == []


def test_metrics_without_correlation_are_named() -> None:
    zero = "with people on single replies {} not distinguishable from zero."
    assert plain(uncorrelated_metrics(["m"])) == f"The correlation of m {zero.format('is')}"
    said = plain(uncorrelated_metrics(["m", "n"]))
    assert said == f"The correlations of m and n {zero.format('are')}"
    assert uncorrelated_metrics([]) == []


def test_other_metrics_against_people() -> None:
    people = differing("people", "xy", "xy")
    metrics = [differing("m", "yx", "yx"), differing("n", "xy"), differing("o", "xy", "xy")]
    assert plain(other_metrics_against_people(people, metrics)) == (
        "m contradicts people on some pair; n misses differences that people see."
    )
    assert other_metrics_against_people(people, metrics[2:]) == []


def test_neighbours_in_words() -> None:
    rows = [RankedSystem(name, 1.0, 0.9, 1.1, "") for name in "xyz"]
    for p, said in (
        (0.01, "By m, x is the best of 3 systems, better than the next, y."),
        (0.5, "By m, x and y, the first of 3 systems, can’t be told apart."),
    ):
        pairs = [SystemPair(a, b, 0.1, 0, 0.2, 0.5, 0.5, p, 10) for a, b in ("xy", "yz")]
        found = Ranking(10, 0, rows, pairs, neighbours_only=True)
        assert plain(answer(SystemOrder("m", rows, found))) == said
