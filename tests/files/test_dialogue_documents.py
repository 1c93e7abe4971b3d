"""Files that are one JSON document: FED, ConTurE, and lists of items."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import DataError
from rejoinder.files.item_file import read_items
from rejoinder.items import Item

FED: list[dict[str, Any]] = [
    {
        "context": "User: Hi!\nSystem: Hi! How are you?\nUser: Fine. And you?",
        "response": "System: I'm good: thanks.",
        "system": "Meena",
        "annotations": {"Interesting": [1, 0], "Overall": [4, 3, "N/A (not applicable)", 4]},
    },
    {
        "context": "User: Hi!\nSystem: Hello.\nUser: Bye\nSystem: See you",
        "system": "Mitsuku",
        "annotations": {"Coherent": [1, 1], "Overall": [2, 3]},
    },
]
CONTURE = [
    {
        "dialog_id": 7,
        "turns": [
            {"user": "User: hi", "chatbot": "Chatbot: hello", "overall impression": 2},
            {"user": "User:", "chatbot": "Chatbot: so?", "overall impression": 0},
        ],
        "dialog_ratings": [{"human (overall)": 4}, {"human (overall)": 2}],
    }
]


def read(path: Path, document: object) -> list[Item]:
    content = json.dumps(document, indent=1).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return list(read_items(path))


@pytest.mark.parametrize("name", ["fed_data.json", "fed.json.gz"])
def test_fed(name: str, tmp_path: Path) -> None:
    one, first, second = read(tmp_path / name, FED)
    assert one == Item(
        id="turn-1",
        response="I'm good: thanks.",
        context=["Hi!", "Hi! How are you?", "Fine. And you?"],
        system="Meena",
        ratings=[4, 3, 4],
    )
    assert first == Item(
        id="dialogue-2:1",
        response="Hello.",
        context=["Hi!"],
        system="Mitsuku",
        dialogue_id="dialogue-2",
        turn=1,
        dialogue_ratings=[2, 3],
    )
    assert (second.turn, second.context, second.response) == (
        3,
        ["Hi!", "Hello.", "Bye"],
        "See you",
    )


def test_conture(tmp_path: Path) -> None:
    first, second = read(tmp_path / "turns.json", CONTURE)
    assert (first.id, first.response, first.ratings) == ("7:0", "hello", 2)
    assert first.dialogue_ratings == [4, 2]
    assert (second.context, second.turn, second.dialogue_id) == (["hi", "hello"], 1, "7")


def test_a_list_of_items(tmp_path: Path) -> None:
    items = read(tmp_path / "items.json", [{"id": "1", "response": "a", "context": ["b"]}])
    assert items == [Item(id="1", response="a", context=["b"])]
    lines = tmp_path / "lines.json"
    lines.write_text('{"id": "1", "response": "a"}\n{"id": "2", "response": "b"}\n')
    assert [item.id for item in read_items(lines)] == ["1", "2"]


def test_a_turn_without_id_is_named_by_its_dialogue(tmp_path: Path) -> None:
    record = {"dialogue_id": "d", "turn": 3, "system": "s", "response": "x"}
    (item,) = read(tmp_path / "items.json", [record])
    assert (item.id, item.dialogue_id, item.turn) == ("d:3:s", "d", 3)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[", "broken JSON"),
        ("[1]", "expected an object"),
        ("[]", "the file is empty"),
        ('[{"annotations": {"Overall": [1]}}]', "expected a dialogue as in FED or ConTurE"),
        ('[{"dialog_id": 1, "turns": [{}]}]', "expected a dialogue as in FED or ConTurE"),
        ('[{"id": "1"}]', "the field is missing: response"),
        ('[{"id": "1", "response": "a"}, {"id": "1", "response": "b"}]', "ids must be unique"),
    ],
)
def test_bad_documents(content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "items.json"
    path.write_text(content)
    with pytest.raises(DataError, match=complaint):
        list(read_items(path))
