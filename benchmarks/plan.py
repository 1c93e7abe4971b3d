"""How often the stop rule of ``plan`` is wrong, and what planning saves.

**False alarms**: studies of two systems that are equal, with a look after every rating from the
tenth to the 120th; a study is a false alarm if any look says that the difference is decided.
Contexts come in the order of the plan, first one reply, then the other. Ratings are simulated (from
1 to 5; 9 of 10 the best one; ratings of the two systems far apart in every context) or those of two
systems of a judged set, whose names are swapped at random in every context. The same studies show
how often somebody is wrong who stops at the first usual interval that excludes 0.

**Planned against random choice**: from a judged set that is taken for the whole truth, as many
ratings are drawn as a plan for a ranking asks for (whole contexts), one for means (single replies,
as many of each system), and at random from all replies. The figure is the mean squared error of
random choice over that of the plan, which is how many times as many ratings random choice needs.

    python benchmarks/plan.py [--studies N] [--draws N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np

from rejoinder.estimation.estimates import rated_replies
from rejoinder.estimation.looks import StopRule, looks_at
from rejoinder.estimation.planning import Question, choose, unit_sizes, units_of
from rejoinder.estimation.prediction_powered import Means, Replies, estimate_means
from rejoinder.estimation.sequential import anytime_quantile
from rejoinder.items import Item
from rejoinder.testsets import load
from table import show

Floats = np.ndarray[Any, np.dtype[np.float64]]

ALLOWED = 0.05
FIRST, LAST, CONTEXTS = 10, 120, 100
TOGETHER = 20
KINDS = ("1 to 5", "9 of 10 the best", "far apart", "dailydialog-multiref", "grade-convai2")
WITH_METRIC = ("1 to 5", "dailydialog-multiref")
SETS = ("dailydialog-multiref", "grade-convai2", "dstc7-msr")
BUDGET = 200


def equal_systems(kind: str, contexts: int, rng: np.random.Generator) -> Floats:
    """Return ratings [contexts, 2] of two systems whose true means are equal."""
    if kind in KINDS[3:]:
        pairs = rated_pairs(kind)
        drawn = pairs[rng.integers(len(pairs), size=contexts)]
        swap = rng.random(contexts) < 0.5
        drawn[swap] = drawn[swap, ::-1]
        return np.asarray(drawn)
    if kind == "9 of 10 the best":
        return np.where(rng.random((contexts, 2)) < 0.9, 5.0, 1.0)
    quality = 3 + 0.6 * rng.normal(size=(contexts, 1)) + 0.8 * rng.normal(size=(contexts, 2))
    if kind == "far apart":
        side = np.where(rng.random(contexts) < 0.5, 1.5, -1.5)
        quality += side[:, np.newaxis] * [1, -1]
    return np.asarray(np.clip(np.rint(quality), 1, 5))


_PAIRS: dict[str, Floats] = {}


def rated_pairs(name: str) -> Floats:
    """Return the ratings of the first and the last system to the contexts that both answered."""
    if name not in _PAIRS:
        replies, _ = rated_replies(list(load(name, "none")))
        table = np.full((int(replies.context.max()) + 1, replies.systems), np.nan)
        table[replies.context, replies.system] = replies.rating
        both = table[:, [0, -1]]
        _PAIRS[name] = both[~np.isnan(both).any(axis=1)]
    return _PAIRS[name].copy()


def false_alarms(kind: str, worth: float | None, studies: int) -> tuple[float, float]:
    """Return how often a study is decided at any look, and how often a usual interval was ever
    without 0.

    Without a metric (None) systems have nothing in common, and many studies are computed at once.
    """
    rng = np.random.default_rng(sum(kind.encode()) + (0 if worth is None else 1))
    rule, together = StopRule("difference"), 1 if worth is not None else TOGETHER
    decided, excluded = np.zeros(studies, bool), np.zeros(studies, bool)
    for first in range(0, studies, together):
        numbers = np.arange(first, min(first + together, studies))
        truth = np.array([equal_systems(kind, CONTEXTS, rng).ravel() for _ in numbers])
        system = 2 * (numbers - first)[:, np.newaxis] + np.tile([0, 1], CONTEXTS)
        context = CONTEXTS * (numbers - first)[:, np.newaxis] + np.repeat(np.arange(CONTEXTS), 2)
        scores = None
        if worth is not None:
            scores = worth * (truth - truth.mean()) / (truth.std() or 1.0)
            scores += np.sqrt(1 - worth**2) * rng.normal(size=truth.shape)
        rating = np.full(truth.shape, np.nan)
        rating[:, :FIRST] = truth[:, :FIRST]
        names = [f"{n}{side}" for n in numbers for side in "ab"]
        for count in range(FIRST, LAST + 1):
            rating[:, count - 1] = truth[:, count - 1]
            replies = Replies(
                system.ravel(), context.ravel(), rating.ravel(), np.ones(truth.size), len(names)
            )
            means = estimate_means(replies, None if scores is None else scores.ravel())
            for place in np.flatnonzero(_far(means)).tolist():
                number, pair = first + place, names[2 * place : 2 * place + 2]
                if decided[number] and excluded[number]:
                    continue
                for look in looks_at(means, names, pair, rule):
                    decided[number] |= look.decided
                    excluded[number] |= look.ci is not None and not look.ci[0] <= 0 <= look.ci[1]
    return float(decided.mean()), float(excluded.mean())


def after_every_context(kind: str, studies: int, contexts: int = 300) -> float:
    """Return how often the interval for all times ever excludes 0, looked at after every context;
    people alone, by the paired t-statistic, for all studies at once."""
    rng = np.random.default_rng(99)
    ratings = np.array([equal_systems(kind, contexts, rng) for _ in range(studies)])
    differences = ratings[..., 0] - ratings[..., 1]
    n = np.arange(1, contexts + 1)
    sums, squares = differences.cumsum(axis=1), (differences**2).cumsum(axis=1)
    variance = np.maximum(squares - sums**2 / n, 0) / np.maximum(n - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(sums / n) / np.sqrt(variance / n)
    quantile = np.array([anytime_quantile(int(count)) for count in n])
    return float((np.isfinite(t) & (t > quantile)).any(axis=1).mean())


def _far(means: Means) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return for each two systems whether their difference is more than one standard error: no
    interval excludes 0 otherwise, and a look can be saved."""
    table, diagonal = means.covariance, np.diag(means.covariance)
    even = np.arange(0, len(diagonal), 2)
    variance = diagonal[even] + diagonal[even + 1] - 2 * table[even, even + 1]
    difference = means.mean[even] - means.mean[even + 1]
    return np.asarray(difference**2 > variance)


