"""The pool: pairs of utterance and response that references and replies are retrieved from.

Its texts are in an Arrow file: a folder made by ``rejoinder index`` contains one; the pairs of a
Parquet file are copied into a temporary one, without the columns that retrieval does not use. So
row numbers (the order of the pairs) mean the same everywhere, any row can be read directly, and
memory does not grow with the pool.
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

from rejoinder.errors import DataError, missing_extra
from rejoinder.files.checked import read_array
from rejoinder.files.paths import open_regular, read_error
from rejoinder.logs.pairs_file import has_nulls, open_pairs, read_pairs_batches
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import (
    UTTERANCE,
    Hits,
    Index,
    Ints,
    Mask,
    Queries,
    Retriever,
    SearchOptions,
)

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 16_384
"""Rows of a batch in the Arrow file."""
PAIRS = "pairs.arrow"
RESPONSE_IDS = "replies.npy"


class Pool:
    """The texts of pairs by row number. Closing it deletes its temporary files."""

    def __init__(
        self, path: str, folder: Path, size: int, digest: str, retriever: Retriever | None = None
    ) -> None:
        self.path, self.folder = path, folder
        self.size, self.digest = size, digest
        self.retriever = retriever
        """The retriever that the pool was indexed for, if it was opened as an index."""
        self.notes: dict[str, int] = {}
        """Rows that the last index that was built or opened cannot use, by reason."""
        self._indexes: dict[Retriever, Index] = {}
        self._mapped: _PairsFile | None = None
        self._scratch: Path | None = None
        self._cleanup: Callable[[], object] = lambda: None

    def utterances(self, rows: Ints | Sequence[int]) -> list[str]:
        return self.texts("utterance", rows)

    def responses(self, rows: Ints | Sequence[int]) -> list[str]:
        return self.texts("response", rows)

    def contexts(self, rows: Ints | Sequence[int]) -> list[list[str]]:
        """Return the turns before the utterance."""
        return self.texts("context", rows)

    def texts(self, column: str, rows: Ints | Sequence[int]) -> list[Any]:
        """Return the values of a column (utterance, response or context) in these rows."""
        import pyarrow as pa

        wanted = np.asarray(rows, np.int64)
        if not wanted.size:
            return []
        if wanted.min() < 0 or wanted.max() >= self.size:
            raise IndexError(f"rows of the pool are from 0 to {self.size - 1}")
        if self._mapped is None:
            self._mapped = _PairsFile(self.folder / PAIRS, self.size, mmap=True)
        values: list[Any] = [None] * wanted.size
        order = np.argsort(wanted, kind="stable")
        numbers, firsts = np.unique(wanted[order] // BATCH_ROWS, return_index=True)
        for number, places in zip(numbers.tolist(), np.split(order, firsts[1:]), strict=True):
            batch = self._mapped.batch(number)
            taken = batch.column(column).take(pa.array(wanted[places] - number * BATCH_ROWS))
            for place, value in zip(places.tolist(), taken.to_pylist(), strict=True):
                values[place] = value
        return values

    def batches(self, columns: list[str], start: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield all rows from a multiple of BATCH_ROWS on; read, not mapped, to free the memory."""
        with _PairsFile(self.folder / PAIRS, self.size) as file:
            for number in range(start // BATCH_ROWS, file.num_batches):
                yield file.batch(number).select(columns)

    def keys(self, key: str, retriever: Retriever, start: int = 0) -> Iterator[list[str]]:
        """Yield the texts of a key in batches of BATCH_ROWS."""
        if key != UTTERANCE or retriever.turns == 1:
            for batch in self.batches([key], start):
                yield batch.column(0).to_pylist()
            return
        for batch in self.batches(["context", "utterance"], start):
            turns = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            yield [retriever.key([*context, utterance]) for context, utterance in turns]

    def check_size(self) -> None:
        """Raise DataError unless the files have as many rows as the manifest says."""
        with _PairsFile(self.folder / PAIRS, self.size):
            self.response_ids()

    def response_ids(self) -> NDArray[np.int64]:
        """Return a number for the response of every row; equal responses have equal numbers.

        The numbers are 64 bits of a hash: among a hundred million responses, two different ones
        share a number with a probability of 1 in 3,700; then only the better one is returned.
        """
        path = self.folder / RESPONSE_IDS
        return read_array(path, dtype="int64", shape=(self.size,), mmap=True)

    def index(self, retriever: Retriever, on_progress: Progress | None = None) -> Index:
        """Return the pool's index for a retriever; one that is missing is built until closing."""
        if retriever not in self._indexes:
            is_built = retriever == self.retriever
            folder = (self.folder if is_built else self.scratch) / index_name(retriever)
            if not is_built:
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
        """Return the k most similar rows for each query.

        ``exclude`` (row numbers, or a mask of all rows) leaves rows out; with ``distinct``, no two
        rows of a query have the same response.
        """
        options = SearchOptions(
            exclusion_mask(exclude, self.size),
            self.response_ids() if distinct else None,
            on_progress,
        )
        return self.index(retriever, on_progress).search(queries, k, options)

    @property
    def scratch(self) -> Path:
        """The folder for new indexes: temporary, unless :meth:`use_scratch` set one."""
        if self._scratch is None:
            self.use_scratch(Path(tempfile.mkdtemp(prefix="rejoinder-pool-")))
        assert self._scratch is not None
        return self._scratch

    def use_scratch(self, folder: Path, *, remove: bool = True) -> None:
        """Set the folder for new indexes; ``remove`` deletes it when the pool is closed."""
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


class _PairsFile:
    """The Arrow file of a pool: batches of BATCH_ROWS rows, each checked when it is first read."""

    def __init__(self, path: Path, size: int, *, mmap: bool = False) -> None:
        import pyarrow as pa

        self._path, self._size = path, size
        self._checked: set[int] = set()
        open_regular(path).close()
        try:
            self._source = pa.memory_map(str(path)) if mmap else pa.OSFile(str(path))
            self._reader = pa.ipc.open_file(self._source)
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from None
        self.num_batches = -(-size // BATCH_ROWS)
        if self._reader.num_record_batches != self.num_batches:
            raise DataError(
                f"has {self._reader.num_record_batches} batches;"
                f" expected {self.num_batches} for {size} pairs",
                path=str(path),
            )
        if not self._reader.schema.equals(_schema()):
            columns = ", ".join(f"{field.name} ({field.type})" for field in self._reader.schema)
            raise DataError(f"has the columns {columns}; expected pairs of texts", path=str(path))

    def batch(self, number: int) -> pa.RecordBatch:
        import pyarrow as pa

        try:
            batch = self._reader.get_batch(number)
            if number not in self._checked:
                batch.validate(full=True)
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise self._damaged(error) from None
        if number not in self._checked:
            expected = min(BATCH_ROWS, self._size - number * BATCH_ROWS)
            if batch.num_rows != expected:
                raise DataError(
                    f"has {batch.num_rows} rows in batch {number}; expected {expected}",
                    path=str(self._path),
                )
            if any(map(has_nulls, batch.columns)):
                raise DataError("a text is missing (NULL)", path=str(self._path))
            self._checked.add(number)
        return batch

    def _damaged(self, error: Exception) -> DataError:
        return read_error(self._path, error, "is damaged or no Arrow file ({})")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()


def exclusion_mask(exclude: Ints | Mask | None, size: int) -> Mask | None:
    """Return row numbers, or a mask, as a mask of all rows."""
    if exclude is None:
        return None
    mask: Mask = np.zeros(size, np.bool_)
    mask[exclude] = True
    return mask


def index_name(retriever: Retriever) -> str:
    """Return the folder of an index inside that of its pool, which depends on all settings."""
    settings = f"{retriever} {sorted(retriever.depends.items())}"
    return f"index-{hashlib.blake2b(settings.encode(), digest_size=6).hexdigest()}"


def open_pairs_pool(path: str, *, split: str | None = None, work: Path | None = None) -> Pool:
    """Open the pairs of a Parquet file, or those of one split.

    ``work`` is a folder for the copy of the texts and for indexes, which is kept; without one, both
    are temporary.
    """
    folder = work or Path(tempfile.mkdtemp(prefix="rejoinder-pool-"))
    try:
        size, digest = copy_pairs(path, folder, split)
    except BaseException:
        if work is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    pool = Pool(path, folder, size, digest)
    pool.use_scratch(folder, remove=work is None)
    return pool


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("context", pa.list_(pa.string())),
            pa.field("utterance", pa.string()),
            pa.field("response", pa.string()),
        ]
    )


