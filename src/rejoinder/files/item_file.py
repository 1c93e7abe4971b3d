"""Read items from JSONL, JSON, CSV, TSV and Parquet files.

The ending of the name decides the format: .csv, .tsv and .parquet are tables, a list in a .json
file is one document (dialogue_documents.py), everything else is JSON lines; all but Parquet may be
compressed (.gz, .zst). JSON lines and CSV are streamed, unless a table has a row for each rating:
then all rows of an item must be seen before it is complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.columns import (
    ColumnError,
    ColumnMap,
    Columns,
    lookalikes,
    map_columns,
    missing_fields,
    names_any,
    rename_fields,
)
from rejoinder.files.compressed import DAMAGE
from rejoinder.files.dialogue_documents import item_records as item_records_of_document
from rejoinder.files.jsonl import (
    CHUNK_LINES,
    MAX_LINE_BYTES,
    JsonLines,
    LineChunk,
    UniqueIds,
    explain,
)
from rejoinder.files.paths import AnyPath
from rejoinder.files.tables import CsvRows, ParquetRows
from rejoinder.files.typed_lines import TypedLines
from rejoinder.item_table import ItemTable
from rejoinder.items import Item, ItemReader
from rejoinder.wording import option

T = TypeVar("T")
OnNote = Callable[[str], None]
Numbered = Iterable[tuple[int, Mapping[str, Any]]]
NumberedTable = tuple[Sequence[int], ItemTable]
"""Items with the line of each."""
Piece = LineChunk | NumberedTable

_PEEKED_ROWS = 100
MAX_DOCUMENT_BYTES = 256 * 2**20
"""Bytes of a JSON list, which is read whole."""
_RATINGS = ("ratings", "annotations", "dialogue_ratings")
_SAME_FOR_AN_ITEM = (
    *("response", "context", "system", "context_id", "dialogue_id", "inclusion_probability"),
)
_WORKBOOKS = (".xlsx", ".xls", ".ods")


class ItemFile(JsonLines):
    """A file of items in any of the formats; it can be read again from its start.

    ``columns`` names the columns (or JSON fields) that hold a field, see
    :mod:`rejoinder.files.columns`; ``on_note`` receives what was guessed or ignored, once a file,
    with ``hints`` at ``columns``, unless the caller has no way to give them. Not ``with_ratings``,
    ratings are not read, so that mistakes in them do not matter. A file that is ``one_of_several``
    may have none of the ``columns``: then it is read as if none were named, and ``columns_found``
    stays false.
    """

    def __init__(
        self,
        path: AnyPath,
        columns: Columns | None = None,
        on_note: OnNote | None = None,
        needed: tuple[str, ...] = ("response",),
        *,
        hints: bool = True,
        with_ratings: bool = True,
        one_of_several: bool = False,
    ) -> None:
        super().__init__(path)
        self.format = file_format(self.path)
        self._columns, self._on_note, self._needed = columns, on_note, needed
        self._hints, self._noted = hints, set[str]()
        self._with_ratings = with_ratings
        self._one_of_several, self.columns_found = one_of_several, False

    def decode(self, convert: Callable[[dict[str, Any]], T]) -> Iterator[tuple[int, T]]:
        """Yield line number and converted record; every failure becomes ``file:line: …``."""
        if self.format == "json" and (document := self._document()) is not None:
            for number, record in document:
                yield number, self._convert(convert, record, number)
            return
        if self.format in ("jsonl", "json"):
            yield from self._decode_lines(convert)
            return
        with ExitStack() as stack:
            rows: CsvRows | ParquetRows
            try:
                if self.format == "parquet":
                    rows = ParquetRows(self.path, stack)
                else:
                    delimiter = "\t" if self.format == "tsv" else None
                    rows = CsvRows(self._open(stack), self.name, delimiter, MAX_LINE_BYTES)
                try:
                    peeked = PeekedRows(rows)
                    columns = map_columns(
                        rows.names, self._named(rows.names), self._needed, peeked.first_cells
                    )
                except ColumnError as error:
                    raise self.wrong(None, str(error)) from None
                self.note(columns.note(self._hints))
                records = item_records(peeked, columns, self.wrong, with_ratings=self._with_ratings)
                for line, record in records:
                    yield line, self._convert(convert, record, line)
            except DAMAGE as error:
                raise self.wrong(
                    None, f"the compressed file is damaged or cut off ({error})"
                ) from None

    def _document(self) -> list[tuple[int, dict[str, Any]]] | None:
        """Return the records of a file that is one JSON list, with the numbers of its entries;
        None if it is not."""
        with ExitStack() as stack:
            try:
                content = self._open(stack).read(MAX_DOCUMENT_BYTES + 1)
            except DAMAGE as error:
                raise self.wrong(None, f"the compressed file is damaged ({error})") from None
        if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
            return None
        if len(content) > MAX_DOCUMENT_BYTES:
            raise self.wrong(
                None, f"a JSON list has {MAX_DOCUMENT_BYTES >> 20} MB at most; use JSON lines"
            )
        try:
            document = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
            records = list(item_records_of_document(document))
        except msgspec.ValidationError as error:
            raise self.wrong(None, explain(str(error))) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self.wrong(None, f"broken JSON ({error})") from None
        if self._columns:
            records = [(n, rename_fields(each, self._columns)) for n, each in records]
        if not self._with_ratings:
            records = [
                (n, {name: v for name, v in each.items() if name not in _RATINGS})
                for n, each in records
            ]
        return records

    def _decode_lines(self, convert: Callable[[dict[str, Any]], T]) -> Iterator[tuple[int, T]]:
        seen = _Fields()
        yield from super().decode(self.prepared(convert, seen))
        self.report(seen)

    @property
    def is_plain(self) -> bool:
        """Whether all fields of JSON lines are read under their own names."""
        return not self._columns and self._with_ratings

    def prepared(
        self, convert: Callable[[dict[str, Any]], T], seen: _Fields
    ) -> Callable[[dict[str, Any]], T]:
        """Return a conversion of records with the names of fields that the file has."""

        def prepared(record: dict[str, Any]) -> T:
            if self._columns:
                seen.names.update(record)
                record = rename_fields(record, self._columns)
            if not self._with_ratings:
                record = {name: v for name, v in record.items() if name not in _RATINGS}
            alike = lookalikes(record)
            seen.ignored.update(alike.items())
            try:
                return convert(record)
            except msgspec.ValidationError as error:
                for name, meant in alike.items():
                    if f"missing required field `{meant}`" in str(error):
                        raise msgspec.ValidationError(
                            f"{error}; there is '{name}':"
                            f" {option('columns', {meant: name})} reads it"
                        ) from None
                raise

        return prepared

    def report(self, seen: _Fields) -> None:
        """Report the fields of JSON lines that were not read; DataError for columns they lack."""
        names = seen.names
        wanted = self._named(names)
        if wanted and names and (problem := missing_fields(wanted, names)):
            raise self.wrong(None, problem)
        for (name, meant), count in seen.ignored.items():
            self.note(
                f"the field '{name}' ({count:,} lines) is not read;"
                f" if it holds the {meant}, add {option('columns', {meant: name})}"
            )

    def _named(self, names: Collection[str]) -> Columns | None:
        """Return the columns that the caller named, if they are meant for this file."""
        if self._columns is None:
            return None
        self.columns_found = names_any(self._columns, names)
        return self._columns if self.columns_found or not self._one_of_several else None

    def _convert(self, convert: Callable[[dict[str, Any]], T], record: Any, line: int) -> T:
        try:
            return convert(record)
        except msgspec.ValidationError as error:
            raise self.wrong(line, explain(str(error))) from None
        except OverflowError:
            raise self.wrong(line, "a number is too large") from None

    def note(self, text: str | None) -> None:
        """Report something about the file, once."""
        if text and self._on_note is not None and text not in self._noted:
            self._noted.add(text)
            self._on_note(f"{self.name}: {text}")


@dataclass
class _Fields:
    """The names of fields in JSON lines."""

    names: set[str] = field(default_factory=set)
    """All names, if columns are named."""
    ignored: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Lines with a field that is not read, but looks like one that is missing."""


