"""Means of human ratings from ratings of some replies and predictions of all.

For a system with N replies, of which some are rated, with the metric's prediction xᵢ minus its
mean over all N replies, weights wᵢ = 1 / (probability that the reply was chosen to be rated), and
W = Σ wᵢ:

    mean = Σ wᵢ (yᵢ - λ xᵢ) / W          over the rated replies

That is the mean of the ratings, corrected by how much the metric says that the rated replies are
better than all. As x has mean 0 over all replies, the correction is 0 on average whatever the
metric is worth, and the worth of the metric decides only how wide the interval is. With λ = the
slope of ratings over predictions it is the power-tuned estimate of Angelopoulos, Duchi & Zrnic
(2023, "PPI++: Efficient Prediction-Powered Inference"), and the regression estimate of survey
statistics (Cochran 1977, chapter 7).

- **λ is cross-fitted.** The slope that corrects a reply is learnt without the replies of its
  context; slopes learnt from the same few ratings that they correct would make intervals too
  narrow. It is the slope within systems, over all of them, shrunk to 0 as far as it is uncertain
  (by 1 - 1/t²); the system's own slope is drawn to it as if slopes differed between systems by as
  much as a correlation of SPREAD does, so that a system whose ratings vary little needs few of
  them to go its own way.
- **Replies of a context are not independent.** With zᵢ the influence of a reply on the mean, the
  variance is the sum over contexts of (Σ zᵢ)² (G - 1) / G / (1 - h)², where G contexts are rated
  and h is the context's share of the rated replies: the jackknife that leaves out a context; for
  contexts alike that is the factor G / (G - 1). Two systems are compared by the difference of their
  influences in each context: what makes a context hard for both cancels out.
- **Few contexts.** Intervals use Student's t with as many degrees of freedom as contexts weigh, and
  where the contexts of all replies add their own chance, Banerjee's (1960) quantile of the sum of
  two variances, which never covers too little.
- **Uneven ratings.** Where most replies have the best rating and some a low one, the mean and its
  error go together, and Student's intervals miss on one side. Ends are moved by Hall's (1992)
  transformation of t, with a = the skewness of the sum over contexts, damped by a² / (a² + 12 / G²)
  as far as it may be chance:

      g(t) = t + a t² / 3 + a² t³ / 27 + a / 6          is compared with Student's quantiles

  For ratings of two values a third of it, for those of three two thirds: their means are on a
  coarse grid, and the whole would cover 98 to 99 % with 20 ratings, as Student's 86 to 96 %.
- **What is estimated** is the mean over contexts like these (``contexts``), or the mean of just
  these replies (``replies``), of which the rated ones are known: then only the chance of which
  replies were rated counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtridf, stdtrit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Target = Literal["contexts", "replies"]
TARGETS: tuple[Target, ...] = ("contexts", "replies")

SPREAD = 0.2
"""Standard deviation of the slopes of systems, in units of the ratings' standard deviation over the
predictions'. A system whose ratings vary as those of the others has its own slope drawn to that of
all as if by 1 / SPREAD² = 25 ratings."""
CHANCE = 12.0
"""Twice the variance of the skewness of ratings without any, times their number."""
FEWEST = 0.5
"""Degrees of freedom at least: two contexts of which one has nearly all ratings tell less than two
alike, whose is 1."""
FLOOR = 0.02
"""Share of the variance of independent replies that the variance of a mean is at least: two
dialogues may have the same mean by chance."""
SAME = 1e-9
"""Relative difference up to which two contexts' influences are the same but for rounding."""
FINE = 3.0
"""Steps between ratings from which they count as continuous."""
MIN_OTHERS = 2
"""Other contexts that a slope is learnt from at least."""
PRIOR_FREEDOM = 4.0
"""Ratings that the variance of all systems is worth when that of one is estimated for this."""


