"""Turn replies into items to be scored, or into further references of existing items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from rejoinder.items import Item, Reference
from rejoinder.systems.contexts import Context
from rejoinder.systems.system import Replies


def as_items(
    system: str, contexts: Sequence[Context], replies: Sequence[Replies], *, numbered: bool
) -> Iterator[Item]:
    """Yield an item for each reply; several replies of a system to a context are ``numbered``."""
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
    items: Iterable[Item], contexts: Sequence[Context], by_system: Mapping[str, Sequence[Replies]]
) -> Iterator[Item]:
    """Yield the items with the replies of systems to their contexts as references, each text once.

    Sugiyama et al. 2019 take references from retrieval systems this way.
    """
    number = {context.group: i for i, context in enumerate(contexts)}
    for item in items:
        references = {reference.text: reference for reference in item.references}
        for system, replies in by_system.items():
            for text in replies[number[item.group]].texts:
                references.setdefault(text, Reference(text, source=system))
        yield msgspec.structs.replace(item, references=list(references.values()))
