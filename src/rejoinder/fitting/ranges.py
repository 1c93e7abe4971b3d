"""In which range the scores of a metric lie: measured once, on contexts held out, with true and
with random replies. So ``ruber(norm=fixed)`` gives a reply the same score whatever else is scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rejoinder.errors import MissingExtra, UsageError
from rejoinder.items import Item
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.request import requests
from rejoinder.spec import parse

LOWEST, HIGHEST = 0.01, 0.99
"""Quantiles: single replies should not decide."""
FEWEST = 10
"""Scores that a range can be told from."""
DIGITS = 6
BLEND = "ruber"


def check_metrics(specs: Sequence[str], language: str) -> None:
    """UsageError unless all of these can have a range."""
    try:
        asked = requests(specs, language, ready=False)
    except MissingExtra:  # which is said when they are measured
        return
    if asked.sets:
        names = ", ".join(request.label for request in asked.sets)
        raise UsageError(f"figures.ranges: {names}: judges sets of replies, not single ones")
    # its own range would be made of ranges that are not measured yet
    if blends := [request.label for request in asked.items if request.metric.name == BLEND]:
        raise UsageError(f"figures.ranges: {', '.join(blends)}: name the metrics that it blends")


def ranges(
    folder: Path, items: Sequence[Item], specs: Sequence[str], language: str
) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """For each metric the lowest and the highest value, under its plain spec; and what a person
    should know of those that have none."""
    missing: dict[str, list[str]] = {}
    asked = []
    for spec in specs:
        try:
            requests([spec], language, evaluator=str(folder))
            asked.append(spec)
        except (MissingExtra, UsageError) as error:  # what this evaluator can't do without
            missing.setdefault(str(error), []).append(spec)
    found: dict[str, tuple[float, float]] = {}
    for spec, values in zip(asked, _values(folder, items, asked, language), strict=True):
        if len(values) < FEWEST:
            reason = f"only {len(values)} held-out replies could be scored"
            missing.setdefault(reason, []).append(spec)
            continue
        low, high = np.quantile(values, [LOWEST, HIGHEST]).round(DIGITS).tolist()
        if low < high:
            found[str(parse(spec))] = (low, high)
        else:
            missing.setdefault("all held-out replies have the same score", []).append(spec)
    notes = [f"no range of {', '.join(names)}: {reason}" for reason, names in missing.items()]
    return found, notes


def _values(
    folder: Path, items: Sequence[Item], specs: Sequence[str], language: str
) -> list[list[float]]:
    """The scores of each metric, all metrics in one pass."""
    metrics = requests(specs, language, evaluator=str(folder)).item_metrics
    values: list[list[float]] = [[] for _ in metrics]
    for _, results in evaluate(items, metrics, strict=False):
        for which, scored in enumerate(results):
            values[which] += scored.values[scored.scored].tolist()
    return values