@dataclass(frozen=True)
class Replies:
    """All replies, rated or not, as columns [n]."""

    system: Ints
    context: Ints
    rating: Floats
    """NaN if the reply is not rated."""
    weight: Floats
    """1 / probability that the reply was chosen to be rated, up to a factor by system."""
    systems: int

    @property
    def rated(self) -> Ints:
        """Numbers of the rated replies."""
        return np.flatnonzero(~np.isnan(self.rating))


@dataclass(frozen=True)
class Means:
    """Estimated means of the systems, with what intervals and tests need."""

    mean: Floats
    """[systems]; NaN without ratings."""
    covariance: Floats
    """[systems, systems]; NaN for systems whose ratings are from fewer than two contexts, or all
    equal: nothing says how much they vary."""
    freedom: Floats
    """[systems] degrees of freedom."""
    slope: Floats
    """[systems] mean λ: by how much the rating rises with the prediction."""
    shares: Floats
    """[systems, contexts] expected share of each rated context in the variance."""
    influence: Floats
    """[contexts, systems] by how much each context moves the mean."""
    of_ratings: Floats
    """[contexts, systems] by how much each context moves the mean of the ratings alone."""
    known: Bools
    """[systems] whether all replies that the mean is about are rated."""
    fineness: float
    """1 on a scale of four values or more, 1/3 for two."""

    def interval(self, system: int, confidence: float = 0.95) -> tuple[float, float]:
        """Return the interval of a system's mean; NaN if it can't be known."""
        deviation, freedom = float(np.sqrt(self.covariance[system, system])), self.freedom[system]
        skew = self.fineness * _skewness(self.influence[:, system], freedom)
        return _ends(float(self.mean[system]), deviation, freedom, skew, confidence)

    def difference(
        self, a: int, b: int, confidence: float = 0.95
    ) -> tuple[float, float, float, float]:
        """Return the difference a - b, the ends of its interval, and its two-sided p-value."""
        difference = float(self.mean[a] - self.mean[b])
        deviation, freedom = self.error_of_difference(a, b)
        influence = self.influence[:, a] - self.influence[:, b]
        skew = self.fineness * _skewness(influence, freedom)
        low, high = _ends(difference, deviation, freedom, skew, confidence)
        if np.isnan(low):
            p = float("nan")
        elif deviation == 0:
            p = float(difference == 0)
        else:
            p = float(2 * stdtr(freedom, -abs(_transformed(difference / deviation, skew))))
        return difference, low, high, p

    def error_of_difference(self, a: int, b: int) -> tuple[float, float]:
        """Return the standard error of the difference a - b, and its degrees of freedom; NaN if it
        can't be known."""
        table = self.covariance
        freedom = self._freedom_of_difference(a, b)
        if self.is_constant(a, b):
            return math.nan, freedom
        variance = max(table[a, a] + table[b, b] - 2 * table[a, b], 0.0)
        return float(np.sqrt(variance)), freedom

    def is_constant(self, a: int, b: int) -> bool:
        """Return whether ratings of a and b differ alike in all contexts of a sample, so that
        nothing says how much their differences vary."""
        if self.known[a] and self.known[b]:
            return False
        first, second = self.of_ratings[:, a], self.of_ratings[:, b]
        return bool(np.abs(first - second).max() <= SAME * np.abs(first).max())

    def _freedom_of_difference(self, a: int, b: int) -> float:
        shares = self.shares[a] * self.covariance[a, a] + self.shares[b] * self.covariance[b, b]
        total = float((shares**2).sum())
        if not total > 0:
            return float(min(self.freedom[a], self.freedom[b]))
        both = (self.shares[a] > 0) == (self.shares[b] > 0)
        return max(float(shares.sum() ** 2 / total) - (1 if both.all() else 2), FEWEST)


