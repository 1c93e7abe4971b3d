"""How far annotators agree with each other, beyond what chance would give.

No metric can be expected to agree with people more than people do among themselves.  Ratings are a
matrix annotators x items with NaN where an annotator did not rate.  Undefined is ``None``: nothing
rated twice, or only one value ever used, so that there is no disagreement to expect by chance.
"""

from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta_evaluation.correlate import Floats, same_length

Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval", "ratio"]

MOST_CATEGORIES = 1000
"""Kappa is for categories: with more values than these, ratings are measurements."""
BLOCK = 64


def cohen_kappa(
    a: ArrayLike,
    b: ArrayLike,
    *,
    weights: Weights = "none",
    categories: ArrayLike | None = None,
) -> float | None:
    """Cohen's kappa of two annotators, over the items that both rated.

    kappa = 1 - sum(w o) / sum(w e), with o the confusion matrix, e the product of its margins over
    the number of items, and w the price of a confusion: 1, |i - j| or (i - j)^2 (Cohen 1960, 1968).
    i and j count categories, so a weighted kappa depends on which there are: by default those that
    either one used; give the whole scale as ``categories`` if some of it was never used.
    """
    first, second = _ratings(a, "a", 1), _ratings(b, "b", 1)
    same_length("a", first.size, "b", second.size)
    return mean_pairwise_kappa(np.stack([first, second]), weights=weights, categories=categories)


def mean_pairwise_kappa(
    ratings: ArrayLike, *, weights: Weights = "none", categories: ArrayLike | None = None
) -> float | None:
    """The mean of Cohen's kappa over all pairs of annotators for which it is defined."""
    return mean_of_pairs(pairwise_kappas(ratings, weights=weights, categories=categories))


def pairwise_kappas(
    ratings: ArrayLike, *, weights: Weights = "none", categories: ArrayLike | None = None
) -> Floats:
    """[annotators, annotators] Cohen's kappa of each two; NaN where it is not defined.

    By default the categories are those that any annotator used (for an item rated twice or not).
    Above MOST_CATEGORIES of them there is no kappa.
    """
    table = _ratings(ratings, "ratings", 2)
    rated = ~np.isnan(table)
    used = np.unique(table[rated])
    scale = used if categories is None else np.unique(_ratings(categories, "categories", 1))
    if not np.isin(used, scale).all():
        raise ValueError("ratings hold values outside the categories")
    if weights not in ("none", "linear", "quadratic"):
        raise ValueError(f"unknown weights {weights!r}: expected none, linear or quadratic")
    found = np.full((len(table), len(table)), np.nan)
    if scale.size > MOST_CATEGORIES:
        return found
    codes = np.searchsorted(scale, table)
    for i, j in combinations(range(len(table)), 2):
        both = rated[i] & rated[j]
        kappa = _kappa(codes[i, both], codes[j, both], weights, scale.size)
        if kappa is not None:
            found[i, j] = found[j, i] = kappa
    return found


def mean_of_pairs(table: Floats) -> float | None:
    """Of a symmetric table of annotators, each two once."""
    return mean_known(table[np.triu_indices(len(table), 1)])


