"""Opening a file of pairs; whatever is wrong with it is said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rejoinder.errors import DataError, MissingExtra

if TYPE_CHECKING:
    import pyarrow.parquet as pq


@contextmanager
def open_pairs(path: str | Path, columns: Sequence[str]) -> Iterator[pq.ParquetFile]:
    """The file, which has these columns. Damage is often found only when a part is read: do no more
    in the block than reading."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra("pairs are Parquet files: pip install pyarrow") from None
    name = str(path)
    try:
        open(path, "rb").close()  # Arrow's own words are less plain
        with pq.ParquetFile(path) as file:
            there = file.schema_arrow.names
            if missing := [column for column in columns if column not in there]:
                raise DataError(f"has no column {', '.join(missing)}; expected pairs", path=name)
            yield file
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.strerror:
            raise DataError(f"cannot be read: {error.strerror.lower()}", path=name) from None
        raise DataError(
            f"not a Parquet file, or a damaged one ({str(error).partition(chr(10))[0]});"
            " expected pairs, as 'rejoinder corpus' writes them",
            path=name,
        ) from None
