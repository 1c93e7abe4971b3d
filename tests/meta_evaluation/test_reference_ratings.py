"""Weights of references against people's ratings: matching, and correlations by hand."""

from __future__ import annotations

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item, Reference
from rejoinder.meta_evaluation.agreement import alpha_interval
from rejoinder.meta_evaluation.reference_ratings import RatedContexts, WeightedReferences
from rejoinder.verbs.monitor import RejoinderWarning

TEXTS = [f"reply {n}" for n in range(12)]
ANN = [float(n) for n in range(12)]
BOB = [float(n + 1 if n % 2 == 0 else n - 1) for n in range(12)]
WEIGHTS = [n / 12 for n in range(12)]


def human(ratings) -> list[Item]:
    """Four contexts with three rated references each."""
    return [
        Item(
            f"i{c}",
            "x",
            context=[f"turn {c}"],
            references=[Reference(TEXTS[n], ratings=ratings(n)) for n in range(3 * c, 3 * c + 3)],
        )
        for c in range(4)
    ]


def named(n: int) -> dict[str, float]:
    return {"ann": ANN[n], "bob": BOB[n]}


def expanded(weights=WEIGHTS) -> list[Item]:
    return [
        Item(
            f"i{c}",
            "x",
            context=[f"turn {c}"],
            references=[
                Reference("original"),
                *(Reference(TEXTS[n], weights[n], "retrieved") for n in range(3 * c, 3 * c + 3)),
            ],
        )
        for c in range(4)
    ]


def test_correlations_by_hand() -> None:
    """Ann rates in the order of the weights; bob swaps neighbours, six times."""
    found = rejoinder.meta_references(human(named), expanded(), resamples=200)
    correlations = found.result.correlations
    # the mean of n and n + 1 is the same for both of a pair: two times 6 tied ranks. Pearson and
    # Spearman: values -11/2 … 11/2 against -5, -5, -3, -3 … 5, 5: the sum of products is 2 *
    # (5 * (11/2 + 9/2) + 3 * (7/2 + 5/2) + 1 * (3/2 + 1/2)) = 140, the squares sum to 143 and 140
    value = 140 / np.sqrt(143 * 140)
    assert correlations.pearson.value == pytest.approx(value)
    assert correlations.spearman.value == pytest.approx(value)
    # tau-b: of 66 pairs 6 are tied by people, no other is discordant: 60 / sqrt(66 * 60)
    assert correlations.kendall.value == pytest.approx(60 / np.sqrt(66 * 60))
    assert found.result.annotators is not None
    # ann 1; bob 1 - 6 * 12 / (12 * 143), and (66 - 2 * 6) / 66
    bob, tau = 1 - 6 / 143, 54 / 66
    for statistic in ("spearman", "pearson"):
        expected = {"max": 1, "min": bob, "mean": (1 + bob) / 2}
        assert found.result.annotators[statistic] == pytest.approx(expected)
    assert found.result.annotators["kendall"] == pytest.approx(
        {"max": 1, "min": tau, "mean": (1 + tau) / 2}
    )
    assert found.humans is not None
    assert found.humans.pairwise["spearman"] == pytest.approx({"max": bob, "min": bob, "mean": bob})
    # three at a time: the contexts are drawn
    contexts = np.repeat(np.arange(4), 3)
    assert found.humans.alpha_ci == alpha_interval([ANN, BOB], contexts, resamples=200)
    assert (found.contexts, correlations.n) == (4, 12)
    assert (found.unmatched, found.unweighted, found.unrated) == (0, 0, 0)
    low, high = correlations.pearson.low, correlations.pearson.high
    assert low is not None
    assert high is not None
    assert low <= value <= high


def test_one_context_has_no_interval() -> None:
    """Nothing to resample: three references of one context."""
    one, weights = human(lambda n: [1.0, 3.0, 2.0][n % 3])[:1], expanded()[:1]
    pearson = rejoinder.meta_references(one, weights).result.correlations.pearson
    assert pearson.value == pytest.approx(0.5)  # -1, 1, 0 against -1, 0, 1
    assert (pearson.low, pearson.high) == (None, None)


def rated_as(text: str, rating: float) -> Reference:
    return Reference(text, ratings=float(rating))


def test_references_are_matched_by_id_or_context_and_counted_once() -> None:
    rated = [
        Item("1", "x", ["a"], references=[rated_as("p", 1), rated_as("q", 2)]),
        # the same context; p has its rating once more
        Item("2", "y", ["a"], references=[rated_as("p", 1), rated_as("r", 3)]),
        Item("3", "z", ["b"], references=[rated_as("p", 5), rated_as("s", 0)]),
        Item("4", "z", context_id="own", references=[rated_as("t", 4)]),
    ]
    weighted = [
        # another id, the context of 1 and 2
        Item("9", "", ["a"], references=[Reference("p", 0.2), Reference("q"), Reference("u", 1)]),
        Item("8", "x", ["a"], references=[Reference("p", 0.4), Reference("u", 0.9)]),
        # the id of 4, of which no context is known
        Item("4", "x", references=[Reference("t", -1.0)]),
        # the id of 1, but other turns: the context b counts
        Item("1", "x", ["b"], references=[Reference("p", 0.7), Reference("q", 0.1)]),
        Item("7", "x", ["c"], references=[Reference("p", 0.6)]),
    ]
    found = WeightedReferences.of(RatedContexts.of(rated), weighted)
    assert [(item.response, item.ratings) for item in found.items] == [
        ("p", 1.0),
        ("p", 5.0),
        ("t", 4.0),
    ]
    assert found.weights == pytest.approx([0.3, 0.7, -1.0])
    assert found.contexts == 3
    # r of a and s of b are missing; q of a has no weight; u of a, q of b and p of c have no rating
    assert (found.unmatched, found.unweighted, found.unrated) == (2, 1, 3)


