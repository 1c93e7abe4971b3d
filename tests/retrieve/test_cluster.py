"""The exact scan on a real standalone Spark cluster: the same bytes as on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster import Cluster, driver_environment

from rejoinder.engine import open_engine
from rejoinder.errors import ResourceError, UsageError
from rejoinder.retrieve import ann, scan
from rejoinder.retrieve import pool as pools
from rejoinder.retrieve.distribute import search_on
from rejoinder.retrieve.expand_items import expand
from rejoinder.retrieve.index_folder import build_index, open_pool
from rejoinder.retrieve.retriever import Queries, make_retriever

pytestmark = pytest.mark.xdist_group("spark")

WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture(autouse=True)
def _quick_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in driver_environment(tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def inputs(tmp_path: Path, pairs: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str, str]:
    """Items, pairs in many ranges, and word vectors with few distinct values, so that much ties."""
    rng = np.random.default_rng(12)

    def text() -> str:
        return " ".join(rng.choice(WORDS, size=rng.integers(1, 6)))

    monkeypatch.setattr(pools, "BATCH_ROWS", 64)
    monkeypatch.setattr(scan, "STEP", 128)
    monkeypatch.setattr(scan.DenseIndex, "step", 128)
    monkeypatch.setattr("rejoinder.retrieve.postings.SEGMENT_BATCHES", 2)
    path = pairs([(text(), text()) for _ in range(1000)])
    items = [
        {"id": str(i), "response": "x", "context": [text()], "references": [text()]}
        for i in range(40)
    ]
    items.append({"id": "none", "response": "x", "context": ["unheard"]})
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items))
    lines = [f"{word} {' '.join(map(str, rng.integers(-1, 2, size=6)))}" for word in WORDS]
    (tmp_path / "words.txt").write_text(f"{len(WORDS)} 6\n" + "\n".join(lines) + "\n")
    return str(tmp_path / "items.jsonl"), path, str(tmp_path / "words.txt")


def test_spark_equals_one_machine(tmp_path: Path, inputs: tuple[str, str, str]) -> None:
    items, path, words = inputs
    specs = ["bm25(on=both)", f'vectors(vectors="{words}")', f'vectors(on=both,vectors="{words}")']
    asked = [json.loads(line) for line in Path(items).read_text().splitlines()]
    queries = Queries(
        [one["context"][-1] for one in asked],
        [(one.get("references") or [None])[0] for one in asked],
    )
    skip = np.random.default_rng(13).random(1000) < 0.1
    # the cluster reads texts and numbers from the folder of the index; its own work is elsewhere
    build_index(path, make_retriever(specs[1]), tmp_path / "index")
    with (
        Cluster(tmp_path) as cluster,
        open_pool(tmp_path / "index") as pool,
        open_engine(cluster.url, tmp_path / "work") as engine,
    ):
        for spec, distinct in zip(specs, (True, False, True), strict=True):
            retriever = make_retriever(spec)
            here = pool.search(retriever, queries, 7, exclude=skip, distinct=distinct)
            there = search_on(engine, pool, retriever, queries, 7, skip=skip, distinct=distinct)
            assert (here.rows == there.rows).all()
            assert (here.scores == there.scores).all()
            assert here.reasons == there.reasons
            assert here.reasons
            assert (here.rows >= 0).sum() > 200


def test_a_cluster_that_cannot_be_reached(tmp_path: Path, inputs: tuple[str, str, str]) -> None:
    items, path, _ = inputs
    with pytest.raises(ResourceError, match="cannot reach the Spark master"):
        expand(
            items, path, tmp_path / "o.jsonl", make_retriever("bm25"), engine="spark://127.0.0.1:9"
        )
    assert not (tmp_path / "o.jsonl").exists()


def test_an_approximate_index_is_not_distributed(
    tmp_path: Path, inputs: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items, path, words = inputs
    monkeypatch.setattr(ann, "MIN_ROWS", 500)
    near = make_retriever(f'vectors(vectors="{words}",index=hnsw)')
    with open_pool(path) as pool:
        assert pool.search(near, Queries(["w1"], [None]), 1).rows[0, 0] >= 0
    with pytest.raises(UsageError, match="an approximate index is searched on this machine"):
        expand(items, path, tmp_path / "o.jsonl", near, engine="duckdb")
