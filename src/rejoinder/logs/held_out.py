"""Draw test contexts, with the replies that people gave, from held-out pairs.

They turn any log into a test set: systems reply to the contexts and are compared with people. Only
pairs of one split are drawn, so that no evaluator was trained on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc

from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.logs.pairs_file import has_nulls, open_pairs

HUMAN = "human"
COLUMNS = ("dialogue_id", "turn", "context", "utterance", "response", "split")


@dataclass(frozen=True)
class DrawnPairs:
    """Pairs that were drawn from a file."""

    rows: list[dict[str, Any]]
    num_candidates: int
    """The number of pairs to draw from."""

    def items(self) -> list[Item]:
        """Return the replies of people as items to be scored.

        They have no references: the only reply that is known to be good is the one to be scored.
        """
        return [
            Item(f"{name}:{HUMAN}", row["response"], turns, HUMAN, context_id=name)
            for name, turns, row in self._named()
        ]

    def contexts(self) -> list[dict[str, Any]]:
        """Return the contexts for systems to reply to, with the reply of a person as reference."""
        return [
            {
                "id": name,
                "context_id": name,
                "context": turns,
                "references": [Reference(row["response"], source=HUMAN)],
            }
            for name, turns, row in self._named()
        ]

    def _named(self) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
        """Yield the id, context and row of each pair.

        The id is made of dialogue and turn. Several answers to one post share both: all but the
        first get a number.
        """
        counts: Counter[str] = Counter()
        for row in self.rows:
            name = f"{str(row['dialogue_id'])[:12]}-{row['turn']}"
            counts[name] += 1
            number = f"-{counts[name]}" if counts[name] > 1 else ""
            yield name + number, [*row["context"], row["utterance"]], row


def draw_pairs(path: str, *, split: str, count: int, min_words: int, seed: int) -> DrawnPairs:
    """Draw pairs of a split whose utterance and response have ``min_words`` words or more."""
    rows = [row for row in _read(path, split) if _has_words(row, min_words)]
    if not rows:
        raise DataError(
            f"has no pair of the split '{split}' with {min_words} words or more on both sides",
            path=path,
        )
    chosen = np.random.default_rng(seed).permutation(len(rows))[:count]
    return DrawnPairs([rows[i] for i in sorted(chosen.tolist())], len(rows))


def _has_words(row: dict[str, Any], min_words: int) -> bool:
    return min(len(row["utterance"].split()), len(row["response"].split())) >= min_words


def _read(path: str, split: str) -> list[dict[str, Any]]:
    with open_pairs(path, COLUMNS) as file:
        table = file.read(columns=list(COLUMNS))
        table.validate(full=True)
    for name in COLUMNS:
        if has_nulls(table.column(name).combine_chunks()):
            raise DataError(f"column {name}: a value is missing (NULL)", path=path)
    rows: list[dict[str, Any]] = table.filter(pc.equal(table["split"], split)).to_pylist()
    return rows
