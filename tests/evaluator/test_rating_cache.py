"""Ratings of retrieved references in the cache: what is computed once, and what again."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators import make_evaluator, open_small, rater_of, scorer_of
from rejoinder.evaluator import Evaluator
from rejoinder.evaluator.evaluator import _OPEN
from rejoinder.evaluator.rating_cache import KIND
from rejoinder.files import cache
from rejoinder.items import Item, Reference


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def weights(evaluator: Evaluator, *references: str, response: str = "x") -> list[float | None]:
    known = [Reference(text) for text in references]
    item = Item("1", response, context=["hi", "some more cheese"], references=known)
    (expanded,) = evaluator.expand([item])
    return [reference.weight for reference in expanded.references[len(known) :]]


def in_new_process(evaluator: Evaluator) -> Evaluator:
    """Open the evaluator, and the cache, as another process would."""
    _OPEN.clear()
    cache._cache_in.cache_clear()
    opened = open_small(evaluator.path)
    assert opened is not evaluator
    return opened


def test_the_next_process_needs_no_network(tmp_path: Path) -> None:
    first = open_small(make_evaluator(tmp_path / "small"))
    compared, scored = weights(first, "here we are"), weights(first)
    assert rater_of(first).inputs_seen
    assert scorer_of(first).inputs_seen
    second = in_new_process(first)
    # another system's reply to the same context
    assert weights(second, "here we are", response="y") == compared
    assert weights(second, response="y") == scored
    assert not rater_of(second).inputs_seen
    assert not scorer_of(second).inputs_seen


def test_other_references_are_rated_again(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small"))
    one = weights(evaluator, "here we are")
    seen = len(rater_of(evaluator).inputs_seen)
    # "here you are" shares two of three words with the first reference, none with the second
    two = weights(evaluator, "over and out")
    assert len(rater_of(evaluator).inputs_seen) > seen
    assert two != one


def test_another_evaluator_does_not_use_the_ratings(tmp_path: Path) -> None:
    weights(open_small(make_evaluator(tmp_path / "one")), "here we are")
    other = open_small(make_evaluator(tmp_path / "other"))
    weights(other, "here we are")
    assert rater_of(other).inputs_seen


def test_a_damaged_entry_is_rated_again(tmp_path: Path, folder: Path) -> None:
    import sqlite3

    first = open_small(make_evaluator(tmp_path / "small"))
    expected = weights(first, "here we are")
    cache.open_cache(KIND).close()
    (path,) = folder.glob(f"{KIND}-*.sqlite")
    database = sqlite3.connect(path)
    database.execute("UPDATE entries SET data = zeroblob(length(data))")
    database.commit()
    database.close()
    second = in_new_process(first)
    assert weights(second, "here we are") == expected
    assert rater_of(second).inputs_seen


def test_texts_are_not_stored(tmp_path: Path, folder: Path) -> None:
    weights(open_small(make_evaluator(tmp_path / "small")), "here we are")
    cache.open_cache(KIND).close()
    (path,) = folder.glob(f"{KIND}-*.sqlite")
    assert b"cheese" not in path.read_bytes()
