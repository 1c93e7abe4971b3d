"""Leaks: those known in DailyDialog, near matches by Jaccard similarity, and bad files."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import DataError
from rejoinder.files.item_file import read_items
from rejoinder.logs.contamination import Fingerprint, MarkLeaks, last_turns, normalise
from rejoinder.testsets import load


def leaks(data: Path) -> Fingerprint:
    return Fingerprint.of(i.context[-1] for i in load("dailydialog-multiref", "none"))


def test_finds_the_known_leaks_of_dailydialog(data: Path) -> None:
    """The last utterance of 39 + 5 + 3 contexts and 41 validation turns stand in rated contexts."""
    fingerprint = leaks(data)
    found = {}
    for part in ("positives", "dev", "test"):
        lines = (data / "dailydialog-plusplus" / f"{part}.jsonl").read_text().splitlines()
        marks = fingerprint.find([json.loads(line)["context"][-1] for line in lines])
        found[part] = sum(mark is not None for mark in marks)
    text = (data / "dailydialog" / "validation.txt").read_text()
    turns = [turn for line in text.splitlines() for turn in line.split("__eou__")]
    marks = fingerprint.find([turn for turn in turns if turn.strip()])
    found["validation"] = sum(mark is not None for mark in marks)
    assert found["positives"] >= 39
    assert found["dev"] >= 5
    assert found["test"] >= 3
    assert found["validation"] >= 41
    # looking for near-duplicates must not mean finding leaks everywhere
    assert sum(found.values()) < 120


def jaccard(a: str, b: str) -> float:
    first, second = ({t[i : i + 4] for i in range(len(t) - 3)} for t in (a, b))
    return len(first & second) / len(first | second)


names = st.sampled_from(["alpha", "beta", "gamma", "delta", "eps"])
words = st.lists(names, min_size=4, max_size=9)


@given(st.lists(words.map("".join), min_size=1, max_size=6), words.map("".join))
@settings(deadline=None)
def test_near_matches_are_decided_by_jaccard(known: list[str], text: str) -> None:
    long_enough = [k for k in known if len(k) >= 20]
    expected = None
    if text in known:
        expected = "exact"
    elif len(text) >= 20 and any(jaccard(text, k) >= 0.8 for k in long_enough):
        expected = "near"
    assert Fingerprint.of(known).find([text]) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What time is it, by the way?", "exact"),
        ("what time is it by the way", "exact"),
        ("Well, what time is it, by the way?", "near"),
        ("What time does the bus leave?", None),
        ("今日はいい天気ですね", "exact"),
        ("明日はいい天気ですね", None),
        ("", None),
        ("!!!", None),
    ],
)
def test_exact_and_near_matches_by_hand(text: str, expected: str | None) -> None:
    known = ["What time is it , by the way ?", "今日は、いい天気ですね。", "", "..."]
    assert Fingerprint.of(known).find([text]) == [expected]


def test_normalise() -> None:
    assert normalise(["It's_OK, ＡＢ c1!", "猫 と 犬"]) == ["itsokａｂc1", "猫と犬"]


def test_the_arrow_function_can_be_pickled() -> None:
    mark = pickle.loads(pickle.dumps(MarkLeaks(Fingerprint.of(["hello there"]))))
    batch = pa.RecordBatch.from_pydict({"utterance": ["Hello, there!", "bye"]})
    (marked,) = mark(iter([batch]))
    assert marked.column("leak").to_pylist() == ["exact", None]


def test_an_empty_test_set_has_no_leaks() -> None:
    assert Fingerprint.of([]).find(["hello there general kenobi"]) == [None]


def test_last_turns_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"utterance": ["a", "b"], "response": [None, "c"]}), path)
    assert list(last_turns(str(path))) == ["a", "b"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"question": ["a"]}, "has no column utterance"),
        ({"utterance": ["a", None]}, r"column utterance: a text is missing \(NULL\)"),
        ({"utterance": [1, 2]}, "column utterance: expected texts, found int64"),
        (None, "not a Parquet file, or a damaged one"),
    ],
)
def test_bad_pairs_are_refused(tmp_path: Path, table: dict[str, list[str]], reason: str) -> None:
    path = tmp_path / "a.parquet"
    if table is None:
        path.write_bytes(b"PAR1 and so on")
    else:
        pq.write_table(pa.table(table), path)
    with pytest.raises(DataError, match=rf"a\.parquet: {reason}"):
        list(last_turns(str(path)))


def test_damaged_pages_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"utterance": [f"number {n}" for n in range(5000)]}), path)
    content = bytearray(path.read_bytes())
    content[20:2000] = bytes(1980)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet: .*a damaged one"):
        list(last_turns(str(path)))


def test_mistakes_in_ratings_do_not_matter_for_the_turns_of_a_test_set(tmp_path: Path) -> None:
    """The same annotator rated a reply twice; ratings that are no numbers."""
    table = tmp_path / "rated.csv"
    rows = ["context,response,annotator,rating", "hi there,hello,ann,3", "hi there,hello,ann,4"]
    table.write_text("\n".join([*rows, "how are you,fine,bob,2"]) + "\n")
    assert list(last_turns(str(table))) == ["hi there", "how are you"]
    with pytest.raises(DataError, match="annotator 'ann' has rated this item in a row before"):
        list(read_items(table))
    table.write_text("context,response,rating\nhi there,hello,good\n")
    assert list(last_turns(str(table))) == ["hi there"]
    lines = tmp_path / "rated.jsonl"
    lines.write_text(
        '{"id": "1", "context": ["hi"], "response": "x", "ratings": {"ann": "good"}}\n'
    )
    assert list(last_turns(str(lines))) == ["hi"]


def test_a_test_set_without_contexts_is_refused(tmp_path: Path) -> None:
    """Nothing would be left out, without a word."""
    table = tmp_path / "rated.csv"
    table.write_text("asked,response\nhi there,hello\n")
    with pytest.raises(DataError, match="no item has a context, so no pair could be left out"):
        list(last_turns(str(table)))
