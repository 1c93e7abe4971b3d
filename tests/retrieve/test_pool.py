"""Pools: rows by number, splits, digests, and bad files."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.errors import DataError, UsageError
from rejoinder.retrieve import pool as pools
from rejoinder.retrieve.index_folder import open_pool
from rejoinder.retrieve.retriever import Queries, make_retriever

ROWS = [([f"c{i}"] * (i % 3), f"u{i}", f"r{i % 4}") for i in range(50)]


@pytest.mark.parametrize("batch", [7, 16_384])
def test_any_row_in_any_order(pairs: Any, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr(pools, "BATCH_ROWS", batch)
    with open_pool(pairs(ROWS, row_group_size=11)) as pool:
        assert pool.size == 50
        wanted = [49, 0, 7, 7, 13]
        assert pool.utterances(wanted) == ["u49", "u0", "u7", "u7", "u13"]
        assert pool.responses(np.array(wanted)) == ["r1", "r0", "r3", "r3", "r1"]
        assert pool.contexts([3, 5]) == [[], ["c5", "c5"]]
        assert pool.responses([]) == []
        with pytest.raises(IndexError):
            pool.responses([50])
        keys = [
            text
            for texts in pool.keys("utterance", make_retriever("bm25(turns=2)"))
            for text in texts
        ]
        assert keys[:4] == ["u0", "c1 u1", "c2 u2", "u3"]
        late = [
            text
            for texts in pool.keys("response", make_retriever("bm25"), 2 * batch)
            for text in texts
        ]
        assert late == [row[2] for row in ROWS[2 * batch :]]


def test_only_one_split(tmp_path: Path) -> None:
    table = pa.table(
        {
            "utterance": [f"u{i}" for i in range(6)],
            "response": ["r"] * 6,
            "split": ["train", "test", "train", "validation", "test", "train"],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=2)
    with open_pool(tmp_path / "p.parquet", split="train") as pool:
        assert pool.utterances(range(pool.size)) == ["u0", "u2", "u5"]  # type: ignore[arg-type]
        assert pool.contexts([1]) == [[]]
    with pytest.raises(DataError, match=r"no pair of the split 'dev' \(it has test, train, valid"):
        open_pool(tmp_path / "p.parquet", split="dev")


def test_the_digest_depends_on_the_texts_only(pairs: Any) -> None:
    def digest(rows: Any, **options: Any) -> str:
        with open_pool(pairs(rows, **options)) as pool:
            return pool.digest

    whole = digest(ROWS)
    assert digest(ROWS, row_group_size=9, compression="gzip") == whole
    assert digest(ROWS[::-1]) != whole
    assert digest([*ROWS[:-1], (["c"], "u49", "r2")]) != whole


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"utterance": [], "response": []}, "the pool is empty: it has no pair"),
        ({"utterance": ["u"]}, "has no column response"),
        ({"utterance": ["u"], "response": [None]}, "column response: expected texts, found null"),
        (
            {"utterance": ["u", "v"], "response": ["r", None]},
            r"column response: a text is missing \(NULL\) between rows 0 and 2",
        ),
        ({"utterance": [1], "response": ["r"]}, "column utterance: expected texts, found int64"),
        (
            {"utterance": ["u"], "response": ["r"], "context": [[1]]},
            "column context: expected lists of texts",
        ),
        (
            {"utterance": ["u"], "response": ["r"], "context": [["c", None]]},
            "column context: a text is missing",
        ),
    ],
)
def test_wrong_columns_of_pairs_are_refused(tmp_path: Path, columns: Any, complaint: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "p.parquet")
    if columns.get("utterance") == []:
        schema = pa.schema([("utterance", pa.string()), ("response", pa.string())])
        pq.write_table(pa.table(columns, schema=schema), tmp_path / "p.parquet")
    with pytest.raises(DataError, match=f"p.parquet: .*{complaint}"):
        open_pool(tmp_path / "p.parquet")


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays(
        [pa.array(["u"]), pa.array(["r"]), pa.array(["s"])], ["utterance", "response", "response"]
    )
    pq.write_table(table, tmp_path / "p.parquet")
    with pytest.raises(DataError, match=r"p.parquet: has several columns of the name response"):
        open_pool(tmp_path / "p.parquet")


def test_files_that_are_not_pools_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"utterance": "u"}\n')
    with pytest.raises(DataError, match="not a Parquet file"):
        open_pool(tmp_path / "p.jsonl")
    with pytest.raises(DataError, match="cannot be read: no such file"):
        open_pool(tmp_path / "nothing")
    with pytest.raises(DataError, match=r"no index: it has no manifest\.json"):
        open_pool(tmp_path)
    with pytest.raises(UsageError, match="leave out the split"):
        open_pool(tmp_path, split="train")


def test_temporary_files_are_removed_with_the_pool(
    pairs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "tmp"
    home.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(home))
    path = pairs(ROWS)
    pool = open_pool(path)
    pool.search(make_retriever("bm25"), Queries(["u3"], [None]), 1)
    assert any(home.iterdir())
    pool.close()
    assert not any(home.iterdir())
    pool = open_pool(path)
    del pool  # whoever forgets to close it
    gc.collect()
    assert not any(home.iterdir())
    with pytest.raises(DataError):
        open_pool(__file__)
    assert not any(home.iterdir())


def test_excluded_rows_and_distinct_responses(pool_of: Any) -> None:
    """Rows 0, 2 and 3 are alike; 0 and 2 have the same response, so the lower one stands for it."""
    pool = pool_of([("a b", "yes"), ("c", "no"), ("a b", "yes"), ("a b", "well")])
    retriever, query = make_retriever("bm25"), Queries(["a b"], [None])

    def rows(**options: Any) -> list[int]:
        return pool.search(retriever, query, 3, **options).rows[0].tolist()  # type: ignore[no-any-return]

    assert rows() == [0, 2, 3]
    assert rows(distinct=True) == [0, 3, -1]
    assert rows(exclude=np.array([0]), distinct=True) == [2, 3, -1]
    assert rows(exclude=np.array([True, True, False, True])) == [2, -1, -1]
    assert rows(exclude=np.array([], np.int64)) == [0, 2, 3]
