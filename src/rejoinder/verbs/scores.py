"""Scores as the verbs take them: a file, or the result of :func:`rejoinder.score`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from rejoinder.errors import UsageError
from rejoinder.files.item_file import file_format
from rejoinder.files.jsonl import JsonLines, read_scores
from rejoinder.items import Score
from rejoinder.verbs.monitor import Monitor
from rejoinder.verbs.score import ScoreResult
from rejoinder.verbs.source import path_of

if TYPE_CHECKING:
    from rejoinder.verbs.arguments import Metrics

    ScoresLike: TypeAlias = str | os.PathLike[str] | ScoreResult

_EVALUATOR = re.compile(r"\bevaluator:([^|]+?@[0-9a-f]+)")
"""An evaluator in a signature: its name and digest."""


@dataclass(frozen=True)
class ScoreSource:
    """Numbered scores, and the name of their file."""

    lines: Iterable[tuple[int, Score]]
    name: str
    path: str | None = None
    """None for scores in memory."""


def open_scores(scores: ScoresLike) -> ScoreSource:
    """Open a file of scores, or the result of :func:`rejoinder.score`."""
    _check_type(scores)
    if isinstance(scores, ScoreResult):
        return ScoreSource(enumerate(scores.records(), 1), "the scores")
    path = os.fspath(scores)
    return ScoreSource(read_scores(path), path, path)


def _check_type(scores: Any) -> None:
    if not isinstance(scores, (str, os.PathLike, ScoreResult)):
        raise UsageError(
            "scores: expected the name of a file, or the result of rejoinder.score(…), got"
            f" {type(scores).__name__}"
        )


def split_scores(
    metrics: Metrics | ScoresLike, scores: ScoresLike | None
) -> tuple[Metrics, ScoresLike | None]:
    """Return metrics and scores: scores may be given in place of metrics, too."""
    is_file = isinstance(metrics, os.PathLike) or (
        isinstance(metrics, str) and re.search(r"\.jsonl(\.gz|\.zst)?$", metrics) is not None
    )
    if scores is None and (is_file or isinstance(metrics, ScoreResult)):
        return (), cast("ScoresLike", metrics)
    return cast("Metrics", metrics), scores


def check_order(items: Any, scores: ScoresLike) -> None:
    """Raise UsageError if the files of items and scores are swapped."""
    _check_type(scores)
    path = path_of(items)
    if path is None or path == "-" or file_format(path) != "jsonl":
        return
    lines = JsonLines(path)
    if lines.once:
        return
    for _, record in islice(lines.decode(dict), 1):
        if {"metric", "value"} <= set(record) and "response" not in record:
            name = "the scores" if isinstance(scores, ScoreResult) else os.fspath(scores)
            raise UsageError(
                f"{path} looks like scores: the items come first, then the scores"
                f" (is {name} the file of items?)"
            )


def evaluators_in(signature: str) -> set[str]:
    """Return name and digest of every evaluator in a signature."""
    return set(_EVALUATOR.findall(signature))


def warn_of_other_evaluator(
    signatures: Mapping[str, str], folder: str | None, name: str, monitor: Monitor
) -> None:
    """Warn if scores were made with another evaluator than the one in ``folder``."""
    if folder is None:
        return
    from rejoinder.evaluator import open_evaluator

    evaluator = open_evaluator(folder)
    for metric, signature in signatures.items():
        used = evaluators_in(signature)
        if used and not any(other.endswith(f"@{evaluator.digest}") for other in used):
            monitor.warn(
                f"{name}: {metric} was scored with {', '.join(sorted(used))},"
                f" not with {evaluator}: score the items again, or give the other evaluator"
            )
