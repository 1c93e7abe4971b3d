"""The systems' values by number of references, as a table and a chart."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from rejoinder.meta_evaluation.system_curve import SystemsPoint
from rejoinder.reporting.plots.line_chart import Line, LineChart
from rejoinder.reporting.tables import interval, number, plain_table


def system_table(name: str, points: Sequence[SystemsPoint]) -> Table:
    """Return a row for each number of references, and a column for each system."""
    systems = sorted(points[-1].mean, key=lambda system: -points[-1].mean[system])
    table = plain_table(
        "references",
        *systems,
        "ahead (draws)",
        right=range(1 + len(systems)),
        title=f"{name}: systems by number of references [band over draws]",
    )
    for point in points:
        ahead = [
            f"{system} {share:.0%}"
            for system, share in sorted(point.first.items(), key=lambda pair: -pair[1])
            if share
        ]
        table.add_row(
            str(point.references),
            *(_value(point, system) for system in systems),
            ", ".join(ahead) or "none",
        )
    return table


def system_chart(name: str, points: Sequence[SystemsPoint]) -> LineChart:
    """Return a line for each system, with the band over the draws."""
    lines = [
        Line(
            system,
            [point.references for point in points],
            [point.mean[system] for point in points],
            [point.low[system] for point in points],
            [point.high[system] for point in points],
        )
        for system in sorted(points[-1].mean, key=lambda system: -points[-1].mean[system])
    ]
    title = f"{name} of systems by number of references"
    return LineChart(title, "references", "Mean over replies", lines, "95 % of random draws")


def _value(point: SystemsPoint, system: str) -> str:
    if point.draws == 1:
        return number(point.mean[system])
    return f"{number(point.mean[system])} {interval(point.low[system], point.high[system], 3)}"
