"""What people would say of each system and each pair: from ratings, from a metric, from both."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from rejoinder.errors import DataError
from rejoinder.estimation.folds import folds_of
from rejoinder.estimation.isotonic import isotonic_curve
from rejoinder.estimation.people import People
from rejoinder.estimation.prediction_powered import (
    Floats,
    Ints,
    Means,
    Replies,
    Target,
    estimate_means,
)
from rejoinder.estimation.rated_scores import independent_group
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import Joined, abbreviated, numbered
from rejoinder.meta_evaluation.ranking import higher_is_better
from rejoinder.meta_evaluation.significance import holm, letters
from rejoinder.wording import option

Method = Literal["linear", "isotonic"]
METHODS: tuple[Method, ...] = ("linear", "isotonic")
CONFIDENCE = 0.95
NOT_AT_RANDOM = 1e-4
"""p-value, over all systems, below which rated replies don't look like a random draw."""


@dataclass(frozen=True)
class OneEstimate:
    """A mean rating with its interval; None where it can't be known."""

    mean: float | None
    ci: tuple[float, float] | None


@dataclass(frozen=True)
class SystemEstimate:
    """The mean rating of a system."""

    system: str
    mean: float | None
    ci: tuple[float, float] | None
    people_only: OneEstimate
    """From the ratings alone."""
    metric_only: OneEstimate
    """From the scores alone, brought to the scale by one line, or curve, for all systems. Its
    interval knows nothing of a metric that favours a system."""
    ratings: int
    """Rated replies."""
    effective_ratings: float | None
    """Rated replies that people alone would need for an interval of the same width."""
    replies: int
    contexts: int
    """Contexts with a rated reply."""
    slope: float | None
    """By how much the rating rises when the metric's prediction rises by 1."""
    group: str
    """Letters: systems that share one can't be told apart at the 5 % level."""


@dataclass(frozen=True)
class PairEstimate:
    """By how much people rate one system higher than another."""

    a: str
    b: str
    difference: float
    ci: tuple[float, float] | None
    p: float | None
    p_adjusted: float | None
    """For all pairs (Holm)."""
    people_only: OneEstimate
    contexts: int
    """Contexts that both answered."""


@dataclass(frozen=True)
class Estimates:
    """Estimates of all systems, highest first, and of all pairs whose means are known."""

    systems: list[SystemEstimate]
    pairs: list[PairEstimate]
    metrics: list[str]
    method: Method
    target: Target
    confidence: float
    people: People
    unscored: int
    """Replies that the metric could not score; they count as average ones of their system."""
    warnings: list[str]
    notes: list[str]
    means: Means
    names: list[str]
    """Systems in the order of ``means``."""

    @property
    def ratings(self) -> int:
        """Number of rated replies."""
        return sum(each.ratings for each in self.systems)

    @property
    def effective_ratings(self) -> float | None:
        """Rated replies that people alone would need, over all systems."""
        known = [each.effective_ratings for each in self.systems if each.ratings]
        if not known or any(each is None for each in known):
            return None
        return float(sum(each for each in known if each is not None))


def standard_scores(joined: Joined, metrics: Sequence[str]) -> Floats:
    """Return the scores of one metric, or the mean of the standard scores of several, higher is
    better; NaN where one of them has none."""
    rows = []
    for name in metrics:
        values = joined.item_scores[name] * (1.0 if higher_is_better(name) else -1.0)
        known = values[~np.isnan(values)]
        if len(metrics) > 1:
            spread = float(known.std()) if known.size else 0.0
            values = (values - known.mean()) / spread if spread > 0 else values * 0.0
        rows.append(values)
    return np.asarray(np.mean(rows, axis=0))