def estimate_means(
    replies: Replies,
    predicted: Floats | None,
    fold: Ints | None = None,
    *,
    target: Target = "contexts",
    slope: float | None = None,
) -> Means:
    """Return the prediction-powered mean rating of each system.

    ``predicted`` [n] is what a metric says, on any scale, NaN where it says nothing; None uses the
    ratings alone. With [folds, n], a rated reply is corrected by the predictions of its ``fold``
    [n], which must not have been learnt from its rating.
    ``slope`` fixes λ instead of learning it.
    """
    rated = replies.rated
    columns = _Columns.of(replies, rated)
    if predicted is None:
        nothing = np.zeros(len(rated))
        return _means(replies, columns, nothing, np.zeros(len(replies.rating)), target)
    own, everywhere = _centred(replies, rated, np.atleast_2d(predicted), fold)
    if slope is None:
        slopes = _cross_fitted(columns, own)[columns.cell_of]
    else:
        slopes = np.full(len(rated), slope)
    mean_slope = columns.weighted_mean(slopes)
    lift = np.where(np.isnan(mean_slope), 0.0, mean_slope)[replies.system] * everywhere
    means = _means(replies, columns, slopes * own, lift, target)
    return replace(means, slope=mean_slope)


@dataclass(frozen=True)
class _Columns:
    """The rated replies, and the cells of system and context that they belong to."""

    system: Ints
    context: Ints
    rating: Floats
    weight: Floats
    """With mean 1 in each system."""
    count: Floats
    """[systems] rated replies."""
    cell_of: Ints
    """[rated] number of the cell."""
    cell_system: Ints
    cell_context: Ints

    @classmethod
    def of(cls, replies: Replies, rated: Ints) -> _Columns:
        system, context = replies.system[rated], replies.context[rated]
        count = np.bincount(system, minlength=replies.systems).astype(float)
        total = np.bincount(system, replies.weight[rated], replies.systems)
        weight = replies.weight[rated] * (count / np.where(total > 0, total, 1.0))[system]
        size = int(replies.context.max(initial=0)) + 1
        cells, cell_of = np.unique(system * size + context, return_inverse=True)
        return cls(
            system,
            context,
            replies.rating[rated],
            weight,
            count,
            cell_of,
            cells // size,
            cells % size,
        )

    def weighted_mean(self, values: Floats) -> Floats:
        """Return the weighted mean of each system; NaN without rated replies."""
        with np.errstate(invalid="ignore"):
            sums = np.bincount(self.system, self.weight * values, len(self.count))
            return np.asarray(sums / self.count)


def _centred(
    replies: Replies, rated: Ints, predicted: Floats, fold: Ints | None
) -> tuple[Floats, Floats]:
    """Return predictions minus the mean of all replies of the system: of the rated replies [rated],
    each by the model that does not know its rating, and of all [n], as the mean over models.

    An unscored reply counts as an average one.
    """
    known = ~np.isnan(predicted)
    filled = np.where(known, predicted, 0.0)
    centred = np.empty_like(filled)
    for row, (values, there) in enumerate(zip(filled, known, strict=True)):
        count = np.bincount(replies.system, there, replies.systems)
        total = np.bincount(replies.system, values, replies.systems)
        mean = total / np.maximum(count, 1)
        centred[row] = np.where(there, values - mean[replies.system], 0.0)
    if fold is None or len(centred) == 1:
        return centred[0, rated], centred[0]
    used = np.zeros((len(centred), replies.systems))
    np.add.at(used, (fold[rated], replies.system[rated]), replies.weight[rated])
    used /= np.maximum(used.sum(axis=0), 1e-300)
    everywhere = np.einsum("kn,kn->n", centred, used[:, replies.system])
    return centred[fold[rated], rated], everywhere


@dataclass(frozen=True)
class _Moments:
    """Weighted sums of products, about the means of a system or cell."""

    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, sums: Floats) -> _Moments:
        """From weight, Σx, Σy, Σxx, Σxy, Σyy [6, …]."""
        weight, x, y, xx, xy, yy = sums
        safe = np.where(weight > 1e-9, weight, 1.0)
        there = weight > 1e-9
        return cls(
            np.where(there, np.maximum(xx - x * x / safe, 0.0), 0.0),
            np.where(there, xy - x * y / safe, 0.0),
            np.where(there, np.maximum(yy - y * y / safe, 0.0), 0.0),
        )


