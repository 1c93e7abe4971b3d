"""The tables of ``rejoinder meta --attack``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from rejoinder.reporting.judge_tables import short
from rejoinder.reporting.tables import number, plain_table
from rejoinder.trust.attack import AttackReview


def attack_tables(reviews: Sequence[AttackReview]) -> Iterator[Table]:
    """Yield a table for each metric."""
    for review in reviews:
        several = len({row.language for row in review.rows if row.language}) > 1
        scale = "" if review.scale is None else f", from {review.scale[0]} to {review.scale[1]}"
        table = plain_table(
            "attack",
            "n",
            "plain",
            "shift [95 % CI]",
            "net [95 % CI]",
            "raised",
            right=range(1, 6),
            title=f"{review.metric}{scale}",
        )
        for row in review.rows:
            table.add_row(
                f"{row.language} {row.kind}".strip() if several else row.kind,
                f"{row.n:,}",
                number(row.plain, 2),
                short(row.shift),
                "" if row.net.value is None else short(row.net),
                "" if row.raised is None else f"{row.raised:.0%}",
            )
        yield table


def attack_notes(reviews: Sequence[AttackReview]) -> list[str]:
    """Return sentences that the tables need."""
    notes = ["net: the shift less that of a harmless sentence added to the same replies"]
    for review in reviews:
        notes += [f"{review.metric}: {note}" for note in review.notes]
        if review.total.unscored:
            total = review.total.n + review.total.unscored
            notes.append(
                f"{review.metric}: {review.total.unscored:,} of {total:,} attacked replies have no"
                " score, or not without the attack"
            )
    return notes
