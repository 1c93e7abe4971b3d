"""Read the contexts that systems reply to, from items or from records without a reply.

Items with the same context count once: 500 rated items may have 100 contexts. Their references are
kept, each text once; their ratings are not, because they belong to other replies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rejoinder.files.item_file import ItemFile
from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item, ItemReader, Reference, content_id


@dataclass(frozen=True)
class Context:
    """A context, with the references of its items."""

    id: str
    group: str
    """The :attr:`Item.group` of its items."""
    turns: list[str]
    references: dict[str, Reference] = field(default_factory=dict)
    """By text."""


def read_contexts(source: str | Path | JsonLines) -> list[Context]:
    """Return the distinct contexts of a file, in the order of their first occurrence."""
    lines = source if isinstance(source, JsonLines) else ItemFile(source, needed=())
    contexts: dict[str, Context] = {}
    first: dict[str, int] = {}
    names: dict[str, int] = {}
    reader = ItemReader()
    for number, (item, has_id) in lines.decode(lambda record: _item(record, reader)):
        group = item.group
        context = contexts.get(group)
        if context is None:
            name = item.context_id or (item.id if has_id else _context_name(item))
            if name in names:
                raise lines.wrong(
                    number,
                    f"'{name}' is the id of the context in line {names[name]},"
                    " which has other turns; give each context its own context_id",
                )
            context = contexts[group] = Context(name, group, item.context)
            first[group] = names[name] = number
        elif context.turns != item.context:
            raise lines.wrong(
                number,
                f"context_id '{group}' has other turns than in line {first[group]};"
                " a context_id identifies one context",
            )
        for reference in item.references:
            context.references.setdefault(reference.text, reference)
    if not contexts:
        raise lines.wrong(None, "the file is empty; expected contexts, one a line")
    return list(contexts.values())


def _item(record: dict[str, Any], reader: ItemReader) -> tuple[Item, bool]:
    """Return an item whose response and id may be missing, and whether it has an id of its own."""
    return reader.item({"response": ""} | record), "id" in record or "dialogue_id" in record


def _context_name(item: Item) -> str:
    """Return a name for the context of an item without an id, made of its turns if it has any."""
    return content_id(Item("", "", item.context)) if item.context else item.id
