"""The tables of ``rejoinder meta``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from rejoinder.meta_evaluation.annotators import HumanAgreement
from rejoinder.meta_evaluation.correlate import Correlations, Statistic
from rejoinder.meta_evaluation.coverage import THIRDS
from rejoinder.meta_evaluation.evaluation import MetaEvaluation
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.annotator_tables import agreement_facts
from rejoinder.reporting.plots.line_chart import Line, LineChart
from rejoinder.reporting.tables import correlation, interval, number, p_value, plain_table, wrapping

SHOWN = ("spearman", "pearson")


UNITS = {
    "item": "replies",
    "context": "sets of replies",
    "system": "systems",
    "dialogue": "dialogues",
}


def correlation_table(evaluation: MetaEvaluation, right: Sequence[str] = ()) -> Table:
    """Return each metric's correlation with people, or with the labels of ``right`` systems."""
    unit = UNITS[evaluation.level]
    rows = [(r.metric, r.correlations, r.unscored) for r in evaluation.results]
    return _correlations(rows, f"{_subject(right)} over {unit}")


def _subject(right: Sequence[str]) -> str:
    """Return the start of a title: correlation with ratings, or with labels by system."""
    return f"Replies of {', '.join(right)} against others" if right else "Agreement with people"


def without_human_table(evaluation: MetaEvaluation, human_system: str) -> Table | None:
    """Return the correlations without replies that people wrote, if there are any."""
    rows = [
        (r.metric, r.without_human, 0) for r in evaluation.results if r.without_human is not None
    ]
    return _correlations(rows, f"Without the replies of '{human_system}'") if rows else None


def _correlations(rows: Sequence[tuple[str, Correlations, int]], title: str) -> Table:
    missing = any(unscored for *_, unscored in rows)
    columns = ["metric", "Spearman [95 % CI]", "p", "Pearson [95 % CI]", "p", "n"]
    columns += ["unscored"] if missing else []
    table = plain_table(*columns, right=range(1, len(columns)), title=title)
    for name, correlations, unscored in rows:
        cells = [
            correlation(correlations.spearman),
            p_value(correlations.spearman.p),
            correlation(correlations.pearson),
            p_value(correlations.pearson.p),
            f"{correlations.n:,}",
        ]
        table.add_row(wrapping(name), *cells, *([f"{unscored:,}"] if missing else []))
    return table


def annotator_facts(humans: HumanAgreement) -> str:
    """Return the agreement of the annotators in one line."""
    facts = [f"{humans.annotators} annotator{'' if humans.annotators == 1 else 's'}"]
    facts += [] if humans.identified else ["anonymous"]
    return ", ".join([*facts, *agreement_facts(humans)])


def annotator_table(evaluation: MetaEvaluation) -> Table | None:
    """Return the highest and lowest correlation with a single annotator, as in many papers."""
    humans = evaluation.humans
    if humans is None or not humans.identified:
        return None
    table = plain_table(
        "",
        "Spearman max",
        "min",
        "Pearson max",
        "min",
        right=[1, 2, 3, 4],
        title="Agreement with single annotators",
    )
    for result in evaluation.results:
        if result.annotators:
            table.add_row(wrapping(result.metric), *_extremes(result.annotators))
    if humans.pairwise:
        table.add_row("between annotators", *_extremes(humans.pairwise))
    for name, row in humans.against_others.items():
        cells = [number(row.get(statistic)) for statistic in SHOWN]
        table.add_row(f"{name} against the others", cells[0], "", cells[1], "")
    return table


def _extremes(row: dict[str, dict[str, float]]) -> list[str]:
    return [number(row.get(s, {}).get(side)) for s in SHOWN for side in ("max", "min")]


def accuracy_table(evaluation: MetaEvaluation) -> Table | None:
    """Return the share of pairs of replies to one context that a metric orders as people do."""
    rows = [(r.metric, r.accuracy) for r in evaluation.results if r.accuracy is not None]
    if not rows:
        return None
    table = plain_table(
        "metric",
        "accuracy",
        "ties calibrated",
        "threshold",
        "pairs",
        right=[1, 2, 3, 4],
        title="Pairwise accuracy within a context",
    )
    for name, accuracy in rows:
        table.add_row(
            wrapping(name),
            number(accuracy.plain),
            number(accuracy.calibrated),
            number(accuracy.threshold),
            f"{accuracy.pairs:,}",
        )
    return table


