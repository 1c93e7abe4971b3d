"""Tables of ``rejoinder corpus``: counts of records and pairs, and reasons for dropped ones."""

from __future__ import annotations

from rich.table import Table

from rejoinder.logs.corpus_report import CorpusReport
from rejoinder.reporting.tables import plain_table


def flow_table(report: CorpusReport) -> Table:
    """Return the counts from records to pairs."""
    table = plain_table("from logs to pairs", "count", right=[1])
    rows = [
        ("records read", report.records),
        ("bad records", sum(report.rejects.values())),
        ("removed by filters", sum(report.removed.values())),
        ("retweets", report.retweets),
        ("posts left", report.posts),
        ("utterances with a response", report.utterances),
        ("  with several responses", report.several),
        ("dialogues of three or more posts", report.dialogues),
        ("pairs left out as test material", sum(report.leaks.values())),
        *([("pairs left out by role", report.not_learned)] if report.not_learned else []),
        ("pairs", report.pairs),
        *((f"  {name}", count) for name, count in report.splits.items()),
    ]
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    if report.first and report.last:
        table.add_row("time", f"{report.first[:10]} to {report.last[:10]}")
    return table


def account_table(report: CorpusReport) -> Table:
    """Return counts of changed, removed and rejected posts, by filter and reason."""
    table = plain_table("filter or reason", "changed", "removed", "bad", right=[1, 2, 3])
    for name in dict.fromkeys([*report.changed, *report.removed]):
        table.add_row(name, _some(report.changed, name), _some(report.removed, name), "")
    for name, count in report.rejects.items():
        table.add_row(name, "", "", f"{count:,}")
    return table


def _some(counts: dict[str, int], name: str) -> str:
    return f"{counts[name]:,}" if name in counts else ""
