"""Batches by length: each row once, size limits, little padding, reproducible."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.learn.batches import LengthBatches

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=200).map(np.array)


@given(lengths, st.integers(1, 100), st.one_of(st.none(), st.integers(1, 9)), st.integers(0, 9))
def test_each_row_is_in_one_batch_and_no_batch_is_too_large(
    sizes: np.ndarray, max_tokens: int, max_rows: int | None, epoch: int
) -> None:
    batches = LengthBatches(sizes, max_tokens, max_rows)
    for plan in (batches.shuffled(1, epoch), batches.in_order):
        assert sorted(np.concatenate(plan).tolist()) == list(range(len(sizes)))
        for rows in plan:
            assert len(rows) == 1 or len(rows) * sizes[rows].max() <= max_tokens
            assert max_rows is None or len(rows) <= max_rows


@given(lengths, st.integers(1, 100))
def test_batches_depend_on_seed_and_epoch_only(sizes: np.ndarray, max_tokens: int) -> None:
    one, other = LengthBatches(sizes, max_tokens), LengthBatches(sizes, max_tokens)
    first = [one.shuffled(3, epoch) for epoch in (0, 1, 2)]
    again = [other.shuffled(3, epoch) for epoch in (2, 0, 1)]
    for k, plan in enumerate((again[1], again[2], again[0])):
        assert all(np.array_equal(a, b) for a, b in zip(first[k], plan, strict=True))


def test_batches_differ_between_epochs_and_have_little_padding() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.geometric(0.05, 5000) + 3
    batches = LengthBatches(sizes, 1024)
    plans = [batches.shuffled(0, 0), batches.shuffled(0, 1), batches.shuffled(1, 0)]
    kinds = {tuple(plan[0].tolist()) for plan in plans}
    assert len(kinds) == 3
    # batches differ in their rows, not only in their order
    together = [{frozenset(rows.tolist()) for rows in plan} for plan in plans]
    assert len(together[0] & together[1]) < 0.1 * len(plans[0])
    padded = sum(len(rows) * sizes[rows].max() for rows in plans[0])
    assert padded < 1.12 * sizes.sum()
    # random batches of 24 rows would be padded to three times the size
    order = rng.permutation(5000)
    random = sum(len(rows) * sizes[rows].max() for rows in np.array_split(order, 208))
    assert random > 2.5 * padded
