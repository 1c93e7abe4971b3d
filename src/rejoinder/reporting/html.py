"""Results as small HTML tables, for notebooks. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from rejoinder.meta_evaluation.correlate import Correlations
from rejoinder.meta_evaluation.evaluation import MetaEvaluation
from rejoinder.meta_evaluation.ranking import Ranking
from rejoinder.reporting.tables import (
    correlation,
    interval,
    number,
    p_value,
    printable,
    ranking_notes,
)

MAX_ROWS = 100
"""Rows of a table; a note counts the rows that are not shown."""


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

    records = list(rows)
    head = Markup("").join(cell("th", n, column) for n, column in enumerate(columns))
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(cell("td", n, value) for n, value in enumerate(row))
        )
        for row in records[:MAX_ROWS]
    )
    more = len(records) - MAX_ROWS
    below = [*([f"{more:,} more rows are not shown."] if more > 0 else []), *notes]
    title = Markup("<caption>{}</caption>").format(printable(caption)) if caption else ""
    remarks = Markup("").join(Markup("<p>{}</p>").format(printable(note)) for note in below)
    return str(
        Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
            title, head, body, remarks
        )
    )


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


def correlations_html(evaluation: MetaEvaluation) -> str:
    """Return the correlations of each metric with people."""
    columns = ["metric", "Spearman", "p", "Pearson", "p", "Kendall", "p", "n", "unscored"]
    rows = [
        [result.metric, *_correlations(result.correlations), f"{result.unscored:,}"]
        for result in evaluation.results
    ]
    caption = f"Agreement with people, {evaluation.level} level"
    notes = [f"{name}: left out: {reason}" for name, reason in evaluation.refused.items()]
    return table_html(columns, rows, caption=caption, notes=notes, right=range(1, len(columns)))


def _correlations(correlations: Correlations) -> list[str]:
    cells = []
    for estimate in (correlations.spearman, correlations.pearson, correlations.kendall):
        cells += [correlation(estimate), p_value(estimate.p)]
    return [*cells, f"{correlations.n:,}"]
