"""Arguments that the verbs share; this module imports nothing heavy."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeAlias

from rejoinder.errors import UsageError

if TYPE_CHECKING:
    from rejoinder.metrics.metric import Metric
    from rejoinder.verbs.evaluator import Evaluator

    Metrics: TypeAlias = str | Metric | type[Metric] | Sequence[str | Metric | type[Metric]]
    EvaluatorLike: TypeAlias = str | os.PathLike[str] | Evaluator

RESAMPLES = 1000
RANKING_RESAMPLES = 10_000
"""Resamples of ``compare``; see :mod:`rejoinder.meta_evaluation.ranking`."""
DRAWS = 20
"""Random draws of references for each point of a curve."""
MAX_RESAMPLES = 1_000_000
SEED = 12345
MAX_SEED = 2**63 - 1
MAX_PROCESSES = 256
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


def as_overrides(overrides: Mapping[str, Any] | Sequence[str] | None) -> list[str]:
    """Return changes of a preset's settings in the form ``section.key=value``."""
    import msgspec

    if not isinstance(overrides, Mapping):
        return list(overrides or [])
    texts = {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in overrides.items()
    }
    return [f"{key}={text}" for key, text in texts.items()]


def as_metrics(metrics: Metrics) -> list[Any]:
    """Return one metric, or several, as a list."""
    if isinstance(metrics, str | bytes) or not isinstance(metrics, Iterable):
        return [metrics]
    return list(metrics)


def evaluator_folder(evaluator: EvaluatorLike | None) -> str | None:
    """Return the folder of an evaluator."""
    if evaluator is None:
        return None
    path = evaluator if isinstance(evaluator, (str, os.PathLike)) else _path_of(evaluator)
    if not path or not isinstance(path, (str, os.PathLike)):
        raise UsageError(f"evaluator={evaluator!r}: expected an evaluator, or its folder")
    return os.fspath(path)


def _path_of(evaluator: Any) -> Any:
    return getattr(evaluator, "path", None)


MAX_K = 1000
"""References that are retrieved for an item."""


def check_number(name: str, value: Any, low: float, high: float, *, whole: bool = True) -> None:
    """Raise UsageError unless an argument is a number within its limits."""
    if not _is_number(value, whole) or not low <= value <= high:
        expected = "a whole number" if whole else "a number"
        ends = [f"{end:,.0f}" if abs(end) >= 1e4 else f"{end:g}" for end in (low, high)]
        limits = f" of at least {ends[0]}" if high == math.inf else f" from {ends[0]} to {ends[1]}"
        raise UsageError(
            f"{name}={value!r}: expected {expected}{'' if low == -math.inf else limits}"
        )


def _is_number(value: Any, whole: bool) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral if whole else Real)


def check_resampling(resamples: int, seed: int, *, min_resamples: int = 0) -> None:
    """Raise UsageError unless the number of resamples and the random seed can be used."""
    check_number("resamples", resamples, min_resamples, MAX_RESAMPLES)
    if not _is_number(seed, whole=True) or not 0 <= seed <= MAX_SEED:
        raise UsageError(f"seed={seed!r}: expected a whole number from 0 to 2^63 - 1")
