"""The items as JSON for the page's script: short lists, and each text once.

Replies to one context share it and its references, so texts are stored in a table. The size of the
page is limited: if texts are long, fewer items fit, and the page says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from rejoinder.items import Item, Reference
from rejoinder.reporting.item_view import Span, View
from rejoinder.reporting.page.report_data import ReportData
from rejoinder.reporting.page.sample import Sample
from rejoinder.text.tokenizers.tokenizer import Tokenizer

MAX_CHARACTERS = 2000
"""Characters of a text."""
MAX_REFERENCES = 40
MAX_TURNS = 30
ELLIPSIS = " …"


@dataclass
class StringTable:
    """Distinct strings by number."""

    values: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)
    size: int = 0
    """Bytes of the strings as JSON."""

    def number(self, value: str) -> int:
        """Return the number of a string, which is added if new."""
        if value not in self._numbers:
            self._numbers[value] = len(self.values)
            self.values.append(value)
            self.size += len(embedded(value)) + 1
        return self._numbers[value]


@dataclass(frozen=True)
class BrowserData:
    """The items of the page as JSON."""

    payload: bytes
    """JSON that is safe inside a script element."""
    items: int
    of: int
    cut: bool
    """Whether some texts or lists of references were cut."""


def embedded(value: Any) -> bytes:
    """Return JSON that can neither end a script element nor begin another one."""
    encoded: bytes = msgspec.json.encode(value)
    for risky in (b"<", b">", b"&"):
        encoded = encoded.replace(risky, rb"\u%04x" % ord(risky))
    return encoded.replace("\u2028".encode(), rb"\u2028").replace("\u2029".encode(), rb"\u2029")


def shortened(text: str, length: int = MAX_CHARACTERS) -> str:
    """Return the text cut to a length."""
    return text if len(text) <= length else text[:length] + ELLIPSIS


def browser_data(
    data: ReportData, sample: Sample, tokenizer: Tokenizer, *, max_bytes: int
) -> BrowserData:
    """Return as many items of the sample as fit into ``max_bytes``."""
    texts, reasons, sources = StringTable(), StringTable(), StringTable()
    rows: list[tuple[int, list[Any]]] = []
    used = 0
    cut = False
    columns = [data.joined.item_scores[name] for name in data.metrics]
    for number in sample.chosen:
        item, was_cut = _bounded(data.items[number])
        view = View.of(item, tokenizer)
        row = [
            item.id,
            data.numbers[item.system],
            [texts.number(turn) for turn in item.context],
            texts.number(item.response),
            _units(item.response, view.reply.spans),
            _round(data.joined.human[number]),
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
            len(data.items[number].references) - len(item.references),
            _reasons(data, data.items[number].id, reasons),
            _intervals(data, data.items[number].id),
        ]
        used += len(embedded(row)) + 1
        if rows and used + texts.size + reasons.size + sources.size > max_bytes:
            break
        rows.append((number, row))
        cut = cut or was_cut
    rows.sort(key=lambda numbered: numbered[0])
    payload = {
        "metrics": data.metrics,
        "systems": data.systems,
        "texts": texts.values,
        "reasons": reasons.values,
        "sources": sources.values,
        "items": [row for _, row in rows],
    }
    return BrowserData(embedded(payload), len(rows), sample.of, cut)


def _bounded(item: Item) -> tuple[Item, bool]:
    """Return the item with long texts and lists cut, and whether anything was cut."""
    references = _weightiest(item.references)
    turns = item.context[-MAX_TURNS:]
    bounded = msgspec.structs.replace(
        item,
        id=shortened(item.id, 200),
        response=shortened(item.response),
        context=[shortened(turn) for turn in turns],
        references=[msgspec.structs.replace(r, text=shortened(r.text)) for r in references],
    )
    return bounded, bounded != item


def _weightiest(references: Sequence[Reference]) -> Sequence[Reference]:
    if len(references) <= MAX_REFERENCES:
        return references
    heavy = [abs(1.0 if r.weight is None else r.weight) for r in references]
    kept = np.sort(np.argsort(-np.array(heavy), kind="stable")[:MAX_REFERENCES])
    return [references[i] for i in kept.tolist()]


def _reasons(data: ReportData, name: str, known: StringTable) -> dict[str, int]:
    """Return by number of the metric the number of the reason why it has no score."""
    return {
        str(number): known.number(shortened(reason, 300))
        for number, metric in enumerate(data.metrics)
        if (reason := data.notes.reasons.get(metric, {}).get(name)) is not None
    }


def _intervals(data: ReportData, name: str) -> dict[str, list[float | int | None]]:
    """Return by number of the metric the ends of the interval of its score."""
    return {
        str(number): [_round(end) for end in ends]
        for number, metric in enumerate(data.metrics)
        if (ends := data.notes.intervals.get(metric, {}).get(name)) is not None
    }


def _round(value: float | None) -> float | int | None:
    if value is None or np.isnan(value):
        return None
    rounded = round(float(value), 4)
    return int(rounded) if rounded.is_integer() else rounded


def _units(text: str, spans: Sequence[Span]) -> list[int]:
    """Return begins and ends as JavaScript counts them, in UTF-16 code units."""
    places = [place for span in spans for place in span]
    if not places or max(text) <= "\uffff":
        return places
    return [len(text[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in places]
