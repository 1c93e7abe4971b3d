"""Judges in the report: may they stand in for people, and what else their scores tell."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.reporting.judge_tables import (
    CONSTANT,
    alternative_cells,
    bias_cells,
    cost_cells,
    judge_notes,
    repeatability_cells,
    short,
)
from rejoinder.reporting.tables import number
from rejoinder.trust.cost import REPLIES
from rejoinder.trust.review import JudgesReview


@dataclass(frozen=True)
class JudgeTable:
    """A table with a metric in each row."""

    title: str
    caption: str
    about: str
    """How to read it."""
    columns: list[str]
    rows: list[tuple[str, bool, list[str]]]
    """Name, whether it is a metric, cells."""


@dataclass(frozen=True)
class JudgeSection:
    """The tables about judges."""

    answer: str
    """Which judges may stand in for an annotator."""
    tables: list[JudgeTable]
    notes: list[str]


def judge_section(review: JudgesReview | None) -> JudgeSection | None:
    """Return the tables of a review; None without one."""
    if review is None:
        return None
    made = (_alternative(review), _biases(review), _repeatability(review), _cost(review))
    tables = [table for table in made if table is not None]
    return JudgeSection(_answer(review), tables, judge_notes(review))


def _answer(review: JudgesReview) -> str:
    tested = [(e.metric, e.alternative) for e in review.reviews if e.judge and e.alternative]
    if not tested:
        return "Whether a judge may stand in for an annotator could not be tested."
    passed = sum(test.passed for _, test in tested)
    if passed and review.constant is not None and review.constant.passed:
        return (
            "The annotators hardly agree: by the alternative-annotator test, a judge who always"
            " gives the mean rating may stand in for one of them, so the test says nothing here."
        )
    if len(tested) == 1:
        may = "may" if passed else "may not"
        return f"By the alternative-annotator test, the judge {may} stand in for an annotator."
    return (
        f"By the alternative-annotator test, {passed} of {len(tested)} judges may stand in for an"
        " annotator."
    )


def _alternative(review: JudgesReview) -> JudgeTable | None:
    rows = [(each.metric, True, each.alternative) for each in review.reviews]
    rows.append((CONSTANT, False, review.constant))
    shown = [(name, code, alternative_cells(test)) for name, code, test in rows if test is not None]
    epsilon = next((test.epsilon for _, _, test in rows if test is not None), None)
    if epsilon is None:
        return None
    return JudgeTable(
        "May it stand in for an annotator?",
        f"Alternative-annotator test, ε = {number(epsilon, 2)}",
        "Each annotator in turn is compared with the metric: who is nearer to the other annotators?"
        " The metric wins where it is significantly better than ε worse (one-sided tests, adjusted"
        " by Benjamini and Yekutieli); it passes if it wins against half of the annotators. The"
        " advantage is the share of replies on which it is at least as near.",
        ["Metric", "Wins", "Annotators", "ω", "Advantage, 95 % interval", "Passes"],
        shown,
    )


def _biases(review: JudgesReview) -> JudgeTable:
    own = any(each.own is not None for each in review.reviews)
    middle = any(each.middle is not None for each in review.reviews)
    rows = [(e.metric, True, bias_cells(e, own=own, middle=middle)) for e in review.reviews]
    empty = [""] * (own + middle)
    rows.append(("people’s ratings", False, [short(review.people_length), *empty]))
    return JudgeTable(
        "Biases",
        "What scores say beyond people’s ratings, 95 % intervals",
        "Longer replies: partial rank correlation with"
        " the length, 0 is no bias."
        + " Own replies: how much higher replies of the judge’s own model score, in standard"
        " deviations, 0 is no bias."
        * own
        + " From the middle: distance of scores from the middle of the scale over that of people’s"
        " mean ratings; below 1, the judge keeps to the middle." * middle,
        [
            "Metric",
            "Longer replies",
            *["Own replies"] * own,
            *["From the middle"] * middle,
        ],
        rows,
    )


def _repeatability(review: JudgesReview) -> JudgeTable | None:
    rows = [
        (each.metric, True, repeatability_cells(each))
        for each in review.reviews
        if each.repeatability is not None
    ]
    if not rows:
        return None
    return JudgeTable(
        "Asked again",
        "Agreement of judges with themselves",
        "ICC: the share of the variance of one run’s scores that belongs to the replies, and of the"
        " mean of the runs; standard deviation from run to run; replies with the same score.",
        ["Metric", "Runs", "ICC, 95 % interval", "Of their mean", "Deviation", "Same"],
        rows,
    )


def _cost(review: JudgesReview) -> JudgeTable | None:
    rows = [
        (each.metric, True, [number(each.spearman.value, 3), *cost_cells(each.cost)])
        for each in review.reviews
        if each.cost is not None
    ]
    if not rows:
        return None
    return JudgeTable(
        "Cost",
        f"Cost of {REPLIES:,} replies, and of each point of agreement",
        "A point is .01 of Spearman’s correlation with people. A dash: the metric does not agree"
        " with people.",
        [
            "Metric",
            "Spearman",
            "Requests",
            "Tokens",
            "Seconds",
            "Tokens a point",
            "Seconds a point",
        ],
        rows,
    )
