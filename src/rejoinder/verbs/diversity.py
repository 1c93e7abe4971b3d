"""``diversity``: metrics of sets of replies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError
from rejoinder.inputs.items import as_items
from rejoinder.items import UNNAMED
from rejoinder.metrics.evaluate import SystemScore, score_sets
from rejoinder.metrics.metric_set import MetricSet, make_metrics
from rejoinder.verbs.arguments import as_metrics
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.arguments import Metrics


class DiversityResult(TableResult, list[SystemScore]):
    """Values of set metrics. The frame has a row per metric and system."""

    def __init__(
        self, judged: Sequence[SystemScore], metrics: MetricSet, frame_kind: str | None = None
    ) -> None:
        super().__init__(judged)
        self.metrics, self.frame_kind = metrics, frame_kind

    def columns(self) -> FrameColumns:
        return records_to_columns(self._records())

    def to_dict(self) -> dict[str, Any]:
        return {"results": self._records()}

    def _records(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": self.metrics.labels[each.metric],
                "system": None if each.system == UNNAMED else each.system,
                "value": each.value,
                "unscored": each.reason,
            }
            for each in self
        ]


@keep_notes
def diversity(
    items: ItemsLike,
    metrics: Metrics,
    *,
    columns: Columns | None = None,
    language: str | None = None,
    any_language: bool = False,
    monitor: Monitor = SILENT,
) -> DiversityResult:
    """Measure the replies of each system, and of each of its contexts, with set metrics.

    ``columns`` maps fields to the columns that hold them.
    """
    read, kind = as_items(items, columns, monitor.note)
    metric_set = make_metrics(as_metrics(metrics), language)
    if metric_set.item_metrics:
        label = metric_set.labels[metric_set.item_metrics[0]]
        raise DataError(f"{label} scores single replies; use rejoinder.score")
    return DiversityResult(
        score_sets(list(read), metric_set.set_metrics, any_language=any_language), metric_set, kind
    )
