"""Sums by context, and the intervals that are resampled from them."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.metrics import context_sums
from rejoinder.metrics.bootstrap import Resampling, interval
from rejoinder.metrics.context_sums import ContextSums, context_keys


def test_rows_of_a_context_are_added_up_whatever_the_order_and_batches() -> None:
    keys = np.array([5, 2, 5, 9, 2, 5], np.uint64)
    rows = np.arange(12.0).reshape(6, 2)
    whole = ContextSums.of(keys, rows)
    assert whole.keys.tolist() == [2, 5, 9]
    # 2: rows 1 and 4; 5: rows 0, 2 and 5; 9: row 3
    assert whole.sums.tolist() == [[2 + 8, 3 + 9], [0 + 4 + 10, 1 + 5 + 11], [6, 7]]
    pieces = ContextSums.of(keys[4:], rows[4:]) + ContextSums.of(keys[:4], rows[:4])
    assert pieces.keys.tolist() == whole.keys.tolist()
    assert pieces.sums.tolist() == whole.sums.tolist()


def test_many_contexts_become_the_same_blocks_whatever_the_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context_sums, "BLOCKS", 16)
    keys = context_keys([str(number % 100) for number in range(1000)])
    rows = np.arange(2000.0).reshape(1000, 2)
    whole = ContextSums.of(keys, rows)
    assert len(whole) == 16
    assert whole.sums.sum(axis=0).tolist() == rows.sum(axis=0).tolist()
    few = ContextSums.of(keys[:10], rows[:10])
    pieces = few + ContextSums.of(keys[10:500], rows[10:500])
    pieces += ContextSums.of(keys[500:], rows[500:])
    np.testing.assert_array_equal(pieces.sums, whole.sums)


def test_a_resample_draws_as_many_contexts_as_there_are() -> None:
    contexts = np.column_stack([np.arange(20.0), np.ones(20)])
    first, second, other = Resampling(300, 7).sums([contexts, 2 * contexts, contexts[:5]])
    assert (first[:, 1] == 20).all()
    assert (other[:, 1] == 5).all()
    np.testing.assert_array_equal(second, 2 * first)  # the same draws
    assert len(np.unique(first[:, 0])) > 50
    np.testing.assert_array_equal(first, Resampling(300, 7).sums([contexts])[0])
    assert (first != Resampling(300, 8).sums([contexts])[0]).any()


def test_the_interval_of_a_symmetric_mean_is_that_of_student() -> None:
    """Without bias and skew, the expanded levels give the t interval."""
    rng = np.random.default_rng(3)
    half = rng.normal(size=10)
    values = np.concatenate([half, -half])  # mean 0, no skew
    n = len(values)
    contexts = np.column_stack([values, np.ones(n)])
    (drawn,) = Resampling(20_000, 1).sums([contexts])
    total = contexts.sum(axis=0)
    left_out = total - contexts
    means, without = drawn[:, 0] / drawn[:, 1], left_out[:, 0] / left_out[:, 1]
    low, high = interval(float(values.mean()), means, without, 0.95)
    expected = 2.093 * values.std(ddof=1) / np.sqrt(n)  # t with 19 degrees of freedom
    assert high == pytest.approx(expected, rel=0.05)
    assert low == pytest.approx(-expected, rel=0.05)


def test_the_interval_of_skewed_values_reaches_further_to_the_long_side() -> None:
    values = np.exp(np.random.default_rng(4).normal(size=40))
    contexts = np.column_stack([values, np.ones(40)])
    (drawn,) = Resampling(5000, 1).sums([contexts])
    left_out = contexts.sum(axis=0) - contexts
    low, high = interval(
        float(values.mean()), drawn[:, 0] / drawn[:, 1], left_out[:, 0] / left_out[:, 1], 0.95
    )
    assert high - values.mean() > 1.2 * (values.mean() - low)


def test_the_interval_of_a_constant_is_a_point() -> None:
    ones = np.ones(100)
    assert interval(1.0, ones, ones[:5], 0.95) == (1.0, 1.0)
