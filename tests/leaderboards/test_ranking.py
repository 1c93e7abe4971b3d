"""Ranks of metrics: which differences are significant, and which places remain possible."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import spearmanr

from rejoinder.leaderboards.ranking import (
    SetColumns,
    SetRanking,
    correlations_of,
    rank_on_set,
    rank_over_sets,
    significantly_better,
)
from rejoinder.meta_evaluation.significance import holm


def columns(noise: dict[str, float], contexts: int = 150, seed: int = 1) -> SetColumns:
    """Two replies to each context; metrics are the ratings plus noise of these deviations."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=2 * contexts)
    scores = {name: human + sd * rng.normal(size=human.size) for name, sd in noise.items()}
    return SetColumns(human, np.repeat(np.arange(contexts), 2), scores)


def test_ranks_by_hand() -> None:
    """Resamples that differ by a constant deviation of the gap: z is known exactly.

    The gaps of a and b alternate between .2 and .4 (mean .3), those of a and c between .5 and .7,
    those of b and c are always .3, so their deviation is 0 but for rounding.
    """
    a = np.tile([0.2, 0.4], 50)
    drawn = np.array([a, np.zeros(100), np.full(100, -0.3)])
    deviation = a.std(ddof=1)  # about .1005
    raw = [2 * ndtr(-0.15 / deviation), 2 * ndtr(-0.6 / deviation), 1.0]
    # a - b: z = 1.49, p = .136; a - c: z = 5.97, p = 2.4e-9, times 3 for Holm; b - c: no test
    assert holm(raw)[1] < 1e-7 and holm(raw)[0] > 0.05
    better = significantly_better(np.array([0.3, 0.15, -0.3]), drawn)
    assert better.tolist() == [[False, False, True], [False] * 3, [False] * 3]


def test_a_much_better_metric_is_first_and_two_alike_share_ranks() -> None:
    made = columns({"good": 0.3, "poor": 3.0, "as-poor": 3.0}, seed=2)
    places = rank_on_set(made, ["poor", "good", "as-poor"], 500, 1).places
    assert places[0].metric == "good"
    assert [place.ranks for place in places] == [(1, 1), (2, 3), (2, 3)]
    for place in places:
        value = spearmanr(made.scores[place.metric], made.human).statistic
        assert place.value == pytest.approx(value)
        assert place.ci is not None and place.ci[0] < value < place.ci[1]


def test_copies_of_a_metric_share_all_ranks() -> None:
    made = columns({"one": 1.0})
    made.scores["copy"] = made.scores["one"] * 2 + 1
    places = rank_on_set(made, ["one", "copy"], 200, 1).places
    assert [place.ranks for place in places] == [(1, 2), (1, 2)]


def test_a_constant_metric_has_no_place() -> None:
    made = columns({"one": 1.0})
    made.scores["constant"] = np.ones(made.human.size)
    assert [p.metric for p in rank_on_set(made, ["constant", "one"], 200, 1).places] == ["one"]
    assert rank_on_set(made, ["constant"], 200, 1).places == []
    assert rank_on_set(made, [], 200, 1).places == []


def test_one_context_gives_no_interval_and_no_significant_difference() -> None:
    made = columns({"one": 0.1, "two": 9.0})
    alone = SetColumns(made.human, np.zeros(made.human.size, np.int64), made.scores)
    places = rank_on_set(alone, ["one", "two"], 200, 1).places
    assert [(place.ci, place.ranks) for place in places] == [(None, (1, 2)), (None, (1, 2))]


def test_without_resamples_nothing_is_significant() -> None:
    made = columns({"one": 0.1, "two": 9.0})
    places = rank_on_set(made, ["one", "two"], 0, 1).places
    assert [(place.ci, place.ranks) for place in places] == [(None, (1, 2)), (None, (1, 2))]


def test_the_mean_over_sets() -> None:
    """Where two sets each leave a doubt, both together need not: the deviation of a mean of two
    independent values is smaller by the square root of 2."""
    rankings = [
        rank_on_set(columns({"good": 1.6, "poor": 2.4}, 120, seed), ["good", "poor"], 800, seed)
        for seed in (3, 4, 5, 6)
    ]
    overall = rank_over_sets(rankings)
    assert [place.metric for place in overall] == ["good", "poor"]
    values = [{p.metric: p.value for p in each.places} for each in rankings]
    for place in overall:
        assert place.value == pytest.approx(np.mean([each[place.metric] for each in values]))
    assert [place.ranks for place in overall] == [(1, 1), (2, 2)]
    widths = [p.ci[1] - p.ci[0] for each in rankings for p in each.places if p.ci is not None]
    assert all(p.ci is not None and p.ci[1] - p.ci[0] < min(widths) for p in overall)


def test_only_metrics_of_every_set_have_a_mean() -> None:
    first = rank_on_set(columns({"a": 1.0, "b": 1.0}), ["a", "b"], 200, 1)
    second = rank_on_set(columns({"a": 1.0}), ["a"], 200, 2)
    assert [place.metric for place in rank_over_sets([first, second])] == ["a"]
    assert rank_over_sets([]) == []
    assert rank_over_sets([first, SetRanking([], {})]) == []


def test_metrics_of_equal_worth_are_hardly_ever_told_apart() -> None:
    """All are the ratings plus noise of one size, so every difference is an error: of 200 sets at
    most 5 % may have any (with four deviations of sqrt(.05 * .95 / 200) = .0154 to spare, 22)."""
    wrong = 0
    for seed in range(200):
        made = columns(dict.fromkeys("abcd", 1.5), contexts=60, seed=100 + seed)
        places = rank_on_set(made, list("abcd"), 200, seed).places
        wrong += any(place.ranks != (1, 4) for place in places)
    assert wrong <= 22


def test_correlations_over_the_scored_replies_only() -> None:
    made = columns({"one": 1.0})
    made.scores["one"][:100] = np.nan
    figures = correlations_of(made, 200, 1)["one"]
    expected = spearmanr(made.scores["one"][100:], made.human[100:]).statistic
    assert figures.n == 200
    assert figures.spearman.value == pytest.approx(expected)