def auc_table(evaluation: MetaEvaluation) -> Table | None:
    """Return how well each metric separates two kinds of replies, if ratings are binary."""
    rows = [r for r in evaluation.results if r.auc is not None]
    if not rows:
        return None
    ranked = any(r.recall_at_1 is not None for r in rows)
    columns = ["metric", "AUC", *(["recall@1"] if ranked else [])]
    title = "Right against wrong replies"
    table = plain_table(*columns, right=range(1, len(columns)), title=title)
    for result in rows:
        first = [number(result.recall_at_1, 3)] if ranked else []
        table.add_row(wrapping(result.metric), number(result.auc, 3), *first)
    return table


def difference_table(evaluation: MetaEvaluation) -> Table | None:
    """Return tests whether the best metric is better than each of the others."""
    if not evaluation.differences:
        return None
    statistic = evaluation.differences[0].statistic
    values = {r.metric: getattr(r.correlations, statistic).value for r in evaluation.results}
    best = max(values, key=lambda name: -2.0 if values[name] is None else values[name])
    table = plain_table(
        "better",
        "than",
        "by",
        "p PERM-BOTH",
        "adjusted",
        "p Williams",
        right=[2, 3, 4, 5],
        title=f"Is the best metric better than the others? ({statistic})",
    )
    for row in evaluation.differences:
        if best in (row.better, row.worse):
            table.add_row(
                wrapping(row.better),
                wrapping(row.worse),
                number(row.difference),
                p_value(row.perm_both),
                p_value(row.adjusted),
                p_value(row.williams),
            )
    return table


def coverage_tables(evaluation: MetaEvaluation, right: Sequence[str] = ()) -> Iterator[Table]:
    """Yield correlations by how well an evaluator's pool covers the contexts."""
    kinds = {
        "nearest": "by similarity of the nearest utterances",
        "agreement": "by agreement among the retrieved replies",
    }
    for kind in dict.fromkeys(third.by for third in evaluation.by_coverage):
        table = plain_table(
            "metric",
            "coverage third",
            "from",
            "to",
            "Spearman [95 % CI]",
            "Pearson",
            "n",
            right=range(2, 7),
            title=f"{_subject(right)} {kinds.get(kind, kind)}",
        )
        for third in evaluation.by_coverage:
            if third.by == kind:
                table.add_row(
                    wrapping(third.metric) if third.third == THIRDS[0] else "",
                    third.third,
                    number(third.low, 3),
                    number(third.high, 3),
                    correlation(third.correlations.spearman),
                    number(third.correlations.pearson.value),
                    f"{third.correlations.n:,}",
                )
        yield table


def curve_table(name: str, points: Sequence[CurvePoint]) -> Table:
    """Return the correlation by number of references, with a bar."""
    table = plain_table(
        "references",
        "Spearman [band]",
        "Pearson [band]",
        "",
        right=[0, 1, 2],
        title=f"{name}: correlation with people by number of references",
    )
    for point in points:
        cells = [f"{number(point.mean.get(s))} {_band(point, s)}".rstrip() for s in SHOWN]
        length = round(30 * max(point.mean.get("spearman", 0.0), 0.0))
        table.add_row(str(point.references), *cells, "█" * length)
    return table


def curve_chart(curves: Mapping[str, Sequence[CurvePoint]], statistic: Statistic) -> LineChart:
    """Return the correlations of all metrics by number of references as a chart."""
    lines = [
        Line(
            name,
            [point.references for point in points],
            [point.mean.get(statistic) for point in points],
            [point.low.get(statistic) for point in points],
            [point.high.get(statistic) for point in points],
        )
        for name, points in curves.items()
    ]
    title = "Correlation with people by number of references"
    y_name = f"{statistic.capitalize()} correlation"
    return LineChart(title, "references", y_name, lines, "95 % of random draws")


def _band(point: CurvePoint, statistic: str) -> str:
    """Return the band over draws; empty for a single draw."""
    if point.draws == 1:
        return ""
    return interval(point.low.get(statistic), point.high.get(statistic), 2)
