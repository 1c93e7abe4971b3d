"""Fixtures: small pools, and a plain implementation of retrieval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.retrieve.index_folder import open_pool
from rejoinder.retrieve.pool import Pool

Row = tuple[str, str] | tuple[list[str], str, str]
Ranked = list[list[tuple[int, Any]]]


@pytest.fixture
def pairs(tmp_path: Path) -> Callable[..., str]:
    """Write pairs as Parquet: (utterance, response) or (context, utterance, response)."""

    def write(rows: Sequence[Row], name: str = "pairs.parquet", **options: Any) -> str:
        full = [([], *row) if len(row) == 2 else row for row in rows]
        names = ("context", "utterance", "response")
        schema = pa.schema(
            [("context", pa.list_(pa.string()))] + [(n, pa.string()) for n in names[1:]]
        )
        listed = [dict(zip(names, row, strict=True)) for row in full]
        pq.write_table(pa.Table.from_pylist(listed, schema), tmp_path / name, **options)
        return str(tmp_path / name)

    return write


@pytest.fixture
def pool_of(pairs: Callable[..., str]) -> Iterator[Callable[..., Pool]]:
    with ExitStack() as stack:
        yield lambda rows: stack.enter_context(open_pool(pairs(rows)))


@pytest.fixture(scope="session")
def ranked() -> Callable[..., Ranked]:
    """The k best (row, similarity) of each query, from a table of all similarities [q, n]."""

    def rank(
        similarities: Any,
        k: int,
        skip: Sequence[int] = (),
        holds: Sequence[Any] | None = None,
    ) -> Ranked:
        found = []
        for line in np.asarray(similarities, np.float64).astype(np.float32):
            best: list[tuple[int, Any]] = []
            seen = set()
            for row in sorted(range(len(line)), key=lambda row, line=line: (-line[row], row)):
                held = row if holds is None else holds[row]
                if line[row] != 0 and row not in skip and held not in seen and len(best) < k:
                    best.append((row, line[row]))
                    seen.add(held)
            found.append(best)
        return found

    return rank


@pytest.fixture(scope="session")
def listed() -> Callable[..., Ranked]:
    """Rows and scores of hits in the same shape."""

    def lists(rows: Any, scores: Any) -> Ranked:
        return [
            [(int(r), s) for r, s in zip(some, each, strict=True) if r >= 0]
            for some, each in zip(rows, scores, strict=True)
        ]

    return lists