def test_ratings_of_several_items_of_a_context_are_merged() -> None:
    def items(first, second) -> list[Item]:
        return [
            Item(str(n), "x", ["a"], references=[Reference("p", ratings=each)])
            for n, each in enumerate((first, second))
        ]

    both = RatedContexts.of(items({"ann": 1.0}, {"bob": 2.0}))
    assert list(both.ratings.values()) == [{"ann": 1.0, "bob": 2.0}]
    assert list(RatedContexts.of(items([1.0], [1.0])).ratings.values()) == [[1.0]]
    for pair in (({"ann": 1.0}, {"ann": 2.0}), ([1.0], [2.0]), (1.0, {"ann": 1.0})):
        with pytest.raises(DataError, match="the reference 'p' of the item '1' has other ratings"):
            RatedContexts.of(items(*pair))


def test_one_file_may_have_both() -> None:
    items = [
        Item(
            str(c),
            "x",
            context_id=str(c),
            references=[Reference("p", w, ratings=[r]), Reference("q", 0.5)],
        )
        for c, (w, r) in enumerate([(0.1, 1.0), (0.2, 3.0), (0.3, 2.0), (0.4, 4.0)])
    ]
    found = rejoinder.meta_references(items)
    # ranks 1 3 2 4: 1 - 6 * 2 / (4 * 15); 5 of 6 pairs in the same order
    assert found.result.correlations.spearman.value == pytest.approx(0.8)
    assert found.result.correlations.kendall.value == pytest.approx(4 / 6)
    assert found.unrated == 4
    assert found.result.annotators is None
    assert found.humans is None
    assert rejoinder.meta_references(items, items) == found


def test_undefined_correlations_say_why() -> None:
    same = rejoinder.meta_references(human(lambda n: {"ann": 3.0, "bob": 3.0}), expanded())
    assert same.result.undefined == "all ratings of the scored units are equal"
    assert same.result.correlations.spearman.value is None
    assert same.humans is not None
    assert (same.humans.alpha, same.humans.kappa, same.humans.pairwise) == (None, None, {})
    flat = rejoinder.meta_references(human(named), expanded([0.5] * 12))
    assert flat.result.undefined == "all scores are equal"
    alone = rejoinder.meta_references(human(lambda n: {"ann": BOB[n]}), expanded())
    assert alone.result.annotators is not None
    spearman = alone.result.correlations.spearman.value
    assert alone.result.annotators["spearman"] == pytest.approx(
        dict.fromkeys(("max", "min", "mean"), spearman)
    )
    assert alone.humans is not None
    assert (alone.humans.alpha, alone.humans.kappa, alone.humans.pairwise) == (None, None, {})


def test_weights_that_were_made_of_the_ratings_are_noticed() -> None:
    made = expanded([(ANN[n] + BOB[n]) / 11 - 1 for n in range(12)])
    with pytest.warns(RejoinderWarning, match="the weights are people's mean ratings"):
        rejoinder.meta_references(human(named), made)


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(DataError, match="no reference has ratings"):
        rejoinder.meta_references(expanded(), expanded())
    with pytest.raises(DataError, match="none of the 12 rated references is among the references"):
        rejoinder.meta_references(human(named), [Item("z", "x", references=[Reference("?", 1.0)])])
    with pytest.raises(DataError, match="the rated references have no weights here"):
        rejoinder.meta_references(human(named))
    with pytest.raises(UsageError, match="min_kappa= must be from -1 to 1"):
        rejoinder.meta_references(human(named), min_kappa=2)


def test_unreliable_annotators_are_dropped() -> None:
    rng = np.random.default_rng(1)
    good = np.repeat(np.arange(5.0), 8)
    ratings = {
        "ann": good,
        "bob": np.clip(good + rng.integers(-1, 2, 40), 0, 4),
        "cy": np.clip(good + rng.integers(-1, 2, 40), 0, 4),
        "careless": rng.integers(0, 5, 40).astype(float),
    }
    rated = [
        Item(
            str(n),
            "x",
            references=[Reference("p", ratings={k: float(v[n]) for k, v in ratings.items()})],
        )
        for n in range(40)
    ]
    weighted = [
        Item(str(n), "x", references=[Reference("p", float(np.clip(w, -1, 1)))])
        for n, w in enumerate(good / 4 - 0.5 + 0.2 * rng.normal(size=40))
    ]
    found = rejoinder.meta_references(rated, weighted)
    assert found.before is None
    assert found.annotators is not None
    assert [each.name for each in found.annotators.unreliable] == ["careless"]
    after = rejoinder.meta_references(rated, weighted, drop_unreliable=True)
    assert after.before == found.result
    assert after.annotators is not None
    assert after.annotators.dropped == ["careless"]
    by_hand = np.corrcoef(
        np.mean([ratings[name] for name in ("ann", "bob", "cy")], axis=0),
        [item.references[0].weight for item in weighted],
    )[0, 1]
    assert after.result.correlations.pearson.value == pytest.approx(by_hand)
    assert after.to_dict()["annotators"]["before"]["results"][0]["n"] == 40
    # who is dropped leaves references that only they rated without a rating
    only = [*rated[1:], Item("0", "x", references=[Reference("p", ratings={"careless": 1.0})])]
    fewer = rejoinder.meta_references(only, weighted, drop_annotators="careless")
    assert fewer.result.correlations.n == 39


def test_the_frame_has_one_row() -> None:
    frame = rejoinder.meta_references(human(named), expanded(), resamples=50).frame(to="pandas")
    assert frame["n"].tolist() == [12]
    assert frame["kendall"].tolist() == pytest.approx([60 / np.sqrt(66 * 60)])
