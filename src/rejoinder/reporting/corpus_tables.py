"""Tables of ``rejoinder corpus``: counts of records and pairs, and reasons for dropped ones."""

from __future__ import annotations

from rich.table import Table

from rejoinder.logs.corpus_report import CorpusReport
from rejoinder.reporting.tables import plain_table


def flow_table(account: CorpusReport) -> Table:
    """Return the counts from records to pairs."""
    table = plain_table("from logs to pairs", "count", right=[1])
    rows = [
        ("records read", account.records),
        ("bad records", sum(account.rejects.values())),
        ("removed by filters", sum(account.removed.values())),
        ("retweets", account.retweets),
        ("posts left", account.posts),
        ("utterances with a response", account.utterances),
        ("  with several responses", account.several),
        ("dialogues of three or more posts", account.dialogues),
        ("pairs left out as test material", sum(account.leaks.values())),
        ("pairs", account.pairs),
        *((f"  {name}", count) for name, count in account.splits.items()),
    ]
    for name, count in rows:
        table.add_row(name, f"{count:,}")
    if account.first and account.last:
        table.add_row("time", f"{account.first[:10]} to {account.last[:10]}")
    return table


def account_table(account: CorpusReport) -> Table:
    """Return what was changed, removed and rejected, by filter and reason."""
    table = plain_table("filter or reason", "changed", "removed", "bad", right=[1, 2, 3])
    for name in dict.fromkeys([*account.changed, *account.removed]):
        table.add_row(name, _some(account.changed, name), _some(account.removed, name), "")
    for name, count in account.rejects.items():
        table.add_row(name, "", "", f"{count:,}")
    return table


def _some(counts: dict[str, int], name: str) -> str:
    return f"{counts[name]:,}" if name in counts else ""
