"""Significance tests of the difference between two metrics, or two systems.

Every p-value from resampling is (1 + hits) / (1 + resamples): the data as observed is one of the
possible outcomes under the null hypothesis, so that p is never 0 (Phipson & Smyth 2010).

Adjusted for many tests, the smallest such p would never be significant.  So if no random swap gives
a difference as large as the observed one, p is 2 c P(Z >= t), if that is smaller: t is the observed
difference divided by the standard deviation of the swapped ones, and Z is normal.  The swapped
difference of two means is a sum of terms with random signs, and for all such sums the normal tail
times c = 1 / (4 P(Z >= sqrt 2)) = 3.179 is an upper bound (Bentkus & Dzindzalieta 2015, "A tight
Gaussian bound for weighted sums of Rademacher random variables", Bernoulli 21): p is too large
rather than too small, whatever the distribution of the scores.  For values that are not means, such
as BLEU of a corpus, it is an approximation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rejoinder.meta_evaluation.correlate import (
    CHUNK_BYTES,
    Columns,
    Floats,
    Integers,
    Seed,
    Statistic,
    chunk_sizes,
    draw_counts,
    finite,
    same_length,
    weighted,
)

Alternative = Literal["greater", "less", "two-sided"]
Finish = Callable[[Floats], Floats]

TOLERANCE = 1e-10
TAIL_FACTOR = 1 / (2 * math.erfc(1))
"""Factor of the normal tail in the upper bound, 1 / (4 P(Z >= sqrt 2)), about 3.179."""


@dataclass(frozen=True)
class Comparison:
    """Difference of two correlations, a minus b, and its p-value; None where undefined."""

    difference: float | None
    p: float | None


def perm_both(
    a: ArrayLike,
    b: ArrayLike,
    human: ArrayLike,
    *,
    statistic: Statistic = "pearson",
    resamples: int = 1000,
    seed: Seed = 12345,
    alternative: Alternative = "greater",
) -> Comparison:
    """Test whether metric a correlates better with people than metric b, by PERM-BOTH.

    Under the null hypothesis the standardised scores of an item may be swapped.  Each resample
    swaps those of every item with probability 1/2 and computes the difference of the correlations
    again (Deutsch, Dror & Roth 2021, "A Statistical Analysis of Summarization Evaluation Metrics
    Using Resampling Methods", TACL 9).  Resamples with a constant side are left out.

    A swapped metric is a selection from the 2 n pooled scores with counts 0 and 1, so the kernels
    of the bootstrap can be used.  Standardised scores are rounded to 12 digits, so that two copies
    of one metric on different scales do not differ by rounding.
    """
    first, second, people = finite(a, "a"), finite(b, "b"), finite(human, "human")
    same_length("a", first.size, "human", people.size)
    same_length("b", second.size, "human", people.size)
    _check(resamples)
    if alternative not in ("greater", "less", "two-sided"):
        raise ValueError(f"unknown alternative {alternative!r}: greater, less or two-sided")
    if people.size < 3 or any(values.min() == values.max() for values in (first, second, people)):
        return Comparison(None, None)
    scores = Columns.of(np.concatenate([_standard(first), _standard(second)])[np.newaxis])
    human_twice = Columns.of(np.tile(people, 2)[np.newaxis])

    def differences(swap: Integers) -> Floats:
        of_a = np.concatenate([1 - swap, swap], axis=1)
        of_b = np.concatenate([swap, 1 - swap], axis=1)
        value_a: Floats = weighted(statistic, of_a, scores, human_twice)[0]
        value_b: Floats = weighted(statistic, of_b, scores, human_twice)[0]
        return value_a - value_b

    observed = float(differences(np.zeros((1, people.size), np.int32))[0])
    if math.isnan(observed):
        return Comparison(None, None)
    rng = np.random.default_rng(seed)
    drawn = [
        differences((rng.random((size, people.size)) < 0.5).astype(np.int32))
        for size in chunk_sizes(resamples, row_bytes=32 * people.size)
    ]
    return Comparison(observed, _p_value(np.concatenate(drawn), observed, TOLERANCE, alternative))


def williams(r_ah: float | None, r_bh: float | None, r_ab: float | None, n: int) -> float | None:
    """Return the one-sided p of Williams' test that a's correlation r_ah exceeds b's, r_bh.

    t = (r_ah - r_bh) sqrt((n - 1)(1 + r_ab))
        / sqrt(2 K (n - 1) / (n - 3) + (r_ah + r_bh)^2 (1 - r_ab)^3 / 4)
    with K = 1 - r_ah^2 - r_bh^2 - r_ab^2 + 2 r_ah r_bh r_ab follows Student's t with n - 3 degrees
    of freedom (Williams 1959; Graham & Baldwin 2014, EMNLP).  Two metrics with r_ab = 1 are the
    same: t = 0, p = 1/2.  With r_ab = -1 the formula is 0 / 0: None, as for n < 4 or a correlation
    that is undefined.
    """
    if r_ah is None or r_bh is None or r_ab is None or n < 4:
        return None
    if any(math.isnan(r) for r in (r_ah, r_bh, r_ab)):
        return None
    if max(abs(r_ah), abs(r_bh), abs(r_ab)) > 1:
        raise ValueError(f"correlations must lie in [-1, 1], got {r_ah}, {r_bh}, {r_ab}")
    k = 1 - r_ah**2 - r_bh**2 - r_ab**2 + 2 * r_ah * r_bh * r_ab
    if k < -TOLERANCE:
        raise ValueError(f"no three variables correlate as {r_ah}, {r_bh}, {r_ab}")
    if 1 - abs(r_ab) < TOLERANCE:
        return 0.5 if r_ab > 0 else None
    spread = 2 * max(k, 0.0) * (n - 1) / (n - 3) + (r_ah + r_bh) ** 2 / 4 * (1 - r_ab) ** 3
    distance = (r_ah - r_bh) * math.sqrt((n - 1) * (1 + r_ab))
    t = distance / math.sqrt(spread) if spread > 0 else math.copysign(math.inf, distance)
    from scipy.special import stdtr

    return float(stdtr(n - 3, -t))


def paired_bootstrap(
    rows: ArrayLike, finish: Finish, *, resamples: int = 1000, seed: Seed = 12345
) -> Floats:
    """Return scores [resamples, systems] on resampled contexts, the same for all systems.

    ``rows`` [systems, contexts, d] are additive statistics and ``finish`` turns summed rows
    [..., d] into scores [...] (Koehn 2004, "Statistical Significance Tests for Machine Translation
    Evaluation").  The sums of a chunk of resamples are one matrix product.
    """
    table = finite(rows, "rows", dimensions=3)
    systems, contexts, width = table.shape
    _check(resamples)
    _check_contexts(contexts)
    flat = np.ascontiguousarray(table.transpose(1, 0, 2)).reshape(contexts, systems * width)
    rng = np.random.default_rng(seed)
    row_bytes = 8 * (contexts + 2 * systems * width)
    return np.concatenate(
        [
            finish((counts.astype(np.float64) @ flat).reshape(len(counts), systems, width))
            for counts in draw_counts(rng, contexts, resamples, row_bytes)
        ]
    )


def approximate_randomisation(
    rows_a: ArrayLike,
    rows_b: ArrayLike,
    finish: Finish,
    *,
    resamples: int = 1000,
    seed: Seed = 12345,
) -> float | None:
    """Return the two-sided p that systems a and b differ; None if either has no score.

    Under the null hypothesis the two systems' rows [contexts, d] of a context may be swapped; p is
    how often |score difference| is then at least as large (Riezler & Maxwell 2005, "On Some
    Pitfalls in Automatic Evaluation and Significance Testing for MT").
    """
    first = finite(rows_a, "rows_a", dimensions=2)
    second = finite(rows_b, "rows_b", dimensions=2)
    if first.shape != second.shape:
        raise ValueError(f"rows_a has shape {first.shape} but rows_b has {second.shape}")
    table = randomisation_table(np.stack([first, second]), finish, resamples=resamples, seed=seed)
    return None if math.isnan(table[0, 1]) else float(table[0, 1])


def randomisation_table(
    rows: ArrayLike, finish: Finish, *, resamples: int = 1000, seed: Seed = 12345
) -> Floats:
    """Return the p-values of `approximate_randomisation` for every pair [systems, systems].

    NaN if either has no score, and on the diagonal. All pairs share the swaps, so that the swapped
    statistics of all systems are one matrix product.
    """
    table = finite(rows, "rows", dimensions=3)
    systems, contexts, width = table.shape
    _check(resamples)
    _check_contexts(contexts)
    sums = table.sum(axis=1)
    scores = finish(sums)
    flat = np.ascontiguousarray(table.transpose(1, 0, 2)).reshape(contexts, systems * width)
    counts = _SwapCounts(scores[:, np.newaxis], scores[np.newaxis])
    rng = np.random.default_rng(seed)
    for size in chunk_sizes(resamples, row_bytes=24 * contexts + 64 * systems * width):
        swap = (rng.random((size, contexts)) < 0.5).astype(np.float64)
        swapped = (swap @ flat).reshape(size, systems, width)
        for i in range(systems - 1):
            moved = swapped[:, i + 1 :] - swapped[:, i : i + 1]
            gaps = finish(sums[i] + moved) - finish(sums[i + 1 :] - moved)
            counts.add((i, slice(i + 1, None)), gaps)
    p_values = np.triu(counts.p_values(), k=1)
    p_values += p_values.T
    np.fill_diagonal(p_values, np.nan)
    return p_values


def randomisation_pairs(
    rows: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    finish: Finish,
    *,
    resamples: int = 1000,
    seed: Seed = 12345,
) -> Floats:
    """Return the p-values of `approximate_randomisation` for some pairs of systems.

    ``first`` and ``second`` are numbers of systems. Memory grows with the number of pairs, not with
    the square of the number of systems.
    """
    table = finite(rows, "rows", dimensions=3)
    i, j = np.asarray(first, np.intp), np.asarray(second, np.intp)
    _, contexts, width = table.shape
    _check(resamples)
    _check_contexts(contexts)
    sums = table.sum(axis=1)
    scores = finish(sums)
    counts = _SwapCounts(scores[i], scores[j])
    step = max(1, CHUNK_BYTES // (64 * width * min(resamples, 64)))
    for begin in range(0, i.size, step):
        block = slice(begin, begin + step)
        chosen, place = np.unique(np.concatenate([i[block], j[block]]), return_inverse=True)
        at_i, at_j = place[: i[block].size], place[i[block].size :]
        flat = np.ascontiguousarray(table[chosen].transpose(1, 0, 2)).reshape(contexts, -1)
        rng = np.random.default_rng(seed)
        for size in chunk_sizes(resamples, row_bytes=24 * contexts + 64 * width * len(chosen)):
            swap = (rng.random((size, contexts)) < 0.5).astype(np.float64)
            swapped = (swap @ flat).reshape(size, len(chosen), width)
            moved = swapped[:, at_j] - swapped[:, at_i]
            gaps = finish(sums[i[block]] + moved) - finish(sums[j[block]] - moved)
            counts.add(block, gaps)
    return counts.p_values()


def swapped_pairs(
    first: Floats, second: Floats, finish: Finish, *, resamples: int = 1000, seed: Seed = 12345
) -> Floats:
    """Return the p-values of `approximate_randomisation` for pairs with rows of their own.

    ``first`` and ``second`` [pairs, contexts, d] are 0 in contexts that a pair does not share.
    """
    pairs, contexts, width = first.shape
    _check(resamples)
    _check_contexts(contexts)
    sums_first, sums_second = first.sum(axis=1), second.sum(axis=1)
    counts = _SwapCounts(finish(sums_first), finish(sums_second))
    flat = (second - first).transpose(1, 0, 2).reshape(contexts, pairs * width)
    rng = np.random.default_rng(seed)
    for size in chunk_sizes(resamples, row_bytes=24 * contexts + 64 * pairs * width):
        swap = (rng.random((size, contexts)) < 0.5).astype(np.float64)
        moved = (swap @ flat).reshape(size, pairs, width)
        counts.add(slice(None), finish(sums_first + moved) - finish(sums_second - moved))
    return counts.p_values()


def bootstrap_pairs(
    first: Floats,
    second: Floats,
    shared: NDArray[np.bool_],
    finish: Finish,
    *,
    resamples: int = 1000,
    seed: Seed = 12345,
) -> Floats:
    """Return the differences [resamples, pairs] of pairs on resampled contexts.

    ``first`` and ``second`` [pairs, contexts, d] are 0 in contexts that a pair does not share, that
    is where ``shared`` [pairs, contexts] is False. NaN where a resample has no shared context.
    """
    pairs, contexts, width = first.shape
    _check(resamples)
    _check_contexts(contexts)
    tables = [rows.transpose(1, 0, 2).reshape(contexts, pairs * width) for rows in (first, second)]
    is_shared = shared.T.astype(np.float64)
    rng = np.random.default_rng(seed)
    drawn = []
    for counts in draw_counts(rng, contexts, resamples, row_bytes=48 * pairs * width):
        weights = counts.astype(np.float64)
        with np.errstate(all="ignore"):  # sums of nothing
            a, b = (finish((weights @ t).reshape(-1, pairs, width)) for t in tables)
            drawn.append(np.where(weights @ is_shared > 0, a - b, np.nan))
    return np.concatenate(drawn)


class _SwapCounts:
    """Counts random swaps that give differences as large as the observed ones."""

    def __init__(self, first: Floats, second: Floats) -> None:
        self._observed = np.abs(first - second)
        self._tolerance = TOLERANCE * np.maximum(np.abs(first), np.abs(second))
        shape = self._observed.shape
        self._hits, self._defined, self._squares = (np.zeros(shape) for _ in range(3))

    def add(self, pairs: slice | tuple[int, slice], differences: Floats) -> None:
        """Add the differences [swaps, pairs] of some pairs; those that are undefined do not
        count."""
        gaps, defined = np.abs(differences), np.isfinite(differences)
        observed = self._observed[pairs]
        smallest = observed - self._tolerance[pairs]
        self._hits[pairs] += np.count_nonzero(defined & (gaps >= smallest), axis=0)
        self._defined[pairs] += np.count_nonzero(defined, axis=0)
        with np.errstate(all="ignore"):
            relative = np.where(defined, np.minimum(gaps / observed, 1.0), 0.0)
        self._squares[pairs] += np.einsum("sp,sp->p", relative, relative)

    def p_values(self) -> Floats:
        """Return the two-sided p-values; NaN where the observed difference is undefined."""
        p_values = (1 + self._hits) / (1 + self._defined)
        beyond = np.flatnonzero((self._hits == 0) & (self._squares > 0))
        deviation = np.sqrt(self._squares.flat[beyond] / self._defined.flat[beyond])
        p_values.flat[beyond] = np.minimum(
            p_values.flat[beyond], 2 * random_sign_tail(1 / deviation)
        )
        p_values[~np.isfinite(self._observed)] = np.nan
        return np.asarray(p_values)


def random_sign_tail(t: Floats) -> Floats:
    """Return the upper bound of the probability that a sum of terms with random signs is at least
    t standard deviations; not 0 for any t."""
    from scipy.special import ndtr

    return np.asarray(np.maximum(TAIL_FACTOR * ndtr(-t), np.finfo(np.float64).tiny))


def holm(pvalues: ArrayLike) -> Floats:
    """Return p-values adjusted for multiple tests, in the same shape (Holm 1979).

    The i-th smallest of m becomes the largest (m - j + 1) p_j of j <= i, at most 1.  NaN, a test
    that was not made, stays NaN and does not count.
    """
    p_values, tested, values = _tested(pvalues)
    order = np.argsort(values, kind="stable")
    factors = np.arange(values.size, 0, -1)
    adjusted = np.full(p_values.size, np.nan)
    adjusted[tested[order]] = np.minimum(1.0, np.maximum.accumulate(factors * values[order]))
    return adjusted.reshape(p_values.shape)


def benjamini_yekutieli(pvalues: ArrayLike) -> Floats:
    """Return p-values adjusted for the false discovery rate, however the tests depend on each
    other, in the same shape (Benjamini & Yekutieli 2001).

    The i-th smallest of m becomes the smallest m c(m) p_j / j of j >= i, at most 1, with
    c(m) = 1 + 1/2 + … + 1/m.  NaN, a test that was not made, stays NaN and does not count.
    """
    p_values, tested, values = _tested(pvalues)
    order = np.argsort(values, kind="stable")[::-1]
    places = np.arange(values.size, 0, -1)
    factors = values.size * (1 / places).sum() / places
    adjusted = np.full(p_values.size, np.nan)
    adjusted[tested[order]] = np.minimum(1.0, np.minimum.accumulate(factors * values[order]))
    return adjusted.reshape(p_values.shape)


def letters(order: Sequence[int], adjusted: ArrayLike, alpha: float = 0.05) -> list[str]:
    """Return letters for the systems of ``order`` (best first): systems that share a letter do not
    differ significantly.

    ``adjusted[i, j]`` is the p-value of i, which ranks above j, against j (the matrix may be
    symmetric); NaN is not significant. Each letter stands for a maximal run of neighbours in the
    ranking of which no two differ significantly (the compact letter display of Piepho 2004, for
    ranked runs).
    """
    table = np.asarray(adjusted, dtype=np.float64)
    ranked = np.asarray(order, dtype=np.intp)
    if table.ndim != 2 or table.shape[0] != table.shape[1]:
        raise ValueError(f"adjusted: expected a square matrix, got shape {table.shape}")
    if np.unique(ranked).size != ranked.size:
        raise ValueError("order has a system twice")
    if ranked.size and not (ranked.min() >= 0 and ranked.max() < len(table)):
        raise ValueError(f"order has a system outside the matrix of {len(table)}")
    differ = np.triu(table[np.ix_(ranked, ranked)] <= alpha, k=1)
    marks = [""] * ranked.size
    used, reached = 0, 0
    for start in range(ranked.size):
        end = start
        while end < ranked.size and not differ[start:end, end].any():
            end += 1
        if end > reached:
            for place in range(start, end):
                marks[place] += _letter(used)
            used, reached = used + 1, end
    return marks


def _letter(number: int) -> str:
    """Return a … z, then a1, b1 …"""
    return chr(ord("a") + number % 26) + (str(number // 26) if number >= 26 else "")


def _tested(pvalues: ArrayLike) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Return p-values as an array, the places of those that are not NaN, and these."""
    p_values = np.asarray(pvalues, dtype=np.float64)
    tested = np.flatnonzero(~np.isnan(p_values))
    values = p_values.ravel()[tested]
    if ((values < 0) | (values > 1)).any():
        raise ValueError("p-values must lie between 0 and 1")
    return p_values, tested, values


def _standard(values: Floats) -> Floats:
    """Return standard scores, scaled first so that the variance neither over- nor underflows."""
    scaled = Columns.of(values[np.newaxis]).values[0]
    centred: Floats = scaled - scaled.mean()
    centred /= np.abs(centred).max()
    centred /= centred.std()
    return np.round(centred, 12)


def _check(resamples: int) -> None:
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, got {resamples}")


def _check_contexts(contexts: int) -> None:
    if contexts == 0:
        raise ValueError("there are no contexts to resample")


def _p_value(drawn: Floats, observed: float, tolerance: float, alternative: Alternative) -> float:
    """Return how often a defined resample is at least as extreme, up to a tolerance."""
    defined = drawn[np.isfinite(drawn)]
    if alternative == "less":
        defined, observed = -defined, -observed
    elif alternative == "two-sided":
        defined, observed = np.abs(defined), abs(observed)
    hits = np.count_nonzero(defined >= observed - tolerance)
    p = (1 + hits) / (1 + defined.size)
    deviation = np.sqrt(np.mean(np.square(defined))) if defined.size else 0.0
    if hits or not deviation:
        return p
    sides = 2 if alternative == "two-sided" else 1
    return min(p, sides * float(random_sign_tail(np.asarray(observed / deviation))))
