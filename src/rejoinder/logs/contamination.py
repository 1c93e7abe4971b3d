"""Test material among training material: found, named, and left out.

A pair leaks when its utterance is the last turn of a test context: word for word (letters and
digits only, whatever the case), or nearly (Jaccard similarity of character 4-grams at or above
0.8, for texts of 20 letters or more: shorter ones are alike by chance). What was said of a
leaked utterance tells the answer, so the whole pair goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from rejoinder.errors import DataError
from rejoinder.io import read_items
from rejoinder.kernels.shingles import gram_sets, nearest
from rejoinder.logs.pairs_file import open_pairs
from rejoinder.text.tokenizers.base import Codes, Ints, starts_of

GRAM = 4
THRESHOLD = 0.8
LONG_ENOUGH = 20
COLUMN = "utterance"


def normalise(texts: Sequence[str]) -> list[str]:
    """Only letters and digits, case folded: what stays the same when a text is retyped."""
    import regex

    strip = regex.compile(r"[\W_]+").sub
    return [strip("", text.casefold()) for text in texts]


@dataclass(frozen=True)
class Fingerprint:
    """The contexts of a test set, ready to be looked for among millions of utterances."""

    texts: tuple[str, ...]
    """Distinct normalised last turns."""
    threshold: float = THRESHOLD

    @classmethod
    def of(cls, turns: Iterable[str], threshold: float = THRESHOLD) -> Fingerprint:
        return cls(tuple(sorted(set(normalise(list(turns))) - {""})), threshold)

    @cached_property
    def _exact(self) -> frozenset[str]:
        return frozenset(self.texts)

    @cached_property
    def _index(self) -> tuple[Ints, ...]:
        sets, firsts = gram_sets(*codes([t for t in self.texts if len(t) >= LONG_ENOUGH]), GRAM)
        owners = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        order = np.argsort(sets, kind="stable")
        keys, counts = np.unique(sets, return_counts=True)
        return sets, firsts, keys, starts_of(counts), owners[order]

    def find(self, utterances: Sequence[str]) -> list[str | None]:
        """For each utterance "exact", "near", or None."""
        plain = normalise(utterances)
        found: list[str | None] = ["exact" if text in self._exact else None for text in plain]
        ask = [i for i, text in enumerate(plain) if found[i] is None and len(text) >= LONG_ENOUGH]
        if ask and len(self._index[1]) > 1:
            chosen = codes([plain[i] for i in ask])
            close = nearest(*chosen, GRAM, self.threshold, self._index)
            for i, other in zip(ask, close.tolist(), strict=True):
                if other >= 0:
                    found[i] = "near"
        return found


def codes(texts: Sequence[str]) -> tuple[Codes, Ints]:
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(joined, np.int32), starts_of(map(len, texts))


def last_turns(path: str) -> Iterator[str]:
    """The last turn of every context in a file of items or of pairs."""
    if Path(path).suffix == ".parquet":
        yield from _utterances(path)
        return
    for item in read_items(path):
        if item.context:
            yield item.context[-1]


def _utterances(path: str) -> Iterator[str]:
    with open_pairs(path, [COLUMN]) as file:
        kind = file.schema_arrow.field(COLUMN).type
        if kind not in (pa.string(), pa.large_string()):
            raise DataError(f"column {COLUMN}: expected texts, found {kind}", path=path)
        for batch in file.iter_batches(columns=[COLUMN]):
            batch.validate(full=True)
            if batch.column(COLUMN).null_count:
                raise DataError(f"column {COLUMN}: a text is missing (NULL)", path=path)
            yield from batch.column(COLUMN).to_pylist()


@dataclass(frozen=True)
class MarkLeaks:
    """An Arrow function: adds the column ``leak`` to batches that have an ``utterance``."""

    fingerprint: Fingerprint

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = self.fingerprint.find(batch.column("utterance").to_pylist())
            yield batch.append_column("leak", pa.array(found, pa.string()))
