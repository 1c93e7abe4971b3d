"""Who judged, whom it is better to leave out, and what that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from rejoinder.meta_evaluation.annotators import Agreement, Bad
from rejoinder.meta_evaluation.study import Result
from rejoinder.reporting.tables import number, plain_table, wrapping

MOST = 30
"""How many annotators are printed."""


def annotators_table(found: Agreement, bad: Sequence[Bad], what: str = "answer") -> Table:
    """Who gave answers, or ratings, those with the lowest kappa first."""
    table = plain_table(
        "annotator",
        f"{what}s",
        "kappa",
        "distractor preferred",
        "",
        right=[1, 2, 3],
        title="Annotators",
    )
    reasons: Mapping[str, str] = {each.name: each.reason for each in bad}
    listed = sorted(
        found.annotators,
        key=lambda one: (one.name not in reasons, 2.0 if one.kappa is None else one.kappa),
    )
    for one in listed[:MOST]:
        preferred = "" if one.preferred is None else f"{number(one.preferred, 2)} of {one.planted}"
        remark = f"bad: {reasons[one.name]}" if one.name in reasons else ""
        if not remark and one.answers == 1:
            remark = f"one {what} only"
        table.add_row(one.name, f"{one.answers:,}", number(one.kappa, 3), preferred, remark)
    if len(listed) > MOST:
        table.add_row(f"and {len(listed) - MOST:,} more", "", "", "", "")
    return table


def agreement_line(found: Agreement, answers: int, what: str = "answer") -> str:
    """How far the annotators agree, in one line."""
    given = f"{answers:,} {what}s of {len(found.annotators):,} named annotators"
    return ", ".join([given, *agreement_facts(found.kappa, found.alpha, found.left_out)])


def agreement_facts(kappa: float | None, alpha: float | None, left_out: str | None) -> list[str]:
    """What is known of kappa and alpha, and why not more."""
    facts = [] if kappa is None else [f"Cohen's kappa {number(kappa, 3)}"]
    facts += [] if alpha is None else [f"Krippendorff's alpha {number(alpha, 3)}"]
    return facts if left_out is None else [*facts, left_out]


def before_after_table(before: Sequence[Result], after: Sequence[Result]) -> Table:
    """Each metric's correlations with all annotators, and without those left out."""
    table = plain_table(
        "metric",
        "Spearman",
        "after",
        "Pearson",
        "after",
        "n",
        "after",
        right=range(1, 7),
        title="Agreement with people before and after annotators were left out",
    )
    now = {result.metric: result.correlations for result in after}
    for old in before:
        was, new = old.correlations, now.get(old.metric)
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
