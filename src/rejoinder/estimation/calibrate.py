"""Calibrate metrics to people: fit, test by cross-validation, and measure the intervals.

Everything that is reported is measured on ratings that the fit did not see: contexts (or dialogues)
are divided into folds, and the replies of a fold are predicted from the others. For the coverage of
intervals, the whole procedure, its inner folds included, is repeated without the fold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from rejoinder.errors import DataError
from rejoinder.estimation.blend import fit_blend
from rejoinder.estimation.folds import folds_of
from rejoinder.estimation.isotonic import fit_isotonic
from rejoinder.estimation.ordinal import fit_ordinal
from rejoinder.estimation.rated_scores import Floats, Ints, RatedScores
from rejoinder.meta_evaluation.correlate import correlate_many
from rejoinder.metrics.calibrated.intervals import RatingScale, cross_conformal
from rejoinder.metrics.calibrated.models import Model
from rejoinder.progress import Progress
from rejoinder.wording import option

Method = Literal["isotonic", "ordinal", "blend"]
METHODS: tuple[Method, ...] = ("isotonic", "ordinal", "blend")
Fit = Callable[[RatedScores], Model]

CURVE = (25, 50, 100, 200, 400, 800)
"""Numbers of rated replies at which the learning curve is measured."""
LARGEST_SHARE = 0.8
"""Share of the rated replies that the curve learns from at most; it is tested on the others."""
OVERFIT = 0.01
"""Fall of Spearman's correlation from which a warning is given."""
MAX_STEPS = 1000
"""Ratings a scale may have to be one of steps."""


@dataclass(frozen=True)
class Errors:
    """How far predicted ratings are from those of people, and how they are ordered."""

    rmse: float
    mae: float
    spearman: float | None = None
    """Mean correlation inside of the folds, weighted by their sizes. Over all folds together, it
    would be too low: a fold with low ratings is predicted from others with high ones."""
    pearson: float | None = None
    spearman_std: float | None = None
    """Standard deviation over folds."""


@dataclass(frozen=True)
class CurvePoint:
    """What a calibration from so many ratings is worth on other contexts: means over random draws,
    with their standard deviations."""

    ratings: int
    draws: int
    spearman: float | None
    spearman_std: float | None
    uncalibrated: float | None
    """Spearman of the metrics without ratings on the same replies."""
    rmse: float
    rmse_std: float
    mean_rmse: float
    """Of the mean of the drawn ratings as the prediction of all others."""


@dataclass(frozen=True)
class GroupCoverage:
    """How many ratings intervals covered, of a system or of a third of the replies."""

    name: str
    n: int
    covered: float
    width: float


@dataclass(frozen=True)
class IntervalCheck:
    """Coverage of intervals that were made without the replies that they are tested on."""

    wanted: float
    covered: float
    width: float
    """Mean length of the intervals, in ratings."""
    by_system: list[GroupCoverage]
    by_pool: list[GroupCoverage]
    """By how near the evaluator's logs are to the context, in thirds."""


@dataclass(frozen=True)
class Tested:
    """A fitted calibration, and what cross-validation says about it."""

    model: Model
    folds: list[Model]
    errors: Floats
    fold: Ints
    calibrated: Errors
    uncalibrated: Errors
    """Of the metric itself, or of the blend without ratings; its rmse is after the best line."""
    by_metric: list[Errors]
    mean_only: Errors
    """Of the mean rating of the other folds as the prediction."""
    intervals: IntervalCheck
    warnings: list[str]


def fit_for(method: Method, prior: Sequence[str] = ()) -> Fit:
    """Return the function that fits a method."""
    fits: dict[Method, Fit] = {
        "isotonic": fit_isotonic,
        "ordinal": fit_ordinal,
        "blend": partial(fit_blend, prior=tuple(prior)),
    }
    return fits[method]


def cross_validate(
    rated: RatedScores,
    fit: Fit,
    scale: RatingScale,
    *,
    folds: int,
    coverage: float,
    seed: int,
    prior: Sequence[str] = (),
) -> Tested:
    """Fit to all ratings, and test by cross-validation."""
    fold = folds_of(rated.context, folds, seed)
    models, predicted = _out_of_fold(rated, fit, fold)
    predicted = scale.clip(predicted)
    errors = np.abs(rated.ratings - predicted)
    believed = _unlabelled(rated, prior)
    calibrated = _errors(predicted, rated.ratings, fold)
    uncalibrated = _plain_errors(believed, rated.ratings, fold)
    # of each fold, the mean of the others
    means = np.array([rated.ratings[fold != number].mean() for number in range(folds)])
    mean_only = _errors(means[fold], rated.ratings, fold)
    return Tested(
        fit(rated),
        models,
        errors,
        fold,
        calibrated,
        uncalibrated,
        [_plain_errors(row, rated.ratings, fold) for row in rated.scores],
        mean_only,
        _check_intervals(rated, fit, fold, scale, coverage, seed),
        _warnings(calibrated, uncalibrated, mean_only),
    )


