"""Ghazarian et al. 2022 (ConTurE): turns and whole dialogues of people with systems of DSTC9.

Each reply has one rating, the majority of 0, 1 and 2. Each dialogue has the ratings of two or three
people by eleven qualities, of which ``human (overall)``, from 1 to 5, becomes the rating of the
dialogue. The release does not say which system took part in a dialogue, nor who rated what. Texts
begin with ``User:`` and ``Chatbot:``, which metrics must not see. 14 replies and one turn of a user
are empty.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.dialogue_documents import conture_records
from rejoinder.files.jsonl import explain
from rejoinder.items import item_from
from rejoinder.testsets.source import Row


class _Turn(msgspec.Struct):
    user: str
    chatbot: str
    rating: Annotated[int, msgspec.Meta(ge=0, le=2)] = msgspec.field(name="overall impression")


class _Opinion(msgspec.Struct):
    overall: Annotated[int, msgspec.Meta(ge=1, le=5)] = msgspec.field(name="human (overall)")


class _Dialogue(msgspec.Struct):
    dialog_id: int
    turns: list[_Turn]
    dialog_ratings: list[_Opinion]


def read(dialogues: Path) -> Iterator[Row]:
    """Yield each reply, with all turns before it as context."""
    try:
        with gzip.open(dialogues) as stream:
            document: list[dict[str, Any]] = msgspec.json.decode(stream.read())
        msgspec.convert(document, list[_Dialogue])
    except msgspec.ValidationError as error:
        raise DataError(explain(str(error)), path=str(dialogues)) from None
    except (msgspec.DecodeError, OSError, EOFError) as error:
        raise DataError(f"not the expected JSON file ({error})", path=str(dialogues)) from None
    for dialogue in document:
        for record in conture_records(dialogue):
            yield Row(item_from(record), [], [])
