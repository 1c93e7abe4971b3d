"""Pairs of utterance and response as training data, split into training and validation pairs.

No dialogue is on both sides of the split.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.learn.batches import make_rng
from rejoinder.logs.contamination import normalise
from rejoinder.logs.pairs_file import open_pairs

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

TRAIN, VALIDATION = "train", "validation"
"""Values of the column ``split``."""
VALIDATION_SHARE = 0.05
"""Share of the dialogues that is held out where the column ``split`` does not say which."""
MAX_VALIDATION_PAIRS = 2000
REQUIRED = ("utterance", "response")
OPTIONAL = ("context", "dialogue_id", "utterance_id", "split")
COLUMNS = ("context", "utterance", "response", "dialogue_id", "utterance_id")
"""Columns of :class:`Pairs`, where the file has them."""
MIN_SHARED_LENGTH = 8
"""Characters from which equal utterances of different dialogues are taken as the same question:
what follows "Really?" depends on the turns before it."""
MAX_RESPONSES = 20
"""Responses to one utterance that are used: "Thank you very much" has thousands."""
CHUNK = 10_000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs in the order of their file; texts stay in Arrow until they are needed."""

    table: pa.Table

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def utterances(self) -> list[str]:
        return list(self.table.column("utterance").to_pylist())

    @cached_property
    def responses(self) -> list[str]:
        return list(self.table.column("response").to_pylist())

    def texts(self, start: int, stop: int) -> tuple[list[str], list[str]]:
        """Return the utterances and responses of some rows."""
        part = self.table.slice(start, stop - start)
        return part.column("utterance").to_pylist(), part.column("response").to_pylist()

    def contexts(self, turns: int) -> list[list[str]]:
        """Return the last turns before each response; the utterance is the last of them."""
        if turns == 1 or "context" not in self.table.column_names:
            return [[text] for text in self.utterances]
        contexts = []
        for part in self.table.select(["context", "utterance"]).to_batches(CHUNK):
            earlier, last = (column.to_pylist() for column in part.columns)
            contexts += [
                [turn for turn in (turns_before or [])[1 - turns :] if turn] + [utterance]
                for turns_before, utterance in zip(earlier, last, strict=True)
            ]
        return contexts

    @cached_property
    def dialogues(self) -> Ints:
        """[n] number of the dialogue of each pair."""
        if "dialogue_id" not in self.table.column_names:
            return _numbered(self.utterances)
        return _numbered(self.table.column("dialogue_id").to_pylist())

    @cached_property
    def response_ids(self) -> Ints:
        """[n] pairs with the same number have the same response after normalisation."""
        return _numbered(normalise(self.responses))

    @cached_property
    def utterance_ids(self) -> Ints:
        """[n] pairs with the same number respond to the same utterance: to one post, or to the
        same words in another dialogue."""
        plain = normalise(self.utterances)
        posts: Sequence[object] = range(len(self))
        if "utterance_id" in self.table.column_names:
            posts = self.table.column("utterance_id").to_pylist()
        keys = [
            text if len(text) >= MIN_SHARED_LENGTH else (row if post is None else post, text)
            for row, (text, post) in enumerate(zip(plain, posts, strict=True))
        ]
        return _numbered(keys)

    @cached_property
    def response_groups(self) -> list[Ints]:
        """Rows with different responses to the same utterance, one array per utterance.

        Any two rows of a group are two responses to one utterance: rows that repeat a response are
        left out, and so are those of a dialogue that repeats the utterance.
        """
        groups: list[Ints] = []
        shared = np.flatnonzero(np.bincount(self.utterance_ids)[self.utterance_ids] > 1)
        order = shared[np.argsort(self.utterance_ids[shared], kind="stable")]
        bounds = np.flatnonzero(np.diff(self.utterance_ids[order])) + 1
        posts = self._posts
        for rows in np.split(order, bounds) if len(order) else []:
            first_post: dict[int, int] = {}
            kept: dict[int, int] = {}
            for row in rows.tolist():
                dialogue = int(self.dialogues[row])
                if first_post.setdefault(dialogue, int(posts[row])) == posts[row]:
                    kept.setdefault(int(self.response_ids[row]), row)
            if len(kept) > 1:
                chosen = np.array(list(kept.values()), np.int64)
                step = max(1.0, len(chosen) / MAX_RESPONSES)
                groups.append(chosen[np.arange(0, len(chosen), step).astype(np.int64)])
        return groups

    @cached_property
    def _posts(self) -> Ints:
        if "utterance_id" not in self.table.column_names:
            return np.arange(len(self))
        return _numbered(self.table.column("utterance_id").to_pylist())


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Training and validation pairs. No dialogue is on both sides.

    (A rater that has to hold out a part of ``training`` itself, ``rater.RaterBatches.split``, holds
    out utterances: other turns of their dialogues are trained on.)
    """

    training: Pairs
    validation: Pairs
    counts: dict[str, int]
    """Numbers of pairs in the file and of pairs used."""
    split_by: str
    """Origin of the split: the column ``split``, or a hash of dialogue ids."""

    @classmethod
    def from_table(
        cls,
        table: pa.Table,
        *,
        max_pairs: int | None = None,
        max_validation_pairs: int | None = MAX_VALIDATION_PAIRS,
        seed: int = 0,
        whole_dialogues: bool = True,
        split_by: str = "the column split",
    ) -> TrainingData:
        """Take the pairs that the column ``split`` calls train and validation.

        Of more than ``max_pairs`` training pairs (and ``max_validation_pairs``), whole dialogues
        are drawn by the seed, or single pairs.
        """
        import pyarrow.compute as pc

        names = [name for name in COLUMNS if name in table.column_names]
        split, parts = table.column("split"), {}
        counts = {"pairs": table.num_rows}
        limits = {TRAIN: max_pairs, VALIDATION: max_validation_pairs}
        for number, (side, limit) in enumerate(limits.items()):
            rows = np.flatnonzero(pc.fill_null(pc.equal(split, side), False).to_numpy())
            if not len(rows):
                raise DataError(
                    f"no pair is left for {side}: {table.num_rows:,} pairs are too few dialogues"
                )
            counts[side] = len(rows)
            if whole_dialogues:
                pairs = Pairs(table.select(names).take(rows))
                parts[side] = pairs if limit is None else _draw_dialogues(pairs, limit, seed)
            else:
                if limit is not None and limit < len(rows):
                    # in the order of the file: neighbours are close in memory
                    rows = np.sort(make_rng(seed, number).choice(rows, limit, replace=False))
                parts[side] = Pairs(table.select(names).take(rows))
        counts |= {f"{side}_taken": len(pairs) for side, pairs in parts.items()}
        return cls(parts[TRAIN], parts[VALIDATION], counts, split_by)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the pairs that were taken."""
        whole = hashlib.sha256()
        for pairs in (self.training, self.validation):
            for part in pairs.table.to_batches(CHUNK):
                whole.update(msgspec.json.encode(part.to_pydict()))
            whole.update(b"\n")
        return whole.hexdigest()


