"""Intervals that are looked at all the time, and the stop rule."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy.stats import t as student

from rejoinder.estimation.looks import StopRule, looks
from rejoinder.estimation.sequential import anytime_p, anytime_quantile, prior_variance
from rejoinder.items import Item


def test_quantile_by_hand() -> None:
    """α = .05: x - log(1 + x) = 2 log 20 = 5.9915 has the solution x = 8.2120, as
    8.2120 - log 9.2120 = 8.2120 - 2.2205. For n = 100, c = 9.2120 and
    K = (√9.2120 / .05)^(2/100) = 60.703^.02 = 1.08558, so t² = 99 · .08558 / (1 - .11784) = 9.6043.
    """
    assert prior_variance() * 100 == pytest.approx(8.2120, abs=1e-4)
    assert anytime_quantile(100) == pytest.approx(math.sqrt(9.6043), abs=2e-4)


def test_no_interval_before_ten_contexts() -> None:
    assert [anytime_quantile(n) for n in (0, 1, 2, 9)] == [math.inf] * 4
    assert math.isfinite(anytime_quantile(12))


def test_for_many_contexts_it_is_robbins_normal_mixture() -> None:
    for n in (20_000, 100_000):
        c = 1 + n * prior_variance()
        mixture = math.sqrt(c / (c - 1) * math.log(c / 0.05**2))
        assert anytime_quantile(n) == pytest.approx(mixture, rel=1e-3)


def test_always_wider_than_student() -> None:
    for n in (12, 20, 50, 100, 1000):
        for confidence in (0.8, 0.95, 0.995):
            assert anytime_quantile(n, confidence) > student.ppf((1 + confidence) / 2, n - 1)


def test_p_is_the_level_at_which_the_interval_reaches_zero() -> None:
    for n in (15, 40, 400):
        assert anytime_p(anytime_quantile(n), n) == pytest.approx(0.05)
    assert anytime_p(0, 50) == 1 == anytime_p(math.nan, 50) == anytime_p(9, 1)
    assert anytime_p(6, 50) < anytime_p(4, 50) < 0.05


def test_the_likelihood_ratio_is_a_martingale() -> None:
    """Mean of 1 / p (not cut at 1) over normal samples without an effect is 1, at any n: here with
    n = 12 and 40,000 samples, within four standard errors."""
    n, g = 12, prior_variance()
    rng = np.random.default_rng(2)
    values = rng.normal(0, 3, size=(40_000, n))
    ts = values.mean(axis=1) / values.std(axis=1, ddof=1) * math.sqrt(n)
    c = 1 + n * g
    x = ts**2 / (n - 1)
    ratios = ((1 + x) / (1 + x / c)) ** (n / 2) / math.sqrt(c)
    assert ratios.mean() == pytest.approx(1, abs=4 * ratios.std() / 200)
    least = np.minimum(1, 1 / ratios[:50])
    assert [anytime_p(value, n) for value in ts[:50]] == pytest.approx(least)


def _alarms(differences: np.ndarray, quantile: np.ndarray) -> np.ndarray:
    """Whether an interval ever excluded 0 at one of the looks, one after each context [studies]."""
    n = np.arange(1, differences.shape[1] + 1)
    sums, squares = differences.cumsum(axis=1), (differences**2).cumsum(axis=1)
    variance = np.maximum(squares - sums**2 / n, 0) / np.maximum(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ts = np.abs(sums / n) / np.sqrt(variance / n)
    return np.asarray((np.isfinite(ts) & (ts > quantile)).any(axis=1))


@pytest.mark.parametrize("kind", ["even", "skewed"])
def test_false_alarms_with_a_look_after_every_context(kind: str) -> None:
    """1,000 studies of equal systems, ratings 1 to 5, 300 contexts each. Below 5 %, with room for
    three standard errors of what is measured; intervals meant for one look err far more often."""
    rng = np.random.default_rng(11)
    latent = rng.normal(size=(1000, 300, 1)) * 0.7 + rng.normal(size=(1000, 300, 2))
    ratings = np.where(latent > 1.8, 5, 1) if kind == "skewed" else np.rint(3 + latent).clip(1, 5)
    differences = (ratings[..., 0] - ratings[..., 1]).astype(float)
    counts = np.arange(1, 301)
    watched = _alarms(differences, np.array([anytime_quantile(int(n)) for n in counts]))
    once = student.ppf(0.975, np.maximum(counts - 1, 1))
    assert watched.mean() < 0.05
    assert _alarms(differences[:, 12:], once[12:]).mean() > 0.2


def rated(contexts: int, shift: float, seed: int = 0, missing: int = 0) -> list[Item]:
    rng = np.random.default_rng(seed)
    items = []
    for n in range(contexts):
        base = rng.normal(3, 0.8)
        for system, more in (("a", shift), ("b", 0.0)):
            rating = float(base + more + rng.normal(0, 0.6))
            items.append(
                Item(f"{n}{system}", "r", system=system, context_id=str(n), ratings=rating)
            )
    items += [
        Item(f"x{n}{s}", "r", system=s, context_id=f"x{n}") for n in range(missing) for s in "ab"
    ]
    return items


def test_a_look_is_the_paired_t_statistic_with_a_wider_quantile() -> None:
    items = rated(40, 0.5)
    first = np.array([item.rating() for item in items if item.system == "a"], float)
    second = np.array([item.rating() for item in items if item.system == "b"], float)
    differences = first - second
    (look,) = looks(items, None, ["a", "b"], StopRule("difference"))
    error = differences.std(ddof=1) / math.sqrt(40)
    assert (look.a, look.b) == ("a", "b") and look.contexts == pytest.approx(40)
    assert look.estimate == pytest.approx(differences.mean())
    assert look.anytime_ci == pytest.approx(
        (
            differences.mean() - anytime_quantile(40) * error,
            differences.mean() + anytime_quantile(40) * error,
        )
    )
    assert look.ci is not None and look.anytime_ci is not None
    # Student's, but for the skewness of the differences (test_prediction_powered.py)
    reach = student.ppf(0.975, 39) * error
    assert look.ci[0] == pytest.approx(differences.mean() - reach, abs=0.02 * reach)
    assert look.anytime_p == pytest.approx(anytime_p(differences.mean() / error, 40))
    assert look.decided == (look.anytime_ci[0] > 0)


def test_the_stop_rule() -> None:
    clear = looks(rated(60, 1.0), None, ["a", "b"], StopRule("difference"))
    assert [look.decided for look in clear] == [True]
    equal = looks(rated(60, 0.0), None, ["a", "b"], StopRule("difference"))
    assert [look.decided for look in equal] == [False]
    # as narrow as wanted, whatever the difference
    (narrow,) = looks(rated(60, 0.0), None, ["a", "b"], StopRule("difference", width=5))
    assert narrow.decided
    means = looks(rated(60, 0.0), None, ["a", "b"], StopRule("mean"))
    assert [(look.a, look.b, look.decided) for look in means] == [
        ("a", None, False),
        ("b", None, False),
    ]
    (few,) = looks(rated(8, 3.0), None, ["a", "b"], StopRule("difference"))
    assert (few.anytime_ci, few.decided) == (None, False)


def test_all_differences_equal_decide_nothing() -> None:
    """Without any variation nothing is known about the error."""
    items = [
        Item(f"{n}{s}", "r", system=s, context_id=str(n), ratings=float(4 - (s == "b")))
        for n in range(30)
        for s in "ab"
    ]
    (look,) = looks(items, None, ["a", "b"], StopRule("difference"))
    assert look.estimate == pytest.approx(1)
    assert (look.anytime_ci, look.decided) == (None, False)


def test_just_these_replies_are_decided_when_all_are_rated() -> None:
    """Differences 1 in all contexts: known for these replies, but one unrated reply is enough for
    nothing to be known. Equal means are not decided without a width, and with one they are."""
    items = [
        Item(f"{n}{s}", "r", system=s, context_id=str(n), ratings=float(4 + n % 2 - (s == "b")))
        for n in range(4)
        for s in "ab"
    ]
    rule = StopRule("difference")
    (look,) = looks(items, None, ["a", "b"], rule, target="replies")
    assert (look.estimate, look.ci, look.anytime_ci) == (1, (1, 1), (1, 1))
    assert (look.anytime_p, look.decided) == (0, True)
    more = [*items, *(Item(f"5{s}", "r", system=s, context_id="5") for s in "ab")]
    (look,) = looks(more, None, ["a", "b"], rule, target="replies")
    assert (look.anytime_ci, look.decided) == (None, False)
    same = [
        msgspec.structs.replace(item, ratings=3.0 + int(item.context_id or 0) % 2) for item in items
    ]
    (look,) = looks(same, None, ["a", "b"], rule, target="replies")
    assert (look.anytime_ci, look.anytime_p, look.decided) == ((0, 0), 1, False)
    (look,) = looks(same, None, ["a", "b"], StopRule("difference", width=0.5), target="replies")
    assert look.decided


def test_several_pairs_share_the_permitted_errors() -> None:
    items = rated(50, 0.6) + [
        Item(f"{n}c", "r", system="c", context_id=str(n), ratings=2.0 + n % 3) for n in range(50)
    ]
    three = looks(items, None, ["a", "b", "c"], StopRule("ranking"))
    (pair,) = looks(items, None, ["a", "b"], StopRule("difference"))
    assert len(three) == 3
    (same,) = (look for look in three if {look.a, look.b} == {"a", "b"})
    assert same.anytime_ci is not None and pair.anytime_ci is not None
    wide = (same.anytime_ci[1] - same.anytime_ci[0]) / (pair.anytime_ci[1] - pair.anytime_ci[0])
    assert wide == pytest.approx(anytime_quantile(50, 1 - 0.05 / 3) / anytime_quantile(50))


def test_no_ratings_no_looks() -> None:
    assert looks(rated(0, 0, missing=5), None, ["a", "b"], StopRule("difference")) == []
