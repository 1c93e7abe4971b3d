"""What batches give besides items: pieces of bounded size, queries, the heaviest reference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.text.tokens import TextTable

word = st.text("ab", max_size=6)


def batch_of(items: list[tuple[str, list[str]]]) -> Batch:
    return Batch.of(
        [
            Item(id=str(i), response=reply, references=[Reference(t) for t in texts])
            for i, (reply, texts) in enumerate(items)
        ]
    )


def letters(batch: Batch) -> int:
    length = np.array([len(text) for text in batch.table.texts])
    return int(length[batch.reply].sum() + length[batch.reference].sum())


@given(
    items=st.lists(st.tuples(word, st.lists(word, max_size=3)), min_size=1, max_size=9),
    most=st.integers(1, 30),
)
def test_slices_are_whole_items_of_few_characters(
    items: list[tuple[str, list[str]]], most: int
) -> None:
    batch = batch_of(items)
    pieces = list(batch.slices(most))
    assert [item.id for piece in pieces for item in piece.items] == [i.id for i in batch.items]
    np.testing.assert_array_equal(np.concatenate([p.reference for p in pieces]), batch.reference)
    for piece, after in zip(pieces, [*pieces[1:], None], strict=True):
        assert letters(piece) <= most or len(piece) == 1
        if after is not None:  # and no smaller than they have to be
            assert letters(piece) + letters(next(after.slices(1))) > most


def test_a_batch_that_fits_is_not_copied() -> None:
    batch = batch_of([("ab", ["a"]), ("b", [])])
    assert list(batch.slices(4)) == [batch]


def test_the_last_turn_as_reference() -> None:
    items = [
        Item(id="1", response="a", context=["x", "y"], references=[Reference("b")]),
        Item(id="2", response="b"),
        Item(id="3", response="c", context=["x", " "]),
    ]
    turned = Batch.of(items).with_last_turn_as_reference
    assert turned.counts.tolist() == [1, 0, 0]
    assert [turned.table.texts[i] for i in turned.reference] == ["y"]
    assert [turned.table.texts[i] for i in turned.reply] == ["a", "b", "c"]


def test_the_highest_weight() -> None:
    references = [
        Reference("a", weight=-0.5),
        Reference("b", weight=0.25),
        Reference("c", weight=0),
    ]
    items = [
        Item(id="1", response="x", references=references),
        Item(id="2", response="x"),
        Item(id="3", response="x", references=[Reference("a")]),
    ]
    assert Batch.of(items).max_weight.tolist() == [0.25, -np.inf, 1.0]


def test_cached_values_are_computed_once() -> None:
    table, made = TextTable(["a", "bc"]), []
    for key in ("one", "two", "one"):
        assert (
            table.cached(key, lambda key=key: made.append(key) or len(made)) == made.index(key) + 1
        )
    assert made == ["one", "two"]
    assert table.lengths.tolist() == [1, 2]


@pytest.mark.parametrize("good", [[True, False, True], [False, False, False], [True] * 3])
def test_only_some_references(good: list[bool]) -> None:
    batch = batch_of([("r", ["a", "b"]), ("s", []), ("t", ["c"])])
    kept = batch.keep_references(np.array(good))
    named = [batch.table.texts[i] for i in kept.reference]
    assert named == [text for text, keep in zip("abc", good, strict=True) if keep]
    assert kept.counts.tolist() == [sum(good[:2]), 0, sum(good[2:])]
