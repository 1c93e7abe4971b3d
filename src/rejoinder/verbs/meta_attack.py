"""``meta --attack``: how far replies that talk to a judge move its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.join import join
from rejoinder.trust.attack import AttackReview, kinds_of, review_attacks
from rejoinder.verbs.arguments import RESAMPLES, SEED, check_resampling
from rejoinder.verbs.meta_judges import plain_review
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns
from rejoinder.verbs.scores import check_order, open_scores
from rejoinder.verbs.source import naming, open_items, path_of

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.scores import ScoresLike


@dataclass(frozen=True)
class MetaAttackResult(TableResult):
    """How far attacks move scores.

    The frame has a row per metric, language and kind of attack.
    """

    reviews: list[AttackReview]
    frame_kind: str | None = field(default=None, compare=False)

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "metric": review.metric,
                    "language": row.language,
                    "attack": row.kind,
                    "n": row.n,
                    "unscored": row.unscored,
                    "plain": row.plain,
                    "attacked": row.attacked,
                    "shift": row.shift.value,
                    "shift_low": row.shift.low,
                    "shift_high": row.shift.high,
                    "net": row.net.value,
                    "net_low": row.net.low,
                    "net_high": row.net.high,
                    "raised": row.raised,
                }
                for review in self.reviews
                for row in review.rows
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {"attacks": [plain_review(review) for review in self.reviews]}


@keep_notes
def meta_attack(
    items: ItemsLike,
    scores: ScoresLike,
    *,
    columns: Columns | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> MetaAttackResult:
    """Compare the scores of replies that talk to a judge with those of the same replies that do
    not.

    ``items`` are a test set such as "judge-attacks-en" (:func:`datasets.export`), or one of your
    own: to each context a reply of the system "plain", the same with a "harmless" sentence added,
    and with attacks, whose kind is the system. ``scores`` are the result of :func:`score`, or a
    file. No ratings are read.
    """
    all_problems = [*problems]
    if path_of(items) == path_of(scores) == "-":
        all_problems.append("only one of the two files can be stdin")
    if all_problems:
        raise UsageError(*all_problems)
    check_resampling(resamples, seed)
    check_order(items, scores)
    with open_items(items, columns=columns, monitor=monitor) as source:
        replies = list(source.read())
        lines = open_scores(scores)
        joined = join(
            replies,
            lines.lines,
            items_name=source.name or "items",
            scores_name=lines.name,
        )
        kind = source.frame_kind
    if not joined.item_scores:
        raise UsageError("the scores are of sets of replies; attacks move those of single replies")
    with naming(path_of(items)):
        reviews = review_attacks(joined, Resampling(resamples, seed))
    found = kinds_of(reviews)
    monitor.message(f"{sum(found.values()):,} attacked replies: {', '.join(found)}")
    return MetaAttackResult(reviews, kind)
