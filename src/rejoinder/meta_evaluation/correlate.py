"""Correlation of metrics with people: Pearson, Spearman and Kendall with intervals.

The items of one context are not independent of each other, so a bootstrap that draws single items
gives intervals that are too narrow.  Resamples are drawn by cluster: all items of a context, or
none (Field & Welsh 2007, "Bootstrapping clustered data").

Undefined is ``None``, never 0: constant columns and fewer than 3 items have no correlation.
A resample in which a side is constant is left out of the percentiles; if that happens to more than
half of them, or if there is only one cluster to draw, there is no interval.
"""

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Seed = int | np.random.Generator
Statistic = Literal["pearson", "spearman", "kendall"]

STATISTICS: tuple[Statistic, ...] = ("pearson", "spearman", "kendall")
CHUNK_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Estimate:
    """A correlation, its two-sided p-value and its confidence interval; None where undefined."""

    value: float | None = None
    p: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Correlations:
    """Correlations of one metric with people, over n items."""

    n: int
    pearson: Estimate
    spearman: Estimate
    kendall: Estimate


@dataclass(frozen=True)
class Columns:
    """Columns of values with the rank codes and sort orders that the kernels need."""

    values: Floats
    codes: Integers
    orders: Integers

    @classmethod
    def of(cls, values: Floats) -> "Columns":
        """Prepare columns; scale by a power of two, which is exact, against over- and underflow."""
        _, exponents = np.frexp(np.abs(values).max(axis=1, keepdims=True, initial=0.0))
        codes = np.empty(values.shape, np.int32)
        for row, column in zip(codes, values, strict=True):
            row[:] = np.unique(column, return_inverse=True)[1]
        orders = np.argsort(codes, axis=1, kind="stable").astype(np.int32)
        return cls(np.ldexp(values, -exponents), codes, orders)


def finite(values: ArrayLike, name: str, dimensions: int = 1) -> Floats:
    """Return the values as a float array; ValueError if any is NaN or infinite."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != dimensions:
        raise ValueError(f"{name}: expected {dimensions} dimension(s), got {array.ndim}")
    bad = np.count_nonzero(~np.isfinite(array))
    if bad:
        raise ValueError(f"{name}: {bad} of {array.size} values are NaN or infinite")
    return array


def same_length(first: str, a: int, second: str, b: int) -> None:
    """Raise ValueError if two columns differ in length."""
    if a != b:
        raise ValueError(f"{first} has {a} items but {second} has {b}")


def chunk_sizes(resamples: int, row_bytes: int) -> Iterator[int]:
    """Split a number of resamples so that a chunk of rows stays within CHUNK_BYTES."""
    size = max(1, CHUNK_BYTES // max(1, row_bytes))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def draw_counts(
    rng: np.random.Generator, units: int, resamples: int, row_bytes: int = 0
) -> Iterator[Integers]:
    """Yield bootstrap resamples in chunks [k, units]: how often each unit is drawn.

    ``row_bytes`` is the memory that the caller needs per resample.  The chunk size does not change
    the draws.
    """
    drawing_bytes = 3 * 8 * units
    for size in chunk_sizes(resamples, drawing_bytes + row_bytes):
        draws = rng.integers(0, units, (size, units))
        draws += units * np.arange(size)[:, np.newaxis]
        counts = np.bincount(draws.ravel(), minlength=size * units)
        yield counts.reshape(size, units).astype(np.int32)


def weighted(statistic: Statistic, counts: Integers, columns: Columns, human: Columns) -> Floats:
    """Return the correlation of each column with people by resample, [columns, resamples]."""
    from rejoinder.kernels import resampling

    if statistic == "pearson":
        return resampling.pearson(counts, columns.values, human.values[0])
    if statistic == "spearman":
        return resampling.spearman(counts, columns.codes, columns.orders, human.codes[0])
    if statistic == "kendall":
        return resampling.kendall(counts, columns.codes, columns.orders, human.codes[0])
    raise ValueError(f"unknown statistic {statistic!r}: expected one of {', '.join(STATISTICS)}")


def bootstrap(
    columns: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    resamples: int = 1000,
    seed: Seed = 12345,
    statistics: Iterable[Statistic] = STATISTICS,
) -> dict[Statistic, Floats]:
    """Return the correlations of m columns [m, n] by resample, [m, resamples]; NaN if undefined.

    All columns and statistics share the resamples, so that they can be compared pairwise.
    """
    metrics, people, labels = _checked(columns, human, clusters, resamples)
    resampled: dict[Statistic, Floats] = {
        statistic: np.full((len(metrics), resamples), np.nan) for statistic in statistics
    }
    if people.size == 0:
        return resampled
    units = int(labels.max()) + 1
    prepared, prepared_human = Columns.of(metrics), Columns.of(people[np.newaxis])
    start = 0
    rng = np.random.default_rng(seed)
    for drawn in draw_counts(rng, units, resamples, row_bytes=4 * people.size):
        counts = drawn if units == people.size else drawn[:, labels]
        counts = np.ascontiguousarray(counts)
        for statistic, values in resampled.items():
            values[:, start : start + len(counts)] = weighted(
                statistic, counts, prepared, prepared_human
            )
        start += len(counts)
    return resampled


def correlate(
    metric: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    resamples: int = 1000,
    seed: Seed = 12345,
    confidence: float = 0.95,
) -> Correlations:
    """Return the correlations of one metric with people; see `correlate_many`."""
    return correlate_many(
        finite(metric, "metric")[np.newaxis],
        human,
        clusters=clusters,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
    )[0]


def correlate_many(
    columns: ArrayLike,
    human: ArrayLike,
    *,
    clusters: ArrayLike | None = None,
    resamples: int = 1000,
    seed: Seed = 12345,
    confidence: float = 0.95,
) -> list[Correlations]:
    """Return the correlations of m metrics [m, n] with people [n], on shared resamples.

    Values and p-values are scipy's (Student's t for Pearson and Spearman; for Kendall's tau-b
    exact if few and untied, else normal).  Intervals are percentiles of a bootstrap over
    ``clusters``, integer labels [n]; without them each item is its own.  0 resamples: no interval.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    metrics, people, labels = _checked(columns, human, clusters, resamples)
    if np.unique(labels).size < 2:
        resamples = 0
    drawn = bootstrap(metrics, people, clusters=labels, resamples=resamples, seed=seed)
    prepared, prepared_human = Columns.of(metrics), Columns.of(people[np.newaxis])
    correlations = []
    for row in range(len(metrics)):
        estimates = {}
        for statistic in STATISTICS:
            value, p = _plain(statistic, prepared, row, prepared_human)
            limits = percentiles(drawn[statistic][row], confidence)
            estimates[statistic] = Estimate() if value is None else Estimate(value, p, *limits)
        correlations.append(Correlations(people.size, **estimates))
    return correlations