def read_training_data(
    path: Path,
    *,
    max_pairs: int | None = None,
    validation_share: float = VALIDATION_SHARE,
    max_validation_pairs: int | None = MAX_VALIDATION_PAIRS,
    seed: int = 0,
    whole_dialogues: bool = True,
) -> TrainingData:
    """Read a Parquet file of pairs, as ``rejoinder corpus`` writes it, and split it."""
    table, split_by = assign_split(read_pairs(path, REQUIRED, OPTIONAL), validation_share)
    try:
        return TrainingData.from_table(
            table,
            max_pairs=max_pairs,
            max_validation_pairs=max_validation_pairs,
            seed=seed,
            whole_dialogues=whole_dialogues,
            split_by=split_by,
        )
    except DataError as error:
        raise DataError(str(error), path=str(path)) from None


def assign_split(
    table: pa.Table, validation_share: float = VALIDATION_SHARE
) -> tuple[pa.Table, str]:
    """Return the table with each pair assigned to train or validation, and the origin of the split.

    Where the column ``split`` has both, it decides, and its other pairs (test) are left alone;
    otherwise a share of the dialogues is held out by a hash of their id, so that the split does
    not depend on the order or the number of dialogues.
    """
    import pyarrow as pa

    if has_both_sides(table):
        return table, "the column split"
    column = "dialogue_id" if "dialogue_id" in table.column_names else "utterance"
    coded = table.column(column).combine_chunks().dictionary_encode()
    hashes = np.array([_hash_share(str(value)) for value in coded.dictionary.to_pylist()])
    held_out = hashes <= validation_share
    if len(hashes) > 1:  # neither side is left without a dialogue
        held_out[hashes.argmin()], held_out[hashes.argmax()] = True, False
    else:
        held_out[:] = False
    sides = np.where(held_out[coded.indices.to_numpy()], VALIDATION, TRAIN)
    split = pa.array(sides.tolist(), pa.string())
    if "split" in table.column_names:
        place = table.schema.get_field_index("split")
        return table.set_column(place, "split", split), f"a hash of {column}"
    return table.append_column("split", split), f"a hash of {column}"


