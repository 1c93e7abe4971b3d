"""Lines decoded at once: the same items, notes and errors as when they are read one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder.errors import DataError
from rejoinder.files import item_file, typed_lines
from rejoinder.files.item_file import read_items, read_tables
from rejoinder.files.typed_lines import TypedLines
from rejoinder.items import UNNAMED, Item, Reference

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBER = st.one_of(st.integers(-9, 9), st.floats(-2, 2), st.sampled_from([1e16, 2**70, "4", "x"]))
ODD = st.sampled_from([None, True, [], {}, 1.0, 2**64])
RATINGS = st.one_of(NUMBER, st.lists(NUMBER, max_size=2), st.dictionaries(TEXT, NUMBER, max_size=2))
REFERENCE = st.one_of(
    TEXT,
    st.fixed_dictionaries(
        {"text": TEXT},
        optional={"weight": NUMBER, "score": NUMBER, "source": TEXT, "ratings": RATINGS},
    ),
)
FIELDS: dict[str, Any] = {
    "context": st.one_of(TEXT, st.lists(st.one_of(TEXT, ODD), max_size=2)),
    "system": st.one_of(TEXT, ODD),
    "references": st.one_of(TEXT, st.lists(REFERENCE, max_size=3), ODD),
    "ratings": st.one_of(RATINGS, ODD),
    "context_id": st.one_of(TEXT, st.integers(), ODD),
    "dialogue_id": st.one_of(TEXT, st.integers()),
    "inclusion_probability": st.one_of(NUMBER, ODD),
    "refs": st.lists(TEXT, max_size=1),
    "Bot": TEXT,
    "rater": TEXT,
    "colour": st.one_of(ODD, st.lists(TEXT, max_size=2)),
}
RECORD = st.fixed_dictionaries(
    {"id": st.one_of(st.uuids().map(str), st.integers(), ODD), "response": st.one_of(TEXT, ODD)},
    optional=FIELDS,
)
GOOD = st.fixed_dictionaries(
    {"id": st.uuids().map(str), "response": TEXT},
    optional={"references": st.lists(TEXT, max_size=2), "Bot": TEXT, "colour": TEXT},
)


def reading(path: Path) -> tuple[list[Item], list[str], str]:
    """Items, notes and the error of a file."""
    notes: list[str] = []
    items: list[Item] = []
    try:
        items.extend(read_items(path, on_note=notes.append))
    except DataError as error:
        return [], sorted(notes), f"{error.line}: {error}"
    return items, sorted(notes), ""


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.one_of(st.lists(GOOD, max_size=5), st.lists(RECORD, max_size=2)),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n", b"\n{\n"]),
)
def test_the_same_as_line_by_line(
    tmp_path: Path, records: list[dict[str, Any]], end: bytes
) -> None:
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(record) + end for record in records))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TypedLines, "table", lambda *arguments: None)
        carefully = reading(path)
    assert reading(path) == carefully


def test_plain_lines_are_not_read_carefully(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with fields that are not read, ids that are numbers, and weighted references."""
    records: list[dict[str, Any]] = [
        {"id": 1, "response": "a", "colour": "red", "system": None},
        {"id": "2", "response": "b", "references": ["x", {"text": "y", "weight": -0.5}]},
        {"id": "3", "response": "c", "references": "x", "context": "hi\nyou", "label": 3},
        {"id": "4", "response": "d", "ratings": {"ann": 4}, "context_id": 7, "label": 3},
    ]
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record in records))
    monkeypatch.setattr(item_file, "_tables", None)  # what reads carefully
    notes: list[str] = []
    assert list(read_items(path, on_note=notes.append)) == [
        Item("1", "a", system=UNNAMED),
        Item("2", "b", references=[Reference("x"), Reference("y", weight=-0.5)]),
        Item("3", "c", context=["hi", "you"], references=[Reference("x")]),
        Item("4", "d", ratings={"ann": 4.0}, context_id="7"),
    ]
    assert notes == [
        f"{path}: the field 'label' (1 lines) is not read; if it holds the ratings,"
        " add columns={'ratings': 'label'}"
    ]


def test_lines_with_very_many_fields_are_read_carefully(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(typed_lines, "MAX_EXTRA_FIELDS", 3)
    path = tmp_path / "items.jsonl"
    extra = {f"field {number}": number for number in range(4)}
    path.write_bytes(msgspec.json.encode({"id": "1", "response": "a", **extra}))
    assert list(read_items(path)) == [Item("1", "a")]


@pytest.mark.parametrize("bad", [1, 3, 4, 7, 9])
def test_the_line_of_an_error_is_right_in_every_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    monkeypatch.setattr("rejoinder.files.jsonl.CHUNK_LINES", 3)
    lines = [msgspec.json.encode({"id": str(n), "response": "a"}) for n in range(1, 10)]
    lines[bad - 1] = b'{"id": "x"}'
    path = tmp_path / "items.jsonl"
    path.write_bytes(b"\r\n".join(lines))
    seen = []
    with pytest.raises(DataError) as raised:
        for table in read_tables(path):
            seen += table.ids
    assert raised.value.line == bad
    assert seen == [str(n) for n in range(1, bad)]  # an error comes after the items before it
