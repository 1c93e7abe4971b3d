"""Tables of annotators: agreement, unreliable ones, and correlations without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from rejoinder.meta_evaluation.annotators import (
    AnnotatorAgreement,
    HumanAgreement,
    UnreliableAnnotator,
)
from rejoinder.meta_evaluation.evaluation import MetricResult
from rejoinder.reporting.tables import interval, number, plain_table, wrapping
from rejoinder.wording import option

MAX_ROWS = 30
"""Annotators that are printed."""


def annotators_table(
    agreement: AnnotatorAgreement, unreliable: Sequence[UnreliableAnnotator], what: str = "answer"
) -> Table:
    """Return the annotators with kappa, unreliable ones and those with the lowest kappa first."""
    table = plain_table(
        "annotator",
        f"{what}s",
        "kappa",
        "distractor preferred",
        "",
        right=[1, 2, 3],
        title="Annotators",
    )
    reasons: Mapping[str, str] = {each.name: each.reason for each in unreliable}
    annotators = sorted(
        agreement.annotators,
        key=lambda one: (one.name not in reasons, 2.0 if one.kappa is None else one.kappa),
    )
    for one in annotators[:MAX_ROWS]:
        preferred = "" if one.preferred is None else f"{number(one.preferred, 2)} of {one.planted}"
        remark = f"unreliable: {reasons[one.name]}" if one.name in reasons else ""
        if not remark and one.answers == 1:
            remark = f"only one {what}"
        table.add_row(one.name, f"{one.answers:,}", number(one.kappa, 3), preferred, remark)
    if len(annotators) > MAX_ROWS:
        table.add_row(f"and {len(annotators) - MAX_ROWS:,} more", "", "", "", "")
    if any(each.by == "kappa" for each in unreliable):
        table.caption, table.caption_justify = _kappa_rule(), "left"
    return table


def _kappa_rule() -> str:
    """Return why an annotator with a low kappa may not be marked."""
    return (
        f"kappa: mean with all others. Below {option('min_kappa')}, the annotator with the lowest"
        " kappa is unreliable; the kappas of the rest are then computed again without them, because"
        " one unreliable annotator lowers everybody's. Of the last two both stay."
    )


def agreement_line(agreement: AnnotatorAgreement, answers: int, what: str = "answer") -> str:
    """Return the agreement of the annotators in one line."""
    counts = f"{answers:,} {what}s of {len(agreement.annotators):,} named annotators"
    return ", ".join([counts, *agreement_facts(agreement)])


def agreement_facts(agreement: AnnotatorAgreement | HumanAgreement) -> list[str]:
    """Return kappa and alpha with their intervals, as far as defined, and the reason if not."""
    facts = []
    for name, value, limits in (
        ("Cohen's kappa", agreement.kappa, agreement.kappa_ci),
        ("Krippendorff's alpha", agreement.alpha, agreement.alpha_ci),
    ):
        if value is not None:
            fact = f"{name} {number(value, 3)}"
            facts.append(fact if limits is None else f"{fact} {interval(*limits, 2)}")
    return facts if agreement.left_out is None else [*facts, agreement.left_out]


def before_after_table(before: Sequence[MetricResult], after: Sequence[MetricResult]) -> Table:
    """Return each metric's correlations with all annotators and without the dropped ones."""
    table = plain_table(
        "metric",
        "Spearman",
        "after",
        "Pearson",
        "after",
        "n",
        "after",
        right=range(1, 7),
        title="Agreement with people before and after annotators were dropped",
    )
    new_results = {result.metric: result.correlations for result in after}
    for old in before:
        was, new = old.correlations, new_results.get(old.metric)
        table.add_row(
            wrapping(old.metric),
            number(was.spearman.value),
            number(None if new is None else new.spearman.value),
            number(was.pearson.value),
            number(None if new is None else new.pearson.value),
            f"{was.n:,}",
            "–" if new is None else f"{new.n:,}",
        )
    return table