def errors(
    items: list[Item], scores: Floats, how: Question | None, uneven: float, draws: int
) -> tuple[Floats, Floats, float]:
    """Return the squared errors of means [draws, systems] and differences, and the ratings used."""
    everything, names = rated_replies(items)
    truth, unrated = everything.rating, [_without(item) for item in items]
    pairs = list(combinations(range(len(names)), 2))
    true = np.array([truth[everything.system == s].mean() for s in range(len(names))])
    means, used = [], []
    units = None if how is None else units_of(unrated, how, names)
    for draw in range(draws):
        rating, weight = np.full(len(items), np.nan), np.ones(len(items))
        if units is None:
            rng = np.random.default_rng(draw)
            chosen = rng.choice(len(items), BUDGET, replace=False)
        else:
            sizes = unit_sizes(units, scores[np.newaxis], uneven)
            planned = choose(unrated, units, sizes, BUDGET, ratings=1, seed=draw)
            chosen = np.array(planned.chosen)
            weight[chosen] = 1 / planned.probability[chosen]
        rating[chosen] = truth[chosen]
        used.append(len(chosen))
        replies = Replies(everything.system, everything.context, rating, weight, len(names))
        means.append(estimate_means(replies, scores, target="replies").mean)
    found = np.array(means)
    differences = np.array([[row[a] - row[b] for a, b in pairs] for row in found])
    wanted = np.array([true[a] - true[b] for a, b in pairs])
    return (found - true) ** 2, (differences - wanted) ** 2, float(np.mean(used))


def _without(item: Item) -> Item:
    return Item(
        item.id, item.response, context=item.context, system=item.system, context_id=item.context_id
    )


def saved(name: str, worth: float, draws: int) -> Iterator[dict[str, Any]]:
    items = list(load(name, "none"))
    truth = rated_replies(items)[0].rating
    rng = np.random.default_rng(4)
    scores = worth * (truth - truth.mean()) / truth.std()
    scores += np.sqrt(1 - worth**2) * rng.normal(size=len(truth))
    began = time.perf_counter()
    base = errors(items, scores, None, 0.0, draws)
    for how, uneven, place in (
        ("ranking", 0.0, 1),
        ("ranking", 0.5, 1),
        ("mean", 0.0, 0),
        ("mean", 0.5, 0),
    ):
        assert how in ("ranking", "mean")
        ours = errors(items, scores, how, uneven, draws)
        # for the same number of ratings
        each = base[place].mean(axis=0) / ours[place].mean(axis=0) * base[2] / ours[2]
        pooled = base[place].mean() / ours[place].mean() * base[2] / ours[2]
        what = "differences" if place else "means"
        yield {
            "name": f"{name}, metric of correlation {worth:g}, plan for {what}, uneven {uneven:g}:"
            f" ratings that random choice needs for as small an error, {BUDGET} ratings, {draws}"
            f" draws, ± {each.std():.2f} between {what}",
            "ours_seconds": time.perf_counter() - began,
            "peer_seconds": 0.0,
            "ratio": float(pooled),
            "required": None,
        }
        began = time.perf_counter()


def run(studies: int, draws: int) -> Iterator[dict[str, Any]]:
    for kind in KINDS:
        began = time.perf_counter()
        wrong = after_every_context(kind, studies)
        yield {
            "name": f"equal systems, ratings {kind}, people alone: false alarms {wrong:.2%} of"
            f" {studies:,} studies of 300 contexts, looked at after every context, below 5 %",
            "ours_seconds": time.perf_counter() - began,
            "peer_seconds": 0.0,
            "ratio": ALLOWED / max(wrong, 1 / studies),
            "required": 1,
        }
    several = [(kind, None) for kind in KINDS] + [(kind, 0.6) for kind in WITH_METRIC]
    for kind, worth in several:
        began = time.perf_counter()
        wrong, usual = false_alarms(kind, worth, studies)
        metric = "people alone" if worth is None else f"metric of correlation {worth:g}"
        yield {
            "name": f"equal systems, ratings {kind}, {metric}: false alarms of the stop rule"
            f" {wrong:.2%} of {studies:,} studies, looked at after every rating (usual"
            f" intervals: {usual:.1%}), below 5 %",
            "ours_seconds": time.perf_counter() - began,
            "peer_seconds": 0.0,
            "ratio": ALLOWED / max(wrong, 1 / studies),
            "required": 1,
        }
    for name in SETS:
        for worth in (0.6, 0.3):
            yield from saved(name, worth, draws)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=500)
    arguments = parser.parse_args()
    show(run(arguments.studies, arguments.draws))


if __name__ == "__main__":
    main()