def estimate_systems(
    items: Sequence[Item],
    scores: Floats,
    metrics: Sequence[str],
    *,
    method: Method = "linear",
    folds: int = 5,
    target: Target = "contexts",
    confidence: float = CONFIDENCE,
    scale: tuple[float, float] | None = None,
    seed: int = 12345,
) -> Estimates:
    """Estimate the mean rating of each system from the rated items and the ``scores`` of all."""
    replies, names = rated_replies(items)
    rated = replies.rated
    _check(replies, rated, scores, metrics)
    people = People.of(items, scale)
    predicted, fold = _predicted(replies, rated, scores, method, folds, seed)
    both = estimate_means(replies, predicted, fold, target=target)
    alone = estimate_means(replies, None, target=target)
    metric = metric_alone(replies, rated, scores, method, confidence)
    order = sorted(range(len(names)), key=lambda s: (math.isnan(both.mean[s]), -both.mean[s], s))
    warnings, notes = (
        _warnings(replies, scores, names, metrics),
        _notes(replies, names, people, both),
    )
    notes += _mixed_probabilities(items, replies, names)
    pairs, group = _pairs(replies, names, order, both, alone, confidence)
    unscored = int(np.isnan(scores).sum())
    if unscored:
        notes.append(
            f"{unscored:,} of {len(items):,} replies have no score; they count as average replies"
            " of their system"
        )
    count = np.bincount(replies.system[rated], minlength=len(names))
    everything = np.bincount(replies.system, minlength=len(names))
    contexts = _rated_contexts(replies, rated)
    systems = []
    for s in order:
        here, people_only = _one(both, s, confidence), _one(alone, s, confidence)
        slope = float(both.slope[s])
        systems.append(
            SystemEstimate(
                names[s],
                here.mean,
                here.ci,
                people_only,
                metric[s],
                int(count[s]),
                _effective(both, alone, s, int(count[s])),
                int(everything[s]),
                int(contexts[s]),
                None if math.isnan(slope) else slope,
                group.get(s, ""),
            )
        )
    return Estimates(
        systems,
        pairs,
        list(metrics),
        method,
        target,
        confidence,
        people,
        unscored,
        warnings,
        notes,
        both,
        names,
    )


def rated_replies(items: Sequence[Item]) -> tuple[Replies, list[str]]:
    """Return the items as columns, and the names of the systems.

    Replies without a known probability of having been chosen count alike in a system of which none
    is known; beside others they stand for themselves.
    """
    system, names = numbered(item.system for item in items)
    context = numbered(independent_group(item) for item in items)[0]
    ratings = [item.rating() for item in items]
    rating = np.array([np.nan if each is None else each for each in ratings], float)
    weight = np.array([1 / (item.inclusion_probability or 1.0) for item in items])
    return Replies(system, context, rating, weight, len(names)), names


def _check(replies: Replies, rated: Ints, scores: Floats, metrics: Sequence[str]) -> None:
    if not rated.size:
        raise DataError("no item has ratings; an estimate needs the field 'ratings' on some items")
    ratings = replies.rating[rated]
    if rated.size == 1:
        raise DataError("one item has ratings; an interval needs ratings of several contexts")
    if ratings.min() == ratings.max():
        raise DataError(
            f"all {rated.size:,} ratings are {ratings[0]:g}; how much they vary, and so an"
            " interval, can't be known from them"
        )
    if np.isnan(scores).all():
        raise DataError(f"no item has a score by {' and '.join(metrics)}")


def _predicted(
    replies: Replies, rated: Ints, scores: Floats, method: Method, folds: int, seed: int
) -> tuple[Floats, Ints | None]:
    """Return the scores, or for isotonic curves [folds, n] the ratings that they predict."""
    if method == "linear":
        return scores, None
    fold = np.zeros(len(scores), np.int64)
    fold[rated] = folds_of(replies.context[rated], folds, seed)
    rows = [_curve(replies, rated[fold[rated] != number], scores) for number in range(folds)]
    return np.array(rows), fold


