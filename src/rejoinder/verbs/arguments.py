"""Arguments that the verbs share; this module imports nothing heavy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from rejoinder.metrics.metric import Metric
    from rejoinder.verbs.evaluator import Evaluator

    Metrics: TypeAlias = str | Metric | Sequence[str | Metric]
    EvaluatorLike: TypeAlias = str | os.PathLike[str] | Evaluator

RESAMPLES = 1000
SEED = 12345
MIN_KAPPA = 0.2
"""Annotators below it are unreliable (Gupta et al. 2019)."""
MAX_DISTRACTOR = 0.25
"""Annotators who prefer distractors more often than this are unreliable."""
MAX_REPORT_ITEMS = 2000
"""Items that a report lists."""


def as_names(names: str | Sequence[str]) -> list[str]:
    """Return one name, or several, as a list."""
    return [names] if isinstance(names, str) else list(names)


def as_paths(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return one path, or several, as a list of texts."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fspath(path) for path in several]


def as_metrics(metrics: Metrics) -> list[Any]:
    """Return one metric, or several, as a list."""
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        return [metrics]
    return list(metrics)


def evaluator_folder(evaluator: EvaluatorLike | None) -> str | None:
    """Return the folder of an evaluator."""
    if evaluator is None:
        return None
    if isinstance(evaluator, (str, os.PathLike)):
        return os.fspath(evaluator)
    return str(evaluator.path)