def has_both_sides(table: pa.Table) -> bool:
    """Return whether the column ``split`` has training and validation pairs."""
    if "split" not in table.column_names:
        return False
    return {TRAIN, VALIDATION} <= set(table.column("split").unique().to_pylist())


def read_pairs(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> pa.Table:
    """Read columns of a file of pairs and check their types; ``optional`` ones may be missing."""
    name = str(path)
    with open_pairs(path, required) as file:
        names = file.schema_arrow.names
        if repeated := sorted({column for column in names if names.count(column) > 1}):
            raise DataError(f"has two columns named {', '.join(repeated)}", path=name)
        table = file.read([*required, *(column for column in optional if column in names)])
        table.validate(full=True)
    import pyarrow as pa  # open_pairs has checked that it is installed

    texts = (pa.string(), pa.large_string())
    for number, column in enumerate(table.column_names):
        kind = table.schema.field(column).type
        if column == "context":
            if not (_is_list(kind) and kind.value_type in texts):
                raise DataError(f"column {column}: expected lists of text, found {kind}", path=name)
            large = pa.large_list(pa.large_string())
            table = table.set_column(number, column, table.column(column).cast(large))
            continue
        if kind not in texts:
            raise DataError(f"column {column}: expected text, found {kind}", path=name)
        if column in required and table.column(column).null_count:
            raise DataError(f"column {column}: a text is missing (NULL)", path=name)
        # selecting more than 2 GB of rows overflows the smaller type
        table = table.set_column(number, column, table.column(column).cast(pa.large_string()))
    if not table.num_rows:
        raise DataError(
            "there is no pair in it; expected pairs, as 'rejoinder corpus' writes them", path=name
        )
    return table


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _draw_dialogues(pairs: Pairs, max_pairs: int, seed: int) -> Pairs:
    """Draw whole dialogues with at most so many pairs together, but at least one dialogue."""
    if len(pairs) <= max_pairs:
        return pairs
    sizes = np.bincount(pairs.dialogues)
    order = np.random.default_rng(seed).permutation(len(sizes))
    fits = np.cumsum(sizes[order]) <= max_pairs
    fits[0] = True
    chosen = np.zeros(len(sizes), np.bool_)
    chosen[order[fits]] = True
    return Pairs(pairs.table.filter(chosen[pairs.dialogues]))


def _hash_share(value: str) -> float:
    """Return a number from 0 to 1 that depends on the id of a dialogue only."""
    digest = hashlib.md5(value.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _numbered(keys: Sequence[object]) -> Ints:
    """Number distinct keys from 0 in the order of appearance."""
    numbers: dict[object, int] = {}
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))