def _curve(replies: Replies, learn: Ints, scores: Floats) -> Floats:
    """Return the ratings that an isotonic curve predicts, learnt from some rated replies."""
    learn = learn[~np.isnan(scores[learn])]
    if len(learn) < 2:
        return np.where(np.isnan(scores), np.nan, 0.0)
    known = ~np.isnan(scores)
    predicted = np.full(len(scores), np.nan)
    curve = isotonic_curve(scores[learn], replies.rating[learn])
    predicted[known] = curve.predict(scores[np.newaxis, known])
    return predicted


def metric_alone(
    replies: Replies, rated: Ints, scores: Floats, method: Method, confidence: float
) -> list[OneEstimate]:
    """Return what the metric says of each system, brought to the scale by all ratings together;
    nothing if fewer than two of the rated replies are scored."""
    learn = rated[~np.isnan(scores[rated])]
    if len(learn) < 2:
        return [OneEstimate(None, None)] * replies.systems
    if method == "isotonic":
        predicted = _curve(replies, rated, scores)
    else:
        x, y, w = scores[learn], replies.rating[learn], replies.weight[learn]
        centre, mean = np.average(x, weights=w), np.average(y, weights=w)
        spread = float(w @ (x - centre) ** 2)
        slope = float(w @ ((x - centre) * (y - mean))) / spread if spread > 0 else 0.0
        predicted = mean + slope * (scores - centre)
    as_rated = Replies(
        replies.system, replies.context, predicted, np.ones(len(scores)), replies.systems
    )
    means = estimate_means(as_rated, None)
    return [_one(means, s, confidence) for s in range(replies.systems)]


def _one(means: Means, system: int, confidence: float) -> OneEstimate:
    mean = float(means.mean[system])
    ends = means.interval(system, confidence)
    return OneEstimate(None if math.isnan(mean) else mean, _known(ends))


def _known(ends: tuple[float, float]) -> tuple[float, float] | None:
    """Return an interval, None if it can't be known."""
    return None if math.isnan(ends[0]) else ends


def _effective(both: Means, alone: Means, system: int, ratings: int) -> float | None:
    with_metric = float(both.covariance[system, system])
    without = float(alone.covariance[system, system])
    if not (with_metric > 0 and without > 0):
        return None
    return ratings * without / with_metric


def _pairs(
    replies: Replies,
    names: Sequence[str],
    order: Sequence[int],
    both: Means,
    alone: Means,
    confidence: float,
) -> tuple[list[PairEstimate], dict[int, str]]:
    """Return the pairs of systems that have ratings, and letters by system."""
    known = [s for s in order if not math.isnan(both.mean[s])]
    found = {
        (a, b): both.difference(a, b, confidence)
        for place, a in enumerate(known)
        for b in known[place + 1 :]
    }
    adjusted = holm([p for *_, p in found.values()]) if found else np.zeros(0)
    answered = np.zeros((replies.systems, int(replies.context.max()) + 1))
    answered[replies.system, replies.context] = 1
    shared = answered @ answered.T
    pairs, matrix = [], np.full((len(names), len(names)), np.nan)
    for ((a, b), (difference, low, high, p)), corrected in zip(
        found.items(), adjusted.tolist(), strict=True
    ):
        people, *ends, _ = alone.difference(a, b, confidence)
        matrix[a, b] = matrix[b, a] = corrected
        unknown = math.isnan(p)
        pairs.append(
            PairEstimate(
                names[a],
                names[b],
                difference,
                _known((low, high)),
                None if unknown else p,
                None if unknown else corrected,
                OneEstimate(people, _known((ends[0], ends[1]))),
                int(shared[a, b]),
            )
        )
    marks = letters(known, matrix) if known else []
    return pairs, dict(zip(known, marks, strict=True))


def _rated_contexts(replies: Replies, rated: Ints) -> Ints:
    pairs = np.unique(np.stack([replies.system[rated], replies.context[rated]]), axis=1)
    return np.bincount(pairs[0], minlength=replies.systems)


