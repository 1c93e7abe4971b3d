"""Tables at the end of a recipe: one per metric, a row per variant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from rejoinder.reporting.tables import interval, number, plain_table

BINARY = {"auc": "AUC", "recall_at_1": "recall@1"}
"""Columns for binary ratings."""


def collected_tables(title: str, results: Sequence[dict[str, Any]]) -> list[Table]:
    """Return tables of results of ``meta --json``, each with the label of its row."""
    tables = []
    for metric in dict.fromkeys(result["metric"] for result in results):
        rows = [result for result in results if result["metric"] == metric]
        missing = any(result.get("unscored") for result in rows)
        columns = ["", "Spearman [95 % CI]", "Pearson [95 % CI]", "n"]
        columns += ["unscored"] if missing else []
        more = {key: name for key, name in BINARY.items() if any(key in row for row in rows)}
        columns += more.values()
        heading = f"{title}: {metric}" if title else str(metric)
        table = plain_table(*columns, right=range(1, len(columns)), title=heading)
        for result in rows:
            unscored = [f"{result.get('unscored') or 0:,}"] if missing else []
            cells = [_estimate(result, "spearman"), _estimate(result, "pearson")]
            further = [number(result.get(key), 3) for key in more]
            table.add_row(result["row"], *cells, f"{result.get('n') or 0:,}", *unscored, *further)
        tables.append(table)
    return tables


def _estimate(result: dict[str, Any], name: str) -> str:
    low, high = result.get(f"{name}_ci") or (None, None)
    return f"{number(result.get(name), 3)} {interval(low, high, 2)}".rstrip()
