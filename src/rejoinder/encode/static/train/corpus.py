"""The texts that vectors are learnt from, as numbers of words.

Pairs say each turn once: a turn is the response to one and the utterance before another, and it
may have many responses. All token numbers stay in memory (4 bytes a token), the texts do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.io import JsonLines
from rejoinder.logs.pairs_file import open_pairs
from rejoinder.progress import Progress
from rejoinder.text.tokenizers.base import Tokenizer
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow.parquet as pq

AT_ONCE = 20_000
"""Texts tokenized together."""
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Corpus:
    """Texts as numbers of words; text i is ``ids[starts[i]:starts[i + 1]]``.

    Words are numbered by frequency, the most frequent first. Rare ones are not among them, and
    the words around such a one are neighbours.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    words: list[str]
    counts: NDArray[np.int64]
    """How often each word stands in the texts."""
    texts: int
    tokens: int
    """Of all words, rare ones among them."""
    unsplit: int
    """Texts that the tokenizer could not split; they are left out."""

    @classmethod
    def of(
        cls, batches: Iterable[Sequence[str]], tokenizer: Tokenizer, lower: bool, min_count: int
    ) -> Corpus:
        """Tokenize texts and number their words."""
        number: dict[str, int] = {}
        pieces: list[NDArray[np.int32]] = []
        lengths: list[NDArray[np.int64]] = []
        texts = unsplit = 0
        for batch in batches:
            cased = [text.lower() for text in batch] if lower else batch
            found = Tokens.of(tokenizer, cased)
            numbers = [number.setdefault(word, len(number)) for word in found.words]
            kept = np.ones(len(cased), bool)
            kept[list(found.problems)] = False
            pieces.append(
                np.array(numbers, np.int32)[found.ids[np.repeat(kept, found.lengths)]]
                if numbers
                else np.empty(0, np.int32)
            )
            lengths.append(found.lengths[kept])
            texts += len(cased)
            unsplit += len(found.problems)
        ids = np.concatenate([np.empty(0, np.int32), *pieces])
        return _pruned(ids, lengths, list(number), min_count, texts, unsplit)

    def sentences(self) -> Iterator[list[str]]:
        """The texts as lists of words."""
        words = np.array(self.words, object)
        for begin, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield words[self.ids[begin:end]].tolist()


def _pruned(
    ids: NDArray[np.int32],
    lengths: list[NDArray[np.int64]],
    words: list[str],
    min_count: int,
    texts: int,
    unsplit: int,
) -> Corpus:
    counts = np.bincount(ids, minlength=len(words))
    # ties by the word itself, so that the order of files does not number words anew
    ranked = sorted(range(len(words)), key=lambda i: (-counts[i], words[i]))
    kept = [i for i in ranked if counts[i] >= min_count]
    new = np.full(len(words), -1, np.int32)
    new[kept] = np.arange(len(kept), dtype=np.int32)
    renumbered = new[ids]
    inside = renumbered >= 0
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
    starts = np.unique(before[ends])  # texts of which nothing is left are gone
    return Corpus(
        renumbered[inside],
        starts,
        [words[i] for i in kept],
        counts[kept],
        texts,
        len(ids),
        unsplit,
    )


def read_texts(
    paths: Sequence[str], on_progress: Progress | None = None
) -> Iterator[Sequence[str]]:
    """The texts of pairs (Parquet) and of plain files (a text a line), in batches."""
    sizes = [_size(path) for path in paths]
    for number, path in enumerate(paths):
        for share, texts in _pairs(path) if _is_parquet(path) else _lines(path):
            if on_progress is not None:
                on_progress(sum(sizes[:number]) + int(share * sizes[number]), sum(sizes))
            yield texts


def _size(path: str) -> int:
    return Path(path).stat().st_size if Path(path).is_file() else 1


def _is_parquet(path: str) -> bool:
    if path == "-":
        return False
    try:
        with Path(path).open("rb") as stream:
            return stream.read(4) == PARQUET
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=path) from None


def _lines(path: str) -> Iterator[tuple[float, Sequence[str]]]:
    """Texts with the share of the file that has been read."""
    source = JsonLines(path)
    batch: list[str] = []
    for number, line in source:
        try:
            batch.append(line.decode().strip())
        except UnicodeDecodeError:
            raise source.wrong(
                number, "the line is not UTF-8; convert the file, for example with iconv -t UTF-8"
            ) from None
        if len(batch) == AT_ONCE:
            yield source.fraction or 0.0, batch
            batch = []
    if batch:
        yield 1.0, batch


def _pairs(path: str) -> Iterator[tuple[float, Sequence[str]]]:
    with open_pairs(path, ["utterance", "response"]) as file:
        import pyarrow as pa

        first = _said_first(file)
        done = 0
        for batch in file.iter_batches(AT_ONCE, columns=["utterance", "response"]):
            utterances = batch.column("utterance").filter(
                pa.array(first[done : done + batch.num_rows])
            )
            done += batch.num_rows
            texts = [*utterances.to_pylist(), *batch.column("response").to_pylist()]
            yield done / len(first), [text for text in texts if text]


def _said_first(file: pq.ParquetFile) -> NDArray[np.bool_]:
    """Which rows have an utterance that stands in no other place: neither as the utterance of an
    earlier row nor as the response of any."""
    import pyarrow.compute as pc

    columns = file.schema_arrow.names
    first = np.ones(file.metadata.num_rows, bool)
    if "utterance_id" not in columns:
        return first
    wanted = [name for name in ("utterance_id", "response_id") if name in columns]
    table = file.read(columns=wanted)
    ids = table.column("utterance_id").combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first[:] = False
    first[np.unique(codes, return_index=True)[1]] = True
    if "response_id" in columns:
        first &= ~pc.is_in(ids, table.column("response_id").combine_chunks()).to_numpy(
            zero_copy_only=False
        )
    return first