def rating_scale(
    rated: RatedScores, low: float | None = None, high: float | None = None
) -> RatingScale:
    """Return the scale of the mean ratings: what people used, and the steps if there are some.

    Where every reply has the same number r of ratings in whole steps, means lie 1/r apart.
    """
    single = np.array([rating for ratings in rated.single for rating in ratings])
    low = float(single.min()) if low is None else low
    high = float(single.max()) if high is None else high
    counts = {len(ratings) for ratings in rated.single}
    whole = bool((single == np.rint(single)).all()) and low == round(low)
    if not whole or len(counts) != 1 or (high - low) * max(counts) > MAX_STEPS:
        return RatingScale(low, high)
    return RatingScale(low, high, 1 / counts.pop())


def learning_curve(
    rated: RatedScores,
    fit: Fit,
    scale: RatingScale,
    *,
    draws: int,
    seed: int,
    prior: Sequence[str] = (),
    sizes: Sequence[int] = CURVE,
    on_progress: Progress = lambda done, total: None,
) -> list[CurvePoint]:
    """Fit to so many rated replies of random contexts, and test on all other contexts."""
    believed = _unlabelled(rated, prior)
    points = []
    used = [size for size in sizes if size <= LARGEST_SHARE * len(rated)]
    for place, size in enumerate(used):
        rows = []
        for draw in range(draws):
            on_progress(place * draws + draw, len(used) * draws)
            rng = np.random.default_rng((seed, size, draw))
            learn = _draw(rated.context, size, rng)
            test = ~np.isin(rated.context, rated.context[learn])
            drawn = rated.take(learn)
            if drawn.ratings.min() == drawn.ratings.max() or test.sum() < 3:
                continue
            predicted = scale.clip(fit(drawn).predict(rated.scores[:, test]))
            one = np.zeros(int(test.sum()), np.int64)
            found = _errors(predicted, rated.ratings[test], one)
            plain = _errors(believed[test], rated.ratings[test], one).spearman
            mean = _errors(one + drawn.ratings.mean(), rated.ratings[test], one)
            rows.append((found, plain, mean.rmse))
        if rows:
            points.append(_point(size, rows))
    return points


def _point(size: int, rows: list[tuple[Errors, float | None, float]]) -> CurvePoint:
    # a constant prediction orders nothing
    spearman = np.array([row.spearman or 0.0 for row, _, _ in rows])
    plain = [value for _, value, _ in rows if value is not None]
    rmse = np.array([row.rmse for row, _, _ in rows])
    several = len(rows) > 1
    return CurvePoint(
        size,
        len(rows),
        float(spearman.mean()),
        float(spearman.std(ddof=1)) if several else None,
        float(np.mean(plain)) if plain else None,
        float(rmse.mean()),
        float(rmse.std(ddof=1)) if several else 0.0,
        float(np.mean([mean for _, _, mean in rows])),
    )


def _draw(context: Ints, size: int, rng: np.random.Generator) -> Ints:
    """Return the numbers of so many replies, all of those to random contexts, cut at the last."""
    order = rng.permutation(context.max() + 1)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return np.argsort(place[context], kind="stable")[:size]


def _out_of_fold(rated: RatedScores, fit: Fit, fold: Ints) -> tuple[list[Model], Floats]:
    """Return a model without each fold, and its predictions of the fold."""
    models = []
    predicted = np.zeros(len(rated))
    for number in range(int(fold.max()) + 1):
        model = fit(rated.take(fold != number))
        models.append(model)
        predicted[fold == number] = model.predict(rated.scores[:, fold == number])
    return models, predicted


