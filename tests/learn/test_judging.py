"""Questions with one beginning are asked together, and each is asked once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.learn import judging
from rejoinder.learn.forms.ragged import numbered
from rejoinder.learn.judging import AT_ONCE, batches_of

asked = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 40)), max_size=300)


@given(asked, st.integers(1, 50))
def test_every_question_once_with_its_own_beginning(
    questions: list[tuple[int, int]], at_once: int
) -> None:
    once, owners = numbered([beginning for beginning, _ in questions])
    assert [once[owner] for owner in owners] == [beginning for beginning, _ in questions]
    assert len(set(once)) == len(once)
    lengths = np.array([length for _, length in questions], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "AT_ONCE", at_once)
        batches = list(batches_of(owners, lengths))
    seen = [row for _, rows in batches for row in rows.tolist()]
    assert sorted(seen) == list(range(len(questions)))
    for numbers, rows in batches:
        assert 0 < len(rows) <= at_once
        # as networks expect it: the first few belong to the first, and so on
        np.testing.assert_array_equal(np.repeat(numbers, len(rows) // len(numbers)), owners[rows])


def test_a_beginning_is_read_once() -> None:
    """60 contexts with 100 replies each: ten contexts fit into a batch, and none is in two."""
    owners = np.random.default_rng(0).permutation(np.repeat(np.arange(60), 100))
    batches = list(batches_of(owners, np.ones(6000, np.int64)))
    assert AT_ONCE // 100 == 10
    assert [len(numbers) for numbers, _ in batches] == [10] * 6
    assert len(np.unique(np.concatenate([numbers for numbers, _ in batches]))) == 60


def test_where_nothing_is_shared_rows_of_a_batch_are_about_as_long() -> None:
    lengths = np.random.default_rng(0).integers(1, 200, 5000)
    batches = list(batches_of(np.arange(5000), lengths))
    assert len(batches) == -(-5000 // AT_ONCE)
    spreads = [np.ptp(lengths[rows]) for _, rows in batches]
    assert max(spreads) <= 200 // len(batches) + 5
