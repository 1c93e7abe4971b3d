"""How often the intervals of ``estimate`` contain the true value, and how much a metric saves.

Each judged set is taken for the whole truth: its ratings are hidden but for some drawn at random.
In one design the mean of just these replies is asked for (``--target replies``), and n single
replies of each system are rated; in the other that of contexts like these (``--target contexts``):
a study has contexts drawn with replacement, and of some of them, n for each system, all replies are
rated. Simulated studies have ratings from 1 to 5, or 0 and 1, and systems that share contexts. Four
metrics score all replies:

    good         correlates at .6 with people
    useless      is noise
    adversarial  is reversed for every second system, with outliers
    real         a metric that needs references only (REAL); for sets without them 'rejoinder' with
                 an evaluator, if one is named

``favours`` is the good one that gives the first system 3 standard deviations more: intervals of the
metric alone fail, and those of ``estimate`` are the same to the last digit.

    python benchmarks/estimate.py [--evaluator DIR] [--draws N] [--markdown FILE] [SET …]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import rejoinder
from rejoinder.estimation.estimates import metric_alone, rated_replies
from rejoinder.estimation.prediction_powered import Means, Replies, Target, estimate_means
from rejoinder.testsets import load
from table import show

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]

SETS = (
    "dailydialog-multiref",
    "grade-convai2",
    "grade-empathetic",
    "dstc7-msr",
    "dbdc3-en",
    "conture",
)
REAL = {
    "dailydialog-multiref": ("multi", "sentence-cosine"),
    "grade-convai2": ("single", "sentence-cosine"),
    "grade-empathetic": ("single", "sentence-cosine"),
    "dstc7-msr": ("multi", "chrf"),
}
SIMULATED = ("simulated-1-to-5", "simulated-0-or-1")
SIZES = (20, 50, 200)
MOST_PAIRS = 6
LOW, HIGH, WIDER = 0.93, 0.97, 1.05


@dataclass
class World:
    """All replies of which the ratings are known."""

    name: str
    system: Ints
    context: Ints
    truth: Floats
    systems: int
    real: Floats | None = None
    real_name: str = ""

    @property
    def means(self) -> Floats:
        return np.array([self.truth[self.system == s].mean() for s in range(self.systems)])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.systems), 2))[:MOST_PAIRS]


@dataclass
class Tally:
    """Coverage and width of the intervals of one metric in one design."""

    world: World
    inside: list[Floats] = field(default_factory=list)
    """Rows of 0, 1 or NaN: means of systems, then differences of pairs."""
    widths: list[Floats] = field(default_factory=list)
    errors: list[Floats] = field(default_factory=list)
    claimed: list[Floats] = field(default_factory=list)
    """Variances as estimated."""

    def add(self, means: Means, true: Floats) -> None:
        ends = [means.interval(s) for s in range(self.world.systems)]
        ends += [means.difference(a, b)[1:3] for a, b in self.world.pairs]
        low, high = np.array(ends).T
        wanted = np.concatenate([true, [true[a] - true[b] for a, b in self.world.pairs]])
        inside = (low - 1e-12 <= wanted) & (wanted <= high + 1e-12)
        self.inside.append(np.where(np.isnan(low), np.nan, inside))
        self.widths.append(high - low)
        self.errors.append((means.mean - true) ** 2)
        self.claimed.append(np.diag(means.covariance))

    def coverage(self, part: slice) -> Floats:
        rows = np.array(self.inside)[:, part]
        return np.asarray(np.nanmean(rows, axis=0)) if rows.shape[1] else np.zeros(0)


@dataclass(frozen=True)
class Result:
    """What the intervals of a metric were worth with so many ratings of each system."""

    world: str
    design: str
    ratings: int
    metric: str
    means: Floats
    """[systems] share of draws in which the interval holds the mean."""
    differences: Floats
    width: float
    """Mean width of intervals of means over that of people alone."""
    difference_width: float
    saved: Floats
    """[systems] mean squared error of people alone over ours: effective ratings over real ones."""
    claimed: float
    """The same ratio as it is reported, mean over draws."""
    unknown: float
    """Share of the systems and draws without an interval: all ratings equal, or one context."""

    @property
    def extremes(self) -> tuple[float, float]:
        values = [self.means.mean(), *([self.differences.mean()] if len(self.differences) else [])]
        return float(min(values)), float(max(values))


def world(name: str, evaluator: str | None) -> World:
    if name in SIMULATED:
        return simulated(name)
    kind, metric = REAL.get(name, ("none", ""))
    items = list(load(name, kind))
    replies, _ = rated_replies(items)
    found = World(name, replies.system, replies.context, replies.rating, replies.systems)
    if not metric and evaluator is not None:
        metric = "rejoinder"
    if metric:
        needed = evaluator if metric == "rejoinder" else None
        result = rejoinder.score(items, metrics=metric, evaluator=needed, any_language=True)
        scores: Any = result.frame()
        value = dict(zip(scores["id"], scores.iloc[:, -1], strict=True))
        found.real = np.array([value[item.id] for item in items], float)
        found.real_name = metric
    return found


def simulated(name: str) -> World:
    """400 contexts with replies of three systems; what makes a context hard holds for all."""
    rng = np.random.default_rng(11)
    contexts, systems = 400, 3
    system, context = np.tile(np.arange(systems), contexts), np.repeat(np.arange(contexts), systems)
    quality = 0.6 * rng.normal(size=contexts)[context] + 0.8 * rng.normal(size=len(system))
    if name == "simulated-0-or-1":
        truth = (quality > np.array([0.9, 0.3, 0.0])[system]).astype(float)
    else:
        truth = np.clip(np.rint(quality + np.array([2.6, 3.3, 4.3])[system]), 1, 5)
    return World(name, system, context, truth, systems)


def metrics_of(given: World, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the scores of all replies."""
    standard = (given.truth - given.truth.mean()) / given.truth.std()
    noise = rng.normal(size=len(standard))
    sign = np.where(given.system % 2 == 0, -1.0, 1.0)
    scores = {
        "good": 0.6 * standard + 0.8 * noise,
        "useless": rng.normal(size=len(standard)),
        "adversarial": 0.6 * sign * standard + 0.8 * rng.standard_t(3, size=len(standard)),
    }
    if given.real is not None:
        scores["real"] = given.real
    return scores


