"""Ranges of metrics: quantiles of their scores on held-out contexts with true and random replies.

With fixed ranges, ``rejoinder`` gives a reply the same score whatever else is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rejoinder.errors import MissingExtra, UsageError
from rejoinder.items import Item
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.evaluator.blend import Blend
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.spec import parse

LOW_QUANTILE, HIGH_QUANTILE = 0.01, 0.99
"""Not the extremes: single replies should not decide."""
MIN_SCORES = 10
"""Number of scores that a range needs."""
DIGITS = 6
SETTING = "validation.ranges"


def check_range_metrics(specs: Sequence[str], language: str) -> None:
    """Raise UsageError for metrics that cannot have a range."""
    try:
        metrics = make_metrics(specs, language, ready=False)
    except MissingExtra:  # a note of the evaluator will say so
        return
    if metrics.set_metrics:
        names = ", ".join(metrics.labels[metric] for metric in metrics.set_metrics)
        raise UsageError(f"{SETTING}: {names}: scores sets of replies, not single ones")
    # its range would depend on ranges that are not measured yet
    if blends := [label for label, metric in metrics if isinstance(metric, Blend)]:
        raise UsageError(f"{SETTING}: {', '.join(blends)}: name the metrics that it blends")


def measure_ranges(
    folder: Path, items: Sequence[Item], specs: Sequence[str], language: str
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """Return the low and high quantile of each metric, by its spec, and notes about metrics
    without a range."""
    missing: dict[str, list[str]] = {}
    unscored: list[str] = []
    usable = []
    for spec in specs:
        try:
            make_metrics([spec], language, evaluator=str(folder))
            usable.append(spec)
        except (MissingExtra, UsageError) as error:  # something that this evaluator lacks
            missing.setdefault(str(error), []).append(spec)
    ranges: dict[str, tuple[float, float]] = {}
    for spec, values in zip(usable, _scores(folder, items, usable, language), strict=True):
        if not values:
            unscored.append(spec)
            continue
        if len(values) < MIN_SCORES:
            replies = "reply" if len(values) == 1 else "replies"
            reason = f"only {len(values)} held-out {replies} could be scored"
            missing.setdefault(reason, []).append(spec)
            continue
        low, high = np.quantile(values, [LOW_QUANTILE, HIGH_QUANTILE]).round(DIGITS).tolist()
        if low < high:
            ranges[str(parse(spec))] = (low, high)
        else:
            missing.setdefault("all held-out replies have the same score", []).append(spec)
    notes = [f"no range for {', '.join(names)}: {reason}" for reason, names in missing.items()]
    if unscored:
        it_has = "it has" if len(unscored) == 1 else "they have"
        by = ", ".join(unscored)
        notes.append(f"no held-out reply could be scored by {by}, so {it_has} no range")
    return ranges, notes


def _scores(
    folder: Path, items: Sequence[Item], specs: Sequence[str], language: str
) -> list[list[float]]:
    """Return the scores of each metric, all computed in one pass."""
    metrics = make_metrics(specs, language, evaluator=str(folder)).item_metrics
    values: list[list[float]] = [[] for _ in metrics]
    for _, results in evaluate(items, metrics, strict=False, any_language=True):
        for number, scored in enumerate(results):
            values[number] += scored.values[scored.scored].tolist()
    return values
