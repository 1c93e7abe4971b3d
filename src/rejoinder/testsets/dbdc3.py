"""Higashinaka et al. 2017: system turns that people labelled as a breakdown of the dialogue or not.

Dialogue breakdown detection challenge 3, English development part. The labels become numbers: O (no
breakdown) 2, T (possible breakdown) 1, X (breakdown) 0, under the names of the annotators. The
first turn of 185 dialogues is a greeting of the system that nobody labelled: it is context only.
26 labelled replies are empty, as released.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.testsets.source import Row

RATING = {"O": 2.0, "T": 1.0, "X": 0.0}


class _Label(msgspec.Struct):
    annotator: str = msgspec.field(name="annotator-id")
    breakdown: Literal["O", "T", "X"]


class _Turn(msgspec.Struct):
    number: Annotated[int, msgspec.Meta(ge=0)] = msgspec.field(name="turn-index")
    speaker: Literal["S", "U"]
    utterance: str
    annotations: list[_Label]


class _Dialogue(msgspec.Struct):
    name: str = msgspec.field(name="dialogue-id")
    system: str
    turns: list[_Turn]


def read(dialogues: Path) -> Iterator[Row]:
    """Yield each labelled turn of the systems, with all turns before it as context."""

    def convert(record: object) -> _Dialogue:
        return msgspec.convert(record, _Dialogue)

    for _, dialogue in JsonLines(dialogues).decode(convert):
        turns: list[str] = []
        for turn in dialogue.turns:
            text = turn.utterance.strip()
            if turn.annotations:
                item = Item(
                    id=f"{dialogue.name}:{turn.number}",
                    response=text,
                    context=[each for each in turns if each],
                    system=dialogue.system,
                    ratings={each.annotator: RATING[each.breakdown] for each in turn.annotations},
                    context_id=f"{dialogue.name}:{turn.number}",
                    dialogue_id=dialogue.name,
                    turn=turn.number,
                )
                yield Row(item, [], [])
            turns.append(text)
