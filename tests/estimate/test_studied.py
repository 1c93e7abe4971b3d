"""What is known of a study before it goes on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rejoinder.estimation.estimates import rated_replies
from rejoinder.estimation.planning import Question, units_of
from rejoinder.estimation.prediction_powered import estimate_means
from rejoinder.estimation.studied import study_of
from rejoinder.items import Item

NAN = float("nan")


def test_unscored_replies_are_average_ones() -> None:
    """Ratings 1, 1, 2, 4, 5, 5 of each system, with scores of the same order from 50 on, but for
    the third, whose score is missing: it counts as the mean of the others, 52.2 and 152.2, not as
    0, which would make the correlation negative."""
    ratings, scores = [1, 1, 2, 4, 5, 5], [50.0, 50, NAN, 53, 54, 54]
    items = [
        Item(f"{n}{s}", "r", system=s, context_id=f"{n}", ratings=float(rating))
        for s in "ab"
        for n, rating in enumerate(ratings)
    ]
    row = np.array([*scores, *(score + 100 for score in scores)])
    units = units_of(items, "mean", ["a", "b"])
    study, rated = study_of(items, row, units, ["a", "b"], "mean")
    filled = np.where(np.isnan(row[:6]), 52.2, row[:6])
    r = np.corrcoef(ratings, filled)[0, 1]
    # corrected for its bias with 12 replies: 1 - (1 - r²) 11 / 10
    assert study.spread.correlation == pytest.approx(np.sqrt(1 - (1 - r * r) * 1.1))
    assert r > 0.95 and rated == 6


def test_the_deviation_of_few_ratings_is_not_that_of_another_scale() -> None:
    """Ratings 20, 40, 60 and 80: (30² + 10² + 10² + 30²) / 3 = 666.7, so 25.8, and √2 times as much
    for differences; without ratings, or if they are equal, 1 as on scales from 1 to 5."""
    for given, expected in (([20, 40, 60, 80], np.sqrt(2000 / 3)), ([], 1), ([50, 50], 1)):
        items = [
            Item(f"{n}{s}", "r", system=s, context_id=f"{n}", ratings=rating)
            for n in range(10)
            for s in "ab"
            for rating in [float(given[n]) if s == "a" and n < len(given) else None]
        ]
        for question, factor in (("mean", 1), ("difference", np.sqrt(2))):
            units = units_of(items, question, ["a", "b"])  # type: ignore[arg-type]
            study, _ = study_of(items, None, units, ["a", "b"], question)  # type: ignore[arg-type]
            assert study.spread.sd == pytest.approx(factor * expected)
            assert study.spread.known_from == 0


@pytest.mark.parametrize("question", ["mean", "difference"])
def test_a_plan_expects_the_intervals_that_dialogues_give(question: Question) -> None:
    """6 dialogues of 15 contexts, all rated, of which each has its own mean, or difference, with
    the same deviation as replies in it. The median of the expected width over 20 draws is that of
    the intervals of estimate up to 20 %; as if contexts were independent it was less than half."""
    expected, found, naive = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shared = {(d, s): rng.normal() for d in range(6) for s in "ab"}
        items = [
            Item(
                f"{d}-{n}{s}",
                "r",
                system=s,
                context_id=f"{d}-{n}",
                dialogue_id=f"{d}",
                ratings=shared[d, s] + rng.normal(),
            )
            for d in range(6)
            for n in range(15)
            for s in "ab"
        ]
        units = units_of(items, question, ["a", "b"])
        study, rated = study_of(items, None, units, ["a", "b"], question)
        assert rated == study.units == 90
        means = estimate_means(rated_replies(items)[0], None)
        ends = means.interval(0) if question == "mean" else means.difference(0, 1)[1:3]
        expected.append(study.width(90))
        naive.append(replace(study, dialogues=None).width(90))
        found.append(ends[1] - ends[0])
    assert np.median(expected) == pytest.approx(np.median(found), rel=0.2)
    assert np.median(naive) < 0.5 * np.median(found)
