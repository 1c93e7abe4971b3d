"""The table of ``rejoinder expand``."""

from __future__ import annotations

from rich.table import Table

from rejoinder.reporting.tables import number, plain_table
from rejoinder.retrieve.expand_items import ExpansionReport
from rejoinder.retrieve.written.expand_items import WritingReport


def expansion_table(report: ExpansionReport) -> Table:
    """Return counts of queries and of added references."""
    table = plain_table("expanded", "", right=[1])
    rows = [
        ("pairs in the pool", report.pairs),
        *((f"  {reason}", count) for reason, count in report.unused.items()),
        *((f"  left out, {kind} utterance of a test item", n) for kind, n in report.leaks.items()),
        ("items", report.items),
        ("contexts", report.contexts),
        ("distinct queries", report.queries),
        ("references added", report.retrieved),
        ("parrots added", report.parrots),
        ("items left as they were", sum(report.unexpanded.values())),
        ("items with fewer than k new references", report.fewer),
    ]
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    table.add_row("mean similarity of the nearest", number(report.nearest))
    table.add_row("mean similarity of the last", number(report.kth))
    return table


def writing_table(report: WritingReport) -> Table:
    """Return counts of the references that a language model wrote."""
    table = plain_table("written", "", right=[1])
    rows = [
        ("items", report.items),
        ("contexts", report.contexts),
        ("replies written", report.written),
        ("  left out, nearly the same as another", report.repeated),
        ("  left out, in another language", report.foreign),
        ("  left out, too long", report.long),
        ("references added", report.references),
        ("parrots added", report.parrots),
        ("items left as they were", sum(report.unexpanded.values())),
        (f"items with fewer than {report.k} new references", report.fewer),
        ("requests", report.requests),
        ("tokens", report.tokens),
    ]
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    return table