def _warnings(
    replies: Replies, scores: Floats, names: Sequence[str], metrics: Sequence[str]
) -> list[str]:
    warnings = []
    if learnt := [name for name in metrics if name.startswith("calibrated(")]:
        warnings.append(
            f"{', '.join(learnt)}: if it was learnt from these ratings, the intervals are too"
            " narrow; give the scores that it was made of, which are calibrated here"
        )
    chosen = []
    for s, name in enumerate(names):
        if _chance_of_choice(replies, scores, s) < NOT_AT_RANDOM / len(names):
            chosen.append(name)
    if chosen:
        warnings.append(
            f"the rated replies of {abbreviated(chosen)} have other scores than the rest: estimates"
            " hold if replies were drawn at random to be rated, or with the probabilities in"
            " 'inclusion_probability'"
        )
    return warnings


def _chance_of_choice(replies: Replies, scores: Floats, system: int) -> float:
    """Return the p-value of the mean score of a system's rated replies among all of them."""
    from scipy.special import ndtr

    own = np.flatnonzero((replies.system == system) & ~np.isnan(scores))
    rated = ~np.isnan(replies.rating[own])
    n, total = int(rated.sum()), len(own)
    spread = float(scores[own].std()) if total else 0.0
    if n < 2 or n == total or spread == 0:
        return 1.0
    weight = replies.weight[own][rated]
    mean = float(np.average(scores[own][rated], weights=weight))
    effective = float(weight.sum() ** 2 / (weight @ weight))
    error = spread * math.sqrt((1 - n / total) / effective)
    return float(2 * ndtr(-abs(mean - scores[own].mean()) / error))


def _notes(replies: Replies, names: Sequence[str], people: People, means: Means) -> list[str]:
    notes = []
    rated = replies.rated
    count = np.bincount(replies.system[rated], minlength=len(names))
    contexts = _rated_contexts(replies, rated)
    if unrated := [name for s, name in enumerate(names) if not count[s]]:
        notes.append(
            f"{abbreviated(unrated)}: no reply is rated, so there is only the metric's word"
        )
    alone = (contexts == 1) & ~means.known
    if single := [name for s, name in enumerate(names) if alone[s]]:
        notes.append(f"{abbreviated(single)}: rated in one context only, so there is no interval")
    for s, name in enumerate(names):
        own = replies.rating[rated][replies.system[rated] == s]
        if contexts[s] > 1 and own.min() == own.max() and not means.known[s]:
            notes.append(
                f"{name}: all {len(own):,} ratings are {own[0]:g}; how much they vary, and so an"
                " interval, can't be known from them"
            )
    unknown = np.isnan(means.mean) | np.isnan(np.diag(means.covariance))
    for a, b in combinations(np.flatnonzero(~unknown).tolist(), 2):
        if means.is_constant(a, b):
            notes.append(
                f"{names[a]} and {names[b]}: their ratings differ alike in all rated"
                " contexts; how much differences vary, and so an interval, can't be known from them"
            )
    if people.number == 1:
        notes.append(
            "all ratings are of one person: the estimates are of this person's ratings, and"
            " nothing is known about agreement"
        )
    return notes


def _mixed_probabilities(
    items: Sequence[Item], replies: Replies, names: Sequence[str]
) -> Iterator[str]:
    """Yield a note for each system that was rated with known probabilities and without."""
    rated = replies.rated
    chance = np.array([items[n].inclusion_probability or np.nan for n in rated.tolist()])
    for s, name in enumerate(names):
        own = chance[replies.system[rated] == s]
        unknown = int(np.isnan(own).sum())
        if unknown and (own < 1).any():
            yield (
                f"{name}: {unknown:,} of {len(own):,} rated replies have no"
                " 'inclusion_probability' and stand for themselves alone; a plan with"
                f" {option('all_items')} gives them theirs"
            )
