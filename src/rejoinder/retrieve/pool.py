"""The pool: pairs of utterance and response that references and replies are taken from.

Its texts lie in an Arrow file, whichever way it was opened: a folder made by ``rejoinder index``
brings its own; the pairs of a Parquet file are copied into a temporary one, without the columns
that nobody asks for here. So rows have numbers that mean the same everywhere (the order of the
pairs), any row can be read at once, and memory does not grow with the pool.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.logs.pairs_file import open_pairs
from rejoinder.progress import Progress
from rejoinder.retrieve.base import UTTERANCE, Hits, Index, Ints, Mask, Queries, Retriever

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 16_384
"""Rows of a batch in the Arrow file."""
PAIRS = "pairs.arrow"
REPLIES = "replies.npy"


class Pool:
    """Texts by row number. Close it, or let it go: its temporary files go with it."""

    def __init__(
        self, path: str, folder: Path, size: int, digest: str, retriever: Retriever | None = None
    ) -> None:
        self.path, self.folder = path, folder
        self.size, self.digest = size, digest
        self.retriever = retriever
        """The one that the pool was indexed for, if it was opened as an index."""
        self.notes: dict[str, int] = {}
        """Rows of no use to the last index that was made or opened, by reason."""
        self._indexes: dict[Retriever, Index] = {}
        self._mapped: Any = None
        self._scratch: Path | None = None
        self._cleanup: Callable[[], object] = lambda: None

    def utterances(self, rows: Ints | Sequence[int]) -> list[str]:
        return self._take("utterance", rows)

    def responses(self, rows: Ints | Sequence[int]) -> list[str]:
        return self._take("response", rows)

    def contexts(self, rows: Ints | Sequence[int]) -> list[list[str]]:
        """The turns before the utterance."""
        return self._take("context", rows)

    def _take(self, column: str, rows: Ints | Sequence[int]) -> list[Any]:
        import pyarrow as pa

        wanted = np.asarray(rows, np.int64)
        if not wanted.size:
            return []
        if wanted.min() < 0 or wanted.max() >= self.size:
            raise IndexError(f"rows of the pool are from 0 to {self.size - 1}")
        if self._mapped is None:
            self._mapped = pa.ipc.open_file(pa.memory_map(str(self.folder / PAIRS)))
        found: list[Any] = [None] * wanted.size
        order = np.argsort(wanted, kind="stable")
        numbers, firsts = np.unique(wanted[order] // ROWS, return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True):
            batch = self._mapped.get_batch(number)
            texts = batch.column(column).take(pa.array(wanted[places] - number * ROWS))
            for place, text in zip(places.tolist(), texts.to_pylist(), strict=True):
                found[place] = text
        return found

    def batches(self, columns: list[str], start: int = 0) -> Iterator[pa.RecordBatch]:
        """All rows from a multiple of ROWS on; read, not mapped, so that they leave memory."""
        import pyarrow as pa

        with pa.OSFile(str(self.folder / PAIRS)) as file, pa.ipc.open_file(file) as reader:
            for number in range(start // ROWS, reader.num_record_batches):
                yield reader.get_batch(number).select(columns)

    def keys(self, key: str, retriever: Retriever, start: int = 0) -> Iterator[list[str]]:
        """The texts of a key, a batch of ROWS at a time."""
        if key != UTTERANCE or retriever.turns == 1:
            for batch in self.batches([key], start):
                yield batch.column(0).to_pylist()
            return
        for batch in self.batches(["context", "utterance"], start):
            turns = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield [retriever.key([*context, utterance]) for context, utterance in turns]

    def replies(self) -> NDArray[np.int64]:
        """A number for the response of every row; equal responses have equal numbers.

        64 bits of a hash: two different responses among a hundred million share one with a
        chance of 1 in 3,700, and then one of them is found less often than it might be.
        """
        return np.load(self.folder / REPLIES, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]

    def index(self, retriever: Retriever, on_progress: Progress | None = None) -> Index:
        """The pool ready for a retriever: as it was opened, or made now and kept until closed."""
        if retriever not in self._indexes:
            ready = retriever == self.retriever
            folder = (self.folder if ready else self.scratch) / index_name(retriever)
            if not ready:
                folder.mkdir(exist_ok=True)
                self.notes = retriever.build(self, folder, on_progress)
            self._indexes[retriever] = retriever.open(folder, self.size)
        return self._indexes[retriever]

    def search(
        self,
        retriever: Retriever,
        queries: Queries,
        k: int,
        *,
        exclude: Ints | Mask | None = None,
        distinct: bool = False,
        on_progress: Progress | None = None,
    ) -> Hits:
        """The k most similar rows of each query.

        ``exclude`` (row numbers, or a mask of all rows) leaves rows out; with ``distinct``, no two
        rows of a query have the same response.
        """
        return self.index(retriever, on_progress).search(
            queries,
            k,
            skip=mask_of(exclude, self.size),
            holds=self.replies() if distinct else None,
            on_progress=on_progress,
        )

    @property
    def scratch(self) -> Path:
        """Where indexes are made: a temporary folder, unless whoever opened the pool gave one."""
        if self._scratch is None:
            self.own(Path(tempfile.mkdtemp(prefix="rejoinder-pool-")))
        assert self._scratch is not None
        return self._scratch

    def own(self, folder: Path, *, remove: bool = True) -> None:
        self._scratch = folder
        if remove:
            self._cleanup = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def close(self) -> None:
        self._indexes.clear()
        self._mapped = None
        self._cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def mask_of(exclude: Ints | Mask | None, size: int) -> Mask | None:
    """Row numbers, or a mask already, as a mask of all rows."""
    if exclude is None:
        return None
    mask: Mask = np.zeros(size, np.bool_)
    mask[exclude] = True
    return mask


def index_name(retriever: Retriever) -> str:
    """The folder of an index inside that of its pool: other settings, another name."""
    told = f"{retriever} {sorted(retriever.depends.items())}"
    return f"index-{hashlib.blake2b(told.encode(), digest_size=6).hexdigest()}"


def open_pool(path: str | Path, *, split: str | None = None, work: Path | None = None) -> Pool:
    """Open pairs (Parquet) or a folder made by ``rejoinder index``.

    ``split`` takes only the pairs of train, validation or test. ``work`` is a folder for the copy
    of the texts and for indexes, which stays; without one, both are temporary.
    """
    if Path(path).is_dir():
        from rejoinder.retrieve.folder import open_index

        if split is not None:
            raise UsageError(
                f"{path} is an index, which was made of one split or of all; leave out the split"
            )
        return open_index(Path(path))
    folder = work or Path(tempfile.mkdtemp(prefix="rejoinder-pool-"))
    try:
        size, digest = copy_pairs(str(path), folder, split)
    except BaseException:
        if work is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    pool = Pool(str(path), folder, size, digest)
    pool.own(folder, remove=work is None)
    return pool


def copy_pairs(path: str, folder: Path, split: str | None) -> tuple[int, str]:
    """Write the texts of pairs as an Arrow file, and the numbers of their responses beside it.

    Returns how many there are, and a digest of them.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingExtra("pairs are Parquet files: pip install pyarrow") from None
    from rejoinder.engine.tables import digest, regroup

    schema = pa.schema(
        [
            pa.field("context", pa.list_(pa.string())),
            pa.field("utterance", pa.string()),
            pa.field("response", pa.string()),
        ]
    )
    sums, size = hashlib.blake2b(digest_size=8), 0
    numbers = []
    with pa.OSFile(str(folder / PAIRS), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for group in regroup(_read(path, split, schema), ROWS):
            batch = pa.Table.from_batches(group, schema).combine_chunks().to_batches()[0]
            writer.write_batch(batch)
            sums.update(digest([batch]).encode())
            numbers.append(_numbers(batch.column("response").to_pylist()))
            size += batch.num_rows
    if not size:
        raise DataError("the pool is empty: it has no pair", path=path)
    np.save(folder / REPLIES, np.concatenate(numbers))
    return size, sums.hexdigest()


def _numbers(texts: Iterable[str]) -> NDArray[np.int64]:
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), np.int64)


