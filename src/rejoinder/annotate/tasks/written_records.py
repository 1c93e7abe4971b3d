"""Export of written replies: references with author, mask and slot, and candidates for pairs.

The ``source`` of a written reference tells how it came about:

    human; mask=0.3; slot=2; characters=10-49; author=ann

``mask`` is the share of the words of the context that the author did not see, ``slot`` counts from
1, ``characters`` is the length that was allowed, and everything behind ``author=`` is the author.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from rejoinder.annotate.study import Slot
from rejoinder.annotate.tasks.kind import Export, Json, StoredAnswer, item_record
from rejoinder.items import Item, Reference

HUMAN = "human"

_SOURCE = re.compile(
    r"human; mask=(?P<mask>[\d.]+); slot=(?P<slot>\d+);"
    r" characters=(?P<least>\d+)-(?P<most>\d+); author=(?P<author>.*)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Written:
    """How a reply was written."""

    author: str
    mask: float
    slot: int
    """Number of the slot, from 1."""
    min_characters: int
    max_characters: int

    @property
    def source(self) -> str:
        """The ``source`` of the reference."""
        return (
            f"{HUMAN}; mask={self.mask:g}; slot={self.slot};"
            f" characters={self.min_characters}-{self.max_characters}; author={self.author}"
        )

    @property
    def system(self) -> str:
        """Name of the people who wrote under this mask, as that of a system.

        >>> Written("ann", 0.3, 1, 2, 49).system
        'human-mask30'
        """
        return f"{HUMAN}-mask{self.mask * 100:g}" if self.mask else HUMAN


def read_source(source: str) -> Written | None:
    """Return how a reference was written; None if its source is another one.

    >>> read_source("human; mask=0.3; slot=2; characters=10-49; author=ann").mask
    0.3
    """
    found = _SOURCE.fullmatch(source)
    if found is None:
        return None
    return Written(
        found["author"],
        float(found["mask"]),
        int(found["slot"]),
        int(found["least"]),
        int(found["most"]),
    )


def system_of_source(source: str) -> str:
    """Return the source of a reference without author and slot, as the name of a system."""
    written = read_source(source)
    return source if written is None else written.system


def export_written(
    items: Sequence[Item], answers: Sequence[StoredAnswer], slots: Sequence[Slot]
) -> Export:
    """Return the items with the written replies as further references.

    The second file, ``candidates``, has each written reply as an item that shares the context and
    its id with the study's items, of the system "human", "human-mask30", …; what ``pairs`` and
    studies that compare or rate replies need.
    """
    references: dict[str, list[Reference]] = {}
    candidates: list[Json] = []
    numbers: Counter[tuple[str, str]] = Counter()
    groups = {item.id: item.group for item in items}
    for answer in answers:
        content = answer.content
        for number, (text, slot) in enumerate(zip(answer.value["replies"], slots, strict=True), 1):
            written = Written(
                answer.person, answer.view["mask"], number, slot.min_characters, slot.max_characters
            )
            group = groups[content["item"]]
            references.setdefault(group, []).append(Reference(text, source=written.source))
            base = content["context_id"] or content["item"]
            numbers[base, written.system] += 1
            item = Item(
                f"{base}:{written.system}-{numbers[base, written.system]}",
                text,
                content["context"],
                written.system,
                context_id=content["context_id"],
            )
            candidates.append(item_record(item) | {"source": written.source})
    records = [
        item_record(
            msgspec.structs.replace(
                item, references=[*item.references, *references.get(item.group, [])]
            )
        )
        for item in items
    ]
    return Export("items", records, {"candidates": candidates})