def _tables(items: Iterator[tuple[int, Item]]) -> Iterator[NumberedTable]:
    """Put items with their lines together; an error is raised after the items before it."""
    problem = None
    while problem is None:
        lines, some = [], []
        try:
            for line, item in islice(items, CHUNK_LINES):
                lines.append(line)
                some.append(item)
        except DataError as error:
            problem = error
        if not some:
            break
        yield lines, ItemTable.of(some)
    if problem is not None:
        raise problem


class PeekedRows:
    """Rows of which the first can be looked at before they are read."""

    def __init__(self, rows: Numbered) -> None:
        self._rows = iter(rows)
        self._first: list[tuple[int, Mapping[str, Any]]] = []

    def first_cells(self, name: str) -> list[Any]:
        """Return the first cells of a column."""
        if not self._first:
            self._first = list(islice(self._rows, _PEEKED_ROWS))
        return [row.get(name) for _, row in self._first]

    def __iter__(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        yield from self._first
        yield from self._rows


def file_format(path: str) -> str:
    """Return ``jsonl``, ``json``, ``csv``, ``tsv`` or ``parquet``, by the ending of a name."""
    plain = path.lower().removesuffix(".gz").removesuffix(".zst")
    if plain.endswith(_WORKBOOKS):
        raise DataError("is a workbook of Excel; save it as 'CSV UTF-8' and give that", path=path)
    if plain.endswith((".parquet", ".pq")):
        return "parquet"
    if plain.endswith(".json"):
        return "json"
    return (
        "csv" if plain.endswith(".csv") else "tsv" if plain.endswith((".tsv", ".tab")) else "jsonl"
    )


def item_records(
    rows: Numbered,
    columns: ColumnMap,
    wrong: Callable[[int, str], DataError],
    *,
    with_ratings: bool = True,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the records of a table with their line numbers, also ``with_ratings``.

    Where a column names the annotator, each row is one rating: rows of the same id (or, without
    ids, of the same context, system and response) are gathered into one record.
    """
    if not with_ratings:
        texts = {name: each for name, each in columns.fields.items() if name not in _RATINGS}
        columns = replace(columns, fields=texts)
    records = _records(rows, columns, wrong)
    if "annotator" not in columns.fields:
        yield from records
        return
    gathered: dict[Any, tuple[int, dict[str, Any]]] = {}
    for line, record in records:
        annotator, rating = record.pop("annotator", None), record.pop("ratings", None)
        content = [
            record.get(name)
            for name in ("context", "context_id", "dialogue_id", "system", "response")
        ]
        key = record["id"] if "id" in columns.fields else msgspec.json.encode(content)
        if not isinstance(key, (str, int, bytes)):
            raise wrong(line, "id: expected text or a whole number")
        first, kept = gathered.setdefault(key, (line, {**record, "ratings": {}}))
        for name in _SAME_FOR_AN_ITEM:
            if record.get(name) != kept.get(name):
                raise wrong(
                    line,
                    f"the id '{record['id']}' is in line {first} with another {name}; expected one"
                    " item an id, with a row for each annotator",
                )
        if isinstance(own := record.get("references"), list):
            kept["references"] = _union(kept.get("references", []), own)
        if rating is None:
            continue
        if annotator is None:
            raise wrong(line, "the annotator of the rating is missing")
        if annotator in kept["ratings"]:
            same = "the same id" if "id" in columns.fields else "equal texts and no id"
            raise wrong(
                line,
                f"annotator '{annotator}' has rated this item in a row before (line {first} is its"
                f" first; rows with {same} are one item): remove the row, or give the rows of"
                " different items different ids",
            )
        kept["ratings"][annotator] = rating
    for line, record in gathered.values():
        yield line, {name: value for name, value in record.items() if value != {}}


def _union(references: Any, more: list[Any]) -> Any:
    """Return the references of two rows of an item, each once."""
    if not isinstance(references, list):
        references = [references]
    return references + [each for each in more if each not in references]


def _records(
    rows: Numbered, columns: ColumnMap, wrong: Callable[[int, str], DataError]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, row in rows:
        try:
            record = columns.record(row)
        except msgspec.ValidationError as error:
            raise wrong(line, explain(str(error))) from None
        for name in ("id", "dialogue_id") if columns.is_dstc10 else ("id",):
            if name in columns.fields and record.get(name) is None:
                raise wrong(line, f"the {name} is missing; expected a name or number")
        if "response" in columns.fields and record.get("response") is None:
            record["response"] = ""  # an empty cell, which frames and Parquet files store as null
        yield line, record


def repetition_note(count: int) -> str | None:
    """Return a warning about records that repeat others; None if there are none."""
    if not count:
        return None
    rows = "1 row repeats" if count == 1 else f"{count:,} rows repeat"
    return (
        f"{rows} the same context, system and reply, and each is scored; if they are ratings of"
        f" several annotators, add {option('columns', {'annotator': 'NAME', 'ratings': 'NAME'})}"
    )


class ItemReading:
    """One pass over a file of items, piece by piece.

    A piece is a chunk of lines, or a table of items with the line of each. Chunks may be decoded
    in other processes; what must be seen in order, such as ids, passes through here.
    """

    def __init__(self, file: ItemFile) -> None:
        self._file, self._ids, self._empty = file, UniqueIds(file), True
        self._reader = ItemReader(of_table=not file.format.startswith("json"))
        self._fields = _Fields()
        self._convert = file.prepared(self._reader.item, self._fields)
        self._typed = TypedLines() if file.is_plain else None

    def pieces(self) -> Iterator[Piece]:
        """Yield the file in pieces."""
        if self._file.format == "jsonl":
            return self._file.chunks()
        return _tables(self._file.decode(self._reader.item))

    def tables(self) -> Iterator[ItemTable]:
        """Yield the items of all pieces; lines are decoded at once, or else one by one."""
        for piece in self.pieces():
            table = None
            if self._typed is not None and isinstance(piece, LineChunk):
                table = self._typed.table(piece.lines)
            if self._typed is None or table is None or not isinstance(piece, LineChunk):
                yield from self.decode_carefully(piece)
            else:
                self.add_chunk(piece, table.ids, self._typed.ignored)
                yield table
        self.finish()

    def decode_carefully(self, piece: Piece) -> Iterator[ItemTable]:
        """Decode lines one by one, so that every mistake in them is named."""
        tables: Iterable[NumberedTable] = [piece] if not isinstance(piece, LineChunk) else ()
        if isinstance(piece, LineChunk):
            tables = _tables(self._file.decode_lines(piece.numbered(), self._convert))
        for lines, table in tables:
            self.add(lines, table.ids)
            yield table

    def add_chunk(
        self, chunk: LineChunk, ids: Sequence[str], ignored: Mapping[tuple[str, str], int]
    ) -> None:
        """Take note of a chunk that was decoded at once."""
        self._fields.ignored.update(ignored)
        self.add(range(chunk.first, chunk.first + len(ids)), ids)

    def add(self, lines: Sequence[int], ids: Sequence[str]) -> None:
        """Take note of items; an id that repeats an earlier one is an error."""
        self._empty = False
        self._ids.extend(lines, ids)

    def finish(self) -> None:
        """Check what only the end shows: missing columns, an empty file, repeated ids."""
        if self._file.format == "jsonl":
            self._file.report(self._fields)
        if self._empty:
            raise self._file.wrong(None, "the file is empty; expected items, one a line")
        self._ids.check()
        self._file.note(repetition_note(self._reader.repeated))


def read_tables(
    source: AnyPath | ItemFile,
    columns: Columns | None = None,
    on_note: OnNote | None = None,
) -> Iterator[ItemTable]:
    """Stream the items of a file in tables; an empty file and a repeated id are errors."""
    file = source if isinstance(source, ItemFile) else ItemFile(source, columns, on_note)
    return ItemReading(file).tables()


def read_items(
    source: AnyPath | ItemFile,
    columns: Columns | None = None,
    on_note: OnNote | None = None,
) -> Iterator[Item]:
    """Stream the items of a file, as :func:`read_tables` does."""
    for table in read_tables(source, columns, on_note):
        yield from table
