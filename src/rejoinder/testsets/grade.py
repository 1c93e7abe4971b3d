"""Huang et al. 2020: replies with the individual ratings of 8 to 11 people.

The position in the list does not identify an annotator, so ratings stay a list. Some contexts were
given to several systems, so identical contexts share one ``context_id``. Nine replies (three on
ConvAI2) occur twice with different ratings, so ids contain the number of the record.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.testsets.source import Row


class _Judgement(msgspec.Struct):
    id: int
    dataset: str
    system: str
    context: list[str]
    response: str
    reference: str
    ratings: list[Annotated[float, msgspec.Meta(ge=1, le=5)]]


def convai2(judgements: Path) -> Iterator[Row]:
    """Four systems on ConvAI2."""
    return _read(judgements, "convai2")


def empathetic(judgements: Path) -> Iterator[Row]:
    """Two systems on EmpatheticDialogues."""
    return _read(judgements, "empatheticdialogues")


def _read(judgements: Path, dataset: str) -> Iterator[Row]:
    def convert(record: object) -> _Judgement:
        return msgspec.convert(record, _Judgement)

    contexts: dict[tuple[str, ...], str] = {}
    for _, record in JsonLines(judgements).decode(convert):
        if record.dataset != dataset:
            continue
        item = Item(
            id=f"{record.id}:{record.system}",
            response=record.response,
            context=record.context,
            system=record.system,
            ratings=list(record.ratings),
            context_id=contexts.setdefault(tuple(record.context), f"context-{len(contexts) + 1}"),
        )
        yield Row(item, [record.reference], [])
