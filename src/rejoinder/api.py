"""The Python side of the command line: the same verbs as functions.

items = rejoinder.load("items.jsonl")
result = rejoinder.score(items, ["bleu(n=2)", "rouge-l"])
result["bleu(n=2)"].values          # a number for each item, NaN where unscored
result["bleu(n=2)"].corpus          # the value of all together, with its interval
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from rejoinder.errors import DataError
from rejoinder.io import explain, read_items
from rejoinder.items import Item, Reference, checked, item_from
from rejoinder.meta.correlate import Statistic
from rejoinder.meta.join import join
from rejoinder.meta.ranking import Ranking, compare_systems
from rejoinder.meta.study import HUMAN, Settings, Study, study
from rejoinder.metrics.base import ItemMetric
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.evaluate import Judged, evaluate, judge_sets
from rejoinder.metrics.records import item_scores, set_scores
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


def load(path: str | Path) -> list[Item]:
    """All items of a file."""
    return list(read_items(path))


def as_items(items: Iterable[Item | dict[str, Any]]) -> Iterator[Item]:
    """Items as they are, dictionaries with the fields of the items format converted."""
    seen: set[str] = set()
    for number, given in enumerate(items):
        try:
            item = checked(given) if isinstance(given, Item) else item_from(dict(given))
        except (msgspec.ValidationError, OverflowError) as error:
            raise DataError(explain(str(error)), path=f"item {number}") from None
        if item.id in seen:
            raise DataError(f"the id '{item.id}' stands twice; ids must be unique")
        seen.add(item.id)
        yield item
    if not seen:
        raise DataError("there are no items (was the iterator used up before?)")


def score(
    items: Iterable[Item | dict[str, Any]],
    metrics: str | Sequence[str],
    *,
    language: str | None = None,
    evaluator: str | Path | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> dict[str, Scores]:
    """Score items with item metrics; the result is keyed by the specs as they were given.

    ``evaluator`` is a folder made by 'rejoinder fit', for metrics that ask one.
    """
    metrics = _listed(metrics)
    asked = requests(metrics, language, _path(evaluator))
    if asked.sets:
        raise DataError(f"{asked.sets[0].label} judges sets of replies; use rejoinder.diversity")
    summarizer = Summarizer(asked.item_metrics, resamples=resamples, seed=seed)
    values: list[list[Floats]] = [[] for _ in asked.items]
    unscored: list[dict[str, str]] = [{} for _ in asked.items]
    for batch, results in summarizer.watch(evaluate(as_items(items), asked.item_metrics)):
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
    metrics: str | Sequence[str],
    *,
    language: str | None = None,
    evaluator: str | Path | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> list[Ranking]:
    """Rank systems by each metric, with intervals, tests and groups.

    A metric by which they can't be compared is left out; if that is so for all, it is an error.
    """
    asked = requests(_listed(metrics), language, _path(evaluator))
    batches = evaluate(as_items(items), asked.item_metrics, strict=False)
    return compare_systems(asked, batches, resamples=resamples, seed=seed)[0]


def diversity(
    items: Iterable[Item | dict[str, Any]],
    metrics: str | Sequence[str],
    *,
    language: str | None = None,
) -> list[Judged]:
    """What each set metric says of each system, and of each of its contexts."""
    asked = requests(_listed(metrics), language)
    if asked.items:
        raise DataError(f"{asked.items[0].label} judges single replies; use rejoinder.score")
    return judge_sets(list(as_items(items)), asked.set_metrics)


def agreement(
    items: Iterable[Item | dict[str, Any]],
    metrics: str | Sequence[str],
    *,
    level: Literal["item", "context", "system"] = "item",
    statistic: Statistic = "spearman",
    human_system: str = HUMAN,
    language: str | None = None,
    evaluator: str | Path | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> Study:
    """How well metrics agree with the ratings of the items: scores and correlates in one call.

    ``level`` says what is correlated: replies, the sets of replies to one context, or systems.
    """
    asked = requests(_listed(metrics), language, _path(evaluator))
    rated = list(as_items(items))
    lines = [
        line
        for batch, results in evaluate(rated, asked.item_metrics)
        for line in item_scores(asked.items, batch, results, parts=False)
    ] + set_scores(asked.sets, judge_sets(rated, asked.set_metrics))
    joined = join(rated, enumerate(lines, 1), items_name="items", scores_name="scores")
    return study(joined, level, Settings(resamples, seed, statistic, human_system))


def _listed(metrics: str | Sequence[str]) -> Sequence[str]:
    return [metrics] if isinstance(metrics, str) else list(metrics)


def _path(evaluator: str | Path | None) -> str | None:
    return None if evaluator is None else str(evaluator)
