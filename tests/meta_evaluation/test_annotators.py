"""Unreliable annotators: by hand, and in simulated ratings."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import (
    MAX_ANNOTATORS,
    MIN_COMMON,
    AnnotatorLimits,
    AnnotatorReview,
    FilteredRatings,
    HumanAgreement,
)
from rejoinder.meta_evaluation.ratings import without_annotators

NO_LIMITS = AnnotatorLimits()


def rated(columns: dict[str, list[float | None]], planted: int = 0) -> list[Item]:
    """An item for each place of the lists, the first ones distractors; None where unrated."""
    return [
        Item(
            str(place),
            "x",
            system="distractor" if place < planted else "bot",
            ratings={name: r for name, r in zip(columns, row, strict=True) if r is not None},
        )
        for place, row in enumerate(zip(*columns.values(), strict=True))
    ]


def test_kappa_by_hand() -> None:
    # quadratic weights; 12 items, each of 6 twice. Observed: 2 * 2 confusions by one step, 4.
    # Expected from the margins 6 4 2 and 4 4 4:
    # (6*4*1 + 6*4*4 + 4*4*1 + 4*4*1 + 2*4*4 + 2*4*1) / 12 = 192/12 = 16; 1 - 4/16
    columns = {"ann": [1, 1, 1, 2, 2, 3] * 2, "bob": [1, 1, 2, 2, 3, 3] * 2}
    found = AnnotatorReview.of(rated(columns), NO_LIMITS).agreement
    assert [(who.name, who.answers) for who in found.annotators] == [("ann", 12), ("bob", 12)]
    assert [who.kappa for who in found.annotators] == pytest.approx([0.75, 0.75])
    assert found.kappa == pytest.approx(0.75)


def test_review_and_meta_evaluation_report_the_same_agreement() -> None:
    rng = np.random.default_rng(3)
    columns = {name: list(rng.integers(1, 6, 30).astype(float)) for name in "abcd"}
    items = rated(columns)
    found, humans = AnnotatorReview.of(items, NO_LIMITS).agreement, HumanAgreement.of(items)
    assert humans is not None
    assert (found.kappa, found.alpha) == (humans.kappa, humans.alpha)


def test_the_annotator_with_the_lowest_kappa_is_removed_first() -> None:
    # three agree fully, one says the opposite: kappa 1 and -1. With the fourth the means of
    # the others are (1 + 1 - 1)/3 = 1/3, below the limit; without it 1
    good = [1.0, 5.0] * 6
    columns = {"ann": good, "bob": good, "cy": good, "bad": good[::-1]}
    items = rated(columns)
    found = AnnotatorReview.of(items, AnnotatorLimits(min_kappa=0.5))
    assert [who.kappa for who in found.agreement.annotators] == pytest.approx([1 / 3] * 3 + [-1])
    assert [(b.name, b.reason, b.by) for b in found.unreliable] == [
        ("bad", "kappa with the others is -1.00", "kappa")
    ]
    filtered = FilteredRatings.of(items, AnnotatorLimits(min_kappa=0.5), drop_unreliable=True)
    assert filtered.dropped == ["bad"]
    assert filtered.after is not None
    assert filtered.after.agreement.kappa == 1
    assert (filtered.before.ratings, filtered.after.ratings) == (48, 36)
    assert FilteredRatings.of(items, AnnotatorLimits(min_kappa=0.5)).after is None
    # of two who disagree both stay
    assert (
        AnnotatorReview.of(
            rated({"a": good, "b": good[::-1]}), AnnotatorLimits(min_kappa=0.5)
        ).unreliable
        == []
    )


def test_annotators_who_rate_distractors_high_are_unreliable() -> None:
    columns: dict[str, list[float | None]] = {
        # 5 distractors, then 4 other replies
        "good": [1, 1, 2, 1, 1, 3, 4, 5, 5],
        # each is tied with the 4 others: a half
        "flat": [3, 3, 3, 3, 3, 3, 3, 3, 3],
        # above 1, 2 and 3, tied with 4: 3.5 of 4
        "fond": [4, 4, 4, 4, 4, 1, 2, 3, 4],
        # 3 tied with 3, below the others: .5 of 4, five times
        "so-so": [3, 3, 3, 3, 3, 3, 4, 4, 5],
        "few": [5, 5, 5, 5, None, 1, 1, 1, 1],
        "only": [5, 5, 5, 5, 5, None, None, None, None],
    }
    found = AnnotatorReview.of(rated(columns, planted=5), AnnotatorLimits(max_distractor=0.25))
    assert {who.name: (who.planted, who.preferred) for who in found.agreement.annotators} == {
        "good": (5, 0),
        "flat": (5, 0.5),
        "fond": (5, 0.875),
        "so-so": (5, 0.125),
        "few": (4, 1),
        "only": (5, None),
    }
    assert [b.name for b in found.unreliable] == ["flat", "fond"]
    assert found.unreliable[1].reason == "rated 5 distractors above 88% of the other replies"
    assert found.unreliable[1].by == "distractors"
    other = AnnotatorReview.of(
        rated(columns, planted=5), AnnotatorLimits(max_distractor=0.25), "none such"
    )
    assert other.unreliable == []


def test_few_items_in_common_give_an_annotator_no_kappa() -> None:
    long: list[float | None] = [1, 2] * MIN_COMMON
    once: list[float | None] = [2, *[None] * (2 * MIN_COMMON - 1)]
    short: list[float | None] = [2, 1] * (MIN_COMMON // 2)
    columns = {"ann": long, "bob": long, "once": once, "short": [*short[:-1], *[None] * 11]}
    found = AnnotatorReview.of(rated(columns), AnnotatorLimits(min_kappa=0.2))
    kappas = {who.name: who.kappa for who in found.agreement.annotators}
    assert kappas == {"ann": 1, "bob": 1, "once": None, "short": None}
    assert found.unreliable == []


def test_anonymous_ratings_have_no_annotators() -> None:
    items = [Item("1", "x", ratings=[1.0, 2.0]), Item("2", "x", ratings=3.0), Item("3", "x")]
    found = FilteredRatings.of(items, AnnotatorLimits(0.2, 0.25), drop_unreliable=True)
    assert (found.before.names, found.dropped, found.items) == ([], [], items)


def test_without_ratings() -> None:
    items = [
        Item("1", "x", ratings={"ann": 1.0, "bob": 2.0}),
        Item("2", "x", ratings={"bob": 2.0}),
        Item("3", "x", ratings=[2.0]),
    ]
    assert [item.ratings for item in without_annotators(items, ["bob"])] == [
        {"ann": 1.0},
        None,
        [2.0],
    ]
    assert items[0].ratings == {"ann": 1.0, "bob": 2.0}
    with pytest.raises(DataError, match="no ratings are left"):
        FilteredRatings.of(items[:2], NO_LIMITS, ["ann", "bob"])


def test_unreliable_annotators_are_sought_among_those_not_dropped_by_name() -> None:
    good = [1.0, 5.0] * 6
    columns = {"ann": good, "bob": good, "worse": good[::-1], "bad": [5.0, 1.0] * 5 + [1.0, 1.0]}
    filtered = FilteredRatings.of(
        rated(columns), AnnotatorLimits(min_kappa=0.5), ["worse"], drop_unreliable=True
    )
    assert filtered.dropped == ["worse", "bad"]
    assert [b.name for b in filtered.unreliable] == ["bad"]


def test_the_reason_for_a_missing_kappa_is_given() -> None:
    crowd = {f"p{n}": [1.0, 2.0] for n in range(MAX_ANNOTATORS + 1)}
    found = AnnotatorReview.of(rated(crowd), AnnotatorLimits(min_kappa=0.2))
    assert found.agreement.kappa is None
    assert found.agreement.left_out == "more than 200 annotators are not compared one by one"
    assert found.unreliable == []
    fine: list[float | None] = list(np.arange(1200) / 7)
    measured = AnnotatorReview.of(
        rated({"a": fine, "b": fine, "c": fine}), AnnotatorLimits(min_kappa=0.2)
    )
    assert (
        measured.agreement.left_out == "kappa is not defined for more than 1,000 different ratings"
    )
    assert measured.agreement.alpha == pytest.approx(1)


@pytest.mark.parametrize("seed", range(5))
def test_a_careless_annotator_is_found_in_simulated_ratings(seed) -> None:
    """By either sign alone, and nobody else is."""
    rng = np.random.default_rng(seed)
    worth = np.concatenate([np.full(30, -2.0), rng.normal(size=90)])
    columns: dict[str, list[float | None]] = {
        name: list(np.clip(np.rint(3 + 1.2 * worth + 0.8 * rng.normal(size=120)), 1, 5))
        for name in ("ann", "bob", "cy", "dot")
    }
    columns["careless"] = list(rng.integers(1, 6, 120).astype(float))
    items = rated(columns, planted=30)
    for limits in (AnnotatorLimits(min_kappa=0.2), AnnotatorLimits(max_distractor=0.25)):
        filtered = FilteredRatings.of(items, limits, drop_unreliable=True)
        assert filtered.dropped == ["careless"]
        assert filtered.after is not None
        assert filtered.after.agreement.kappa > filtered.before.agreement.kappa + 0.1  # type: ignore[operator]
        with_all, without = (
            np.corrcoef(worth, [item.rating() for item in kept])[0, 1]
            for kept in (items, filtered.items)
        )
        assert without > with_all + 0.01
