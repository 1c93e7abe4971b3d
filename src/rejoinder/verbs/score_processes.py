"""Score the pieces of a file in several processes; results come in the order of the file.

A piece is the same whatever the number of processes, and its results are added up in order, so the
scores file and the summary are, too. A chunk of lines that cannot be decoded at once comes back,
and is read carefully where ids and notes are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.errors import UsageError
from rejoinder.files.item_file import Piece
from rejoinder.files.jsonl import LineChunk
from rejoinder.files.typed_lines import TypedLines
from rejoinder.item_table import ItemTable
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import Metric
from rejoinder.metrics.metric_set import MetricSet
from rejoinder.metrics.scored_piece import ScoredPiece, Wanted
from rejoinder.metrics.third_party import is_builtin
from rejoinder.registry import METRICS
from rejoinder.wording import option
from rejoinder.worker_pool import WorkerPool

if TYPE_CHECKING:
    from rejoinder.verbs.source import Reading

Scored = tuple[list[ScoredPiece], dict[tuple[str, str], int]]


def check_processes(metric_set: MetricSet) -> None:
    """Refuse metrics that processes cannot share: those of sets, with models, or of a user."""
    problems = []
    for label, metric in metric_set:
        if not is_builtin(type(metric)):
            problems.append(f"{label} is not part of Rejoinder")
        elif metric in metric_set.set_metrics:
            problems.append(f"{label} scores sets of replies")
        elif metric.languages() or metric.evaluators():
            problems.append(f"{label} uses a model, with all cores already")
        elif metric not in metric_set.item_metrics or _needs_whole_set(metric):
            problems.append(f"{label} needs all items at once")
    if problems:
        what = option("processes")
        raise UsageError(*(f"{each}; score it without {what}" for each in problems))


def _needs_whole_set(metric: Metric) -> bool:
    return bool(getattr(metric, "needs_whole_set", False))


def score_in_processes(
    reading: Reading, metric_set: MetricSet, wanted: Wanted, processes: int
) -> Iterator[ScoredPiece]:
    """Yield the scored pieces of a reading in its order."""
    specs = {str(metric.spec()): label for label, metric in metric_set}
    worker = Worker(specs, wanted)
    with closing(WorkerPool(processes, _prepare, specs, wanted)) as pool:
        for piece, scored in pool.map(_score, reading.pieces()):
            if scored is not None and isinstance(piece, LineChunk):
                pieces, ignored = scored
                reading.add_chunk(piece, [id for each in pieces for id in each.ids], ignored)
                yield from pieces
                continue
            for table in reading.decode_carefully(piece):
                yield from (worker.score(table) if scored is None else scored[0])
    reading.finish()


@dataclass
class Worker:
    """Scores pieces by metrics that it makes from their specs."""

    specs: dict[str, str]
    """From the spec of each metric to its label."""
    wanted: Wanted
    _metrics: dict[Metric, str] = field(default_factory=dict)
    _typed: TypedLines = field(default_factory=TypedLines)

    def score(self, table: ItemTable) -> list[ScoredPiece]:
        """Score the items of a table."""
        if not self._metrics:
            self._metrics |= {METRICS.make(spec): label for spec, label in self.specs.items()}
        metrics = MetricSet(self._metrics).item_metrics
        return [
            ScoredPiece.of(self._metrics, items, results, self.wanted)
            for items, results in evaluate([table], metrics, strict=False)
        ]

    def score_piece(self, piece: Piece) -> Scored | None:
        """Score a piece; None if its lines must be read carefully."""
        if not isinstance(piece, LineChunk):
            return self.score(piece[1]), {}
        table = self._typed.table(piece.lines)
        return None if table is None else (self.score(table), self._typed.ignored)


_worker: Worker
"""The worker of this process."""


def _prepare(specs: dict[str, str], wanted: Wanted) -> None:
    global _worker
    _worker = Worker(specs, wanted)


def _score(piece: Piece) -> Scored | None:
    return _worker.score_piece(piece)
