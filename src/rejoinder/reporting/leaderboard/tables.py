"""Tables of a leaderboard for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from rejoinder.leaderboards.board import Board, MetricOnSet, SetBoard
from rejoinder.reporting.tables import interval, interval_of, number, plain_table

STANDINGS = {
    "ranked": "",
    "fitted": "fitted to these ratings",
    "chosen": "settings chosen here",
    "incomplete": "",
    "undefined": "no correlation",
}
"""What is written beside a metric, by its standing."""


def ranks(pair: tuple[int, int] | None) -> str:
    """
    >>> ranks((1, 3)), ranks((2, 2)), ranks(None)
    ('1–3', '2', '–')
    """
    if pair is None:
        return "–"
    return f"{pair[0]}–{pair[1]}" if pair[0] < pair[1] else str(pair[0])


def remark(row: MetricOnSet) -> str:
    """Return what limits the figures of a metric on a set."""
    remarks = [STANDINGS[row.standing]]
    if row.coverage < 1:
        remarks.append(f"scored {100 * row.coverage:.3g} % of the replies")
    if row.seen_contexts:
        remarks.append(f"has seen {row.seen_contexts:,} contexts")
    return "; ".join(filter(None, remarks))


def overall_table(board: Board) -> Table | None:
    """Return the ranks over all sets that nothing was chosen on."""
    if not board.overall:
        return None
    names = ", ".join(each.label for each in board.sets if each.name in board.overall_sets)
    table = plain_table(
        *("metric", "ranks", "mean", "95 % interval"),
        right=range(1, 4),
        title=f"{board.title}: mean Spearman correlation with people on {names}",
    )
    for place in board.overall:
        ends = interval_of(place.ci, 3)
        table.add_row(place.metric, ranks(place.ranks), number(place.value, 3), ends)
    return table


def set_table(each: SetBoard) -> Table:
    """Return the metrics on one set."""
    chosen = "; settings of metrics were chosen on this set" if each.chosen_on else ""
    table = plain_table(
        *("metric", "ranks", "Spearman", "95 % interval"),
        right=range(1, 4),
        title=f"{each.label}: {each.replies:,} rated replies of {each.systems:,} systems to"
        f" {each.contexts:,} contexts{chosen}",
    )
    for row in each.metrics:
        note = remark(row)
        table.add_row(
            row.metric + (f" ({note})" if note else ""),
            ranks(row.ranks),
            number(row.spearman.value, 3),
            interval(row.spearman.low, row.spearman.high, 3),
        )
    return table


def cost_table(board: Board) -> Table | None:
    """Return what scores of 1,000 replies cost, for the metrics for which that is known."""
    known = [each for each in board.metrics if each.seconds is not None]
    if not known:
        return None
    table = plain_table(
        *("metric", "seconds", "requests", "tokens"),
        right=range(1, 4),
        title="What scores of 1,000 replies cost",
    )
    for each in known:
        table.add_row(each.metric, *cost_cells(each.seconds, each.requests, each.tokens))
    return table


def cost_cells(
    seconds: float | None, requests: float | None, tokens: float | None
) -> tuple[str, str, str]:
    """
    >>> cost_cells(0.01234, 0, None)
    ('0.012', '–', '–')
    """
    return (
        "–" if seconds is None else f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}",
        f"{requests:,.0f}" if requests else "–",
        f"{tokens:,.0f}" if tokens else "–",
    )


def board_notes(board: Board) -> Iterator[str]:
    """Yield what readers of the tables should know."""
    yield (
        "ranks: which places are possible, given what chance alone can explain (paired bootstrap"
        " over contexts, 5 % for all pairs together)"
    )
    if any(not each.higher_is_better for each in board.metrics):
        names = ", ".join(each.metric for each in board.metrics if not each.higher_is_better)
        yield f"lower is better, so the sign of the correlation is turned: {names}"
    if any(row.standing == "incomplete" for each in board.sets for row in each.metrics):
        yield "a metric without a score of every rated reply of a set is not ranked there"
    if any(row.standing in ("fitted", "chosen") for each in board.sets for row in each.metrics):
        yield "metrics fitted to ratings of a set, or chosen on it, are ranked among themselves"
    for each in board.contamination:
        seen = each.exact + each.near
        if seen:
            yield f"{each.evaluator} has seen {seen:,} of {each.contexts:,} contexts of {each.set}"
