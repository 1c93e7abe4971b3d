"""Tables for the terminal that fit 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rejoinder.meta_evaluation import correlate
from rejoinder.meta_evaluation.ranking import PEOPLE, Ranking, reversed_pairs
from rejoinder.metrics.evaluate import SystemScore
from rejoinder.metrics.metric import Metric
from rejoinder.metrics.summary import Estimate, Summary
from rejoinder.wording import choose

MAX_PAIRS, MAX_SYSTEMS = 30, 100
"""Pairs and systems that are printed."""
MAX_REVERSED = 3
"""Notes about pairs that the ranking orders the other way round."""

NARROW, MAX_LINES = 24, 2
"""In columns narrower than NARROW a label is wrapped to at most MAX_LINES."""
INDENT = 4
"""Indentation of numbers below their label."""
HEAD = 3
"""Lines above the first row: an empty one, the header, a rule."""
LARGE = 1e7
"""Larger numbers are written with an exponent."""


class PlainTable(Table):
    """A table whose cells may contain any text, such as users' data.

    If the numbers leave too little room for the labels, each label is printed above its numbers,
    so that no name is broken within a word.
    """

    def add_row(self, *cells: Any, **options: Any) -> None:
        super().add_row(*(printable(str(cell)) for cell in cells), **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._crowded(console, options.max_width):
            yield from self._stacked(console, options)
        else:
            yield from super().__rich_console__(console, options)

    def _crowded(self, console: Console, width: int) -> bool:
        labels, *value_columns = self.columns
        if not value_columns or not all(column.no_wrap for column in value_columns):
            return False
        numbers = [max(cell_len(str(c)) for c in (x.header, *x.cells)) for x in value_columns]
        room = width - 2 - sum(n + 2 for n in numbers)
        if not 0 < room < NARROW:
            return room <= 0
        texts = [Text(str(cell)) for cell in labels.cells]
        words = [cell_len(word) for text in texts for word in text.plain.split()]
        lines = [len(text.wrap(console, room)) for text in texts]
        return max(words, default=0) > room or max(lines, default=0) > MAX_LINES

    def _stacked(self, console: Console, options: ConsoleOptions) -> RenderResult:
        labels, *value_columns = self.columns
        numbers = Table(box=self.box, pad_edge=False, collapse_padding=True)
        for column in value_columns:
            numbers.add_column(column.header, justify="right", no_wrap=True)
        for row in zip(*(column.cells for column in value_columns), strict=True):
            numbers.add_row(*row)
        lines = console.render_lines(numbers, options, pad=False)
        free = options.max_width - Segment.get_line_length(lines[0])
        indent = Segment(" " * min(free, INDENT))
        for line in lines[:HEAD]:
            yield from (indent, *line, Segment.line())
        for label, line in zip(labels.cells, lines[HEAD:], strict=False):
            yield Padding(Text(str(label), overflow="fold"), (0, 1), expand=False)
            yield from (indent, *line, Segment.line())
        yield Text("")


def printable(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


def plain_table(*columns: str, right: Iterable[int] = (), title: str | None = None) -> Table:
    """Return a table in the common style: no frame, numbers aligned to the right."""
    table = PlainTable(
        box=box.SIMPLE_HEAD,
        title=title,
        title_justify="left",
        pad_edge=False,
        collapse_padding=True,
    )
    numbers = set(right)
    for index, column in enumerate(columns):
        if index in numbers:
            table.add_column(column, justify="right", no_wrap=True)
        else:
            table.add_column(column, overflow="fold")
    return table


def wrapping(label: str) -> str:
    """Return a spec that can be wrapped before and between its parameters."""
    return label.replace(",", ", ").replace("(", " (", 1)


def number(value: float | None, digits: int = 4) -> str:
    """Return ``.0604``, ``-.1263``, ``12.3000``, ``1.5e+08``; a dash for None."""
    if value is None:
        return "–"
    if abs(value) >= LARGE:
        return f"{value:.{digits}g}"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def interval_of(ends: tuple[float, float] | None, digits: int) -> str:
    """Return the text of an interval; that of an unknown one for None."""
    low, high = ends or (None, None)
    return interval(low, high, digits)


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    return "" if low is None or high is None else f"[{number(low, digits)}, {number(high, digits)}]"


def estimate(value: Estimate | None) -> str:
    if value is None:
        return "–"
    return f"{number(value.value)} {interval(value.low, value.high)}".rstrip()


def correlation(estimate: correlate.Estimate) -> str:
    """Return a correlation with its interval."""
    return f"{number(estimate.value)} {interval(estimate.low, estimate.high, 2)}".rstrip()


def p_value(p: float | None) -> str:
    if p is None:
        return "–"
    return "<.001" if p < 0.001 else number(p, 3)


def score_tables(labels: Mapping[Metric, str], summaries: Sequence[Summary]) -> Iterator[Table]:
    """Yield the results of ``score``: all metrics of one system, or a table per metric."""
    systems = dict.fromkeys(row.system for row in summaries)
    if len(systems) == 1:
        rows = [(wrapping(labels[row.metric]), row) for row in summaries]
        yield _score_table("metric", rows, None)
        return
    for metric in dict.fromkeys(row.metric for row in summaries):
        rows = [(row.system, row) for row in summaries if row.metric == metric]
        yield _score_table("system", rows, labels[metric])


def _score_table(first: str, rows: Sequence[tuple[str, Summary]], title: str | None) -> Table:
    columns = [first, "corpus [95 % CI]", "mean of items [95 % CI]", "scored"]
    missing = any(row.unscored for _, row in rows)
    table = plain_table(
        *columns, *(["unscored"] if missing else []), right=[1, 2, 3, 4], title=title
    )
    for name, row in rows:
        unscored = [f"{sum(row.unscored.values()):,}"] if missing else []
        cells = [estimate(row.corpus), estimate(row.mean), f"{row.scored:,}", *unscored]
        table.add_row(name, *cells)
    return table


def set_scores_table(labels: Mapping[Metric, str], scores: Sequence[SystemScore]) -> Table:
    """Return the values of set metrics for each system."""
    table = plain_table("metric", "system", "value", "contexts", "unscored", right=[2, 3, 4])
    for row in scores:
        without = sum(isinstance(value, str) for value in row.contexts.values())
        table.add_row(
            wrapping(labels[row.metric]),
            row.system,
            number(row.value),
            f"{len(row.contexts) - without:,}",
            f"{without:,}",
        )
    return table


def ranking_table(label: str, ranking: Ranking) -> Table:
    """Return the systems from best to worst; systems that share a letter can't be told apart."""
    groups = [] if ranking.neighbours_only else ["group"]
    columns = [*groups, "system", "value", "95 % CI"]
    table = plain_table(
        *columns,
        right=[len(columns) - 2, len(columns) - 1],
        title=f"{_value_name(label, ranking)} over {ranking.contexts:,} contexts that all systems"
        " answered",
    )
    if (more := len(ranking.systems) - MAX_SYSTEMS) > 0:
        table.caption, table.caption_justify = f"… {more:,} more systems: {_all()}", "left"
    for row in ranking.systems[:MAX_SYSTEMS]:
        group = [row.group] if groups else []
        table.add_row(*group, row.system, number(row.value), interval(row.low, row.high))
    return table


