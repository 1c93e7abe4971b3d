"""Pairs of several files in one, all of them or some drawn at random.

A sample keeps the order of the files and of the rows in them. Which rows are drawn depends on the
seed and on how many rows there are, on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rejoinder.engine.tables import write_rows
from rejoinder.io import open_output
from rejoinder.logs.pairs_file import open_pairs
from rejoinder.logs.schema import PAIRS

ROWS = 16_384


def sample_pairs(
    paths: Sequence[str], output: Path, count: int | None = None, seed: int = 12345
) -> tuple[int, int]:
    """Write ``count`` of the pairs in all files, or all of them; returns how many of how many."""
    total = sum(map(_rows, paths))
    chosen = np.ones(total, np.bool_)
    if count is not None and count < total:
        chosen[:] = False
        chosen[np.random.default_rng(seed).choice(total, count, replace=False)] = True
    with open_output(output) as stream:
        return write_rows(stream, _chosen(paths, chosen), PAIRS), total


def _rows(path: str) -> int:
    with open_pairs(path, PAIRS.names) as file:
        rows: int = file.metadata.num_rows
    return rows


def _chosen(paths: Sequence[str], chosen: np.ndarray) -> Iterator[pa.RecordBatch]:
    start = 0
    for path in paths:
        with open_pairs(path, PAIRS.names) as file:
            for batch in file.iter_batches(ROWS, columns=PAIRS.names):
                mask = pa.array(chosen[start : start + batch.num_rows])
                start += batch.num_rows
                yield batch.filter(mask)
