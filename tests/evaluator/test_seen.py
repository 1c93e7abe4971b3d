"""Which contexts of a test set were seen while the evaluator was made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluators import ROWS, make_evaluator
from rejoinder.errors import DataError
from rejoinder.evaluator import Evaluator, open_evaluator, write_manifest
from rejoinder.evaluator.manifest import HELD_OUT, read_manifest
from rejoinder.evaluator.seen import EvaluatedSet, Guarded
from rejoinder.items import Item

LONG = "could you tell me where the railway station is , please"


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_evaluator(make_evaluator(tmp_path / "small", [*ROWS, ([], LONG, "yes")]))


def test_exactly_and_nearly(evaluator: Evaluator) -> None:
    nearly = LONG.replace("could", "can")
    turns = ["More cheese, please!", nearly, "something else", "", LONG.upper()]
    seen = evaluator.seen(turns)
    assert seen.turns == {turns[0]: "exact", nearly: "near", LONG.upper(): "exact"}
    assert seen.rows.nonzero()[0].tolist() == [4, 6]


def held_out(folder: Path, content: str) -> Evaluator:
    """An evaluator that says which utterances were held out when it was made."""
    (make_evaluator(folder) / HELD_OUT).write_text(content)
    write_manifest(folder, read_manifest(folder)[0])
    return open_evaluator(folder)


def test_what_was_held_out_was_seen_too(tmp_path: Path) -> None:
    evaluator = held_out(tmp_path / "small", json.dumps(["A zebra?", LONG, "more cheese please"]))
    nearly = LONG.replace("could", "can")
    seen = evaluator.seen(["more cheese, please", "a ZEBRA", nearly, "something else"])
    assert seen.turns == {"more cheese, please": "exact", "a ZEBRA": "exact", nearly: "near"}
    assert seen.rows.nonzero()[0].tolist() == [4], "only what is in the pool can be left out there"
    items = [Item("1", "x", context=["a zebra"]), Item("2", "x", context=["zebras"])]
    assert EvaluatedSet.of(items).guarded(evaluator) == Guarded(contexts=2, exact=1, near=0)


@pytest.mark.parametrize("content", ["[1, 2]", "{}", "zebra"])
def test_held_out_utterances_that_are_none(tmp_path: Path, content: str) -> None:
    evaluator = held_out(tmp_path / "small", content)
    with pytest.raises(DataError, match=r"held-out\.json: .* make it anew with 'rejoinder fit'"):
        evaluator.seen(["zebra"])


def test_an_older_evaluator_does_not_say_what_was_held_out(evaluator: Evaluator) -> None:
    assert not (evaluator.path / HELD_OUT).exists()
    assert evaluator.held_out == []


def test_nothing_seen(evaluator: Evaluator) -> None:
    seen = evaluator.seen(["zebra"])
    assert not seen.turns
    assert not seen.rows.any()


def test_contexts_are_counted_not_replies(evaluator: Evaluator) -> None:
    """Two contexts end with the same turn; each was answered by two systems."""
    items = [
        Item(f"{before}{system}", "x", context=[before, "more cheese please"], system=system)
        for before in ("a", "b")
        for system in ("s", "t")
    ]
    items += [Item("c", "x", context=["zebra"]), Item("d", "x")]
    found = EvaluatedSet.of(items).guarded(evaluator)
    assert found == Guarded(contexts=3, exact=2, near=0)
    assert str(found) == "2 of 3 contexts were seen (2 word for word, 0 nearly)"
    assert str(Guarded(1200, 0, 0)) == "none of 1,200 contexts was seen"


def test_a_set_is_looked_for_once(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    examined = EvaluatedSet.of([Item("1", "x", context=["more cheese please"])])
    first = examined.seen(evaluator)
    monkeypatch.setattr(Evaluator, "seen", lambda *_: pytest.fail("asked again"))
    assert examined.seen(evaluator) is first
    assert examined.leaks(evaluator).sum() == 1
