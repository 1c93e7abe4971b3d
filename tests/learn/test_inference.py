"""Inference batches: each prefix occurs once in a batch, and each row is scored once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.learn import inference
from rejoinder.learn.inference import BATCH_SIZE, inference_batches
from rejoinder.text.distinct import distinct

rows_with_prefix = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 40)), max_size=300)


@given(rows_with_prefix, st.integers(1, 50))
def test_every_row_occurs_once_with_its_own_prefix(
    given_rows: list[tuple[int, int]], batch_size: int
) -> None:
    once, prefixes = distinct([prefix for prefix, _ in given_rows])
    assert [once[number] for number in prefixes] == [prefix for prefix, _ in given_rows]
    assert len(set(once)) == len(once)
    lengths = np.array([length for _, length in given_rows], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "BATCH_SIZE", batch_size)
        batches = list(inference_batches(prefixes, lengths))
    used = [row for _, rows in batches for row in rows.tolist()]
    assert sorted(used) == list(range(len(given_rows)))
    for numbers, rows in batches:
        assert 0 < len(rows) <= batch_size
        # as networks expect it: the first few rows belong to the first prefix, and so on
        np.testing.assert_array_equal(np.repeat(numbers, len(rows) // len(numbers)), prefixes[rows])


def test_a_prefix_occurs_in_one_batch_only() -> None:
    """60 contexts with 100 replies each: ten contexts fit into a batch, and none is in two."""
    prefixes = np.random.default_rng(0).permutation(np.repeat(np.arange(60), 100))
    batches = list(inference_batches(prefixes, np.ones(6000, np.int64)))
    assert BATCH_SIZE // 100 == 10
    assert [len(numbers) for numbers, _ in batches] == [10] * 6
    assert len(np.unique(np.concatenate([numbers for numbers, _ in batches]))) == 60


def test_rows_of_a_batch_have_similar_lengths_if_no_prefix_is_shared() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 5000)
    batches = list(inference_batches(np.arange(5000), lengths))
    assert len(batches) == -(-5000 // BATCH_SIZE)
    spreads = [np.ptp(lengths[rows]) for _, rows in batches]
    assert max(spreads) <= 200 // len(batches) + 5
