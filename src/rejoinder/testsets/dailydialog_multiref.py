"""Gupta et al. 2019: test dialogues of DailyDialog with several references for each turn.

``rated``: 500 replies of five systems, one of them human, with averaged ratings. The references are
separated by tabs inside a quoted field; the last one is the original reply.

``hred``: the replies of one system to every turn but the last of 1,000 dialogues, in three files
with parallel lines. The original reply is in two of them, which is checked for every line. One of
the 33,700 references (364_0) is empty and left out. Context turns are in mixed case, replies and
references in lower case.

``human``: the last collected reference of each of these turns as the reply of a person, judged by
the original reply and the other collected ones, as the paper's table 6 has people beside systems.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.testsets.source import Row, text_lines

COLUMNS = [
    "model",
    "context_id",
    "human_average_rating",
    "response",
    "prevgt",
    "all_references",
    "context",
]


def rated(ratings: Path) -> Iterator[Row]:
    """Yield the rows of ``human_ratings.csv``."""
    with ratings.open("rb") as stream:
        lines = (line + "\n" for _, line in text_lines(stream, str(ratings)))
        table = csv.reader(lines, strict=True)
        try:
            if next(table, None) != COLUMNS:
                raise ValueError(f"expected the columns {', '.join(COLUMNS)}")
            for cells in table:
                yield _rated_row(cells)
        except (ValueError, csv.Error) as error:
            raise DataError(str(error), path=str(ratings), line=table.line_num) from None


def _rated_row(cells: list[str]) -> Row:
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} columns; expected {len(COLUMNS)}")
    model, context_id, average, response, original, references, context = cells
    rating = float(average)
    if not 1 <= rating <= 5:
        raise ValueError(f"the rating is {average}; expected 1 to 5")
    item = Item(
        id=f"{context_id}:{model}",
        response=response,
        context=context.split("||||"),
        system=model,
        ratings=rating,
        context_id=context_id,
    )
    return Row(item, [original], references.split("\t"))


class _Turn(msgspec.Struct):
    text: str
    responses: list[str] = []


class _Dialogue(msgspec.Struct):
    index: int
    dialogue: list[_Turn]


class _Slot(NamedTuple):
    """A turn of a dialogue to which the system replied."""

    context_id: str
    context: list[str]
    references: list[str]


def hred(outputs: Path, originals: Path, dialogues: Path) -> Iterator[Row]:
    """Yield the lines of ``hred_outputs.txt`` with their contexts and references."""
    with outputs.open("rb") as replies, originals.open("rb") as targets:
        rows = zip_longest(
            _slots(dialogues),
            text_lines(replies, str(outputs)),
            text_lines(targets, str(originals)),
        )
        for line, (slot, reply, target) in enumerate(rows, 1):
            if slot is None or reply is None or target is None:
                short = dialogues if slot is None else outputs if reply is None else originals
                raise DataError(
                    f"{short.name} ends before the other files; expected a turn a line",
                    path=str(outputs),
                    line=line,
                )
            original = target[1].removeprefix("_go ").removesuffix(" _eos")
            if slot.references[:1] != [original]:
                raise DataError(
                    f"out of step: expected the original reply of turn {slot.context_id}",
                    path=str(originals),
                    line=line,
                )
            item = Item(
                id=f"{slot.context_id}:hred",
                response=reply[1],
                context=slot.context,
                system="hred",
                context_id=slot.context_id,
            )
            yield Row(item, [original], [text for text in slot.references if text])


def human(dialogues: Path) -> Iterator[Row]:
    """Yield the last collected reference of each turn as a reply, with the others as references."""
    for slot in _slots(dialogues):
        original, *collected = [text for text in slot.references if text]
        item = Item(
            id=f"{slot.context_id}:human",
            response=collected[-1],
            context=slot.context,
            system="human",
            context_id=slot.context_id,
        )
        yield Row(item, [original], [original, *collected[:-1]])


def _slots(dialogues: Path) -> Iterator[_Slot]:
    def convert(record: object) -> _Dialogue:
        return msgspec.convert(record, _Dialogue)

    for _, dialogue in JsonLines(dialogues).decode(convert):
        texts = [turn.text for turn in dialogue.dialogue]
        for number, turn in enumerate(dialogue.dialogue[:-1]):
            references = [text.strip() for text in turn.responses]
            yield _Slot(f"{dialogue.index}_{number}", texts[: number + 1], references)