def _cross_fitted(columns: _Columns, x: Floats) -> Floats:
    """Return the slope of each cell, learnt without the replies of its context."""
    systems, cells = len(columns.count), len(columns.cell_system)
    mean = columns.weighted_mean(columns.rating)
    y, w = columns.rating - mean[columns.system], columns.weight
    terms = (w, w * x, w * y, w * x * x, w * x * y, w * y * y)
    of_cell = np.array([np.bincount(columns.cell_of, term, cells) for term in terms])
    of_system = np.array([np.bincount(columns.cell_system, row, systems) for row in of_cell])
    size = np.bincount(columns.cell_of, minlength=cells)
    without = _Moments.of(of_system[:, columns.cell_system] - of_cell)
    full = _Moments.of(of_system)
    context = columns.cell_context

    def pooled(whole: Floats, reduced: Floats) -> Floats:
        """Sum over systems without the replies of each cell's context."""
        lost = np.bincount(context, whole[columns.cell_system] - reduced)
        return np.asarray(whole.sum() - lost[context])

    xx, xy, yy = (
        pooled(getattr(full, name), getattr(without, name)) for name in ("xx", "xy", "yy")
    )
    left = columns.count[columns.cell_system] - size
    contributing = pooled((columns.count > 0).astype(float), (left > 0).astype(float))
    freedom = pooled(columns.count, left) - contributing
    tiny = 1e-12 * np.maximum(np.abs(full.xx.sum()), 1e-300)
    slope = np.divide(xy, xx, out=np.zeros(cells), where=xx > tiny)
    error = np.maximum(yy - slope * xy, 0.0) / np.maximum(freedom - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        uncertain = error / (slope * slope * xx)
    shrunk = slope * np.clip(1 - np.where(freedom > 1, uncertain, np.inf), 0.0, 1.0)
    # a slope from a single other context says nothing about contexts
    enough = len(np.unique(context)) > MIN_OTHERS
    shrunk = np.where(np.isfinite(shrunk) & enough, shrunk, 0.0)
    residual = full.yy.sum() / max(columns.count.sum() - (columns.count > 0).sum(), 1)
    variance = (full.yy + PRIOR_FREEDOM * residual) / (
        np.maximum(columns.count - 1, 0) + PRIOR_FREEDOM
    )
    relative = variance / residual if residual > 0 else np.ones(systems)
    prior = relative[columns.cell_system] / SPREAD**2 * xx / np.maximum(freedom, 1)
    return np.divide(
        without.xy + prior * shrunk,
        without.xx + prior,
        out=np.zeros(cells),
        where=enough & (without.xx + prior > tiny),
    )


def _means(
    replies: Replies, columns: _Columns, correction: Floats, lift: Floats, target: Target
) -> Means:
    """Return the means of ratings minus ``correction`` [rated]; ``lift`` [n] is the correction of
    all replies, whose own chance adds to the variance if these contexts stand for others."""
    systems, system = replies.systems, columns.system
    values = columns.rating - correction
    mean = columns.weighted_mean(values)
    count = columns.count
    influence = columns.weight * (values - mean[system]) / count[system]
    several = np.bincount(columns.cell_system, minlength=systems)
    share = _sums(columns.cell_of, columns.weight, len(columns.cell_system))
    left = 1 - share / np.maximum(count, 1)[columns.cell_system]
    # what the mean takes from the spread of the replies that it was made of
    groups = several[columns.cell_system]
    taken = np.where(groups > 1, (1 - 1 / groups) / np.maximum(left, 1e-6) ** 2, 1.0)
    freedom = _freedom(share, columns.cell_system, systems)
    if target == "replies":
        table = _table(columns, _sums(columns.cell_of, influence, len(taken)), replies)
        covariance = _of_these(replies, columns, influence, taken)
    else:
        everything = np.bincount(replies.system, minlength=systems)
        of_all = _centred_parts(replies, lift / np.maximum(everything, 1)[replies.system])
        spread = of_all.copy()
        spread[replies.rated] += influence
        table = _by_context(replies, spread)
        scaled = table * np.sqrt(several / np.maximum(several - 1, 1))
        cells = columns.cell_context, columns.cell_system
        scaled[cells] = table[cells] * np.sqrt(taken)
        covariance = scaled.T @ scaled
        alone = _by_context(replies, of_all)
        by_chance = (alone * alone).sum(axis=0)
        freedom = _combined(
            np.maximum(np.diag(covariance) - by_chance, 0.0),
            by_chance,
            freedom,
            np.maximum((alone != 0).sum(axis=0) - 1, 1),
        )
    single = _sums(system, influence * influence, systems) * count / np.maximum(count - 1, 1)
    if target == "replies":
        everything = np.bincount(replies.system, minlength=systems)
        single *= 1 - count / np.maximum(everything, 1)
    diagonal = np.diag_indices(systems)
    covariance[diagonal] = np.maximum(covariance[diagonal], FLOOR * single)
    known = (count == np.bincount(replies.system, minlength=systems)) & (target == "replies")
    unknown = ((several < 2) | _constant(system, columns.rating, systems)) & ~known
    covariance[unknown] = np.nan
    covariance[:, unknown] = np.nan
    shares = np.zeros((systems, int(replies.context.max(initial=0)) + 1))
    shares[columns.cell_system, columns.cell_context] = share**2
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    plain = columns.rating - columns.weighted_mean(columns.rating)[system]
    sums = _sums(columns.cell_of, columns.weight * plain / count[system], len(taken))
    return Means(
        mean,
        covariance,
        freedom,
        np.zeros(systems),
        shares,
        table,
        _table(columns, sums, replies),
        known,
        _fineness(columns.rating),
    )


def _sums(place: Ints, values: Floats, size: int) -> Floats:
    """Return the sum of the values of each place."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _constant(system: Ints, values: Floats, systems: int) -> Bools:
    """Return whether all values of a system are equal."""
    low, high = np.full(systems, np.inf), np.full(systems, -np.inf)
    np.minimum.at(low, system, values)
    np.maximum.at(high, system, values)
    return np.asarray(low >= high)


def _fineness(values: Floats) -> float:
    """Return a third of the number of steps, as large as the smallest, between the lowest and the
    highest value; at most 1."""
    levels = np.unique(values)
    if len(levels) < 2:
        return 0.0
    return min(float(np.ptp(levels) / np.diff(levels).min()) / FINE, 1.0)


def _centred_parts(replies: Replies, values: Floats) -> Floats:
    """Return values minus the mean of the rated, or of the other, replies of the system."""
    part = 2 * replies.system + np.isnan(replies.rating)
    count = np.bincount(part, minlength=2 * replies.systems)
    mean = np.bincount(part, values, 2 * replies.systems) / np.maximum(count, 1)
    return np.asarray(values - mean[part])


def _by_context(replies: Replies, values: Floats) -> Floats:
    """Return the sums [contexts, systems]."""
    contexts = int(replies.context.max(initial=0)) + 1
    cell = replies.context * replies.systems + replies.system
    sums = _sums(cell, values, contexts * replies.systems)
    return sums.reshape(contexts, replies.systems)


def _table(columns: _Columns, sums: Floats, replies: Replies) -> Floats:
    """Return the sums of cells as [contexts, systems]."""
    table = np.zeros((int(replies.context.max(initial=0)) + 1, replies.systems))
    table[columns.cell_context, columns.cell_system] = sums
    return table


def _of_these(replies: Replies, columns: _Columns, influence: Floats, taken: Floats) -> Floats:
    """Return the covariance over the choice of rated replies.

    Two replies to a context count together as far as they were chosen together: with π the share of
    rated replies of a system and π_ab that of pairs in the same context of which both are rated,
    1 - π_a π_b / π_ab is 0 where replies were chosen one by one, and 1 - π where contexts were.
    """
    systems = replies.systems
    everything = np.bincount(replies.system, minlength=systems)
    chance = np.clip(columns.count / np.maximum(everything, 1), 1e-12, 1.0)
    # weights have mean 1 in a system, and the probability of a reply is the inverse of its weight
    left = np.clip(1 - chance[columns.system] / columns.weight, 0.0, 1.0)
    own = influence * influence * taken[columns.cell_of]
    alone = _sums(columns.system, left * own, systems)
    sums = _sums(columns.cell_of, influence, len(columns.cell_system))
    dense = _table(columns, sums * np.sqrt(taken), replies)
    both = dense.T @ dense - np.diag(np.bincount(columns.system, own, systems))
    asked = _by_context(replies, (~np.isnan(replies.rating)).astype(float))
    possible = _by_context(replies, np.ones(len(replies.rating)))
    pairs = possible.T @ possible - np.diag(possible.sum(axis=0))
    chosen = asked.T @ asked - np.diag(asked.sum(axis=0))
    together = np.divide(chosen, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    apart = np.outer(chance, chance)
    factor = np.where(together > 0, 1 - apart / np.where(together > 0, together, 1.0), 0.0)
    table = factor * both
    table[np.diag_indices(systems)] += alone
    diagonal = np.diag(table)
    table[np.diag_indices(systems)] = np.maximum(diagonal, 0.0)
    return np.asarray(table)


def _freedom(share: Floats, system: Ints, systems: int) -> Floats:
    """Return the effective number of contexts minus 1, from the weight of each in its system."""
    second = np.bincount(system, share**2, systems)
    fourth = np.bincount(system, share**4, systems)
    contexts = second**2 / np.maximum(fourth, 1e-300)
    return np.asarray(np.maximum(contexts - 1, FEWEST))


def _combined(first: Floats, second: Floats, freedom: Floats, other: Floats) -> Floats:
    """Return the degrees of freedom at which Student's 95 % quantile is Banerjee's for the sum of
    two variances: q² = Σ vᵢ qᵢ² / Σ vᵢ.

    Those of Satterthwaite come from the estimated variances too, and are far too many where a
    variance that a few contexts tell is estimated low by chance.
    """
    total = first + second
    squared = first * stdtrit(freedom, 0.975) ** 2 + second * stdtrit(other, 0.975) ** 2
    quantile = np.sqrt(squared / np.where(total > 0, total, 1.0))
    return np.where(total > 0, np.maximum(stdtridf(0.975, quantile), freedom), freedom)


def _ends(
    estimate: float, deviation: float, freedom: float, skew: float, confidence: float
) -> tuple[float, float]:
    """Return the ends of an interval."""
    quantile = float(stdtrit(freedom, (1 + confidence) / 2))
    low = estimate - deviation * _back(quantile, skew)
    return low, estimate - deviation * _back(-quantile, skew)


def _skewness(influence: Floats, freedom: float) -> float:
    """Return the skewness of a sum of independent influences, less what may be chance."""
    contexts = freedom + 1
    squared = influence * influence
    squares = float(squared.sum())
    if contexts <= 2 or not squares > 0:
        return 0.0
    raw = float(influence @ squared) / squares**1.5
    skew = raw * math.sqrt(contexts * (contexts - 1)) / (contexts - 2)
    return float(skew * skew * skew / (skew * skew + CHANCE / contexts**2))


def _transformed(t: float, skew: float) -> float:
    """Return Hall's transformation of a t-statistic, whose distribution is close to Student's."""
    return t + skew * t * t / 3 + skew * skew * t**3 / 27 + skew / 6


def _back(value: float, skew: float) -> float:
    """Return the t-statistic whose transformation is ``value``."""
    if abs(skew) < 1e-9:
        return value
    return float(3 / skew * (np.cbrt(1 + skew * (value - skew / 6)) - 1))