def mean_known(values: Floats) -> float | None:
    """None where nothing is known."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> float | None:
    """Krippendorff's alpha of all annotators together, missing ratings allowed.

    alpha = 1 - (n - 1) sum(o d) / sum(n_c n_k d).  o_ck counts the ordered pairs of values c, k
    that the m ratings of an item form, each item's divided by m - 1; n_c are its margins, n their
    sum.  d is the square of the distance of c and k at the level of measurement: 1 if they differ;
    how many ratings lie between them; c - k; (c - k) / (c + k).  Items rated once say nothing and
    are left out.  (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".)
    """
    table = _ratings(ratings, "ratings", 2)
    # a list of (item, value) without the gaps: there may be thousands of annotators, each with few
    item, annotator = np.nonzero(~np.isnan(table.T))
    several = np.bincount(item, minlength=table.shape[1]) >= 2
    values = table[annotator, item][several[item]]
    item = np.unique(item[several[item]], return_inverse=True)[1]
    known, codes = np.unique(values, return_inverse=True)
    if level == "ratio" and (values < 0).any():
        raise ValueError("a ratio scale has no negative values")
    if level == "nominal":
        observed, expected = _nominal(item, codes)
    elif level == "ordinal":
        margins = np.bincount(codes, minlength=known.size)
        observed, expected = _interval(item, (np.cumsum(margins) - margins / 2)[codes])
    elif level == "interval":
        observed, expected = _interval(item, values)
    elif level == "ratio":
        observed, expected = _ratio(item, values)
    else:
        raise ValueError(f"unknown level {level!r}: expected nominal, ordinal, interval or ratio")
    if known.size < 2:
        return None
    return 1 - (values.size - 1) * observed / expected


def _ratings(values: ArrayLike, name: str, dimensions: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise ValueError(f"{name}: expected {dimensions} dimension(s), got {array.ndim}")
    if np.isinf(array).any():
        raise ValueError(f"{name}: infinite values")
    return array


def _kappa(a: NDArray[np.intp], b: NDArray[np.intp], weights: Weights, size: int) -> float | None:
    """From sums and margins, without a table of confusions."""
    n = a.size
    of_a, of_b = np.bincount(a, minlength=size), np.bincount(b, minlength=size)
    if weights == "none":
        observed, expected = int((a != b).sum()), n * n - int(of_a @ of_b)
    elif weights == "linear":
        # |i - j| is the number of steps t with one of them at or below t and the other above
        upto_a, upto_b = np.cumsum(of_a), np.cumsum(of_b)
        observed = int(np.abs(a - b).sum())
        expected = int(upto_a @ (n - upto_b) + upto_b @ (n - upto_a))
    else:
        observed = int(((a - b) ** 2).sum())
        expected = int(n * (a @ a + b @ b) - 2 * a.sum() * b.sum())
    return None if expected == 0 else 1 - observed * n / expected


def _nominal(item: NDArray[np.intp], codes: NDArray[np.intp]) -> tuple[float, float]:
    """Observed and expected disagreement, for alpha: ordered pairs that differ."""
    sizes, margins = np.bincount(item), np.bincount(codes)
    cells, counts = np.unique(item * margins.size + codes, return_counts=True)
    equal = np.bincount(cells // max(margins.size, 1), counts.astype(np.float64) ** 2, sizes.size)
    observed = ((sizes**2 - equal) / (sizes - 1)).sum()
    return float(observed), float(codes.size**2 - (margins.astype(np.float64) ** 2).sum())


def _interval(item: NDArray[np.intp], values: Floats) -> tuple[float, float]:
    """The squared distances of all ordered pairs of m values are 2 m times the squares around
    their mean: no pair need be looked at."""
    sizes = np.bincount(item)
    centred = values - values.mean() if values.size else values
    means = np.bincount(item, centred) / sizes
    observed = 2 * (sizes / (sizes - 1)) @ np.bincount(item, (centred - means[item]) ** 2)
    return float(observed), float(2 * values.size * (centred @ centred))


def _ratio(item: NDArray[np.intp], values: Floats) -> tuple[float, float]:
    """Here every pair must be looked at: those within an item, which stand side by side, by their
    distance; those of all values a block at a time."""
    sizes = np.bincount(item)
    weight = (2 / (sizes - 1))[item] if sizes.size else values
    observed = expected = 0.0
    left, distance = np.arange(item.size), 0
    while left.size:
        distance += 1
        left = left[left + distance < item.size]
        left = left[item[left] == item[left + distance]]
        observed += float(weight[left] @ _ratio_squares(values[left], values[left + distance]))
    known, margins = np.unique(values, return_counts=True)
    for begin in range(0, known.size, BLOCK):
        block = slice(begin, begin + BLOCK)
        squares = _ratio_squares(known[block, np.newaxis], known)
        expected += float(margins[block] @ squares @ margins)
    return observed, expected


def _ratio_squares(a: Floats, b: Floats) -> Floats:
    sums = a + b
    return np.asarray(((a - b) / np.where(sums == 0, 1.0, sums)) ** 2)