def studies(
    given: World, target: Target, ratings: int, draws: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Replies]]:
    """Yield the numbers of a study's replies, and the study with few ratings."""
    order = np.argsort(given.context, kind="stable")
    contexts = int(given.context.max()) + 1
    starts = np.searchsorted(given.context[order], np.arange(contexts + 1))
    own = [np.flatnonzero(given.system == s) for s in range(given.systems)]
    kinds = np.zeros((contexts, given.systems), bool)
    kinds[given.context, given.system] = True
    stratum = np.unique(kinds, axis=0, return_inverse=True)[1].ravel()
    per_context = np.bincount(given.context)
    for _ in range(draws):
        if target == "replies":
            numbers, context = np.arange(len(given.truth)), given.context
            chosen = np.concatenate([rng.choice(each, ratings, replace=False) for each in own])
        else:
            drawn = rng.integers(0, contexts, contexts)
            numbers = np.concatenate([order[starts[c] : starts[c + 1]] for c in drawn])
            context = np.repeat(np.arange(contexts), per_context[drawn])
            chosen = np.flatnonzero(
                np.isin(context, _whole_contexts(stratum[drawn], given, ratings, rng))
            )
        rating = np.full(len(numbers), np.nan)
        rating[chosen] = given.truth[numbers[chosen]]
        weight = np.ones(len(numbers))
        yield numbers, Replies(given.system[numbers], context, rating, weight, given.systems)


def _whole_contexts(stratum: Ints, given: World, ratings: int, rng: np.random.Generator) -> Ints:
    """Return contexts with about so many ratings of each system, as many of each kind by share."""
    share = ratings * given.systems / len(given.truth)
    taken = []
    for kind in np.unique(stratum):
        own = np.flatnonzero(stratum == kind)
        wanted = share * len(own)
        count = int(wanted) + (rng.random() < wanted - int(wanted))
        taken.append(rng.choice(own, min(max(count, 1), len(own)), replace=False))
    return np.concatenate(taken)


