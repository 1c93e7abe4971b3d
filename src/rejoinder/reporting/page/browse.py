"""The items as the page's script reads them: short lists, and each text once.

Replies to one context share it and its references, so texts stand in a table of their own. A page
has a limit: where texts are long, fewer items fit, and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from rejoinder.items import Item, Reference
from rejoinder.reporting.page.material import Material
from rejoinder.reporting.page.sample import Sample
from rejoinder.reporting.show import Span, View
from rejoinder.text.tokenizers.base import Tokenizer

LONGEST = 2000
"""Characters of a text."""
MOST_REFERENCES = 40
MOST_TURNS = 30
ELLIPSIS = " …"


@dataclass
class Table:
    """Things by number, each once."""

    values: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0
    """Bytes that they take."""

    def number(self, value: str) -> int:
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
            self.size += len(embedded(value)) + 1
        return self._numbers[value]


@dataclass(frozen=True)
class Browsable:
    payload: bytes
    """JSON that may stand inside a script element."""
    items: int
    of: int
    cut: bool
    """Some texts are too long, or references too many, to be shown whole."""


def embedded(value: Any) -> bytes:
    """JSON in which nothing can end a script element or begin another one."""
    found: bytes = msgspec.json.encode(value)
    for risky in (b"<", b">", b"&"):
        found = found.replace(risky, rb"\u%04x" % ord(risky))
    return found.replace("\u2028".encode(), rb"\u2028").replace("\u2029".encode(), rb"\u2029")


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[:longest] + ELLIPSIS


def browsable(
    material: Material, sample: Sample, tokenizer: Tokenizer, *, most_bytes: int
) -> Browsable:
    """As many items of the sample as fit."""
    texts, reasons, sources = Table(), Table(), Table()
    rows: list[tuple[int, list[Any]]] = []
    used = 0
    cut = False
    columns = [material.joined.item_scores[name] for name in material.metrics]
    for number in sample.chosen:
        item, was_cut = _bounded(material.items[number])
        view = View.of(item, tokenizer)
        row = [
            item.id,
            material.numbers[item.system],
            [texts.number(turn) for turn in item.context],
            texts.number(item.response),
            _units(item.response, view.reply.spans),
            _round(material.joined.human[number]),
            [_round(values[number]) for values in columns],
            [
                [
                    texts.number(reference.text),
                    _round(reference.weight),
                    None if reference.source is None else sources.number(reference.source),
                    _round(reference.score),
                    _units(reference.text, matches.spans),
                ]
                for reference, matches in zip(item.references, view.references, strict=True)
            ],
            len(material.items[number].references) - len(item.references),
            _reasons(material, material.items[number].id, reasons),
        ]
        used += len(embedded(row)) + 1
        if rows and used + texts.size + reasons.size + sources.size > most_bytes:
            break
        rows.append((number, row))
        cut = cut or was_cut
    rows.sort(key=lambda numbered: numbered[0])
    payload = {
        "metrics": material.metrics,
        "systems": material.systems,
        "texts": texts.values,
        "reasons": reasons.values,
        "sources": sources.values,
        "items": [row for _, row in rows],
    }
    return Browsable(embedded(payload), len(rows), sample.of, cut)


def _bounded(item: Item) -> tuple[Item, bool]:
    """The item with no text, and no list of texts, longer than anybody reads."""
    references = _weightiest(item.references)
    turns = item.context[-MOST_TURNS:]
    bounded = msgspec.structs.replace(
        item,
        id=shortened(item.id, 200),
        response=shortened(item.response),
        context=[shortened(turn) for turn in turns],
        references=[msgspec.structs.replace(r, text=shortened(r.text)) for r in references],
    )
    return bounded, bounded != item


def _weightiest(references: Sequence[Reference]) -> Sequence[Reference]:
    if len(references) <= MOST_REFERENCES:
        return references
    heavy = [abs(1.0 if r.weight is None else r.weight) for r in references]
    kept = np.sort(np.argsort(-np.array(heavy), kind="stable")[:MOST_REFERENCES])
    return [references[i] for i in kept.tolist()]


def _reasons(material: Material, name: str, known: Table) -> dict[str, int]:
    """By the number of the metric, the number of the reason why it has no score."""
    return {
        str(number): known.number(shortened(reason, 300))
        for number, metric in enumerate(material.metrics)
        if (reason := material.notes.reasons.get(metric, {}).get(name)) is not None
    }


def _round(value: float | None) -> float | int | None:
    if value is None or np.isnan(value):
        return None
    rounded = round(float(value), 4)
    return int(rounded) if rounded.is_integer() else rounded


def _units(text: str, spans: Sequence[Span]) -> list[int]:
    """Begins and ends as JavaScript counts them: in units of UTF-16."""
    places = [place for span in spans for place in span]
    if not places or max(text) <= "\uffff":
        return places
    return [len(text[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in places]
