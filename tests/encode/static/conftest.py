"""Training pairs: real ones of the self-dialogue corpus, and a few made-up ones."""

from __future__ import annotations

import gzip
import json
from itertools import islice, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def write_pairs(path: Path, dialogues: list[list[str]]) -> Path:
    """Every turn answers the one before it."""
    rows = [
        {
            "utterance": before,
            "response": after,
            "utterance_id": f"{number}#{turn}",
            "response_id": f"{number}#{turn + 1}",
        }
        for number, turns in enumerate(dialogues)
        for turn, (before, after) in enumerate(pairwise(turns))
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.fixture(scope="session")
def real_pairs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """About 230,000 tokens of people talking to themselves about films and music."""
    with gzip.open(data / "self-dialogue" / "dialogues.jsonl.gz", "rt", encoding="utf-8") as lines:
        dialogues = [json.loads(line)["turns"] for line in islice(lines, 0, None, 17)]
    return write_pairs(tmp_path_factory.mktemp("pairs") / "real.parquet", dialogues)


@pytest.fixture
def small_pairs(tmp_path: Path) -> Path:
    """Cats and dogs do the same things."""
    dialogues = [
        [f"the {animal} sat on the {place}", f"my {animal} likes the {place} too", "how nice !"]
        for animal in ("cat", "dog", "cow")
        for place in ("mat", "sofa", "rug", "meadow")
    ]
    return write_pairs(tmp_path / "small.parquet", dialogues)
