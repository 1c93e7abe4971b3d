"""The range of a metric's values that an evaluator knows from its held-out dialogues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator.manifest import MANIFEST
from rejoinder.metrics.metric import Metric, make_metric
from rejoinder.spec import Spec, parse

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

DEFAULT_REFERENCED = ("vcosine", "vbleu")
"""Referenced metrics of ``rejoinder``, the best first."""


def find_range(evaluator: Evaluator, metric: Metric) -> tuple[float, float] | None:
    """Return the lowest and the highest usual value of a metric; None if the manifest has none.

    The manifest lists metrics without their evaluator, and without the tokenizer that they get
    from the evaluator's language.
    """
    folder = getattr(metric, "evaluator", None)
    for text, (low, high) in evaluator.manifest.ranges.items():
        spec = parse(text)
        if spec.name != metric.name:
            continue
        try:
            measured = make_metric(spec, evaluator.manifest.language, folder)
        except UsageError as error:
            raise _wrong_range(evaluator, error) from None
        if measured == metric:
            return low, high
    return None


def range_of(evaluator: Evaluator, metric: Metric) -> tuple[float, float]:
    """Return the range of a metric; UsageError if the evaluator does not know it."""
    if (limits := find_range(evaluator, metric)) is not None:
        return limits
    specs = ", ".join(evaluator.manifest.ranges) or "none"
    raise UsageError(
        f"{evaluator.name} knows no range of {_without_evaluator(metric.spec())}, which norm=fixed"
        f" needs: use norm=set, or a metric with a known range: {specs}"
    )


def default_referenced(evaluator: Evaluator | None) -> Metric:
    """Return the default referenced metric: the best one whose range the evaluator knows, with the
    tokenizer of its language."""
    best, *_ = DEFAULT_REFERENCED
    if evaluator is None:
        return make_metric(best)
    try:
        measured = {make_metric(text) for text in evaluator.manifest.ranges if _is_default(text)}
    except UsageError as error:
        raise _wrong_range(evaluator, error) from None
    chosen = next((name for name in DEFAULT_REFERENCED if make_metric(name) in measured), best)
    return make_metric(chosen, evaluator.manifest.language, evaluator)


def _wrong_range(evaluator: Evaluator, error: UsageError) -> DataError:
    """Return the error for a metric of the manifest with parameters that it does not have."""
    return DataError(f"ranges: {error}", path=str(evaluator.path / MANIFEST))


def _is_default(text: str) -> bool:
    return parse(text).name in DEFAULT_REFERENCED


def _without_evaluator(spec: Spec) -> Spec:
    kept = [
        (key, _without_evaluator(value) if isinstance(value, Spec) else value)
        for key, value in spec.params
        if key != "evaluator"
    ]
    return Spec(spec.name, tuple(kept))
