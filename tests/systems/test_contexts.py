"""Contexts from items, and from records without a reply."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import DataError
from rejoinder.items import Item, content_id
from rejoinder.systems.contexts import read_contexts


def read(tmp_path: Path, *lines: str) -> list[tuple[str, list[str], list[str]]]:
    path = tmp_path / "contexts.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return [(c.id, c.turns, list(c.references)) for c in read_contexts(path)]


def test_items_with_the_same_context_count_once(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '{"id": "1:a", "context_id": "1", "context": ["hi"], "response": "x", "references": ["r"]}',
        '{"id": "2:a", "context_id": "2", "context": ["ho"], "response": "y", "ratings": 3}',
        '{"id": "1:b", "context_id": "1", "context": ["hi"], "response": "z",'
        ' "references": [{"text": "s", "weight": 0.5}, "r"]}',
    )
    assert found == [("1", ["hi"], ["r", "s"]), ("2", ["ho"], [])]


def test_contexts_without_an_id_are_told_apart_by_their_turns(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '{"id": "a", "context": ["hi", "you"]}',
        '{"id": "b", "context": ["hi", "you"]}',
        '{"context": ["and", "you"]}',
        '{"context": []}',
        '{"context": []}',
    )
    no_turns = content_id(Item("", ""))
    assert [(name, turns) for name, turns, _ in found] == [
        ("a", ["hi", "you"]),
        (content_id(Item("", "", ["and", "you"])), ["and", "you"]),
        (no_turns, []),
        (f"{no_turns}-2", []),
    ]


def test_field_names_of_dstc10_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, '{"dialogue_id": 7, "model": "m", "context": "a\\nb", "reference": "r"}')
    assert found == [("7", ["a", "b"], ["r"])]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["{}", '{"context": 3}'], ":2: context: expected a list"),
        (['{"context": ["a", 3]}'], r":1: context\[1\]: expected text"),
        (["[1]"], ":1: the line is a JSON array"),
        ([], "the file is empty; expected contexts"),
        (
            ['{"context_id": "a", "context": ["x"]}', '{"context_id": "a", "context": ["y"]}'],
            ":2: context_id 'a' has other turns than in line 1",
        ),
        (
            ['{"context_id": "a", "context": ["x"]}', '{"id": "a", "context": ["y"]}'],
            ":2: 'a' is the id of the context in line 1",
        ),
    ],
)
def test_bad_contexts_are_reported(tmp_path: Path, lines: list[str], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        read(tmp_path, *lines)
