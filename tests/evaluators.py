"""Small evaluators for tests: a real pool, and networks whose output can be computed by hand.

The scorer counts the words that a reply shares with the last turn, the rater those that two
replies share; both record their inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder.evaluator import Evaluator, Manifest, Retrieval, open_evaluator, write_manifest
from rejoinder.retrieve.index_folder import build_index
from rejoinder.retrieve.retriever import make_retriever

Row = tuple[list[str], str, str]

ROWS: list[Row] = [
    ([], "do you like cheese", "yes i do"),
    (["hello"], "do you like music", "no not really"),
    ([], "where is the cheese", "over there"),
    ([], "is any cheese left", "none at all"),
    ([], "more cheese please", "here you are"),
    ([], "what time is it", "half past nine"),
]


class CountingScorer:
    """s = (1 + words shared with the last turn) / (2 + words of the reply)"""

    def __init__(self) -> None:
        self.inputs_seen: list[tuple[list[str], str]] = []
        self.inputs = object()

    def score(self, contexts: Sequence[Sequence[str]], replies: Sequence[str]) -> np.ndarray:
        self.inputs_seen += [(list(c), r) for c, r in zip(contexts, replies, strict=True)]
        return np.array([shared(c[-1], r) for c, r in zip(contexts, replies, strict=True)])


class CountingRater:
    """2 · s(R1, R2) - 1, and 0.1 more if both answer the same context"""

    def __init__(self) -> None:
        self.inputs_seen: list[tuple[list[str], str, list[str], str]] = []

    def rate(
        self,
        contexts1: Sequence[Sequence[str]],
        responses1: Sequence[str],
        contexts2: Sequence[Sequence[str]],
        responses2: Sequence[str],
    ) -> np.ndarray:
        every = list(zip(contexts1, responses1, contexts2, responses2, strict=True))
        self.inputs_seen += [(list(c1), r1, list(c2), r2) for c1, r1, c2, r2 in every]
        return np.array(
            [2 * shared(r1, r2) - 1 + 0.1 * (list(c1) == list(c2)) for c1, r1, c2, r2 in every]
        )


def shared(a: str, b: str) -> float:
    words = b.split()
    return (1 + len(set(a.split()) & set(words))) / (2 + len(words))


def write_pairs(path: Path, rows: Sequence[Row]) -> str:
    names = ("context", "utterance", "response")
    schema = pa.schema([("context", pa.list_(pa.string()))] + [(n, pa.string()) for n in names[1:]])
    listed = [dict(zip(names, row, strict=True)) for row in rows]
    pq.write_table(pa.Table.from_pylist(listed, schema), path)
    return str(path)


def make_evaluator(
    folder: Path,
    rows: Sequence[Row] = ROWS,
    *,
    by: str = "bm25",
    k: int = 2,
    parrot: bool = True,
    rater: bool = True,
    **more: Any,
) -> Path:
    """Return an evaluator's folder, whose networks are only placeholder files."""
    folder.mkdir()
    pairs = write_pairs(folder / "pairs.parquet", rows)
    build_index(pairs, make_retriever(by), folder / "pool")
    Path(pairs).unlink()
    for name in ("unreferenced", *(["rater"] if rater else [])):
        (folder / name).mkdir()
        (folder / name / "weights").write_text(name)
    # the folder is part of the digest, so no test finds the cached ratings of another
    (folder / "README.md").write_text(f"# {folder}\n")
    write_manifest(folder, Manifest(retrieval=Retrieval(by=by, k=k, parrot=parrot), **more))
    return folder


def open_small(folder: Path) -> Evaluator:
    """Open an evaluator with networks whose output can be computed by hand."""
    evaluator = open_evaluator(folder)
    parts = vars(evaluator)
    parts.setdefault("scorer", CountingScorer())
    has_rater = any(name.startswith("rater/") for name in evaluator.manifest.parts)
    parts.setdefault("rater", CountingRater() if has_rater else None)
    return evaluator


def scorer_of(evaluator: Evaluator) -> CountingScorer:
    """Return the scorer of an evaluator that :func:`open_small` opened."""
    return cast(CountingScorer, evaluator.scorer)


def rater_of(evaluator: Evaluator) -> CountingRater:
    """Return the rater of an evaluator that :func:`open_small` opened."""
    return cast(CountingRater, evaluator.rater)