def measure(given: World, target: Target, ratings: int, draws: int) -> Iterator[Result]:
    rng = np.random.default_rng(ratings)
    scores = metrics_of(given, np.random.default_rng(5))
    true = given.means
    alone, tallies = Tally(given), {name: Tally(given) for name in scores}
    believed, favoured = Tally(given), scores["good"] + 3.0 * (given.system == 0)
    for draw, (numbers, study) in enumerate(studies(given, target, ratings, draws, rng)):
        alone.add(estimate_means(study, None, target=target), true)
        for name, values in scores.items():
            means = estimate_means(study, values[numbers], target=target)
            tallies[name].add(means, true)
            if name == "good" and draw < 20:
                again = estimate_means(study, favoured[numbers], target=target)
                assert np.allclose(again.mean, means.mean, equal_nan=True)
                assert np.allclose(again.covariance, means.covariance, equal_nan=True)
        ends = metric_alone(study, study.rated, favoured[numbers], "linear", 0.95)
        inside = [
            np.nan if each.ci is None else each.ci[0] <= value <= each.ci[1]
            for each, value in zip(ends, true, strict=True)
        ]
        believed.inside.append(np.array(inside, float))
    systems, pairs = slice(0, given.systems), slice(given.systems, None)
    plain = np.array(alone.widths)
    design = "single replies" if target == "replies" else "whole contexts"
    for name, tally in {"people alone": alone, **tallies}.items():
        wide = np.array(tally.widths)
        known = ~np.isnan(wide)
        variance, ours = np.array(alone.claimed), np.array(tally.claimed)
        usable = ~np.isnan(variance) & (ours > 0)
        yield Result(
            given.name,
            design,
            ratings,
            given.real_name if name == "real" else name,
            tally.coverage(systems),
            tally.coverage(pairs),
            float(wide[known].mean() / plain[known].mean()),
            float(np.nanmean(wide[:, pairs]) / np.nanmean(plain[:, pairs])) if given.pairs else 1.0,
            np.mean(alone.errors, axis=0) / np.mean(tally.errors, axis=0),
            float((variance[usable] / ours[usable]).mean()),
            float(1 - known[:, systems].mean()),
        )
    nothing = np.ones(given.systems)
    held = believed.coverage(systems)
    yield Result(
        given.name, design, ratings, "metric alone, favours", held, np.zeros(0), 1, 1, nothing, 1, 0
    )


def results(names: list[str], evaluator: str | None, draws: int) -> Iterator[Result]:
    for name in names:
        given = world(name, evaluator)
        smallest = int(np.bincount(given.system).min())
        targets: tuple[Target, ...] = ("replies", "contexts")
        for target in targets:
            for ratings in SIZES:
                if ratings < 0.7 * smallest:
                    yield from measure(given, target, ratings, draws)


def rows(found: Iterator[Result], kept: list[Result]) -> Iterator[dict[str, Any]]:
    began = time.perf_counter()
    for each in found:
        kept.append(each)
        if each.metric in ("people alone", "metric alone, favours"):
            continue
        low, high = each.extremes
        yield {
            "name": f"{each.world}, {each.ratings} ratings of {each.design}, {each.metric}: 95 %"
            f" intervals cover means in {each.means.mean():.1%}"
            + (f", differences in {each.differences.mean():.1%}" if len(each.differences) else "")
            + f"; width over people alone {each.width:.2f}",
            "ours_seconds": time.perf_counter() - began,
            "peer_seconds": 0.0,
            "ratio": low / 0.95,
            "required": LOW / 0.95,
            "enough": high <= HIGH and max(each.width, each.difference_width) <= WIDER,
        }
        began = time.perf_counter()


def markdown(kept: list[Result]) -> str:
    """Return the tables of the documentation."""
    lines = [
        "| set | rated | ratings | metric | means | differences | width | effective |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for each in kept:
        pair = f"{each.differences.mean():.1%}" if len(each.differences) else "–"
        alone = each.metric == "metric alone, favours"
        saved = "–" if alone else f"{each.saved.mean():.2f} ± {each.saved.std():.2f}"
        width = "–" if alone else f"{each.width:.2f}"
        lines.append(
            f"| {each.world} | {each.design} | {each.ratings} | {each.metric} |"
            f" {each.means.mean():.1%} ({each.means.min():.0%} to {each.means.max():.0%}) | {pair}"
            f" | {width} | {saved} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", default=[*SIMULATED, *SETS])
    parser.add_argument("--evaluator", metavar="DIR", help="folder for the metric 'rejoinder'")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table here, too")
    arguments = parser.parse_args()
    kept: list[Result] = []
    try:
        show(rows(results(arguments.sets, arguments.evaluator, arguments.draws), kept))
    finally:
        if arguments.markdown is not None:
            arguments.markdown.write_text(markdown(kept), encoding="utf-8")


if __name__ == "__main__":
    main()
