"""Correlations and annotators as plain dictionaries, for the JSON of ``meta``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rejoinder.meta_evaluation.annotators import AnnotatorReview, FilteredRatings
from rejoinder.meta_evaluation.correlate import Correlations
from rejoinder.meta_evaluation.coverage import CoverageThird
from rejoinder.meta_evaluation.evaluation import MetricResult
from rejoinder.verbs.results import to_plain


def annotators_to_dict(
    filtered: FilteredRatings | None, before: Sequence[MetricResult] | None
) -> dict[str, Any] | None:
    """Return the annotators before and after dropping; None if no rating names one.

    ``before`` are the results before annotators were dropped.
    """
    if filtered is None or not filtered.before.names:
        return None
    reviewed = review_to_dict(filtered.before)
    if before is not None:
        reviewed["results"] = [result_to_dict(result) for result in before]
    return {
        "before": reviewed,
        "unreliable": to_plain(filtered.unreliable),
        "dropped": filtered.dropped,
        "after": None if filtered.after is None else review_to_dict(filtered.after),
    }


def review_to_dict(review: AnnotatorReview) -> dict[str, Any]:
    """Return the annotators with their number of ratings, and their agreement."""
    each = [asdict(one) for one in review.agreement.annotators]
    named = [{"name": one["name"], "ratings": one.pop("answers")} | one for one in each]
    return {"ratings": review.ratings, **asdict(review.agreement), "annotators": named}


def result_to_dict(result: MetricResult) -> dict[str, Any]:
    """Return the statistics side by side in one flat object, as the contract says."""
    extra: Mapping[str, Any] = {
        "without_human": _flat(result.without_human) if result.without_human else None,
        "annotators": result.annotators,
        "pairwise_accuracy": to_plain(result.accuracy),
        "auc": result.auc,
        "recall_at_1": result.recall_at_1,
    }
    return {
        "metric": result.metric,
        "level": result.level,
        "n": result.correlations.n,
        "unscored": result.unscored,
        **_flat(result.correlations, count=False),
        **{key: value for key, value in extra.items() if value is not None},
    }


def third_to_dict(third: CoverageThird) -> dict[str, Any]:
    """Return the correlations in one third of the coverage."""
    return {
        "metric": third.metric,
        "by": third.by,
        "third": third.third,
        "from": third.low,
        "to": third.high,
        **_flat(third.correlations),
    }


def _flat(correlations: Correlations, *, count: bool = True) -> dict[str, Any]:
    flat: dict[str, Any] = {"n": correlations.n} if count else {}
    for name in ("spearman", "pearson", "kendall"):
        estimate = getattr(correlations, name)
        flat[name] = estimate.value
        flat[f"{name}_p"] = estimate.p
        flat[f"{name}_ci"] = None if estimate.low is None else [estimate.low, estimate.high]
    return flat


def spread(correlations: Correlations) -> dict[str, float | None]:
    """Return the statistics as columns of a frame."""
    flat: dict[str, float | None] = {}
    for name in ("spearman", "pearson", "kendall"):
        value = asdict(getattr(correlations, name))
        flat |= {name if key == "value" else f"{name}_{key}": value[key] for key in value}
    return flat
