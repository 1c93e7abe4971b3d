"""Find test contexts among training pairs.

A pair leaks if its utterance is the last turn of a test context: exactly (comparing letters and
digits only, case folded), or nearly (Jaccard similarity of character 4-grams of 0.8 or more, for
texts of 20 letters or more: shorter ones are similar by chance). The response of such a pair gives
the answer away, so the whole pair is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from rejoinder.errors import DataError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.kernels.shingles import gram_sets, nearest
from rejoinder.logs.pairs_file import read_pairs_batches
from rejoinder.text.tokenizers.tokenizer import Codes, Ints, starts_of

NGRAM = 4
THRESHOLD = 0.8
MIN_LENGTH = 20


def normalise(texts: Sequence[str]) -> list[str]:
    """Return only the letters and digits of each text, case folded."""
    import regex

    strip = regex.compile(r"[\W_]+").sub
    return [strip("", text.casefold()) for text in texts]


@dataclass(frozen=True)
class Fingerprint:
    """The texts of a test set, indexed so that millions of utterances can be compared with them."""

    texts: tuple[str, ...]
    """Distinct normalised texts."""
    threshold: float = THRESHOLD

    @classmethod
    def of(cls, texts: Iterable[str], threshold: float = THRESHOLD) -> Fingerprint:
        return cls(tuple(sorted(set(normalise(list(texts))) - {""})), threshold)

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(self.texts)

    @cached_property
    def _index(self) -> tuple[Ints, ...]:
        sets, firsts = gram_sets(*codes([t for t in self.texts if len(t) >= MIN_LENGTH]), NGRAM)
        owners = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        order = np.argsort(sets, kind="stable")
        keys, counts = np.unique(sets, return_counts=True)
        return sets, firsts, keys, starts_of(counts), owners[order]

    def find(self, texts: Sequence[str]) -> list[str | None]:
        """Return "exact", "near" or None for each text."""
        plain = normalise(texts)
        kinds: list[str | None] = ["exact" if text in self._exact else None for text in plain]
        left = [i for i, text in enumerate(plain) if kinds[i] is None and len(text) >= MIN_LENGTH]
        if left and len(self._index[1]) > 1:
            chosen = codes([plain[i] for i in left])
            neighbours = nearest(*chosen, NGRAM, self.threshold, self._index)
            for i, neighbour in zip(left, neighbours.tolist(), strict=True):
                if neighbour >= 0:
                    kinds[i] = "near"
        return kinds


def codes(texts: Sequence[str]) -> tuple[Codes, Ints]:
    """Return the code points of all texts, concatenated, and where each text starts."""
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.int32), starts_of(map(len, texts))


def last_turns(path: str) -> Iterator[str]:
    """Yield the last turn of every context in a file of items or of pairs."""
    if Path(path).suffix == ".parquet":
        for batch in read_pairs_batches(path, ["utterance"]):
            yield from batch.column(0).to_pylist()
        return
    with_context = False
    for item in read_items(ItemFile(path, with_ratings=False)):
        if item.context:
            with_context = True
            yield item.context[-1]
    if not with_context:
        raise DataError(
            "no item has a context, so no pair could be left out as test material; expected the"
            " turns before each reply in 'context'",
            path=path,
        )


@dataclass(frozen=True)
class MarkLeaks:
    """An Arrow function that adds the column ``leak`` to batches with an ``utterance``."""

    fingerprint: Fingerprint

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kinds = self.fingerprint.find(batch.column("utterance").to_pylist())
            yield batch.append_column("leak", pa.array(kinds, pa.string()))
