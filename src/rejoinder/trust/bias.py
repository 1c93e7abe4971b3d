"""Biases of a judge: by the length of a reply, towards its own replies, towards the middle.

A bias is what the score says beyond people's rating of the same reply. Ratings are not exact: where
people hardly agree, part of what they mean stays in the score and looks like a bias, if longer
replies are better. So read a bias beside the correlation of people's own ratings with the length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import (
    Estimate,
    bootstrap,
    correlate_many,
    percentiles,
)
from rejoinder.trust.resampled import estimate_of_sums

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_OWN = 5
"""Replies of a judge's own model, and of others, below which nothing is said about a bias."""


def length_bias(
    scores: Floats, lengths: Floats, human: Floats, contexts: Ints, resampling: Resampling
) -> Estimate:
    """Return the partial rank correlation of score and length given people's rating:

        (r_sl - r_sh r_lh) / sqrt((1 - r_sh²)(1 - r_lh²))

    with Spearman's correlations of score s, length l and rating h; 0 is no bias.
    """
    both = np.array([scores, lengths])
    with_human = [each.spearman.value for each in correlate_many(both, human, resamples=0)]
    between = correlate_many(scores[np.newaxis], lengths, resamples=0)[0].spearman.value
    if between is None or None in with_human:
        return Estimate()
    value = float(_partial(between, *np.array(with_human, float)))
    if not np.isfinite(value):
        return Estimate()
    if len(np.unique(contexts)) < 2 or not resampling.resamples:
        return Estimate(value)
    # the same seed draws the same contexts
    size, seed = resampling.resamples, resampling.seed
    drawn = bootstrap(
        both, human, clusters=contexts, resamples=size, seed=seed, statistics=["spearman"]
    )["spearman"]
    of_two = bootstrap(
        scores[np.newaxis],
        lengths,
        clusters=contexts,
        resamples=size,
        seed=seed,
        statistics=["spearman"],
    )["spearman"][0]
    return Estimate(value, None, *percentiles(_partial(of_two, drawn[0], drawn[1])))


def _partial(between: Floats | float, first: Floats, second: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(
            (between - first * second) / np.sqrt((1 - first**2) * (1 - second**2)), np.float64
        )


@dataclass(frozen=True)
class OwnBias:
    """Whether a judge prefers replies of systems that use its own model."""

    systems: list[str]
    own: int
    """Number of their replies."""
    others: int
    difference: Estimate
    """Own less others, at the same rating by people, in standard deviations of the score."""


def own_bias(
    scores: Floats,
    own: NDArray[np.bool_],
    human: Floats,
    contexts: Ints,
    resampling: Resampling,
    systems: list[str],
) -> OwnBias | None:
    """Return the coefficient d of the regression score = a + b · rating + d · own.

    None with fewer than five replies of its own, or of others. Without a value if the ratings say
    which replies are its own.
    """
    count = int(own.sum())
    if min(count, own.size - count) < MIN_OWN:
        return None
    centred = [each - each.mean() for each in (scores, human, own.astype(np.float64))]
    s, h, o = centred
    rows = np.array([np.ones(s.size), s, h, o, s * s, h * h, o * o, s * h, s * o, h * o]).T

    def finish(sums: Floats) -> Floats:
        n, s, h, o, ss, hh, oo, sh, so, ho = np.moveaxis(sums, -1, 0)
        hh, ho, sh = hh - h * h / n, ho - h * o / n, sh - s * h / n
        ss, oo, so = ss - s * s / n, oo - o * o / n, so - s * o / n
        residual = oo * hh - ho * ho
        # where the ratings say whose a reply is, nothing is known at the same rating
        apart = np.where(residual > 1e-9 * oo * hh, (so * hh - sh * ho) / residual, np.nan)
        # ratings that are all the same take nothing out
        d = np.where(hh > 1e-12 * n, apart, so / oo)
        return np.asarray(d / np.sqrt(ss / n))

    difference = estimate_of_sums(rows, contexts, finish, resampling)
    return OwnBias(systems, count, own.size - count, difference)


@dataclass(frozen=True)
class MiddleBias:
    """How far from the middle of the scale a judge's scores are: 0 the middle, 1 an end."""

    judge: float
    people: float
    """The same of people's mean ratings of the same replies."""
    single: float
    """The same of single ratings."""
    ratio: Estimate
    """Judge over people's mean ratings; below 1 the judge keeps to the middle."""


def middle_bias(
    scores: Floats,
    scale: tuple[float, float],
    human: Floats,
    single: list[list[float]],
    human_scale: tuple[float, float],
    contexts: Ints,
    resampling: Resampling,
) -> MiddleBias | None:
    """Compare distances from the middle; None if people are always in the middle."""
    of_judge = _extremeness(scores, scale)
    of_people = _extremeness(human, human_scale)
    if not of_people.any():
        return None
    of_single = [_extremeness(np.array(each), human_scale).mean() for each in single if each]
    ratio = estimate_of_sums(
        np.array([of_judge, of_people]).T,
        contexts,
        lambda sums: np.asarray(sums[..., 0] / sums[..., 1]),
        resampling,
    )
    return MiddleBias(
        float(of_judge.mean()), float(of_people.mean()), float(np.mean(of_single)), ratio
    )


def _extremeness(values: Floats, scale: tuple[float, float]) -> Floats:
    low, high = scale
    return np.abs(values - (low + high) / 2) / ((high - low) / 2)
