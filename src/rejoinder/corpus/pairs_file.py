"""Opening a file of pairs; whatever is wrong with it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder.errors import DataError


@contextmanager
def open_pairs(path: str, columns: Sequence[str]) -> Iterator[pq.ParquetFile]:
    """The file, which has these columns."""
    try:
        with pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            if missing := [name for name in columns if name not in there]:
                raise DataError(f"has no column {', '.join(missing)}; expected pairs", path=path)
            yield file
    except OSError as error:
        reason = (error.strerror or str(error)).lower().partition(":")[0]
        raise DataError(f"cannot be read: {reason}", path=path) from None
    except pa.ArrowException:
        raise DataError(
            "not a Parquet file; expected pairs, as 'rejoinder corpus' writes them", path=path
        ) from None
