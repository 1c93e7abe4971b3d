"""The Python side of the command line: the same verbs as functions.

items = rejoinder.read_items("items.jsonl")
result = rejoinder.score(items, ["bleu(n=2)", "rouge-l"])
result["bleu(n=2)"].values          # a number for each item, NaN where unscored
result["bleu(n=2)"].corpus          # the value of all together, with its interval
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item, Reference, item_from
from rejoinder.meta.ranking import Ranking, Statistics
from rejoinder.metrics.base import ItemMetric
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.request import requests
from rejoinder.metrics.summary import Estimate, Summarizer


@dataclass(frozen=True)
class Scores:
    """One metric's scores of a list of items."""

    metric: ItemMetric
    values: Floats
    """[n] NaN where unscored."""
    unscored: dict[str, str]
    """Item id → why it has no score."""
    corpus: dict[str, Estimate | None]
    """For each system the value of all its items together, with its interval."""
    mean: dict[str, Estimate | None]

    @property
    def signature(self) -> str:
        return self.metric.signature()


def as_item(item: Item | dict[str, Any]) -> Item:
    """An item from a dictionary with the fields of the items format."""
    return item if isinstance(item, Item) else item_from(dict(item))


def score(
    items: Iterable[Item | dict[str, Any]],
    metrics: Sequence[str],
    *,
    language: str | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> dict[str, Scores]:
    """Score items with item metrics; the result is keyed by the specs as they were given."""
    asked = requests(metrics, language)
    if asked.sets:
        raise DataError(f"{asked.sets[0].label} judges sets of replies; use the command line")
    summarizer = Summarizer(asked.item_metrics, resamples=resamples, seed=seed)
    values: list[list[Floats]] = [[] for _ in asked.items]
    unscored: list[dict[str, str]] = [{} for _ in asked.items]
    converted = (as_item(item) for item in items)
    for batch, results in summarizer.watch(evaluate(converted, asked.item_metrics)):
        for which, result in enumerate(results):
            values[which].append(result.values)
            for item, reason in zip(batch, result.reasons, strict=True):
                if reason is not None:
                    unscored[which][item.id] = reason
    rows = summarizer.summaries()
    return {
        spec: Scores(
            metric,
            np.concatenate(values[which]) if values[which] else np.zeros(0),
            unscored[which],
            {row.system: row.corpus for row in rows if row.metric == metric},
            {row.system: row.mean for row in rows if row.metric == metric},
        )
        for which, (spec, metric) in enumerate(zip(metrics, asked.item_metrics, strict=True))
    }


def score_one(
    metric: str, response: str, references: Sequence[str | dict[str, Any] | Reference]
) -> float:
    """The score of one reply, for notebooks; a reply that can't be scored is an error."""
    plain = [
        r if isinstance(r, (str, dict)) else {"text": r.text, "weight": r.weight}
        for r in references
    ]
    item = item_from({"id": "1", "response": response, "references": plain})
    found = score([item], [metric], resamples=100)[metric]
    for reason in found.unscored.values():
        raise DataError(f"{metric}: {reason}")
    return float(found.values[0])


def compare(
    items: Iterable[Item | dict[str, Any]],
    metrics: Sequence[str],
    *,
    language: str | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> list[Ranking]:
    """Rank systems by each item metric, with intervals, tests and groups."""
    asked = requests(metrics, language)
    statistics = Statistics(asked.item_metrics)
    converted = (as_item(item) for item in items)
    for batch, results in evaluate(converted, asked.item_metrics):
        statistics.add(batch, results)
    return statistics.rankings(resamples=resamples, seed=seed)
