"""How far annotators agree with each other, beyond what chance would give.

No metric can be expected to agree with people more than people do among themselves.  Ratings are a
matrix annotators x items with NaN where an annotator did not rate.  Undefined is ``None``: nothing
rated twice, or only one value ever used, so that there is no disagreement to expect by chance.
"""

from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta.correlate import Floats, same_length

Weights = Literal["none", "linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval", "ratio"]


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
    """The mean of Cohen's kappa over all pairs of annotators for which it is defined.

    By default the categories are those that any annotator used (for an item rated twice or not).
    """
    table = _ratings(ratings, "ratings", 2)
    rated = ~np.isnan(table)
    used = np.unique(table[rated])
    scale = used if categories is None else np.unique(_ratings(categories, "categories", 1))
    if not np.isin(used, scale).all():
        raise ValueError("ratings hold values outside the categories")
    codes = np.searchsorted(scale, table)
    prices = _prices(weights, scale.size)
    kappas = []
    for i, j in combinations(range(len(table)), 2):
        both = rated[i] & rated[j]
        kappa = _kappa(codes[i, both], codes[j, both], prices)
        if kappa is not None:
            kappas.append(kappa)
    return float(np.mean(kappas)) if kappas else None


def krippendorff_alpha(ratings: ArrayLike, level: Level = "ordinal") -> float | None:
    """Krippendorff's alpha of all annotators together, missing ratings allowed.

    alpha = 1 - (n - 1) sum(o d) / sum(n_c n_k d).  o_ck counts the ordered pairs of values c, k
    that the m ratings of an item form, each item's divided by m - 1; n_c are its margins, n their
    sum.  d is the square of the distance of c and k at the level of measurement: 1 if they differ;
    how many ratings lie between them; c - k; (c - k) / (c + k).  Items rated once say nothing and
    are left out.  (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".)
    """
    table = _ratings(ratings, "ratings", 2)
    table = table[:, np.count_nonzero(~np.isnan(table), axis=0) >= 2]
    rated = ~np.isnan(table)
    values = np.unique(table[rated])
    if level == "ratio" and (values < 0).any():
        raise ValueError("a ratio scale has no negative values")
    items = table.shape[1]
    cells = np.searchsorted(values, table) + values.size * np.arange(items)
    counts = np.bincount(cells[rated], minlength=items * values.size).reshape(items, values.size)
    pairable = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = counts.T @ pairable - np.diag(pairable.sum(axis=0))
    margins = counts.sum(axis=0).astype(np.float64)
    distances = _squared_distances(values, margins, level)
    expected = float(margins @ distances @ margins)
    if expected == 0:
        return None
    return 1 - (float(margins.sum()) - 1) * float((coincidences * distances).sum()) / expected


def _ratings(values: ArrayLike, name: str, dimensions: int) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise ValueError(f"{name}: expected {dimensions} dimension(s), got {array.ndim}")
    if np.isinf(array).any():
        raise ValueError(f"{name}: infinite values")
    return array


def _prices(weights: Weights, size: int) -> Floats:
    gaps = np.abs(np.subtract.outer(np.arange(size), np.arange(size))).astype(np.float64)
    if weights == "none":
        return np.minimum(gaps, 1.0)
    if weights == "linear":
        return gaps
    if weights == "quadratic":
        return gaps**2
    raise ValueError(f"unknown weights {weights!r}: expected none, linear or quadratic")


def _kappa(a: NDArray[np.intp], b: NDArray[np.intp], prices: Floats) -> float | None:
    size = len(prices)
    confusion = np.bincount(a * size + b, minlength=size * size).reshape(size, size)
    expected = float(confusion.sum(axis=1) @ prices @ confusion.sum(axis=0))
    if expected == 0:
        return None
    return 1 - float((prices * confusion).sum()) * a.size / expected


def _squared_distances(values: Floats, margins: Floats, level: Level) -> Floats:
    if level == "nominal":
        return 1.0 - np.eye(values.size)
    if level == "ordinal":
        middles = np.cumsum(margins) - margins / 2
        return np.subtract.outer(middles, middles) ** 2
    if level == "interval":
        return np.subtract.outer(values, values) ** 2
    if level == "ratio":
        sums = np.add.outer(values, values)
        return (np.subtract.outer(values, values) / np.where(sums == 0, 1.0, sums)) ** 2
    raise ValueError(f"unknown level {level!r}: expected nominal, ordinal, interval or ratio")
