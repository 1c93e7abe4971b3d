"""Whose ratings are left out, derived by hand, and what that does to a simulated study."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.errors import DataError
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import Limits
from rejoinder.meta_evaluation.humans import FEWEST, MOST_ANNOTATORS, Humans
from rejoinder.meta_evaluation.raters import Raters, Sifted, without_ratings

NOBODY = Limits()


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
    # quadratic prices; 12 items, each of 6 twice. Observed: 2 * 2 confusions by one step, 4.
    # Expected from the margins 6 4 2 and 4 4 4:
    # (6*4*1 + 6*4*4 + 4*4*1 + 4*4*1 + 2*4*4 + 2*4*1) / 12 = 192/12 = 16; 1 - 4/16
    columns = {"ann": [1, 1, 1, 2, 2, 3] * 2, "bob": [1, 1, 2, 2, 3, 3] * 2}
    found = Raters.of(rated(columns), NOBODY).agreement
    assert [(who.name, who.answers) for who in found.annotators] == [("ann", 12), ("bob", 12)]
    assert [who.kappa for who in found.annotators] == pytest.approx([0.75, 0.75])
    assert found.kappa == pytest.approx(0.75)


def test_the_same_agreement_as_in_the_study() -> None:
    rng = np.random.default_rng(3)
    columns = {name: list(rng.integers(1, 6, 30).astype(float)) for name in "abcd"}
    items = rated(columns)
    found, humans = Raters.of(items, NOBODY).agreement, Humans.of(items)
    assert humans is not None
    assert (found.kappa, found.alpha) == (humans.kappa, humans.alpha)


def test_the_worst_goes_first_and_the_others_stay() -> None:
    # three agree fully, one says the opposite: kappa 1 and -1. With him the others' means are
    # (1 + 1 - 1)/3 = 1/3, below the limit; without him 1
    good = [1.0, 5.0] * 6
    columns = {"ann": good, "bob": good, "cy": good, "bad": good[::-1]}
    items = rated(columns)
    found = Raters.of(items, Limits(least_kappa=0.5))
    assert [who.kappa for who in found.agreement.annotators] == pytest.approx([1 / 3] * 3 + [-1])
    assert [(b.name, b.reason) for b in found.bad] == [("bad", "kappa with the others is -1.00")]
    sifted = Sifted.of(items, Limits(least_kappa=0.5), drop_bad=True)
    assert sifted.dropped == ["bad"]
    assert sifted.after is not None
    assert sifted.after.agreement.kappa == 1
    assert (sifted.before.ratings, sifted.after.ratings) == (48, 36)
    assert Sifted.of(items, Limits(least_kappa=0.5)).after is None
    # of two who disagree both stay
    assert Raters.of(rated({"a": good, "b": good[::-1]}), Limits(least_kappa=0.5)).bad == []


def test_who_rates_distractors_high() -> None:
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
    found = Raters.of(rated(columns, planted=5), Limits(most_preferred=0.25))
    assert {who.name: (who.planted, who.preferred) for who in found.agreement.annotators} == {
        "good": (5, 0),
        "flat": (5, 0.5),
        "fond": (5, 0.875),
        "so-so": (5, 0.125),
        "few": (4, 1),
        "only": (5, None),
    }
    assert [b.name for b in found.bad] == ["flat", "fond"]
    assert found.bad[1].reason == "rated 5 distractors above 88% of the other replies"
    other = Raters.of(rated(columns, planted=5), Limits(most_preferred=0.25), "none such")
    assert other.bad == []


def test_few_items_in_common_say_nothing_about_one() -> None:
    long: list[float | None] = [1, 2] * FEWEST
    once: list[float | None] = [2, *[None] * (2 * FEWEST - 1)]
    short: list[float | None] = [2, 1] * (FEWEST // 2)
    columns = {"ann": long, "bob": long, "once": once, "short": [*short[:-1], *[None] * 11]}
    found = Raters.of(rated(columns), Limits(least_kappa=0.2))
    kappas = {who.name: who.kappa for who in found.agreement.annotators}
    assert kappas == {"ann": 1, "bob": 1, "once": None, "short": None}
    assert found.bad == []


def test_ratings_that_name_nobody() -> None:
    items = [Item("1", "x", ratings=[1.0, 2.0]), Item("2", "x", ratings=3.0), Item("3", "x")]
    found = Sifted.of(items, Limits(0.2, 0.25), drop_bad=True)
    assert (found.before.names, found.dropped, found.items) == ([], [], items)


def test_without_ratings() -> None:
    items = [
        Item("1", "x", ratings={"ann": 1.0, "bob": 2.0}),
        Item("2", "x", ratings={"bob": 2.0}),
        Item("3", "x", ratings=[2.0]),
    ]
    assert [item.ratings for item in without_ratings(items, ["bob"])] == [{"ann": 1.0}, None, [2.0]]
    assert items[0].ratings == {"ann": 1.0, "bob": 2.0}
    with pytest.raises(DataError, match="no ratings are left"):
        Sifted.of(items[:2], NOBODY, ["ann", "bob"])


def test_bad_among_those_who_are_not_left_out_anyway() -> None:
    good = [1.0, 5.0] * 6
    columns = {"ann": good, "bob": good, "worse": good[::-1], "bad": [5.0, 1.0] * 5 + [1.0, 1.0]}
    sifted = Sifted.of(rated(columns), Limits(least_kappa=0.5), ["worse"], drop_bad=True)
    assert sifted.dropped == ["worse", "bad"]
    assert [b.name for b in sifted.bad] == ["bad"]


def test_what_has_no_kappa_is_said() -> None:
    crowd = {f"p{n}": [1.0, 2.0] for n in range(MOST_ANNOTATORS + 1)}
    found = Raters.of(rated(crowd), Limits(least_kappa=0.2))
    assert found.agreement.kappa is None
    assert found.agreement.left_out == "more than 200 annotators are not compared one by one"
    assert found.bad == []
    fine: list[float | None] = list(np.arange(1200) / 7)
    measured = Raters.of(rated({"a": fine, "b": fine, "c": fine}), Limits(least_kappa=0.2))
    assert measured.agreement.left_out == "more than 1,000 different ratings have no kappa"
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
    for limits in (Limits(least_kappa=0.2), Limits(most_preferred=0.25)):
        sifted = Sifted.of(items, limits, drop_bad=True)
        assert sifted.dropped == ["careless"]
        assert sifted.after is not None
        assert sifted.after.agreement.kappa > sifted.before.agreement.kappa + 0.1  # type: ignore[operator]
        with_all, without = (
            np.corrcoef(worth, [item.rating() for item in kept])[0, 1]
            for kept in (items, sifted.items)
        )
        assert without > with_all + 0.01
