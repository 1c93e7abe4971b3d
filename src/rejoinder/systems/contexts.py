"""Contexts to reply to: items, or records that have no reply yet.

Several replies to one context are one context here: 500 rated items may hold 100 of them. Their
references are carried along, each text once; ratings stay behind, for they are of another reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rejoinder.files.jsonl import JsonLines
from rejoinder.items import Item, Reference, item_from


@dataclass(frozen=True)
class Context:
    """What is replied to."""

    id: str
    group: str
    """What its items say their context is: :attr:`Item.group`."""
    turns: list[str]
    references: dict[str, Reference] = field(default_factory=dict)
    """By text."""


def read_contexts(source: str | Path) -> list[Context]:
    """The distinct contexts of a file, in the order of their first appearance."""
    lines = JsonLines(source)
    found: dict[str, Context] = {}
    first: dict[str, int] = {}
    names: dict[str, int] = {}
    for number, item in lines.decode(_item):
        group = item.group if item.id or item.context_id or item.context else f"line {number}"
        context = found.get(group)
        if context is None:
            name = item.context_id or item.id or f"line-{number}"
            if name in names:
                raise lines.wrong(
                    number,
                    f"'{name}' names the context in line {names[name]} already,"
                    " which has other turns; give each context its own context_id",
                )
            context = found[group] = Context(name, group, item.context)
            first[group] = names[name] = number
        elif context.turns != item.context:
            raise lines.wrong(
                number,
                f"context_id '{group}' has other turns than in line {first[group]};"
                " a context_id stands for one context",
            )
        for reference in item.references:
            context.references.setdefault(reference.text, reference)
    if not found:
        raise lines.wrong(None, "the file is empty; expected contexts, one JSON object a line")
    return list(found.values())


def _item(record: dict[str, Any]) -> Item:
    """An item whose response and id may be missing."""
    filled = {"response": ""} | record
    if "dialogue_id" not in filled:
        filled.setdefault("id", "")
    return item_from(filled)
