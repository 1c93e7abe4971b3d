"""Pairs to learn from, and pairs held out to see how well: no dialogue is on both sides."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.io import file_digest
from rejoinder.learn.batches import generator
from rejoinder.logs.pairs_file import open_pairs

if TYPE_CHECKING:
    import pyarrow as pa

HELD_OUT = 0.05
"""Share of the dialogues, where the pairs do not say themselves which are for validation."""
TURNS = "context"
"""The one column that is no text: the turns before the utterance."""
MOST_HELD_OUT = 1000
"""More pairs would not make a validation loss truer by much, but validation slower."""


class PairTexts:
    """Utterances with their responses; they stay in Arrow, where they take little room."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def some(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """The utterances and the responses from one row to another."""
        part = self.table.slice(start, stop - start)
        return part.column("utterance").to_pylist(), part.column("response").to_pylist()


@dataclass(frozen=True)
class Material:
    """What to learn from, and what to be measured on."""

    training: PairTexts
    validation: PairTexts
    counts: dict[str, int]
    """How many pairs there were, and how many were taken."""
    split_by: str
    """What decided which pairs are held out."""
    digest: str
    """Of the file."""


def read_material(path: Path, *, sample: int | None = None, seed: int = 0) -> Material:
    """The pairs of a file: those for training, at most ``sample``, and at most 1,000 held out.

    Where the column ``split`` has both, its train and validation pairs are taken, and its test
    pairs left alone; otherwise one dialogue in twenty is held out.
    """
    table = read_pairs(path, ("utterance", "response"), ("dialogue_id", "split"))
    rows, split_by = split_rows(table)
    limits = {"train": sample, "validation": MOST_HELD_OUT}
    taken = {}
    for number, (name, found) in enumerate(rows.items()):
        if not len(found):
            raise DataError(
                f"no pair is left for {name}: {table.num_rows:,} pairs are too few dialogues",
                path=str(path),
            )
        limit = limits[name]
        if limit is not None and limit < len(found):
            # in the order of the file: neighbours share their place in memory
            found = np.sort(generator(seed, number).choice(found, limit, replace=False))
        taken[name] = found
    counts = {"pairs": table.num_rows}
    counts |= {name: len(found) for name, found in rows.items()}
    counts |= {f"{name}_taken": len(found) for name, found in taken.items()}
    texts = table.select(["utterance", "response"])
    return Material(
        training=PairTexts(texts.take(taken["train"])),
        validation=PairTexts(texts.take(taken["validation"])),
        counts=counts,
        split_by=split_by,
        digest=file_digest(path).hex(),
    )


def read_pairs(path: Path, needed: Sequence[str], welcome: Sequence[str] = ()) -> pa.Table:
    """Columns of a file of pairs; those that are only ``welcome`` may be missing."""
    name = str(path)
    with open_pairs(path, needed) as file:
        there = file.schema_arrow.names
        table = file.read([*needed, *(column for column in welcome if column in there)])
        table.validate(full=True)
    import pyarrow as pa  # now that it is known to be there

    texts = (pa.string(), pa.large_string())
    for number, column in enumerate(table.column_names):
        kind = table.schema.field(column).type
        if column == TURNS:
            if not (_is_list(kind) and kind.value_type in texts):
                raise DataError(f"column {column}: expected lists of texts", path=name)
            longer = pa.large_list(pa.large_string())
            table = table.set_column(number, column, table.column(column).cast(longer))
            continue
        if kind not in texts:
            raise DataError(f"column {column}: expected texts, found {kind}", path=name)
        if column in needed and table.column(column).null_count:
            raise DataError(f"column {column}: a text is missing (NULL)", path=name)
        # rows are taken out of it, of which more than 2 GB don't fit the smaller type
        table = table.set_column(number, column, table.column(column).cast(pa.large_string()))
    if not table.num_rows:
        raise DataError("there is no pair in it", path=name)
    return table


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def split_rows(
    table: pa.Table, held_out: float = HELD_OUT
) -> tuple[dict[str, NDArray[np.int64]], str]:
    """The rows for training and for validation, and what decided it."""
    import pyarrow.compute as pc

    if "split" in table.column_names:
        split = table.column("split")
        if {"train", "validation"} <= set(split.unique().to_pylist()):
            rows = {
                name: np.flatnonzero(pc.equal(split, name).to_numpy())
                for name in ("train", "validation")
            }
            return rows, "the column split"
    column = "dialogue_id" if "dialogue_id" in table.column_names else "utterance"
    coded = table.column(column).combine_chunks().dictionary_encode()
    drawn = np.array([_drawn(str(value)) for value in coded.dictionary.to_pylist()])
    held = drawn <= held_out
    if len(drawn) > 1:  # chance leaves neither side without a dialogue
        held[drawn.argmin()], held[drawn.argmax()] = True, False
    else:
        held[:] = False
    chosen = held[coded.indices.to_numpy()]
    rows = {"train": np.flatnonzero(~chosen), "validation": np.flatnonzero(chosen)}
    return rows, f"a hash of {column}"


def _drawn(value: str) -> float:
    """A number from 0 to 1 that is always the same for a dialogue."""
    drawn = hashlib.md5(value.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()[:8]
    return int.from_bytes(drawn, "big") / 2**64
