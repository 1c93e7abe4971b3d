"""The table of ``rejoinder meta --references``."""

from __future__ import annotations

from rich.table import Table

from rejoinder.meta_evaluation.annotators import HumanAgreement
from rejoinder.meta_evaluation.evaluation import MetricResult
from rejoinder.reporting.tables import correlation, number, p_value, plain_table

STATISTICS = ("spearman", "pearson", "kendall")


def reference_table(result: MetricResult, humans: HumanAgreement | None) -> Table:
    """Return the correlation of weights with the mean rating and with single annotators, and the
    correlation between annotators."""
    table = plain_table(
        "",
        "mean rating [95 % CI]",
        "p",
        "annotator max",
        "min",
        "mean",
        right=range(1, 6),
        title="Weights of references against people's ratings",
    )
    for name in STATISTICS:
        estimate = getattr(result.correlations, name)
        cells = correlation(estimate), p_value(estimate.p), *_summary(result.annotators, name)
        table.add_row(f"weight, {name.capitalize()}", *cells)
    if humans is not None and humans.pairwise:
        for name in STATISTICS:
            cells = "", "", *_summary(humans.pairwise, name)
            table.add_row(f"annotators, {name.capitalize()}", *cells)
    return table


def _summary(by_statistic: dict[str, dict[str, float]] | None, name: str) -> list[str]:
    values = (by_statistic or {}).get(name, {})
    return [number(values.get(side)) for side in ("max", "min", "mean")]
