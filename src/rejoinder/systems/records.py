"""Replies as items to be judged, or as further references of items that are there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rejoinder.items import Item, Reference
from rejoinder.systems.contexts import Context
from rejoinder.systems.system import Replies


def as_items(
    system: str, contexts: Sequence[Context], replies: Sequence[Replies], *, numbered: bool
) -> Iterator[Item]:
    """An item for each reply; several replies of a system to a context are numbered."""
    for context, answer in zip(contexts, replies, strict=True):
        for number, text in enumerate(answer.texts, 1):
            name = f"{context.id}:{system}"
            yield Item(
                id=f"{name}:{number}" if numbered else name,
                response=text,
                context=context.turns,
                system=system,
                references=list(context.references.values()),
                context_id=context.id,
            )


def as_references(
    items: Iterable[Item], contexts: Sequence[Context], said: Mapping[str, Sequence[Replies]]
) -> Iterator[Item]:
    """The items with what systems said to their contexts among their references, no text twice.

    Sugiyama et al. 2019 take references from retrieval systems this way.
    """
    number = {context.group: i for i, context in enumerate(contexts)}
    for item in items:
        found = {reference.text: reference for reference in item.references}
        for system, replies in said.items():
            for text in replies[number[item.group]].texts:
                found.setdefault(text, Reference(text, source=system))
        yield msgspec.structs.replace(item, references=list(found.values()))
