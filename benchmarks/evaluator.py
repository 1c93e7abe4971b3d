"""Scoring 10,000 replies with a fitted evaluator: from a warm cache against an empty one.

    python benchmarks/evaluator.py [EVALUATOR]

The replies are those of the DailyDialog test dialogues, each with its true reply for a reference,
and replies from other dialogues. Without an EVALUATOR, one is fitted first to the validation
dialogues (preset small, one epoch: quality does not matter here). The peer is the first run,
which encodes every text; the second reads all vectors from the cache. Both give the same scores.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.files import cache
from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric_set import make_metrics
from table import show

ROOT = Path(__file__).resolve().parent.parent
REPLIES = 10_000
METRICS = ("vbleu", "unreferenced")
LEAST = 3
TOLERANCE = 1e-4


def run(folder: str | None) -> list[dict[str, Any]]:
    data = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")
    os.environ["REJOINDER_DATA"] = str(data)
    items = replies(data / "dailydialog" / "test.txt")
    with tempfile.TemporaryDirectory() as work:
        folder = folder or fitted(data / "dailydialog" / "validation.txt", Path(work))
        asked = make_metrics(METRICS, evaluator=folder)
        _forget(f"{work}/cache")
        list(evaluate(items[:50], asked.item_metrics))  # networks are loaded, kernels compiled
        _forget(f"{work}/cache2")
        first, values = _timed(items, folder)
        _forget(f"{work}/cache2")
        again, cached = _timed(items, folder)
    if not np.allclose(values, cached, atol=TOLERANCE, equal_nan=True):
        raise AssertionError("the cache gave different scores")
    return [
        {
            "name": f"{' and '.join(METRICS)}, {len(items):,} replies, warm cache / empty cache",
            "ours_seconds": again,
            "peer_seconds": first,
            "ratio": first / again,
            "required": LEAST,
        }
    ]


def replies(path: Path) -> list[Item]:
    """Return items with, alternately, the true reply and one from another dialogue."""
    dialogues = [
        [turn.strip() for turn in line.split("__eou__") if turn.strip()]
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    known = [(turns[:k], turns[k]) for turns in dialogues for k in range(1, len(turns))]
    items = []
    for number in range(REPLIES):
        context, reply = known[number // 2 % len(known)]
        said = known[(number * 7919) % len(known)][1] if number % 2 else reply
        references = [Reference(reply)] if number % 4 < 2 else []
        items.append(Item(str(number), said, context=context[-4:], references=references))
    return items


def fitted(logs: Path, work: Path) -> str:
    from rejoinder.fitting.fit import fit
    from rejoinder.fitting.settings import read_settings

    changes = ["rater.training.epochs=1", "unreferenced.training.epochs=1", "validation.ranges=[]"]
    settings = read_settings("small", "en", overrides=changes)
    fit([str(logs)], work / "evaluator", settings, format="dailydialog")
    return str(work / "evaluator")


def _forget(folder: str) -> None:
    """Clear the memory cache and use this folder for the disk cache."""
    os.environ["REJOINDER_CACHE"] = folder
    cache._cache_in.cache_clear()


def _timed(items: list[Item], folder: str) -> tuple[float, np.ndarray]:
    metrics = make_metrics(METRICS, evaluator=folder).item_metrics
    start = time.perf_counter()
    results = [[scored.values for scored in found] for _, found in evaluate(items, metrics)]
    return time.perf_counter() - start, np.concatenate(results, axis=1)


if __name__ == "__main__":
    show(run(sys.argv[1] if len(sys.argv) > 1 else None))
