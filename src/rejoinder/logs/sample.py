"""Concatenate files of pairs, or draw a random sample of them.

A sample keeps the order of the files and of their rows. Which rows are drawn depends only on the
seed and on the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rejoinder.engine.tables import conform, write_rows
from rejoinder.errors import DataError
from rejoinder.files.output import open_output
from rejoinder.logs.pairs_file import BATCH_ROWS, open_pairs
from rejoinder.logs.schema import PAIRS


def sample_pairs(
    paths: Sequence[str], output: Path, count: int | None = None, seed: int = 12345
) -> tuple[int, int]:
    """Write ``count`` pairs of all files, or all; return the numbers of pairs written and read."""
    total = sum(map(_num_rows, paths))
    chosen = np.ones(total, np.bool_)
    if count is not None and count < total:
        chosen[:] = False
        chosen[np.random.default_rng(seed).choice(total, count, replace=False)] = True
    with open_output(output) as stream:
        return write_rows(stream, _read_chosen(paths, chosen), PAIRS), total


def _num_rows(path: str) -> int:
    with open_pairs(path, PAIRS.names) as file:
        rows: int = file.metadata.num_rows
    return rows


def _read_chosen(paths: Sequence[str], chosen: np.ndarray) -> Iterator[pa.RecordBatch]:
    start = 0
    for path in paths:
        with open_pairs(path, PAIRS.names) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=PAIRS.names):
                mask = pa.array(chosen[start : start + batch.num_rows])
                start += batch.num_rows
                try:
                    yield conform(batch.filter(mask), PAIRS)
                except TypeError as error:
                    raise DataError(str(error), path=path) from None
