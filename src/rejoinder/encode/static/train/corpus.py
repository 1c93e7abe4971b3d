"""The training texts of word vectors, as word ids.

A file of pairs has a turn several times: as a response, and as the utterance before one or more
other responses; it is read once. All word ids are kept in memory (4 bytes a token), texts are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.files.jsonl import JsonLines
from rejoinder.files.paths import is_file, open_regular
from rejoinder.logs.pairs_file import open_pairs
from rejoinder.progress import Progress
from rejoinder.text.tokenizers.tokenizer import Tokenizer
from rejoinder.text.tokens import Tokens

if TYPE_CHECKING:
    import pyarrow.parquet as pq

BATCH_TEXTS = 20_000
"""Texts that are tokenized together."""
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Corpus:
    """Texts as word ids; text i is ``ids[starts[i]:starts[i + 1]]``.

    Words are numbered by frequency, the most frequent first. Rare words are left out, so that the
    words around them become neighbours.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]
    words: list[str]
    counts: NDArray[np.int64]
    """How often each word occurs in the texts."""
    texts: int
    tokens: int
    """Number of tokens, rare words included."""
    unsplit: int
    """Texts that the tokenizer could not split; they are left out."""

    @classmethod
    def of(
        cls, batches: Iterable[Sequence[str]], tokenizer: Tokenizer, lower: bool, min_count: int
    ) -> Corpus:
        """Tokenize texts and number their words; rare words are left out."""
        vocabulary: dict[str, int] = {}
        ids: list[NDArray[np.int32]] = []
        lengths: list[NDArray[np.int64]] = []
        texts = unsplit = 0
        for batch in batches:
            cased = [text.lower() for text in batch] if lower else batch
            tokens = Tokens.of(tokenizer, cased)
            numbers = [vocabulary.setdefault(word, len(vocabulary)) for word in tokens.words]
            kept = np.ones(len(cased), bool)
            kept[list(tokens.problems)] = False
            ids.append(
                np.array(numbers, np.int32)[tokens.ids[np.repeat(kept, tokens.lengths)]]
                if numbers
                else np.empty(0, np.int32)
            )
            lengths.append(tokens.lengths[kept])
            texts += len(cased)
            unsplit += len(tokens.problems)
        flat = np.concatenate([np.empty(0, np.int32), *ids])
        return _without_rare_words(flat, lengths, list(vocabulary), min_count, texts, unsplit)

    def sentences(self) -> Iterator[list[str]]:
        """Yield the texts as lists of words."""
        words = np.array(self.words, object)
        for begin, end in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            yield words[self.ids[begin:end]].tolist()


def _without_rare_words(
    ids: NDArray[np.int32],
    lengths: list[NDArray[np.int64]],
    words: list[str],
    min_count: int,
    texts: int,
    unsplit: int,
) -> Corpus:
    counts = np.bincount(ids, minlength=len(words))
    # ties by the word itself, so that word ids do not depend on the order of the files
    ranked = sorted(range(len(words)), key=lambda i: (-counts[i], words[i]))
    kept = [i for i in ranked if counts[i] >= min_count]
    new = np.full(len(words), -1, np.int32)
    new[kept] = np.arange(len(kept), dtype=np.int32)
    renumbered = new[ids]
    inside = renumbered >= 0
    ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(inside)])
    starts = np.unique(before[ends])  # texts without any frequent word are dropped
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
    """Yield the texts of pairs (Parquet) and of plain files (a text per line), in batches."""
    sizes = [_size(path) for path in paths]
    for number, path in enumerate(paths):
        for share, texts in _pairs(path) if _is_parquet(path) else _lines(path):
            if on_progress is not None:
                on_progress(sum(sizes[:number]) + int(share * sizes[number]), sum(sizes))
            yield texts


def _size(path: str) -> int:
    return Path(path).stat().st_size if is_file(path) else 1


def _is_parquet(path: str) -> bool:
    if path == "-":
        return False
    with open_regular(path) as stream:
        return stream.read(4) == PARQUET


def _lines(path: str) -> Iterator[tuple[float, Sequence[str]]]:
    """Yield the lines of a file in batches, each with the fraction of the file that was read."""
    source = JsonLines(path)
    batch: list[str] = []
    for number, line in source:
        try:
            batch.append(line.decode().strip())
        except UnicodeDecodeError:
            raise source.wrong(
                number, "the line is not UTF-8; convert the file, for example with iconv -t UTF-8"
            ) from None
        if len(batch) == BATCH_TEXTS:
            yield source.fraction or 0.0, batch
            batch = []
    if batch:
        yield 1.0, batch


def _pairs(path: str) -> Iterator[tuple[float, Sequence[str]]]:
    """Yield the turns of a file of pairs, each turn once, as :func:`_lines` does."""
    with open_pairs(path, ["utterance", "response"]) as file:
        import pyarrow as pa

        first = _first_mentions(file)
        done = 0
        for batch in file.iter_batches(BATCH_TEXTS, columns=["utterance", "response"]):
            utterances = batch.column("utterance").filter(
                pa.array(first[done : done + batch.num_rows])
            )
            done += batch.num_rows
            texts = [*utterances.to_pylist(), *batch.column("response").to_pylist()]
            yield done / len(first), [text for text in texts if text]


def _first_mentions(file: pq.ParquetFile) -> NDArray[np.bool_]:
    """Return the rows whose utterance is neither that of an earlier row nor a response."""
    import pyarrow.compute as pc

    columns = file.schema_arrow.names
    first = np.ones(file.metadata.num_rows, bool)
    if "utterance_id" not in columns:
        return first
    present = [name for name in ("utterance_id", "response_id") if name in columns]
    table = file.read(columns=present)
    ids = table.column("utterance_id").combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first[:] = False
    first[np.unique(codes, return_index=True)[1]] = True
    if "response_id" in columns:
        first &= ~pc.is_in(ids, table.column("response_id").combine_chunks()).to_numpy(
            zero_copy_only=False
        )
    return first
