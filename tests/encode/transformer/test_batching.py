"""Batches contain every text once, within their size; shards cover every text."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.encode.transformer.batching import length_batches, select_texts
from rejoinder.encode.transformer.threads import TextShards
from rejoinder.encode.transformer.tokenizer import TokenizedTexts
from rejoinder.machine import num_threads

lengths_of_texts = st.lists(st.integers(0, 40), max_size=60).map(np.array)


@given(lengths_of_texts, st.integers(1, 200))
def test_batches(lengths: np.ndarray, budget: int) -> None:
    lengths = lengths.astype(np.int64)
    found = list(length_batches(lengths, budget))
    rows = [row for group in found for row in group.tolist()]
    assert sorted(rows) == np.flatnonzero(lengths).tolist()
    assert np.all(np.diff(lengths[rows]) <= 0)  # longest first: a lack of memory shows at once
    for group in found:
        assert group.size == 1 or lengths[group].max() * group.size <= budget


@given(st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=9), st.randoms())
def test_tokens_of_selected_texts(texts: list[list[int]], random: object) -> None:
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in texts])]).astype(np.int64)
    ids = np.array([number for text in texts for number in text], np.int32)
    split = TokenizedTexts(ids, starts, np.zeros(len(texts), bool))
    rows = np.arange(len(texts))[::-1][: len(texts) // 2 + 1]
    found, lengths = select_texts(split, rows)
    assert found.tolist() == [number for row in rows for number in texts[row]]
    assert lengths.tolist() == [len(texts[row]) for row in rows]


@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=30), count=st.integers(1, 9))
def test_shards_cover_every_text_once(lengths: list[int], count: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENBLAS_NUM_THREADS", str(count))
        assert num_threads() == count
        calls: list[tuple[int, int]] = []
        rows: list[slice] = []
        with TextShards(np.array(lengths)) as shares:
            shares.map_texts(lambda first, last: calls.append((first, last)))
            shares.map_tokens(rows.append)
    calls.sort()
    assert calls[0][0] == 0 and calls[-1][1] == len(lengths)
    assert all(one[1] == other[0] for one, other in pairwise(calls))
    assert all(first < last for first, last in calls) and len(calls) <= count
    covered = sorted(number for part in rows for number in range(part.start, part.stop))
    assert covered == list(range(sum(lengths)))


def test_error_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")

    def wrong(first: int, last: int) -> None:
        if first == 0:
            raise ZeroDivisionError

    with TextShards(np.array([100, 100])) as shares, pytest.raises(ZeroDivisionError):
        shares.map_texts(wrong)
