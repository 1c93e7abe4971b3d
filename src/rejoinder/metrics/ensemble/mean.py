"""``mean``: the mean of any item metrics, each brought to the same scale.

    score = 1/m Σ scaled(metric_i(h))

Averaging runs, dimensions and metrics agrees better with people than any of them alone: ratings of
FED's dialogues by one run of GPT-4 correlate at .62 to .68, the mean of five at .725, of five
dimensions in five runs at .752. So ``mean(judge(seed=1),judge(seed=2))`` averages runs,
``mean(likelihood,rejoinder)`` metrics; a mean may be part of another one.

``scale`` says how values that have nothing in common become comparable:

- ``rank``, the default: the share of the evaluated replies that the metric ranks below this one,
  half of the ties included. Nothing has to be known about the metric, and outliers count little.
- ``z``: its distance from the metric's mean over the evaluated set, in standard deviations.
- ``range``: between the lowest and the highest usual value, which the evaluator measured on
  held-out dialogues, cut at 0 and 1, as in ``rejoinder``.
- ``none``: as it is, for metrics that share a scale, such as runs of the same judge.

With ``rank`` and ``z`` a score depends on the other items of the set, and all items are kept in
memory: compare only scores of the same run. A metric whose lower values are better is turned around
(with ``none``, its sign is changed).

The parts of a score (``--parts``) are the scaled metrics. An item that one of the metrics cannot
score is unscored, with that metric's reason, and ranks are taken over the others. The corpus value
is the mean over items.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, batch_scores
from rejoinder.metrics.evaluator.blend import Blend
from rejoinder.metrics.evaluator.evaluator_metric import EvaluatorMetric, needs_evaluator
from rejoinder.metrics.evaluator.ranges import range_of
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric, check_choice, nested_default
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.scoring_context import ScoringContext

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

SCALES = ("rank", "z", "range", "none")
OVER_THE_SET = ("rank", "z")
DEFAULT_METRICS = (nested_default("likelihood"), nested_default("rejoinder"))


@dataclass(frozen=True, kw_only=True)
class Mean(WholeItemMetric, EvaluatorMetric):
    name: ClassVar[str] = "mean"
    summary: ClassVar[str] = "mean of any metrics, each on the same scale"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    nested: ClassVar[tuple[str, ...]] = ("metrics",)
    shares_evaluator: ClassVar[bool] = True

    metrics: tuple[ItemMetric, ...] = DEFAULT_METRICS
    scale: str = "rank"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scale", self.scale, SCALES)
        if not self.metrics:
            raise ValueError("there are no metrics to average: mean(likelihood,rejoinder)")
        twice = [str(metric) for metric, n in Counter(self.metrics).items() if n > 1]
        if twice:
            raise ValueError(f"{', '.join(twice)} is there twice")
        tolerance = max(metric.tolerance for metric in self.metrics)
        object.__setattr__(self, "tolerance", max(self.tolerance, tolerance))

    @property
    def needs_whole_set(self) -> bool:
        inner = any(metric.needs_whole_set for metric in self.metrics)
        return inner or self.scale in OVER_THE_SET

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """A name for each metric: its own, with a number if several have it."""
        count = Counter(metric.name for metric in self.metrics)
        seen: Counter[str] = Counter()
        labels = []
        for metric in self.metrics:
            seen[metric.name] += 1
            number = f"-{seen[metric.name]}" if count[metric.name] > 1 else ""
            labels.append(metric.name + number)
        return tuple(labels)

    def evaluators(self) -> list[Evaluator]:
        nested = [each for metric in self.metrics for each in metric.evaluators()]
        return list(dict.fromkeys([*super().evaluators(), *nested]))

    def languages(self) -> dict[str, frozenset[str]]:
        languages = super().languages()
        for metric in self.metrics:
            languages |= metric.languages()
        return languages

    def notes(self) -> list[str]:
        return [note for metric in self.metrics for note in metric.notes()]

    def missing_requirement(self) -> str | None:
        for metric in self.metrics:
            if (missing := metric.missing_requirement()) is not None:
                return f"{metric}: {missing}"
        if self.scale == "range":
            if self.evaluator is None:
                return f"with scale=range {needs_evaluator()}; the other scales need none"
            _ = self._ranges  # UsageError now, not in the midst of scoring
        return None

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        return [
            (0.0, 1.0)
            if isinstance(metric, Blend | Mean)
            else range_of(self.opened_evaluator, metric)
            for metric in self.metrics
        ]

    def score(self, scoring: ScoringContext) -> BatchScores:
        scores = [scoring.score(metric) for metric in self.metrics]
        reasons: Reasons = np.full(len(scoring.batch), None, object)
        for one, label in zip(scores, self.labels, strict=True):
            for number in np.flatnonzero(~one.scored).tolist():
                if reasons[number] is None:
                    reasons[number] = f"{label}: {one.reasons[number]}"
        keep = np.flatnonzero([reason is None for reason in reasons])
        scaled = [self._scaled(i, one.values[keep]) for i, one in enumerate(scores)]
        rows = np.column_stack([np.mean(scaled, axis=0), *scaled, np.ones(len(keep))])
        expansion = next((one.expansion for one in scores if one.expansion is not None), None)
        return batch_scores(self, scoring.batch, rows, keep, reasons, expansion)

    def stats(self, batch: Batch) -> Floats:
        """The mean, what it is made of, and 1."""
        return self.score(ScoringContext(batch)).rows

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return {label: rows[..., i] / rows[..., -1] for i, label in enumerate(self.labels, start=1)}

    def _scaled(self, which: int, values: Floats) -> Floats:
        """Return the values of one metric on the common scale."""
        if not values.size:
            return values
        if not self.metrics[which].higher_is_better:
            values = -values
        if self.scale == "rank":
            from scipy.stats import rankdata

            if (tolerance := self.metrics[which].tolerance) > 0:
                values = np.round(values / tolerance)  # what differs by rounding alone is equal
            ranks: Floats = (rankdata(values) - 0.5) / len(values)
            return ranks
        if self.scale == "z":
            spread = float(np.std(values))
            # equal values, up to rounding, tell nothing apart
            if spread <= 1e-12 * max(1.0, float(np.abs(values).max())):
                return np.zeros(len(values))
            return (values - np.mean(values)) / spread
        if self.scale == "range":
            low, high = self._ranges[which]
            if not self.metrics[which].higher_is_better:
                low, high = -high, -low
            if high <= low:
                return np.full(len(values), 0.5)
            return np.clip((values - low) / (high - low), 0.0, 1.0)
        return values
