"""Dialogues that an evaluator learns in a second: all turns of a dialogue are on one topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TOPICS = {
    "food": ["soup", "bread", "cheese", "apple", "butter", "pepper", "garlic", "noodle"],
    "travel": ["train", "ticket", "hotel", "airport", "luggage", "passport", "beach", "harbour"],
    "music": ["guitar", "piano", "concert", "melody", "singer", "rhythm", "violin", "drummer"],
    "garden": ["flower", "spade", "tulip", "hedge", "watering", "beetle", "compost", "orchard"],
}
QUICK = [
    "vectors.epochs=15",
    "vectors.dimensions=16",
    "rater.training.epochs=12",
    "unreferenced.training.epochs=12",
    'validation.ranges=["unreferenced","vbleu"]',
]
"""Overrides of the preset ``tiny`` for these dialogues."""

Row = dict[str, Any]


def dialogues(count: int = 60, replies: int = 3, seed: int = 1) -> list[Row]:
    """Return pairs: an utterance with several replies, then one more turn after the last reply."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for number in range(count):
        words = list(TOPICS.values())[number % len(TOPICS)]

        def say(words: list[str] = words) -> str:
            chosen = rng.choice(words, rng.integers(3, 7)).tolist()
            return f"we like the {' and '.join(chosen)}"

        first = say()
        said = [say() for _ in range(replies)]
        rows += [
            row(f"d{number}", [], first, reply, f"d{number}/0") for reply in dict.fromkeys(said)
        ]
        rows.append(row(f"d{number}", [first], said[-1], say(), f"d{number}/1"))
    return rows


def row(dialogue: str, context: list[str], utterance: str, response: str, uid: str) -> Row:
    return {
        "dialogue_id": dialogue,
        "context": context,
        "utterance": utterance,
        "response": response,
        "utterance_id": uid,
    }


def write(path: Path, rows: list[Row]) -> Path:
    table = pa.Table.from_pylist(rows)
    if "context" in table.column_names:  # Arrow does not know the type of empty lists
        turns = table.column("context").cast(pa.list_(pa.string()))
        table = table.set_column(table.column_names.index("context"), "context", turns)
    pq.write_table(table, path)
    return path
