"""Contexts and replies of a test set that are in the logs of an evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluators import ROWS, make_evaluator
from rejoinder.errors import DataError
from rejoinder.evaluator import Evaluator, open_evaluator, write_manifest
from rejoinder.evaluator.contamination import ContaminationReport, TestSet
from rejoinder.evaluator.manifest import HELD_OUT, read_manifest
from rejoinder.items import Item

LONG = "could you tell me where the railway station is , please"


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_evaluator(make_evaluator(tmp_path / "small", [*ROWS, ([], LONG, "yes")]))


def test_exact_and_near_matches_of_contexts_are_counted(evaluator: Evaluator) -> None:
    nearly = LONG.replace("could", "can")
    turns = ["More cheese, please!", nearly, "something else", "", LONG.upper()]
    seen = evaluator.contamination(turns)
    assert seen.turns == {turns[0]: "exact", nearly: "near", LONG.upper(): "exact"}
    assert seen.rows.nonzero()[0].tolist() == [4, 6]


def held_out(folder: Path, content: str) -> Evaluator:
    """Make an evaluator that lists its held-out utterances."""
    (make_evaluator(folder) / HELD_OUT).write_text(content)
    write_manifest(folder, read_manifest(folder)[0])
    return open_evaluator(folder)


def test_held_out_utterances_count_as_seen(tmp_path: Path) -> None:
    evaluator = held_out(tmp_path / "small", json.dumps(["A zebra?", LONG, "more cheese please"]))
    nearly = LONG.replace("could", "can")
    seen = evaluator.contamination(["more cheese, please", "a ZEBRA", nearly, "something else"])
    assert seen.turns == {"more cheese, please": "exact", "a ZEBRA": "exact", nearly: "near"}
    assert seen.rows.nonzero()[0].tolist() == [4], "only rows of the pool can be left out"
    items = [Item("1", "x", context=["a zebra"]), Item("2", "x", context=["zebras"])]
    expected = ContaminationReport(contexts=2, exact=1, near=0, replies=2)
    assert TestSet.of(items).report(evaluator) == expected


@pytest.mark.parametrize("content", ["[1, 2]", "{}", "zebra"])
def test_a_damaged_list_of_held_out_utterances(tmp_path: Path, content: str) -> None:
    evaluator = held_out(tmp_path / "small", content)
    with pytest.raises(DataError, match=r"held-out\.json: "):
        evaluator.contamination(["zebra"])


def test_the_list_of_held_out_utterances_is_optional(evaluator: Evaluator) -> None:
    assert not (evaluator.path / HELD_OUT).exists()
    assert evaluator.held_out == []


def test_nothing_seen(evaluator: Evaluator) -> None:
    seen = evaluator.contamination(["zebra"])
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
    found = TestSet.of(items).report(evaluator)
    assert found == ContaminationReport(contexts=3, exact=2, near=0, replies=6)
    assert str(found) == "2 of 3 contexts were seen (2 word for word, 0 nearly)"
    assert str(ContaminationReport(1200, 0, 0)) == "none of 1,200 contexts was seen"


def test_the_pool_is_searched_once_for_a_test_set(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    test_set = TestSet.of([Item("1", "x", context=["more cheese please"])])
    first = test_set.contamination(evaluator)
    monkeypatch.setattr(Evaluator, "contamination", lambda *_: pytest.fail("asked again"))
    assert test_set.contamination(evaluator) is first
    assert test_set.leaks(evaluator).sum() == 1


def test_replies_that_occur_in_the_logs_are_counted_by_system(tmp_path: Path) -> None:
    """Letters and digits decide, without case; held-out utterances count as well."""
    evaluator = held_out(tmp_path / "small", json.dumps(["A zebra?"]))
    replies = {
        "copy": ["Over there!", "none at all", "a zebra", "half past nine", "new"],
        "own": ["over there", "something else", "", "?"],
    }
    items = [
        Item(f"{system}{number}", reply, context=["x"], system=system)
        for system, some in replies.items()
        for number, reply in enumerate(some)
    ]
    report = TestSet.of(items).report(evaluator)
    assert (report.replies, report.copied_replies) == (9, 5)
    assert report.copied_by_system == {"copy": 4, "own": 1}
    assert report.describe_replies() == (
        "5 of 9 replies occur word for word in the evaluator's logs (copy: 4, own: 1)"
    )
    assert ContaminationReport(1, 0, 0, replies=3).describe_replies() is None
