"""Concatenate files of pairs, or draw a random sample of them.

A sample keeps the order of the files and of their rows. Which rows are drawn depends only on the
seed and on the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.engine.tables import conform, write_rows
from rejoinder.errors import DataError
from rejoinder.files.output import open_output
from rejoinder.logs.pairs_file import BATCH_ROWS, open_pairs
from rejoinder.logs.schema import PAIRS


def sample_pairs(
    paths: Sequence[str],
    output: Path,
    count: int | None = None,
    seed: int = 12345,
    split: str | None = None,
) -> tuple[int, int]:
    """Write ``count`` pairs of all files, or all; only those of one ``split``, if given. Return
    the numbers of pairs written, and of those that they were drawn from."""
    chosen = np.concatenate([_in_split(path, split) for path in paths])
    total = int(chosen.sum())
    if not total and split is not None:
        raise DataError(f"no pair is of the split {split!r}: corpus names them train, validation"
                        " and test")  # fmt: skip
    if count is not None and count < total:
        drawn = np.random.default_rng(seed).choice(total, count, replace=False)
        rows = np.flatnonzero(chosen)[drawn]
        chosen[:] = False
        chosen[rows] = True
    with open_output(output) as stream:
        return write_rows(stream, _read_chosen(paths, chosen), PAIRS), total


def _in_split(path: str, split: str | None) -> NDArray[np.bool_]:
    """[pairs] which pairs of a file are of a split, or all."""
    with open_pairs(path, PAIRS.names) as file:
        if split is None:
            return np.ones(file.metadata.num_rows, np.bool_)
        equal = pc.equal(file.read(columns=["split"]).column(0).cast(pa.string()), split)
        return np.asarray(pc.fill_null(equal, False).to_numpy())


def _read_chosen(paths: Sequence[str], chosen: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
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