def _read(path: str, split: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The wanted columns and rows of a Parquet file; whatever is wrong with it is said."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = ["utterance", "response", *(["split"] if split is not None else [])]
    with open_pairs(path, wanted) as file:
        names = set(file.schema_arrow.names)
        if has_context := "context" in names:
            wanted.append("context")
        kept = row = 0
        splits: set[str] = set()
        for batch in file.iter_batches(ROWS, columns=wanted):
            columns = {name: batch.column(name) for name in wanted}
            if split is not None:
                splits |= set(columns["split"].unique().to_pylist())
                chosen = pc.equal(columns["split"], split)
                columns = {name: column.filter(chosen) for name, column in columns.items()}
            count = len(columns["utterance"])
            if not has_context:
                columns["context"] = pa.array([[]] * count, pa.list_(pa.string()))
            try:
                arrays = [columns[field.name].cast(field.type) for field in schema]
            except pa.ArrowException:
                raise DataError(
                    "utterance and response must be texts, context a list of texts", path=path
                ) from None
            if any(array.null_count for array in arrays):
                raise DataError(
                    f"a text is missing (NULL) between rows {row} and {row + batch.num_rows}",
                    path=path,
                )
            row += batch.num_rows
            kept += count
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if split is not None and not kept:
            known = ", ".join(sorted(name for name in splits if name))
            raise DataError(f"has no pair of the split '{split}' (it has {known})", path=path)