def copy_pairs(path: str, folder: Path, split: str | None) -> tuple[int, str]:
    """Write the texts of pairs as an Arrow file, and the numbers of their responses beside it.

    Returns the number of pairs and their digest.
    """
    try:
        import pyarrow as pa
    except ImportError:
        raise missing_extra("logs", "pyarrow", task="a file of pairs") from None
    from rejoinder.engine.tables import digest, regroup

    schema = _schema()
    sums, size = hashlib.blake2b(digest_size=8), 0
    numbers = []
    with pa.OSFile(str(folder / PAIRS), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for group in regroup(_read_pairs(path, split, schema), BATCH_ROWS):
            batch = pa.Table.from_batches(group, schema).combine_chunks().to_batches()[0]
            writer.write_batch(batch)
            sums.update(digest([batch]).encode())
            numbers.append(_hash_texts(batch.column("response").to_pylist()))
            size += batch.num_rows
    if not size:
        raise DataError("the pool is empty: it has no pair", path=path)
    np.save(folder / RESPONSE_IDS, np.concatenate(numbers))
    return size, sums.hexdigest()


def _hash_texts(texts: Iterable[str]) -> NDArray[np.int64]:
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), np.int64)


def _read_pairs(path: str, split: str | None, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of a Parquet file, or those of one split."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with open_pairs(path, ["utterance", "response"]) as file:
        has_context = "context" in file.schema_arrow.names
    columns = ["utterance", "response", *(["context"] if has_context else [])]
    kept = 0
    splits: set[str] = set()
    for batch in read_pairs_batches(
        path, [*columns, *(["split"] if split is not None else [])], BATCH_ROWS
    ):
        if split is not None:
            splits |= set(batch.column("split").unique().to_pylist())
            batch = batch.filter(pc.equal(batch.column("split"), split))
        arrays = {name: batch.column(name) for name in columns}
        if not has_context:
            arrays["context"] = pa.array([[]] * batch.num_rows, pa.list_(pa.string()))
        kept += batch.num_rows
        yield pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)
    if split is not None and not kept:
        names = ", ".join(sorted(splits))
        raise DataError(f"has no pair of the split '{split}' (it has {names})", path=path)
