"""load, score, compare, meta, diversity: what the command line does, on items in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rejoinder.errors import DataError
from rejoinder.inputs.items import as_items
from rejoinder.items import Reference, item_from
from rejoinder.meta_evaluation.authors import rated_by_author
from rejoinder.meta_evaluation.correlate import Statistic
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.ranking import compare_systems
from rejoinder.meta_evaluation.study import HUMAN, Settings, study
from rejoinder.metrics.evaluate import evaluate, judge_sets
from rejoinder.metrics.records import item_scores, set_scores
from rejoinder.metrics.request import requests
from rejoinder.verbs.results import Agreement, Items, Rankings, Results, SetResults
from rejoinder.verbs.scoring import scored

if TYPE_CHECKING:
    from rejoinder.inputs.items import Given
    from rejoinder.verbs.evaluator import Evaluator


def load(items: Given) -> Items:
    """All items of a file, a frame, or a list of dictionaries."""
    found, kind = as_items(items)
    return Items(list(found), kind)


def score(
    items: Given,
    metrics: str | Sequence[str],
    *,
    language: str | None = None,
    evaluator: str | Path | Evaluator | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> Results:
    """Score items with item metrics; the result is keyed by the specs as they were given.

    ``evaluator`` is what :func:`fit` made, or its folder, for metrics that ask one.
    """
    found, kind = as_items(items)
    asked = requests(specs := _listed(metrics), language, _folder(evaluator))
    if asked.sets:
        raise DataError(f"{asked.sets[0].label} judges sets of replies; use rejoinder.diversity")
    return scored(found, specs, asked.item_metrics, resamples=resamples, seed=seed, kind=kind)


def score_one(
    metric: str, response: str, references: Sequence[str | Mapping[str, Any] | Reference]
) -> float:
    """The score of one reply, for notebooks; a reply that can't be scored is an error."""
    plain = [
        {"text": r.text, "weight": r.weight} if isinstance(r, Reference) else r for r in references
    ]
    item = item_from({"id": "1", "response": response, "references": plain})
    found = score([item], [metric], resamples=100)[metric]
    for reason in found.unscored.values():
        raise DataError(f"{metric}: {reason}")
    return float(found.values[0])


def compare(
    items: Given,
    metrics: str | Sequence[str],
    *,
    language: str | None = None,
    evaluator: str | Path | Evaluator | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> Rankings:
    """Rank systems by each metric, with intervals, tests and groups.

    A metric by which they can't be compared is left out; if that is so for all, it is an error.
    """
    found, kind = as_items(items)
    asked = requests(_listed(metrics), language, _folder(evaluator))
    batches = evaluate(found, asked.item_metrics, strict=False)
    rankings, _ = compare_systems(asked, batches, resamples=resamples, seed=seed)
    return Rankings(rankings, asked.labels, kind)


def diversity(
    items: Given, metrics: str | Sequence[str], *, language: str | None = None
) -> SetResults:
    """What each set metric says of each system, and of each of its contexts."""
    found, kind = as_items(items)
    asked = requests(_listed(metrics), language)
    if asked.items:
        raise DataError(f"{asked.items[0].label} judges single replies; use rejoinder.score")
    return SetResults(judge_sets(list(found), asked.set_metrics), asked.labels, kind)


def meta(
    items: Given,
    metrics: str | Sequence[str],
    *,
    level: Literal["item", "context", "system"] = "item",
    statistic: Statistic = "spearman",
    human_system: str = HUMAN,
    right: str | Sequence[str] = (),
    language: str | None = None,
    evaluator: str | Path | Evaluator | None = None,
    resamples: int = 1000,
    seed: int = 12345,
) -> Agreement:
    """How well metrics agree with the ratings of the items: scores and correlates in one call.

    ``level`` says what is correlated: replies, the sets of replies to one context, or systems.
    With ``right`` no ratings are read: replies of these systems are right, all others wrong.
    """
    given, kind = as_items(items)
    asked = requests(_listed(metrics), language, _folder(evaluator))
    rated = list(given)
    if right:
        rated = rated_by_author(rated, _listed(right))
    lines = [
        line
        for batch, results in evaluate(rated, asked.item_metrics)
        for line in item_scores(asked.items, batch, results, parts=False)
    ] + set_scores(asked.sets, judge_sets(rated, asked.set_metrics))
    joined = join(rated, enumerate(lines, 1), items_name="items", scores_name="scores")
    settings = Settings(resamples, seed, statistic, None if right else human_system)
    found = study(joined, level, settings)
    return Agreement.of(found, kind)


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _folder(evaluator: str | Path | Evaluator | None) -> str | None:
    if evaluator is None or isinstance(evaluator, (str, Path)):
        return None if evaluator is None else str(evaluator)
    return str(evaluator.path)
