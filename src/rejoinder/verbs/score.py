"""``score``: rate replies with metrics."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rejoinder.errors import DataError, GateFailed, UsageError
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_different, check_output
from rejoinder.items import UNNAMED, Item, Reference, Score, item_from
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.costs import MetricCost, write_costs
from rejoinder.metrics.evaluate import SystemScore, evaluate, score_sets
from rejoinder.metrics.metric import ItemMetric, Metric
from rejoinder.metrics.metric_set import MetricSet, make_metrics
from rejoinder.metrics.records import set_scores
from rejoinder.metrics.scored_piece import ScoredPiece, Wanted
from rejoinder.metrics.summary import Estimate, Summarizer, Summary
from rejoinder.spec import did_you_mean, parse
from rejoinder.verbs.arguments import (
    MAX_PROCESSES,
    RESAMPLES,
    SEED,
    as_metrics,
    check_number,
    check_resampling,
    evaluator_folder,
)
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import (
    FrameColumns,
    TableResult,
    records_to_columns,
    text_table,
    to_plain,
)
from rejoinder.verbs.safeguards import (
    Safeguards,
    check_contamination,
    evaluators_of,
    report_notes,
)
from rejoinder.verbs.score_processes import check_processes, score_in_processes
from rejoinder.verbs.source import Reading, chosen_items, open_items, path_of
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.evaluator.contamination import TestSet
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.verbs.arguments import EvaluatorLike, Metrics


_TABLE = re.compile(r"\.(csv|tsv|tab|parquet|pq|xlsx|xls|ods)(\.gz|\.zst)?$", re.IGNORECASE)
"""Endings of tables, which no verb writes."""


@dataclass(frozen=True)
class MetricScores:
    """The scores of one metric."""

    metric: ItemMetric
    values: Floats
    """[n] the score of each item; NaN where unscored. Empty if the scores went to a file only."""
    unscored: dict[str, str]
    """Item id → why it has no score; empty if the scores went to a file only."""
    corpus: dict[str, Estimate | None]
    """System → value of all its replies together."""
    mean: dict[str, Estimate | None]
    """System → mean of its item scores."""

    @property
    def signature(self) -> str:
        return self.metric.signature()


class ScoreResult(TableResult, Mapping[str, MetricScores]):
    """Scores by metric: ``result["bleu(n=2)"].values``.

    The frame has a row per item: ``id``, ``system`` and a column per metric, named by its spec,
    null where unscored.
    """

    def __init__(
        self,
        scores: dict[str, MetricScores],
        *,
        metrics: MetricSet,
        summaries: Sequence[Summary],
        sets: Sequence[SystemScore] = (),
        ids: Sequence[str] = (),
        systems: Sequence[str] = (),
        blank_replies: Mapping[str, int] | None = None,
        notes: Sequence[str] = (),
        safeguards: Safeguards | None = None,
        frame_kind: str | None = None,
        coverage: Mapping[str, Sequence[dict[str, float] | None]] | None = None,
        judging: Mapping[str, Sequence[dict[str, float] | None]] | None = None,
        costs: Mapping[str, MetricCost] | None = None,
    ) -> None:
        self._scores, self.metrics = scores, metrics
        self._coverage, self._judging = coverage or {}, judging or {}
        self.costs = dict(costs or {})
        """By metric of single replies, what its scores took: seconds, requests, tokens."""
        self.summaries, self.sets = list(summaries), list(sets)
        self.ids, self.systems = list(ids), list(systems)
        self.blank_replies = dict(blank_replies or {})
        """System → number of replies without any text."""
        self.notes = list(notes)
        """What the metrics say about these scores, and the notes and warnings of the verb."""
        self.safeguards = safeguards or Safeguards()
        self.frame_kind = frame_kind

    def __getitem__(self, metric: str | Metric) -> MetricScores:
        key = metric if isinstance(metric, str) else self.metrics.labels[metric]
        if key not in self._scores:
            raise KeyError(f"there are no scores of '{key}': {did_you_mean(key, self._scores)}")
        return self._scores[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def __repr__(self) -> str:
        names = ", ".join(self)
        return f"<ScoreResult of {len(self.ids):,} items: {names}>"

    def __str__(self) -> str:
        rows = [
            {
                "metric": self.metrics.labels[row.metric],
                "system": row.system,
                "mean": None if row.mean is None else row.mean.value,
                "scored": row.scored,
                "unscored": sum(row.unscored.values()),
            }
            for row in self.summaries
        ]
        return f"{self!r}\n{text_table(records_to_columns(rows))}" if rows else repr(self)

    @property
    def unscored(self) -> dict[tuple[str, str], int]:
        """(metric, reason) → number of items, or of contexts for metrics of sets."""
        counts = Counter[tuple[str, str]]()
        labels = self.metrics.labels
        for row in self.summaries:
            for reason, count in row.unscored.items():
                counts[labels[row.metric], reason] += count
        for each in self.sets:
            label = labels[each.metric]
            counts.update((label, v) for v in each.contexts.values() if isinstance(v, str))
        return dict(counts)

    def columns(self) -> FrameColumns:
        scores = {
            label: [None if value != value else value for value in metric.values.tolist()]
            for label, metric in self.items()
        }
        named = [None if system == UNNAMED else system for system in self.systems]
        return {"id": list(self.ids), "system": named, **scores}

    def records(self) -> list[Score]:
        """Return the scores as in a scores file: item by item, then those of sets of replies."""
        if self._scores and not self.ids:
            raise UsageError(
                "the scores went to a file only: give its name, or use score(…, keep=True)"
            )
        columns = [
            (
                label,
                each,
                each.signature,
                each.values.tolist(),
                self._coverage.get(label),
                self._judging.get(label),
            )
            for label, each in self.items()
        ]
        per_item = [
            Score(
                id=id,
                metric=label,
                value=None if id in each.unscored else values[number],
                signature=signature,
                unscored=each.unscored.get(id),
                coverage=None if coverage is None else coverage[number],
                judging=None if judging is None else judging[number],
            )
            for number, id in enumerate(self.ids)
            for label, each, signature, values, coverage, judging in columns
        ]
        return per_item + set_scores(self.metrics.labels, self.sets)

    def to_dict(self) -> dict[str, Any]:
        labels = self.metrics.labels
        per_item = [
            {
                "metric": labels[row.metric],
                "system": row.system,
                "corpus": to_plain(row.corpus),
                "mean": to_plain(row.mean),
                "scored": row.scored,
                "unscored": row.unscored,
                "signature": row.metric.signature(),
            }
            for row in self.summaries
        ]
        per_set = [
            {
                "metric": labels[row.metric],
                "system": row.system,
                "value": row.value,
                "unscored": {} if row.reason is None else {row.reason: 1},
                "signature": row.metric.signature(),
            }
            for row in self.sets
        ]
        return {
            "results": per_item + per_set,
            "blank_replies": self.blank_replies,
            "notes": self.notes,
            **self.safeguards.to_dict(),
        }

    def fail_under(self, limits: Mapping[str, float]) -> None:
        """Raise GateFailed if the corpus value of a metric is worse than its limit for a system.

        Where lower scores are better (``self-bleu``), a value above the limit is worse.
        """
        if not isinstance(limits, Mapping):
            raise UsageError(f"fail_under({limits!r}): expected limits, as in {{'bleu': 0.2}}")
        for name, threshold in limits.items():
            check_number(f"fail_under: {name}", threshold, -math.inf, math.inf, whole=False)
            if not math.isfinite(threshold):
                raise UsageError(f"fail_under: {name}={threshold}: expected a finite number")
        limits = {str(parse(name)): limit for name, limit in limits.items()}
        labels = self.metrics.labels
        if unknown := [name for name in limits if name not in labels.values()]:
            raise UsageError(*(f"there are no scores of {name}" for name in unknown))
        values: list[tuple[Metric, str, float | None]] = [
            (row.metric, row.system, None if row.corpus is None else row.corpus.value)
            for row in self.summaries
        ]
        values += [(row.metric, row.system, row.value) for row in self.sets]
        failed = []
        for metric, system, value in values:
            limit = limits.get(labels[metric])
            if limit is None:
                continue
            name = labels[metric] if system == UNNAMED else f"{labels[metric]} of {system}"
            if value is None:
                failed.append(f"{name}: no reply could be scored, the limit is {limit:g}")
            elif value < limit if metric.higher_is_better else value > limit:
                side = "below" if metric.higher_is_better else "above"
                failed.append(f"{name}: {_unlike(value, limit)} is {side} the limit {limit:g}")
        if failed:
            raise GateFailed("; ".join(failed))


def _unlike(value: float, limit: float) -> str:
    """Return a value with as many digits as tell it from the limit, at least four.

    >>> _unlike(0.0999999, 0.1), _unlike(0.05, 0.1)
    ('0.0999999', '0.0500')
    """
    digits = (f"{value:.{places}f}" for places in range(4, 18))
    return next((text for text in digits if float(text) != limit), repr(value))


@keep_notes
def score(
    items: ItemsLike | None = None,
    metrics: Metrics = (),
    *,
    replies: Sequence[str] | None = None,
    references: Sequence[Any] | None = None,
    contexts: Sequence[str | Sequence[str]] | None = None,
    columns: Columns | None = None,
    language: str | None = None,
    evaluator: EvaluatorLike | None = None,
    any_language: bool = False,
    strict: bool = False,
    output: str | os.PathLike[str] | None = None,
    parts: bool = False,
    keep: bool | None = None,
    intervals: bool = False,
    resamples: int | None = None,
    seed: int = SEED,
    processes: int = 1,
    most_requests: int | None = None,
    most_tokens: int | None = None,
    costs: str | os.PathLike[str] | None = None,
    monitor: Monitor = SILENT,
) -> ScoreResult:
    """Score replies with one or more metrics.

    Give ``items`` (a file, a frame, a list of items or dictionaries) or plain lists: ``replies``
    with their ``references`` and ``contexts``. A metric is a spec such as ``"bleu(n=2)"`` or an
    object such as ``Bleu(n=2)``. ``columns`` says which columns hold which field, as in
    ``{"reply": "bot_answer"}``. ``evaluator`` is what :func:`fit` made, or its folder.

    ``intervals`` or ``resamples`` add confidence intervals. With ``output``, the scores go to this
    file batch by batch ("-": stdout), with their ``parts`` if wanted, and are kept in memory only
    if ``keep``. What was guessed, ignored or lowers the worth of the scores is in ``result.notes``;
    contamination, a foreign language or domain, and guessed columns are also a
    ``rejoinder.RejoinderWarning``. ``strict`` refuses items that are in the evaluator's training
    data, which are otherwise counted in ``result.safeguards.contamination``. Texts in a language
    that an encoder or the evaluator does not know are refused, unless ``any_language``.
    ``processes`` share the work of metrics over words and characters; the results are the same.
    ``most_requests`` and ``most_tokens`` limit what each metric that asks a language model may
    spend; items beyond it are unscored. What each metric took goes to the file ``costs``, which
    :func:`meta` reads; it is in ``result.costs``, too.
    """
    check_number("processes", processes, 1, MAX_PROCESSES)
    check_resampling(0 if resamples is None else resamples, seed)
    folder = evaluator_folder(evaluator)
    to_score = chosen_items(items, replies, references, contexts)
    check_output(output, [path_of(to_score), folder])
    check_output(costs, [path_of(to_score), folder])
    check_different(output, costs)
    if output is not None and (ending := _TABLE.search(os.fspath(output))):
        raise UsageError(
            f"{os.fspath(output)}: scores are JSON lines: replace {ending[0]} by .jsonl"
            " (in Python, score(…).frame() gives a table)"
        )
    metric_set = make_metrics(as_metrics(metrics), language, folder)
    if not metric_set.labels:
        raise UsageError("which metrics? Give metrics=['bleu(n=2)']")
    if processes > 1:
        check_processes(metric_set)
    _limit_spending(metric_set, most_requests, most_tokens)
    evaluators = evaluators_of(metric_set, folder, strict=strict)
    with open_items(to_score, columns=columns, twice=bool(evaluators), monitor=monitor) as source:
        safeguards = check_contamination(
            source.read() if evaluators else (), evaluators, strict=strict, monitor=monitor
        )
        result = run_metrics(
            source.reading(),
            metric_set,
            safeguards=safeguards,
            test_set=safeguards.test_set,
            output=output,
            parts=parts,
            keep=keep,
            any_language=any_language,
            resamples=resamples if resamples is not None else RESAMPLES if intervals else 0,
            seed=seed,
            fraction=source.fraction,
            frame_kind=source.frame_kind,
            processes=processes,
            monitor=monitor,
        )
    if costs is not None:
        with open_output(costs) as stream:
            write_costs(stream, result.costs)
    report_notes(result.notes, safeguards, monitor)
    _warn_of_unscored(result, monitor)
    return result


def _warn_of_unscored(result: ScoreResult, monitor: Monitor) -> None:
    """Warn of metrics that could not score a single reply: all their values are missing."""
    for metric, label in result.metrics.labels.items():
        rows = [row for row in result.summaries if row.metric == metric]
        reasons = Counter[str]()
        for row in rows:
            reasons.update(row.unscored)
        # a single reply is not a set of which all are missing; score_one raises an error
        if reasons.total() > 1 and not any(row.scored for row in rows):
            monitor.warn(f"{label}: no reply could be scored: {reasons.most_common(1)[0][0]}")


def _limit_spending(
    metric_set: MetricSet, most_requests: int | None, most_tokens: int | None
) -> None:
    """Set the budget of metrics that ask a language model, where their specs set none."""
    limits = {"most_requests": most_requests, "most_tokens": most_tokens}
    given = {name: value for name, value in limits.items() if value is not None}
    for name, value in given.items():
        check_number(name, value, 0, math.inf)
    asking = [each for _, metric in metric_set for each in metric.asking()]
    if given and not asking:
        raise UsageError(
            *(
                f"{option(name, value)}: no metric asks a language model"
                for name, value in given.items()
            )
        )
    for metric in asking:
        for name, value in given.items():
            if getattr(metric, name) is None:
                # it changes no score, so metrics stay equal
                object.__setattr__(metric, name, value)


def run_metrics(
    reading: Reading,
    metric_set: MetricSet,
    *,
    safeguards: Safeguards | None = None,
    test_set: TestSet | None = None,
    output: str | os.PathLike[str] | None = None,
    parts: bool = False,
    keep: bool | None = None,
    any_language: bool = False,
    resamples: int = 0,
    seed: int = SEED,
    fraction: Any = lambda: None,
    frame_kind: str | None = None,
    processes: int = 1,
    monitor: Monitor = SILENT,
) -> ScoreResult:
    """Score a stream of items in one pass, piece by piece."""
    safeguards = safeguards or Safeguards()
    keep = output is None if keep is None else keep
    wanted = Wanted(lines=output is not None, parts=parts, values=keep, contexts=resamples > 0)
    summarizer = Summarizer(metric_set.item_metrics, resamples=resamples, seed=seed)
    kept: list[ScoredPiece] = []
    costs = dict.fromkeys(metric_set.item_metrics, MetricCost(0, 0.0))
    for_sets: list[Item] = []
    share: list[float] = []
    done = 0

    def on_progress(done: int, total: int) -> None:
        """Report the progress of metrics that need all items at once, after all were read."""
        share[:] = [done / total]
        advance(done)

    def in_this_process() -> Iterator[ScoredPiece]:
        batches = evaluate(
            reading.tables(),
            metric_set.item_metrics,
            strict=False,
            test_set=test_set,
            any_language=any_language,
            on_note=monitor.warn,
            on_progress=on_progress,
            on_message=monitor.message,
            on_part=lambda part, total: advance(done + part),
        )
        for items, results in safeguards.watch(batches):
            if metric_set.set_metrics:
                for_sets.extend(items)
            yield ScoredPiece.of(metric_set.labels, items, results, wanted)

    with (
        nullcontext() if output is None else open_output(output) as stream,
        monitor.stream("scoring", lambda: share[-1] if share else fraction()) as advance,
    ):
        done = 0
        for piece in (
            in_this_process()
            if processes == 1
            else score_in_processes(reading, metric_set, wanted, processes)
        ):
            if stream is not None:
                stream.write(piece.lines)
            if keep:
                kept.append(piece)
            summarizer.add(piece.tallies)
            for metric, cost in zip(metric_set.item_metrics, piece.costs, strict=True):
                costs[metric] += cost
            done += len(piece.ids)
            advance(done)
        summarizer.check_splittable()
        sets = score_sets(
            for_sets, metric_set.set_metrics, any_language=any_language, on_note=monitor.warn
        )
        if stream is not None:
            write_jsonl(stream, set_scores(metric_set.labels, sets))
    rows = summarizer.summaries()
    labels = metric_set.labels
    scores = {
        labels[metric]: MetricScores(
            metric,
            np.concatenate([piece.values[which] for piece in kept]) if kept else np.zeros(0),
            {id: why for piece in kept for id, why in piece.unscored[which].items()},
            {row.system: row.corpus for row in rows if row.metric == metric},
            {row.system: row.mean for row in rows if row.metric == metric},
        )
        for which, metric in enumerate(metric_set.item_metrics)
    }
    coverage: dict[str, list[dict[str, float] | None]] = {}
    judging: dict[str, list[dict[str, float] | None]] = {}
    for piece in kept:
        for records, of_piece in ((coverage, piece.coverage), (judging, piece.judging)):
            for metric, of_metric in zip(metric_set.item_metrics, of_piece, strict=True):
                if of_metric is not None:
                    records.setdefault(labels[metric], []).extend(of_metric)
    return ScoreResult(
        scores,
        metrics=metric_set,
        summaries=rows,
        sets=sets,
        ids=[id for piece in kept for id in piece.ids],
        systems=[system for piece in kept for system in piece.systems],
        blank_replies=summarizer.blank_replies,
        notes=[*metric_set.notes(), *summarizer.notes()],
        safeguards=safeguards,
        frame_kind=frame_kind,
        coverage=coverage,
        judging=judging,
        costs={labels[metric]: cost for metric, cost in costs.items()},
    )


def score_one(
    metric: str | Metric,
    reply: str,
    references: Sequence[str | Mapping[str, Any] | Reference] = (),
    *,
    context: str | Sequence[str] = (),
    language: str | None = None,
    evaluator: EvaluatorLike | None = None,
) -> float:
    """Return the score of one reply; DataError says why if it can't be scored."""
    plain = [
        {"text": r.text, "weight": r.weight} if isinstance(r, Reference) else r for r in references
    ]
    item = item_from(
        {
            "id": "1",
            "response": reply,
            "references": plain,
            "context": context if isinstance(context, str) else list(context),
        }
    )
    result = score([item], [metric], language=language, evaluator=evaluator)
    (scores,) = result.values()
    for reason in scores.unscored.values():
        raise DataError(f"{metric}: {reason}")
    return float(scores.values[0])
