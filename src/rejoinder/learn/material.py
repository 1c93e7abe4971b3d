"""Pairs as networks learn from them: what was said before, what was answered, and what else would
have been an answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.learn.pairs import HELD_OUT, read_pairs, split_rows
from rejoinder.logs.contamination import normalise

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

LONG_ENOUGH = 8
"""Letters that an utterance must have for the same words to be the same question: what is said
after "Really?" depends on what was said before it."""
MOST_OF_A_GROUP = 20
"""Responses to one utterance that are learnt from: thousands answer "Thank you very much"."""
AT_ONCE = 10_000
COLUMNS = ("context", "utterance", "response", "dialogue_id", "utterance_id")


@dataclass(frozen=True, eq=False)
class Examples:
    """Pairs in the order of their file; texts stay in Arrow until they are asked for."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def utterances(self) -> list[str]:
        return list(self.table.column("utterance").to_pylist())

    @cached_property
    def responses(self) -> list[str]:
        return list(self.table.column("response").to_pylist())

    def contexts(self, turns: int) -> list[list[str]]:
        """The last turns before each response; the utterance is the last of them."""
        if turns == 1 or "context" not in self.table.column_names:
            return [[text] for text in self.utterances]
        found = []
        for part in self.table.select(["context", "utterance"]).to_batches(AT_ONCE):
            before, last = (column.to_pylist() for column in part.columns)
            found += [
                [turn for turn in (turns_before or [])[1 - turns :] if turn] + [utterance]
                for turns_before, utterance in zip(before, last, strict=True)
            ]
        return found

    @cached_property
    def dialogues(self) -> Ints:
        """[n] the number of the dialogue that each pair is from."""
        if "dialogue_id" not in self.table.column_names:
            return _numbers(self.utterances)
        return _numbers(self.table.column("dialogue_id").to_pylist())

    @cached_property
    def said(self) -> Ints:
        """[n] pairs with the same number have the same response, letter for letter."""
        return _numbers(normalise(self.responses))

    @cached_property
    def groups(self) -> Ints:
        """[n] pairs with the same number answer the same utterance.

        That is one post with several responses, or the same words, said on another occasion.
        """
        plain = normalise(self.utterances)
        own: Sequence[object] = range(len(self))
        if "utterance_id" in self.table.column_names:
            own = self.table.column("utterance_id").to_pylist()
        keys = [
            text if len(text) >= LONG_ENOUGH else (number if one is None else one, text)
            for number, (text, one) in enumerate(zip(plain, own, strict=True))
        ]
        return _numbers(keys)

    @cached_property
    def answered(self) -> list[Ints]:
        """For each utterance with several different responses, the rows that have them.

        Any two of them are two answers to one utterance: rows that repeat a response are left
        out, and so are those where a dialogue has the same words once more.
        """
        found: list[Ints] = []
        several = np.flatnonzero(np.bincount(self.groups)[self.groups] > 1)
        order = several[np.argsort(self.groups[several], kind="stable")]
        bounds = np.flatnonzero(np.diff(self.groups[order])) + 1
        posts = self._posts
        for rows in np.split(order, bounds) if len(order) else []:
            first_post: dict[int, int] = {}
            kept: dict[int, int] = {}
            for row in rows.tolist():
                dialogue = int(self.dialogues[row])
                if first_post.setdefault(dialogue, int(posts[row])) == posts[row]:
                    kept.setdefault(int(self.said[row]), row)
            if len(kept) > 1:
                chosen = np.array(list(kept.values()), np.int64)
                step = max(1.0, len(chosen) / MOST_OF_A_GROUP)
                found.append(chosen[np.arange(0, len(chosen), step).astype(np.int64)])
        return found

    @cached_property
    def _posts(self) -> Ints:
        if "utterance_id" not in self.table.column_names:
            return np.arange(len(self))
        return _numbers(self.table.column("utterance_id").to_pylist())

    def parts(self) -> Iterator[bytes]:
        """All that the pairs say, for a digest."""
        for part in self.table.to_batches(AT_ONCE):
            yield msgspec.json.encode(part.to_pydict())


@dataclass(frozen=True, eq=False)
class Material:
    """What to learn from, and what to be measured on. No dialogue is on both sides.

    (A rater that must hold out a part of ``training`` itself, ``Questions.split`` in ``rater.py``,
    holds out utterances: other turns of their dialogues are learnt from.)
    """

    training: Examples
    validation: Examples
    counts: dict[str, int]
    """How many pairs there were, and how many were taken."""
    split_by: str
    """What decided which pairs are held out."""
    digest: str
    """Of the pairs that were taken."""

    @classmethod
    def of(
        cls,
        table: pa.Table,
        *,
        most: int | None = None,
        held_out: float = HELD_OUT,
        most_held_out: int = 2000,
        seed: int = 0,
    ) -> Material:
        """Train on at most ``most`` pairs: whole dialogues, drawn by the seed.

        Where the column ``split`` has both, its train and validation pairs are taken, and its
        test pairs left alone; otherwise a share of the dialogues is held out.
        """
        rows, split_by = split_rows(table, held_out)
        names = [name for name in COLUMNS if name in table.column_names]
        taken = {}
        for name, limit in (("train", most), ("validation", most_held_out)):
            if not len(rows[name]):
                raise DataError(
                    f"no pair is left for {name}: {table.num_rows:,} pairs are too few dialogues"
                )
            part = Examples(table.select(names).take(rows[name]))
            taken[name] = part if limit is None else _drawn(part, limit, seed)
        counts = {"pairs": table.num_rows}
        counts |= {name: len(found) for name, found in rows.items()}
        counts |= {f"{name}_taken": len(found) for name, found in taken.items()}
        whole = hashlib.sha256()
        for part in taken.values():
            for data in part.parts():
                whole.update(data)
            whole.update(b"\n")
        return cls(taken["train"], taken["validation"], counts, split_by, whole.hexdigest())


def read_material(
    path: Path,
    *,
    most: int | None = None,
    held_out: float = HELD_OUT,
    most_held_out: int = 2000,
    seed: int = 0,
) -> Material:
    """The pairs of a Parquet file, as ``rejoinder corpus`` writes them."""
    welcome = ("context", "dialogue_id", "utterance_id", "split")
    table = read_pairs(path, ("utterance", "response"), welcome)
    try:
        return Material.of(
            table, most=most, held_out=held_out, most_held_out=most_held_out, seed=seed
        )
    except DataError as error:
        raise DataError(str(error), path=str(path)) from None


def _drawn(examples: Examples, most: int, seed: int) -> Examples:
    """Whole dialogues, as many as make at most so many pairs (but one at least)."""
    if len(examples) <= most:
        return examples
    sizes = np.bincount(examples.dialogues)
    order = np.random.default_rng(seed).permutation(len(sizes))
    fits = np.cumsum(sizes[order]) <= most
    fits[0] = True
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[order[fits]] = True
    return Examples(examples.table.filter(chosen[examples.dialogues]))


def _numbers(keys: Sequence[object]) -> Ints:
    """The same number for the same key, from 0 on, in the order of appearance."""
    known: dict[object, int] = {}
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64, len(keys))
