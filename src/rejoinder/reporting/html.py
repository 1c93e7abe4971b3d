"""Results as small HTML tables, for notebooks. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup
from rich.table import Table
from rich.text import Text

from rejoinder.meta_evaluation.correlate import Correlations, Estimate
from rejoinder.meta_evaluation.evaluation import MetaEvaluation
from rejoinder.meta_evaluation.ranking import Ranking
from rejoinder.reporting.tables import interval, number, p_value, printable, ranking_notes

MAX_ROWS = 100
"""Rows of a table; a note gives the number of the others."""


def table_html(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    caption: str = "",
    notes: Sequence[str] = (),
    right: Iterable[int] = (),
) -> str:
    """Return an HTML table; the columns ``right`` are aligned to the right."""
    numbers = set(right)

    def cell(name: str, place: int, value: Any) -> Markup:
        side = "right" if place in numbers else "left"
        text = printable("" if value is None else str(value))
        return Markup('<{0} style="text-align:{1}">{2}</{0}>').format(name, side, text)

    listed = list(rows)
    head = Markup("").join(cell("th", n, column) for n, column in enumerate(columns))
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(cell("td", n, value) for n, value in enumerate(row))
        )
        for row in listed[:MAX_ROWS]
    )
    more = len(listed) - MAX_ROWS
    below = [*([f"{more:,} more rows are not shown."] if more > 0 else []), *notes]
    title = Markup("<caption>{}</caption>").format(printable(caption)) if caption else ""
    remarks = Markup("").join(Markup("<p>{}</p>").format(printable(note)) for note in below)
    return str(
        Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
            title, head, body, remarks
        )
    )


def rich_html(table: Table) -> str:
    """Return a table of the terminal as an HTML table."""
    columns = [_plain(column.header) for column in table.columns]
    cells = [[_plain(cell) for cell in column.cells] for column in table.columns]
    right = [n for n, column in enumerate(table.columns) if column.justify == "right"]
    rows = list(zip(*cells, strict=True)) if cells else []
    notes = [_plain(table.caption)] if table.caption else []
    caption = _plain(table.title) if table.title else ""
    return table_html(columns, rows, caption=caption, notes=notes, right=right)


def _plain(value: Any) -> str:
    return value.plain if isinstance(value, Text) else str(value)


def ranking_html(ranking: Ranking) -> str:
    """Return the systems of a ranking with intervals and groups."""
    groups = [] if ranking.neighbours_only else ["group"]
    columns = [*groups, "system", "value", "95 % interval"]
    rows = [
        [
            *([row.group] if groups else []),
            row.system,
            number(row.value),
            interval(row.low, row.high),
        ]
        for row in ranking.systems
    ]
    notes = [] if not groups else ["Systems that share a letter can’t be told apart."]
    return table_html(
        columns,
        rows,
        caption=f"{ranking.by or 'Systems'} over {ranking.contexts:,} contexts",
        notes=[*notes, *ranking_notes(ranking)],
        right=[len(columns) - 2, len(columns) - 1],
    )


def correlations_html(found: MetaEvaluation) -> str:
    """Return the correlations of each metric with people."""
    columns = ["metric", "Spearman", "p", "Pearson", "p", "Kendall", "p", "n", "unscored"]
    rows = [
        [result.metric, *_correlations(result.correlations), f"{result.unscored:,}"]
        for result in found.results
    ]
    caption = f"Agreement with people, {found.level} level"
    notes = [f"{name}: left out: {reason}" for name, reason in found.refused.items()]
    return table_html(columns, rows, caption=caption, notes=notes, right=range(1, len(columns)))


def _correlations(found: Correlations) -> list[str]:
    cells = []
    for estimate in (found.spearman, found.pearson, found.kendall):
        cells += [_estimate(estimate), p_value(estimate.p)]
    return [*cells, f"{found.n:,}"]


def _estimate(estimate: Estimate) -> str:
    return f"{number(estimate.value)} {interval(estimate.low, estimate.high, 2)}".rstrip()


def scores_html(rows: Iterable[Mapping[str, Any]], *, caption: str = "") -> str:
    """Return summaries of scores: records with the same keys, numbers formatted."""
    records = list(rows)
    columns = list(dict.fromkeys(key for record in records for key in record))
    numeric = [
        n
        for n, key in enumerate(columns)
        if all(isinstance(record.get(key), int | float | None) for record in records)
    ]
    cells = [[_cell(record.get(key)) for key in columns] for record in records]
    return table_html(columns, cells, caption=caption, right=numeric)


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "" if value is None else str(value)
    return f"{value:,}" if isinstance(value, int) else number(value)
