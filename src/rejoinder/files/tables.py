"""Read rows of CSV, TSV and Parquet files with their line numbers."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import IO, Any

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.paths import AnyPath, open_regular, reason
from rejoinder.files.tsv import explain_csv, tab_records

DELIMITERS = ",;\t|"
BATCH_ROWS = 1_000

EXCEL = "in Excel, save it as 'CSV UTF-8'"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class CsvRows:
    """The rows of a CSV or TSV file: ``names`` is its header, iterating gives line and cells."""

    def __init__(self, stream: IO[bytes], path: str, delimiter: str | None, max_bytes: int) -> None:
        self._stream, self._path, self._max_bytes = stream, path, max_bytes
        self._line = self._record_bytes = 0
        csv.field_size_limit(max(csv.field_size_limit(), max_bytes))
        first = self._next_line()
        if first is None:
            raise self._wrong(None, "the file is empty; expected a header and rows")
        if separator := re.fullmatch(r"sep=(.)\r?\n", first, re.IGNORECASE):  # written by Excel
            delimiter = separator[1]
            first = self._next_line() or ""
        self._pending = [first]
        delimiter = delimiter or likely_delimiter(first)
        self._reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)
        _, header = next(self._csv_records(), (1, []))
        self.names = [name.strip() for name in header]
        if not any(self.names):
            raise self._wrong(1, "the first line is empty; expected the names of the columns")
        self._records = self._csv_records()
        if delimiter == "\t":
            lines = self._numbered_lines()
            self._records = tab_records(lines, len(self.names), max_bytes, self._wrong)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        width = len(self.names)
        for start, cells in self._records:
            if not any(cells):
                continue  # a blank line, or a row of separators only
            if len(cells) < width or any(cells[width:]):
                raise self._wrong(
                    start,
                    f"the row has {len(cells)} cells, the header {width}; expected as many"
                    " (a cell that contains the separator must be in quotes)",
                )
            yield start, dict(zip(self.names, cells, strict=False))

    def _csv_records(self) -> Iterator[tuple[int, list[str]]]:
        while True:
            start = self._line + (0 if self._pending else 1)
            self._record_bytes = 0
            try:
                yield start, next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise self._wrong(start, f"broken row: {explain_csv(error)}") from None

    def _numbered_lines(self) -> Iterator[tuple[int, str]]:
        self._record_bytes = 0
        while (line := self._next_line()) is not None:
            yield self._line, line
            self._record_bytes = 0

    def _lines(self) -> Iterator[str]:
        while self._pending:
            yield self._pending.pop()
        while (line := self._next_line()) is not None:
            yield line

    def _next_line(self) -> str | None:
        raw = self._stream.readline(self._max_bytes + 1)
        if not raw:
            return None
        self._line += 1
        if self._line == 1:
            if raw.startswith(UTF16):
                raise self._wrong(
                    None, f"the file is in UTF-16; {EXCEL}, or run iconv -f UTF-16 -t UTF-8"
                )
            raw = raw.removeprefix(codecs.BOM_UTF8)
        self._record_bytes += len(raw)
        if self._record_bytes > self._max_bytes:
            raise self._wrong(
                self._line,
                f"the row is longer than {self._max_bytes >> 20} MB; expected small rows"
                " (is a quote not closed?)",
            )
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self._wrong(
                self._line,
                f"the line is not UTF-8; {EXCEL}, or run iconv -f WINDOWS-1252 -t UTF-8",
            ) from None

    def _wrong(self, line: int | None, message: str) -> DataError:
        return DataError(message, path=self._path, line=line)


def likely_delimiter(header: str) -> str:
    """Return what separates the names in the first line of a CSV file.

    >>> likely_delimiter('id;"reply, if any";system')
    ';'
    """
    outside = re.sub(r'"(?:[^"]|"")*"', "", header)
    return max(DELIMITERS, key=outside.count)


class ParquetRows:
    """The rows of a Parquet file: ``names`` are its columns, iterating gives number and cells."""

    def __init__(self, path: AnyPath, stack: ExitStack) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise missing_extra("logs", "pyarrow", task="a Parquet file") from None
        self._path = str(path)
        self._failures: tuple[type[Exception], ...] = (pa.ArrowException, OSError, MemoryError)
        raw = stack.enter_context(open_regular(path))
        try:
            self._file = pq.ParquetFile(raw)
        except self._failures as error:
            raise self._damaged(error) from None
        self.names = list(self._file.schema_arrow.names)

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        number = 0
        try:
            for batch in self._file.iter_batches(batch_size=BATCH_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except self._failures as error:
            raise self._damaged(error) from None
        except (ValueError, OverflowError) as error:  # such as a date that Python has not
            raise DataError(f"a value cannot be read: {error}", path=self._path) from None

    def _damaged(self, error: Exception) -> DataError:
        if isinstance(error, OSError) and error.errno:
            return DataError(f"cannot be read: {reason(error)}", path=self._path)
        why = (str(error).splitlines() or [type(error).__name__])[0]
        return DataError(f"is damaged or no Parquet file ({why})", path=self._path)
