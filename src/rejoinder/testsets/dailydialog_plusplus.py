"""Sai et al. 2020: good, adversarially wrong and random replies to each context.

A reply is never its own reference, compared as text: one context has the same good reply twice, and
eleven wrong replies repeat a good one. Those keep their label 0, as released. Two dev records have
the same context and share its ``context_id``.

Scored references are the other replies of the record, good ones with weight 1 and wrong ones with
weight -1. A good reply has one good reference fewer than a wrong one, which alone would give the
label away (docs/estimators.md); so one reference of the other kind is left out, too, chosen by the
item's id: every reply has 4 good and 9 wrong references.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item, Reference
from rejoinder.testsets.source import Row


class _Record(msgspec.Struct):
    id: int
    context: list[str]
    positive_responses: list[str]
    adversarial_negative_responses: list[str]
    random_negative_responses: list[str]


def read(records: Path) -> Iterator[Row]:
    """Yield every reply of every record, good ones first."""

    def convert(record: object) -> _Record:
        return msgspec.convert(record, _Record)

    contexts: dict[tuple[str, ...], str] = {}
    for _, record in JsonLines(records).decode(convert):
        context_id = contexts.setdefault(tuple(record.context), str(record.id))
        good = record.positive_responses
        kinds = {
            "good": good,
            "adversarial": record.adversarial_negative_responses,
            "random": record.random_negative_responses,
        }
        for system, replies in kinds.items():
            for number, reply in enumerate(replies, 1):
                item = Item(
                    id=f"{record.id}:{system}-{number}",
                    response=reply,
                    context=record.context,
                    system=system,
                    ratings=1.0 if system == "good" else 0.0,
                    context_id=context_id,
                )
                other_good = [text for text in good if text != reply]
                yield Row(item, other_good[:1], other_good, _scored(item, kinds))


def _scored(item: Item, kinds: dict[str, list[str]]) -> list[Reference]:
    """Return all replies but the item's own and one of the other kind, each with its weight."""
    right = [Reference(text, weight=1.0) for text in kinds["good"]]
    wrong = [Reference(t, weight=-1.0) for kind in ("adversarial", "random") for t in kinds[kind]]
    other = wrong if item.system == "good" else right
    if other:
        del other[crc32(item.id.encode()) % len(other)]
    return [reference for reference in right + wrong if reference.text != item.response]