def _check_intervals(
    rated: RatedScores, fit: Fit, fold: Ints, scale: RatingScale, coverage: float, seed: int
) -> IntervalCheck:
    """Make intervals for each fold from all others, and count the ratings that they cover."""
    low, high = np.zeros(len(rated)), np.zeros(len(rated))
    for number in range(int(fold.max()) + 1):
        test = fold == number
        others = rated.take(~test)
        inner = fold[~test]
        inner = inner - (inner > number)  # the folds that are left, numbered from 0
        if not inner.any():  # of two folds one is left, which is divided anew
            if others.contexts < 2:
                raise DataError(
                    "one of two folds has a single context; to test intervals it is divided again:"
                    f" rate replies to more contexts, or set {option('folds', 3)}"
                )
            inner = folds_of(others.context, 2, seed)
        models, predicted = _out_of_fold(others, fit, inner)
        errors = np.abs(others.ratings - scale.clip(predicted))
        scores = rated.scores[:, test]
        ends = cross_conformal(models, errors, inner.tolist(), scores, coverage)
        low[test], high[test] = scale.inwards(*ends, fit(others).predict(scores))
    inside = (low - 1e-9 <= rated.ratings) & (rated.ratings <= high + 1e-9)
    width = high - low

    def of(name: str, which: np.ndarray) -> GroupCoverage:
        return GroupCoverage(
            name, int(which.sum()), float(inside[which].mean()), float(width[which].mean())
        )

    systems = np.array(rated.systems)
    by_pool = []
    known = ~np.isnan(rated.pool)
    if known.sum() >= 30:
        thirds = np.quantile(rated.pool[known], [1 / 3, 2 / 3])
        third = np.searchsorted(thirds, rated.pool)
        names = ("far from the logs", "middle", "near to the logs")
        by_pool = [of(name, known & (third == n)) for n, name in enumerate(names)]
    return IntervalCheck(
        coverage,
        float(inside.mean()),
        float(width.mean()),
        [of(name, systems == name) for name in dict.fromkeys(rated.systems)],
        [each for each in by_pool if each.n],
    )


def _unlabelled(rated: RatedScores, prior: Sequence[str]) -> Floats:
    """Return what is believed of the replies without ratings: the score, or the mean rank."""
    if len(rated.metrics) == 1:
        return np.asarray(rated.scores[0])
    from scipy.stats import rankdata

    used = [n for n, name in enumerate(rated.metrics) if not prior or name in prior]
    ranked = rankdata(rated.everything[used], axis=1, nan_policy="omit")
    order = [
        np.interp(rated.scores[n], *_sorted(rated.everything[n], row))
        for n, row in zip(used, ranked, strict=True)
    ]
    return np.asarray(np.mean(order, axis=0))


def _sorted(scores: Floats, ranked: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(scores)
    values, first = np.unique(scores[known], return_index=True)
    return values, np.asarray(ranked[known][first])


def _plain_errors(scores: Floats, ratings: Floats, fold: Ints) -> Errors:
    """Return the order of the scores, and the errors of the straight line through other folds."""
    predicted = np.zeros(len(ratings))
    for number in range(int(fold.max()) + 1):
        learn, test = fold != number, fold == number
        centre, mean = scores[learn].mean(), ratings[learn].mean()
        spread = float(((scores[learn] - centre) ** 2).sum())
        slope = float((scores[learn] - centre) @ (ratings[learn] - mean)) / spread if spread else 0
        predicted[test] = mean + slope * (scores[test] - centre)
    order = _errors(scores, ratings, fold)
    errors = _errors(predicted, ratings, fold)
    return replace(order, rmse=errors.rmse, mae=errors.mae)


def _errors(predicted: Floats, ratings: Floats, fold: Ints) -> Errors:
    difference = predicted - ratings
    of_folds = []
    for number in np.unique(fold):
        own = fold == number
        found = correlate_many(predicted[np.newaxis, own], ratings[own], resamples=0)[0]
        if found.spearman.value is not None and found.pearson.value is not None:
            of_folds.append((int(own.sum()), found.spearman.value, found.pearson.value))
    rmse, mae = float(np.sqrt((difference**2).mean())), float(np.abs(difference).mean())
    if not of_folds:
        return Errors(rmse, mae)
    sizes, spearman, pearson = np.array(of_folds).T
    return Errors(
        rmse,
        mae,
        float(np.average(spearman, weights=sizes)),
        float(np.average(pearson, weights=sizes)),
        float(spearman.std(ddof=1)) if len(sizes) > 1 else None,
    )


def _warnings(calibrated: Errors, uncalibrated: Errors, mean_only: Errors) -> list[str]:
    warnings = []
    before, after = uncalibrated.spearman, calibrated.spearman
    if before is not None and (after is None or after < before - OVERFIT):
        shown = "undefined" if after is None else f"{after:.3f}"
        warnings.append(
            "the calibration overfits: in cross-validation it orders replies less well than the"
            f" scores do without ratings (Spearman {shown} instead of {before:.3f});"
            " rate more replies, or fewer metrics"
        )
    if calibrated.rmse >= mean_only.rmse:
        warnings.append(
            "the scores say nothing about these ratings: the mean rating predicts them as well"
            f" (error {mean_only.rmse:.3f}) as the calibration ({calibrated.rmse:.3f})"
        )
    return warnings
