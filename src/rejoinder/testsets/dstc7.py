"""Galley et al. 2019 (DSTC7, track 2): replies of ten systems to discussions of a text on the web.

The rating is ``relevance``, from 1 to 5, by identified judges. A judge who rated a reply twice (two
teams handed in the same replies, ``TeamCE``, which were judged for each) counts once, with the
mean. The turns of the discussions were not released: the only turn of a context is the passage that
stands beside the discussion, which several discussions share.

The reply of the system ``Human`` is mostly one of the references, with other capitals and blanks,
or with a link where the reference has its address. It is never its own reference.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item
from rejoinder.testsets.source import Row

_LINK = re.compile(r"\[([^\]]*)\] ?\([^)]*\)")
_ADDRESS = re.compile(r"https?\S+|__url__|^\s*TIL\b")
"""Addresses, and the word that begins the titles of a board (today I learnt)."""


class _Judgement(msgspec.Struct):
    judge: str
    relevance: Annotated[float, msgspec.Meta(ge=1, le=5)]


class _Reply(msgspec.Struct):
    system: str
    text: str
    judgements: list[_Judgement]


class _Record(msgspec.Struct):
    id: str
    grounding_passage: str
    references: list[str]
    replies: list[_Reply]


def read(records: Path) -> Iterator[Row]:
    """Yield the replies of all systems to each context."""

    def convert(record: object) -> _Record:
        return msgspec.convert(record, _Record)

    for _, record in JsonLines(records).decode(convert):
        for reply in record.replies:
            references = record.references
            if reply.system == "Human":
                references = [each for each in references if _plain(each) != _plain(reply.text)]
            item = Item(
                id=f"{record.id}:{reply.system}",
                response=reply.text,
                context=[record.grounding_passage],
                system=reply.system,
                ratings=_by_judge(reply.judgements),
                context_id=record.id,
            )
            yield Row(item, references[:1], references)


def _by_judge(judgements: list[_Judgement]) -> dict[str, float]:
    given: dict[str, list[float]] = defaultdict(list)
    for each in judgements:
        given[each.judge].append(each.relevance)
    return {judge: sum(ratings) / len(ratings) for judge, ratings in given.items()}


def _plain(text: str) -> str:
    """Return the letters and digits of a text without links, addresses and capitals."""
    text = _ADDRESS.sub("", _LINK.sub(r"\1", text))
    return "".join(letter for letter in text.lower() if letter.isalnum())
