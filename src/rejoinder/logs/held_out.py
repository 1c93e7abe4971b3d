"""Contexts out of pairs: what somebody said, and the reply that a person gave.

With them, any log is a test set: let systems reply to the contexts, and see how they do beside
people. Pairs of one split only, so that nothing else was made of them.
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
from rejoinder.logs.pairs_file import open_pairs

HUMAN = "human"
COLUMNS = ("dialogue_id", "turn", "context", "utterance", "response", "split")


@dataclass(frozen=True)
class Drawn:
    """Some pairs of a file."""

    rows: list[dict[str, Any]]
    fit: int
    """How many there were to draw from."""

    def items(self) -> list[Item]:
        """The replies of people, as items to be judged. They have no reference: the only reply
        that is known to be good is the one that is judged."""
        return [
            Item(f"{name}:{HUMAN}", row["response"], turns, HUMAN, context_id=name)
            for name, turns, row in self._named()
        ]

    def contexts(self) -> list[dict[str, Any]]:
        """The same contexts for others to reply to, with the reply of a person as the reference."""
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
        """By dialogue and turn. Where several people answered, threads part, and these are the same
        for several pairs: all but the first have a number besides."""
        times: Counter[str] = Counter()
        for row in self.rows:
            name = f"{row['dialogue_id'][:12]}-{row['turn']}"
            times[name] += 1
            number = f"-{times[name]}" if times[name] > 1 else ""
            yield name + number, [*row["context"], row["utterance"]], row


def draw_pairs(path: str, *, split: str, count: int, words: int, seed: int) -> Drawn:
    """Draw pairs of a split whose utterance and response have at least so many words each."""
    rows = [row for row in _read(path, split) if _long_enough(row, words)]
    if not rows:
        raise DataError(
            f"has no pair of the split '{split}' with {words} words or more on both sides",
            path=path,
        )
    chosen = np.random.default_rng(seed).permutation(len(rows))[:count]
    return Drawn([rows[i] for i in sorted(chosen.tolist())], len(rows))


def _long_enough(row: dict[str, Any], words: int) -> bool:
    return min(len(row["utterance"].split()), len(row["response"].split())) >= words


def _read(path: str, split: str) -> list[dict[str, Any]]:
    with open_pairs(path, COLUMNS) as file:
        table = file.read(columns=list(COLUMNS))
    rows: list[dict[str, Any]] = table.filter(pc.equal(table["split"], split)).to_pylist()
    return rows
