"""Base class of ``ruber`` and ``rejoinder``: a referenced and an unreferenced metric, blended.

    a = n(ref(h)),  b = n(unref(h))  in [0, 1]
    score = (a + b) / 2,  √(a · b),  min(a, b)  or  max(a, b)

Both components may be any item metrics, also blends themselves. An item that a required component
cannot score is unscored, with the reason; a missing context is named first. The corpus
value is the mean over items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, batch_scores
from rejoinder.metrics.evaluator.evaluator_metric import (
    TOLERANCE,
    EvaluatorMetric,
    needs_evaluator,
)
from rejoinder.metrics.evaluator.ranges import range_of
from rejoinder.metrics.metric import (
    ItemMetric,
    WholeItemMetric,
    check_choice,
    nested_default,
    nested_signature,
)
from rejoinder.metrics.reasons import NO_CONTEXT, Reasons
from rejoinder.metrics.scoring_context import ScoringContext

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

BLENDS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: np.sqrt(a * b),
    "min": np.minimum,
    "max": np.maximum,
}
UNREFERENCED = nested_default("unreferenced")
NORMS = ("fixed", "set")
SCALES = ("odds", "plain")
MAX_PROBABILITY = 0.999
"""Higher probabilities are cut before their log odds are taken."""


def log_odds(probabilities: Floats) -> Floats:
    """
    >>> log_odds(np.array([0.5, 0.9, 1.0])).round(2).tolist()
    [0.0, 2.2, 6.91]
    """
    clipped = np.clip(probabilities, 1 - MAX_PROBABILITY, MAX_PROBABILITY)
    odds: Floats = np.log(clipped / (1 - clipped))
    return odds


@dataclass(frozen=True, kw_only=True)
class Blend(WholeItemMetric, EvaluatorMetric):
    """A metric made of other metrics, each brought to [0, 1]."""

    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE
    nested: ClassVar[tuple[str, ...]] = ("ref", "unref")
    shares_evaluator: ClassVar[bool] = True
    optional: ClassVar[frozenset[str]] = frozenset()
    """Components without which an item is scored, too."""

    ref: ItemMetric | None = None
    unref: ItemMetric = UNREFERENCED
    blend: str = "arithmetic"
    norm: str = "fixed"
    scale: str = "odds"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, choices in (("blend", tuple(BLENDS)), ("norm", NORMS), ("scale", SCALES)):
            check_choice(key, getattr(self, key), choices)
        for metric in (self.ref, self.unref):
            if metric is not None and metric.needs_whole_set:
                raise ValueError(f"{metric} is normalised over a set itself; use norm=fixed there")

    @cached_property
    def components(self) -> Mapping[str, ItemMetric]:
        """The metrics that are blended, by the name of their part."""
        assert self.ref is not None
        return {"ref": self.ref, "unref": self.unref}

    @property
    def needs_whole_set(self) -> bool:
        return self.norm == "set"

    def evaluators(self) -> list[Evaluator]:
        nested = [e for metric in self.components.values() for e in metric.evaluators()]
        return list(dict.fromkeys([*super().evaluators(), *nested]))

    def languages(self) -> dict[str, frozenset[str]]:
        languages = super().languages()
        for metric in self.components.values():
            languages |= metric.languages()
        return languages

    def missing_requirement(self) -> str | None:
        if self.norm == "fixed" and self.evaluator is None:
            if any(metric.missing_requirement() for metric in self.components.values()):
                return needs_evaluator()
            return f"with norm=fixed {needs_evaluator()}; norm=set needs none"
        for metric in self.components.values():
            if (missing := metric.missing_requirement()) is not None:
                return f"{metric}: {missing}"
        if self.norm == "fixed":
            _ = self.ranges  # UsageError now, not in the midst of scoring
        return None

    def notes(self) -> list[str]:
        return [note for metric in self.components.values() for note in metric.notes()]

    def _signed(self, key: str) -> str:
        if key == "ref" and self.ref is None:
            return nested_signature(self.components["ref"])
        return super()._signed(key)

    @cached_property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The fixed range of each component; a nested blend is in [0, 1] already."""
        return {
            key: (0.0, 1.0)
            if isinstance(metric, Blend)
            else range_of(self.opened_evaluator, metric)
            for key, metric in self.components.items()
        }

    def combine(self, parts: Mapping[str, Floats]) -> Floats:
        """Combine the components of items, each in [0, 1]; NaN where an optional one is missing."""
        return BLENDS[self.blend](parts["ref"], parts["unref"])

    def score(self, scoring: ScoringContext) -> BatchScores:
        scores = {key: scoring.score(metric) for key, metric in self.components.items()}
        reasons: Reasons = np.full(len(scoring.batch), None, object)
        required = [scores[key].reasons for key in scores if key not in self.optional]
        for of_component in reversed(required):
            unscored = np.array([reason is not None for reason in of_component], bool)
            reasons[unscored] = of_component[unscored]
        for of_component in required:
            reasons[of_component == NO_CONTEXT] = NO_CONTEXT
        keep = np.flatnonzero([reason is None for reason in reasons])
        parts = {key: self._normalised(key, scores[key].values[keep]) for key in scores}
        counts = {key: np.isfinite(parts[key]) for key in parts if key in self.optional}
        rows = np.column_stack(
            [
                self.combine(parts),
                *(np.where(np.isfinite(part), part, 0.0) for part in parts.values()),
                *counts.values(),
                np.ones(len(keep)),
            ]
        )
        expansion = next((f.expansion for f in scores.values() if f.expansion is not None), None)
        return batch_scores(self, scoring.batch, rows, keep, reasons, expansion)

    def _normalised(self, key: str, values: Floats) -> Floats:
        """Bring the values of a component to [0, 1]; NaN stays."""
        if not np.isfinite(values).any():
            return values
        metric = self.components[key]
        if self.norm == "set":
            low, high = float(np.nanmin(values)), float(np.nanmax(values))
        else:
            low, high = self.ranges[key]
        if self.scale == "odds" and metric.probability:
            values = log_odds(values)
            low, high = log_odds(np.array([low, high])).tolist()
        if high <= low:
            return np.where(np.isfinite(values), 0.5, np.nan)
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        return share if metric.higher_is_better else 1.0 - share

    def stats(self, batch: Batch) -> Floats:
        """The blend, its components, how many optional ones there are, and 1."""
        return self.score(ScoringContext(batch)).rows

    def parts(self, rows: Floats) -> dict[str, Floats]:
        optional = [key for key in self.components if key in self.optional]
        first_count = 1 + len(self.components)
        parts = {}
        for place, key in enumerate(self.components, start=1):
            count = rows[..., -1]
            if key in optional:
                count = rows[..., first_count + optional.index(key)]
            with np.errstate(invalid="ignore"):
                parts[key] = rows[..., place] / count
        return parts
