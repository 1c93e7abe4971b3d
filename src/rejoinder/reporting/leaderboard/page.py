"""The leaderboard as a page that opens offline: sortable tables, intervals as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rejoinder.leaderboards.board import Board, MetricFacts, MetricOnSet, SetBoard
from rejoinder.reporting.leaderboard.tables import cost_cells, ranks, remark
from rejoinder.reporting.offline_page import fill_page, read_template
from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.strips import strip, strip_axis
from rejoinder.reporting.tables import interval, interval_of, number
from rejoinder.version import __version__

PACKAGE = "rejoinder.reporting.leaderboard"
STYLE_OF = "rejoinder.reporting.page"
"""Package whose style sheet the page shares."""


def render(board: Board) -> bytes:
    """Return the page."""
    context = {
        "board": board,
        "version": __version__,
        "matrix": _matrix(board),
        "overall": _overall(board),
        "sets": [_set(each) for each in board.sets],
        "facts": [_facts(each) for each in board.metrics],
        "labels": {each.name: each.label for each in board.sets},
    }
    return fill_page(PACKAGE, context, [read_template(STYLE_OF, "page.css")]).encode()


def _matrix(board: Board) -> list[dict[str, Any]]:
    """Return a row per metric: its mean over sets, and its correlation on each set."""
    overall = {place.metric: place for place in board.overall}
    on_set = [{row.metric: row for row in each.metrics} for each in board.sets]
    rows: list[dict[str, Any]] = []
    for facts in board.metrics:
        place = overall.get(facts.metric)
        cells = [_matrix_cell(rows_of.get(facts.metric)) for rows_of in on_set]
        rows.append(
            {
                "metric": facts.metric,
                "ranks": ranks(place.ranks if place else None),
                "first": place.ranks[0] if place else None,
                "mean": number(place.value, 3) if place else "–",
                "value": place.value if place else None,
                "cells": cells,
            }
        )
    rows.sort(key=lambda row: (row["value"] is None, -(row["value"] or 0), row["metric"]))
    return rows


def _matrix_cell(row: MetricOnSet | None) -> dict[str, Any]:
    value = None if row is None else row.spearman.value
    mark = bool(row is not None and row.standing != "ranked" and value is not None)
    first = bool(row is not None and row.standing == "ranked" and row.ranks and row.ranks[0] == 1)
    return {"value": value, "text": number(value, 3), "mark": mark, "first": first}


def _overall(board: Board) -> dict[str, Any] | None:
    if not board.overall:
        return None
    places = board.overall
    scale = _scale([place.value for place in places], [place.ci for place in places])
    return {
        "axis": strip_axis(scale),
        "rows": [
            {
                "metric": place.metric,
                "ranks": ranks(place.ranks),
                "first": place.ranks[0],
                "value": place.value,
                "text": number(place.value, 3),
                "interval": interval_of(place.ci, 3),
                "strip": strip(scale, place.value, *(place.ci or (None, None))),
            }
            for place in places
        ],
    }


def _set(each: SetBoard) -> dict[str, Any]:
    shown = [row for row in each.metrics if row.spearman.value is not None]
    ends = [
        None
        if row.spearman.low is None or row.spearman.high is None
        else (row.spearman.low, row.spearman.high)
        for row in shown
    ]
    scale = _scale([row.spearman.value or 0.0 for row in shown], ends)
    return {
        "set": each,
        "axis": strip_axis(scale),
        "rows": [
            {
                "metric": row.metric,
                "ranks": ranks(row.ranks),
                "first": row.ranks[0] if row.ranks else None,
                "value": row.spearman.value,
                "text": number(row.spearman.value, 3),
                "interval": interval(row.spearman.low, row.spearman.high, 3),
                "strip": ""
                if row.spearman.value is None
                else strip(scale, row.spearman.value, row.spearman.low, row.spearman.high),
                "pearson": number(row.pearson.value, 3),
                "kendall": number(row.kendall.value, 3),
                "remark": remark(row),
                "apart": row.standing != "ranked",
            }
            for row in each.metrics
        ],
    }


def _scale(values: Sequence[float], ends: Sequence[tuple[float, float] | None]) -> Scale:
    """Return a scale that has room for all intervals, and for 0."""
    all_ends = [end for pair in ends if pair is not None for end in pair]
    return Scale.over([0.0, 0.1, *values, *all_ends])


def _facts(each: MetricFacts) -> dict[str, Any]:
    seconds, requests, tokens = cost_cells(each.seconds, each.requests, each.tokens)
    return {"metric": each, "seconds": seconds, "requests": requests, "tokens": tokens}
