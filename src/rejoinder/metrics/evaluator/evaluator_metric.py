"""Base classes of metrics that use an evaluator: its folder, its signature, what it adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.errors import UsageError
from rejoinder.metrics.batch_scores import BatchScores, score_references
from rejoinder.metrics.metric import ItemMetric, WholeItemMetric, check_range, has_context
from rejoinder.metrics.reasons import NEITHER, NO_REFERENCES
from rejoinder.wording import choose, option

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator
    from rejoinder.metrics.scoring_context import ScoringContext

MAX_K = 1000
TOLERANCE = 1e-4


def needs_evaluator() -> str:
    """Return what is missing in a metric that has no evaluator."""
    command = choose(
        command_line="rejoinder fit LOGS --format FORMAT -o evaluator/",
        python="rejoinder.fit(LOGS, format=FORMAT, output='evaluator/')",
    )
    return (
        f"needs an evaluator: make one from your logs with {command}, then add"
        f" {option('evaluator', 'evaluator/')}"
    )


@dataclass(frozen=True, kw_only=True)
class EvaluatorMetric(ItemMetric):
    """A metric with the parameter ``evaluator``; that of the verb sets it where a spec does not.

    As a mixin, it is the last base class: the others define the metric's parameters.
    """

    evaluator: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluator is not None:
            # ratings are computed by a network
            object.__setattr__(self, "tolerance", max(self.tolerance, TOLERANCE))

    @cached_property
    def evaluator_or_none(self) -> Evaluator | None:
        """The opened evaluator; None if the metric has none."""
        if self.evaluator is None:
            return None
        from rejoinder.evaluator.evaluator import open_evaluator

        return open_evaluator(self.evaluator)

    @property
    def opened_evaluator(self) -> Evaluator:
        """The opened evaluator; UsageError if the metric has none."""
        if self.evaluator_or_none is None:
            raise UsageError(f"{self.name} {needs_evaluator()}")
        return self.evaluator_or_none

    def evaluators(self) -> list[Evaluator]:
        return [] if self.evaluator_or_none is None else [self.evaluator_or_none]

    def languages(self) -> dict[str, frozenset[str]]:
        languages = super().languages()
        for evaluator in self.evaluators():
            if (code := evaluator.manifest.language) is not None:
                languages[f"the evaluator {evaluator.name}"] = frozenset({code})
        return languages

    def _signed(self, key: str) -> str:
        if key == "evaluator":
            # its name and digest, wherever the folder is
            return "none" if self.evaluator_or_none is None else str(self.evaluator_or_none)
        return super()._signed(key)


@dataclass(frozen=True, kw_only=True)
class NetworkMetric(WholeItemMetric, EvaluatorMetric):
    """A metric that is the output of one of the evaluator's networks, so an evaluator is required.

    Its rows are a score and 1; scores come with the coverage of the context by the logs.
    """

    tolerance: ClassVar[float] = TOLERANCE

    def missing_requirement(self) -> str | None:
        return needs_evaluator() if self.evaluator is None else None

    def score(self, scoring: ScoringContext) -> BatchScores:
        return score_references(self, scoring.batch, scoring.expansion(self.opened_evaluator))


@dataclass(frozen=True, kw_only=True)
class ExpandingMetric(EvaluatorMetric):
    """A metric over the references of an item and those that an evaluator adds, rated: ``k``
    retrieved ones (by default as many as the evaluator was made for), and perhaps the parrot."""

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            check_range("k", self.k, 1, MAX_K)

    def _signed(self, key: str) -> str:
        if key == "k":
            evaluator = self.evaluator_or_none
            default = None if evaluator is None else evaluator.manifest.retrieval.k
            return str(self.k if self.k is not None else default or "none")
        return super()._signed(key)

    def score(self, scoring: ScoringContext) -> BatchScores:
        if (evaluator := self.evaluator_or_none) is None:
            return super().score(scoring)
        expansion = scoring.expansion(evaluator, self.k)
        scores = score_references(self, scoring.expanded(evaluator, self.k), expansion)
        for number in np.flatnonzero(scores.reasons == NO_REFERENCES).tolist():
            if not has_context(scoring.batch.items[number]):  # so none could be retrieved
                scores.reasons[number] = NEITHER
        return scores