def _all() -> str:
    """Return where the reader finds all rows of a table that was cut."""
    return choose(command_line="--json", python="to_dict()")


def _value_name(label: str, ranking: Ranking) -> str:
    if ranking.by == PEOPLE:
        return "Mean rating by people"
    return f"Mean {label}" if ranking.aggregate == "mean" else label


def ranking_notes(ranking: Ranking) -> list[str]:
    """Return sentences about the limits of a ranking."""
    notes = []
    if ranking.neighbours_only:
        notes.append(
            f"With {len(ranking.systems):,} systems only neighbours in the ranking were tested, so"
            " there are no groups."
        )
    if ranking.left_out:
        which = "1 context is" if ranking.left_out == 1 else f"{ranking.left_out:,} contexts are"
        own = has_own_contexts(ranking)
        of = " of the values" if own else ""
        notes.append(f"{which} left out{of}, because not every system has a score there.")
        if own:
            counts = [pair.contexts for pair in ranking.pairs]
            notes.append(
                "Each pair is tested on all contexts in which the two have scores"
                f" ({min(counts):,} to {max(counts):,})."
            )
    for pair in reversed_pairs(ranking)[:MAX_REVERSED]:
        notes.append(
            f"{pair.better} is better than {pair.worse} in the {pair.contexts:,} contexts that both"
            f" answered, although it ranks lower in the {ranking.contexts:,} that all answered."
        )
    if ranking.unranked:
        which = "1 system" if len(ranking.unranked) == 1 else f"{len(ranking.unranked):,} systems"
        notes.append(f"{which} could not be ranked, because no reply has a score.")
    return notes


def has_own_contexts(ranking: Ranking) -> bool:
    """Return whether some pair was tested on more contexts than all systems share."""
    return any(pair.contexts != ranking.contexts for pair in ranking.pairs)


def pairs_table(ranking: Ranking) -> Table:
    """Return the tests of pairs of systems; the adjusted p decides the groups."""
    tested = "neighbours" if ranking.neighbours_only else "pairs"
    contexts = ["contexts"] if has_own_contexts(ranking) else []
    table = plain_table(
        "better",
        "than",
        *contexts,
        "by [95 % CI]",
        "p boot",
        "p rand",
        "p Holm",
        right=range(2, 6 + len(contexts)),
        title=f"Tests of {tested}: p by bootstrap, by randomisation, and adjusted (Holm)",
    )
    if (more := len(ranking.pairs) - MAX_PAIRS) > 0:
        table.caption, table.caption_justify = f"… {more:,} more pairs: {_all()}", "left"
    for pair in ranking.pairs[:MAX_PAIRS]:
        table.add_row(
            pair.better,
            pair.worse,
            *([f"{pair.contexts:,}"] if contexts else []),
            f"{number(pair.difference, 3)} {interval(pair.low, pair.high, 3)}",
            p_value(pair.p_bootstrap),
            p_value(pair.p_randomisation),
            p_value(pair.p_adjusted),
        )
    return table
