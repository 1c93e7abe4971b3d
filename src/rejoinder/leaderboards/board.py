"""A leaderboard: metrics with their figures on every judged set."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rejoinder.leaderboards.ranking import Place
from rejoinder.meta_evaluation.correlate import Estimate

Standing = Literal["ranked", "fitted", "chosen", "incomplete", "undefined"]
"""How a metric takes part on a set: ranked; ranked apart, because it was fitted to ratings of the
set or its settings were chosen on it; not ranked, because it lacks scores or has no correlation."""

APART: tuple[Standing, ...] = ("fitted", "chosen")


@dataclass(frozen=True)
class MetricOnSet:
    """The figures of one metric on one set."""

    metric: str
    scored: int
    coverage: float
    """Share of the rated replies that it scored."""
    spearman: Estimate
    pearson: Estimate
    kendall: Estimate
    standing: Standing
    ranks: tuple[int, int] | None
    """First and last possible rank, among the ranked ones or among those apart; None if it is not
    ranked."""
    seen_contexts: int | None = None
    """Contexts that its evaluators have in their training data; None if that is not known."""


@dataclass(frozen=True)
class SetBoard:
    """All metrics on one set, best first."""

    name: str
    label: str
    chosen_on: bool
    replies: int
    contexts: int
    systems: int
    metrics: list[MetricOnSet]


@dataclass(frozen=True)
class MetricFacts:
    """What a metric needs, costs and was made of."""

    metric: str
    about: str
    needs: str
    trained_on: str
    higher_is_better: bool
    fitted_to: list[str]
    chosen_on: list[str]
    seconds: float | None
    """For 1,000 replies; None if nobody measured it."""
    requests: float | None
    tokens: float | None
    signatures: list[str]


@dataclass(frozen=True)
class EvaluatorOnSet:
    """What an evaluator has seen of a set."""

    evaluator: str
    set: str
    contexts: int
    exact: int
    near: int
    copied_replies: int


@dataclass(frozen=True)
class Board:
    """The leaderboard."""

    title: str
    sets: list[SetBoard]
    metrics: list[MetricFacts]
    overall: list[Place]
    """Mean correlation over the sets that nothing was chosen on."""
    overall_sets: list[str]
    contamination: list[EvaluatorOnSet] = field(default_factory=list)
