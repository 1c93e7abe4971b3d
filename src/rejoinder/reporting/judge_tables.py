"""The tables of ``meta`` about judges, beside other metrics."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.reporting.tables import interval, number, plain_table, wrapping
from rejoinder.trust.alternative import AlternativeTest
from rejoinder.trust.cost import REPLIES, Cost
from rejoinder.trust.position import PositionBias
from rejoinder.trust.review import JudgeReview, JudgesReview

CONSTANT = "always the mean rating"


def judge_tables(review: JudgesReview | None) -> Iterator[Table]:
    """Yield the tables of a review; none without one."""
    if review is None:
        return
    if any(each.alternative is not None for each in review.reviews):
        yield _alternative_table(review)
    yield _bias_table(review)
    if any(each.repeatability is not None for each in review.reviews):
        yield _repeatability_table(review)
    if any(each.cost is not None for each in review.reviews):
        yield _cost_table(review)
    if review.position:
        yield _position_table(review.position)


def judge_notes(review: JudgesReview | None) -> list[str]:
    """Return sentences that the tables need."""
    if review is None:
        return []
    notes = list(review.notes)
    tests = [each.alternative for each in review.reviews if each.alternative is not None]
    if tests:
        mapped = sum(test.mapped for test in tests)
        if mapped:
            notes.append(
                f"{_metrics(mapped)} mapped to the scale of people for the test by curves fitted to"
                " other contexts (cross-fitting)"
            )
        if tests[0].left_out:
            notes.append(
                f"{tests[0].left_out:,} annotators rated too few replies together with others to be"
                " tested against"
            )
    if review.constant is not None and review.constant.passed:
        notes.append(
            "always the mean rating would pass this test, too: the annotators hardly agree, so to"
            " pass says little about a judge"
        )
    return notes


def _metrics(count: int) -> str:
    return "1 metric was" if count == 1 else f"{count:,} metrics were"


def short(estimate: Estimate, digits: int = 2) -> str:
    """Return ``.31 [.25, .37]``; a dash where it is undefined."""
    value, low, high = (
        None if each is None else round(each, digits) + 0.0  # no -.00
        for each in (estimate.value, estimate.low, estimate.high)
    )
    return f"{number(value, digits)} {interval(low, high, digits)}".rstrip()


def plain_number(value: float | None) -> str:
    """Return 1,234, 56.7 or .0123 with three digits that count; a dash for None."""
    if value is None:
        return "–"
    if value >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.3g}"
    return text.removeprefix("0") if text.startswith("0.") else text


def _alternative_table(review: JudgesReview) -> Table:
    tested = [(each.metric, each.alternative) for each in review.reviews]
    first = next(test for _, test in tested if test is not None)
    table = plain_table(
        "metric",
        "wins",
        "of",
        "omega",
        "advantage [95 % CI]",
        "passes",
        right=[1, 2, 3, 4, 5],
        title="May it stand in for an annotator? (alternative-annotator test,"
        f" epsilon {number(first.epsilon, 2)})",
    )
    for name, test in [*tested, (CONSTANT, review.constant)]:
        if test is not None:
            table.add_row(wrapping(name), *alternative_cells(test))
    return table


def alternative_cells(test: AlternativeTest) -> list[str]:
    """Return the cells of one test."""
    return [
        f"{sum(one.won for one in test.annotators):,}",
        f"{len(test.annotators):,}",
        number(test.winning_rate, 2),
        short(test.advantage),
        "yes" if test.passed else "no",
    ]


def _bias_table(review: JudgesReview) -> Table:
    own = any(each.own is not None for each in review.reviews)
    middle = any(each.middle is not None for each in review.reviews)
    columns = ["metric", "longer replies", *["own replies"] * own, *["from the middle"] * middle]
    table = plain_table(
        *columns,
        right=range(1, len(columns)),
        title="Biases: what scores say beyond people's ratings [95 % CI]",
    )
    for each in review.reviews:
        table.add_row(wrapping(each.metric), *bias_cells(each, own=own, middle=middle))
    table.add_row("people's ratings", short(review.people_length), *[""] * (len(columns) - 2))
    return table


def bias_cells(each: JudgeReview, *, own: bool, middle: bool) -> list[str]:
    """Return the biases of one metric."""
    cells = [short(each.length)]
    if own:
        cells.append("" if each.own is None else short(each.own.difference))
    if middle:
        cells.append("" if each.middle is None else short(each.middle.ratio))
    return cells


def _repeatability_table(review: JudgesReview) -> Table:
    table = plain_table(
        "metric",
        "runs",
        "ICC [95 % CI]",
        "of their mean",
        "deviation",
        "same",
        right=range(1, 6),
        title="Asked again: agreement of a judge with itself",
    )
    for each in review.reviews:
        if each.repeatability is not None:
            table.add_row(wrapping(each.metric), *repeatability_cells(each))
    return table


def repeatability_cells(each: JudgeReview) -> list[str]:
    """Return how far a metric agrees with itself."""
    found = each.repeatability
    if found is None:
        return [""] * 5
    return [
        f"{found.runs:,}",
        short(found.icc),
        number(found.icc_of_mean, 2),
        number(found.deviation, 2),
        "" if found.same is None else f"{found.same:.0%}",
    ]


def _cost_table(review: JudgesReview) -> Table:
    table = plain_table(
        "metric",
        "Spearman",
        "requests",
        "tokens",
        "s",
        "tokens/point",
        "s/point",
        right=range(1, 7),
        title=f"Cost of {REPLIES:,} replies, and of each point (.01) of agreement",
    )
    for each in review.reviews:
        if each.cost is not None:
            agreement = number(each.spearman.value, 3)
            table.add_row(wrapping(each.metric), agreement, *cost_cells(each.cost))
    return table


def cost_cells(cost: Cost) -> list[str]:
    """Return the cost of a metric."""
    return [
        plain_number(cost.requests),
        plain_number(cost.tokens),
        plain_number(cost.seconds),
        plain_number(cost.tokens_per_point),
        plain_number(cost.seconds_per_point),
    ]


def _position_table(rows: list[PositionBias]) -> Table:
    table = plain_table(
        "judge of pairs",
        "pairs",
        "same reply",
        "always first",
        "second",
        "prefers first [95 % CI]",
        right=range(1, 6),
        title="Position bias: pairs asked about in both orders (.5: none)",
    )
    for row in rows:
        table.add_row(wrapping(row.judge), *position_cells(row))
    return table


def position_cells(row: PositionBias) -> list[str]:
    """Return what a judge of pairs preferred."""
    return [
        f"{row.pairs:,}",
        f"{row.consistent:,}",
        f"{row.first:,}",
        f"{row.second:,}",
        short(row.share_first),
    ]
