"""Items as the verbs read them: once or twice, from a file, a stream, a frame or memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import ItemFile, ItemReading, Piece
from rejoinder.files.jsonl import CHUNK_LINES, LineChunk
from rejoinder.inputs.items import as_items
from rejoinder.item_table import ItemTable, each_item, tables_of
from rejoinder.items import Item
from rejoinder.verbs.monitor import SILENT, Monitor

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike


@dataclass(frozen=True)
class ItemSource:
    """Items that can be read from the start again, if they were opened with ``twice``."""

    reading: Callable[[], Reading]
    """Begin to read."""
    name: str | None = None
    """The name of the file."""
    frame_kind: str | None = None
    fraction: Callable[[], float | None] = lambda: None
    """The share of the file that has been read."""

    def tables(self) -> Iterator[ItemTable]:
        """Yield the items in tables."""
        return self.reading().tables()

    def read(self) -> Iterator[Item]:
        """Yield the items one by one."""
        return each_item(self.tables())


class MemoryReading:
    """One pass over items in memory, as :class:`ItemReading` is over a file."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items

    def tables(self) -> Iterator[ItemTable]:
        return tables_of(self._items, CHUNK_LINES)

    def pieces(self) -> Iterator[Piece]:
        return (((), table) for table in self.tables())

    def decode_carefully(self, piece: Piece) -> Iterator[ItemTable]:
        if not isinstance(piece, LineChunk):
            yield piece[1]

    def add_chunk(
        self, chunk: LineChunk, ids: Sequence[str], ignored: Mapping[tuple[str, str], int]
    ) -> None:
        """Items in memory have no lines."""

    def finish(self) -> None:
        """Items in memory are checked where they are converted."""


Reading = ItemReading | MemoryReading


@contextmanager
def open_items(
    items: ItemsLike,
    *,
    columns: Columns | None = None,
    twice: bool = False,
    monitor: Monitor = SILENT,
) -> Iterator[ItemSource]:
    """Open a file, a frame or a list of items; errors in the data name the file."""
    if not isinstance(items, (str, os.PathLike)):
        read, kind = as_items(items, columns, monitor.note)
        if twice:
            item_list = list(read)
            yield ItemSource(lambda: MemoryReading(item_list), frame_kind=kind)
        else:
            yield ItemSource(lambda: MemoryReading(read), frame_kind=kind)
        return
    source = ItemFile(os.fspath(items), columns, monitor.note)
    with ExitStack() as stack:
        if twice:
            stack.enter_context(_seekable(source))
        stack.enter_context(naming(source.name))
        yield ItemSource(lambda: ItemReading(source), source.name, fraction=lambda: source.fraction)


@contextmanager
def _seekable(source: ItemFile) -> Iterator[None]:
    """Copy stdin, or another stream, to a temporary file, so that it can be read twice."""
    if not source.once:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="rejoinder-") as folder:
        # the ending says how it is compressed
        path = Path(folder) / f"items{Path(source.path).suffix}"
        with ExitStack() as stack, open(path, "wb") as file:
            shutil.copyfileobj(source.open_bytes(stack), file)
        source.path = str(path)
        yield


@contextmanager
def naming(path: str | None) -> Iterator[None]:
    """Add the file's name to a DataError that does not name one."""
    try:
        yield
    except DataError as error:
        if error.path is not None or path is None:
            raise
        raise DataError(str(error), path=path) from None


def chosen_items(
    items: ItemsLike | None,
    replies: Sequence[str] | None,
    references: Sequence[Any] | None,
    contexts: Sequence[Any] | None,
) -> ItemsLike:
    """Return ``items``, or items made of the lists of texts; UsageError for both or neither."""
    if items is not None:
        if not (replies is references is contexts is None):
            raise UsageError("give either items, or replies with references and contexts")
        return items
    if replies is None:
        raise UsageError("there is nothing to score: give items, or replies=[…]")
    from rejoinder.inputs.texts import from_texts

    return from_texts(replies, references=references, contexts=contexts)


def path_of(items: Any) -> str | None:
    """Return the path of items in a file; None for items in memory."""
    return os.fspath(items) if isinstance(items, (str, os.PathLike)) else None