def percentiles(drawn: Floats, confidence: float = 0.95) -> tuple[float | None, float | None]:
    """Return the interval of resampled values without NaN; None if more than half are NaN."""
    defined = drawn[np.isfinite(drawn)]
    if defined.size == 0 or 2 * defined.size < drawn.size:
        return None, None
    tail = (1 - confidence) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def _checked(
    columns: ArrayLike, human: ArrayLike, clusters: ArrayLike | None, resamples: int
) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Return the arguments as arrays of matching shapes, cluster labels numbered from 0."""
    metrics = finite(columns, "metric", dimensions=2)
    people = finite(human, "human")
    same_length("metric", metrics.shape[1], "human", people.size)
    if resamples < 0:
        raise ValueError(f"resamples must not be negative, got {resamples}")
    if clusters is None:
        return metrics, people, np.arange(people.size)
    labels = np.asarray(clusters)
    if labels.ndim != 1:
        raise ValueError(f"clusters: expected 1 dimension(s), got {labels.ndim}")
    same_length("clusters", labels.size, "human", people.size)
    return metrics, people, np.unique(labels, return_inverse=True)[1]


def _plain(
    statistic: Statistic, columns: Columns, row: int, human: Columns
) -> tuple[float | None, float | None]:
    """Return value and p-value of one column, by scipy."""
    codes, human_codes = columns.codes[row], human.codes[0]
    if codes.size < 3 or codes.max() == 0 or human_codes.max() == 0:
        return None, None
    from scipy import stats

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if statistic == "pearson":
            result = stats.pearsonr(columns.values[row], human.values[0])
        elif statistic == "spearman":
            result = stats.spearmanr(codes, human_codes)
        else:
            result = stats.kendalltau(codes, human_codes)
    if not np.isfinite(result.statistic):
        return None, None
    return float(result.statistic), float(result.pvalue)
