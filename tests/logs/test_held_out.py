"""Contexts that are drawn from held-out pairs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rejoinder.logs.held_out import draw_pairs


def test_contexts_of_branching_threads_have_distinct_ids(tmp_path: Path) -> None:
    row = {"dialogue_id": "d", "turn": 1, "context": [], "utterance": "hi", "split": "test"}
    rows = [row | {"response": text, "turn": turn} for text, turn in [("a", 1), ("b", 1), ("c", 2)]]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "pairs.parquet")
    name = str(tmp_path / "pairs.parquet")
    drawn = draw_pairs(name, split="test", count=9, min_words=0, seed=0)
    assert [(item.id, item.response) for item in drawn.items()] == [
        ("d-1:human", "a"),
        ("d-1-2:human", "b"),
        ("d-2:human", "c"),
    ]
    assert [asked["id"] for asked in drawn.contexts()] == ["d-1", "d-1-2", "d-2"]
