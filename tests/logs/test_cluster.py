"""The pipeline on a real standalone Spark cluster: the same bytes as on one machine.

A master and two workers, each a process of its own; in one test, one of them dies.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from archive import make_archive
from cluster import Cluster, driver_environment
from test_pipeline import settings

from rejoinder.errors import ResourceError
from rejoinder.logs.pipeline import make_pairs

pytestmark = pytest.mark.xdist_group("spark")


@pytest.fixture(autouse=True)
def _quick_driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in driver_environment(tmp_path).items():
        monkeypatch.setenv(name, value)


def inputs(folder: Path, files: int, posts: int) -> list[str]:
    """Several files, so that there is work for several workers; threads cross their borders."""
    make_archive(folder / "whole.jsonl", posts, seed=11, rate_bots=1)
    lines = (folder / "whole.jsonl").read_bytes().splitlines(keepends=True)
    paths = []
    for k in range(files):
        path = folder / f"part-{k}.jsonl"
        path.write_bytes(b"".join(lines[k::files]))
        paths.append(str(path))
    return paths


def test_spark_equals_duckdb_also_when_a_worker_dies(tmp_path: Path) -> None:
    paths = inputs(tmp_path, files=6, posts=2500)
    items = tmp_path / "items.jsonl"
    items.write_text(
        '{"id": "1", "response": "x", "context": ["the old bakery was rather quiet this morning"]}'
    )
    chosen = settings("twitter", exclude=(str(items),))
    on_one = make_pairs(paths, tmp_path / "duckdb.parquet", chosen)
    with Cluster(tmp_path) as cluster:
        on_many = make_pairs(paths, tmp_path / "spark.parquet", chosen, engine=cluster.url)
        assert on_many == on_one
        expected = (tmp_path / "duckdb.parquet").read_bytes()
        assert (tmp_path / "spark.parquet").read_bytes() == expected
        rejects = [(tmp_path / f"{e}.rejects.jsonl").read_bytes() for e in ("duckdb", "spark")]
        assert rejects[0] == rejects[1]

        killed = threading.Event()

        def kill_when_reading_has_begun() -> None:
            work = tmp_path / ".again.parquet.work"
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                if any(work.rglob("*.parquet")) or any(work.rglob("_temporary")):
                    cluster.kill(0)
                    killed.set()
                    return
                time.sleep(0.05)

        killer = threading.Thread(target=kill_when_reading_has_begun)
        killer.start()
        again = make_pairs(paths, tmp_path / "again.parquet", chosen, engine=cluster.url)
        killer.join()
        assert killed.is_set(), "the worker was to die in the middle of the run"
        assert again == on_one
        assert (tmp_path / "again.parquet").read_bytes() == expected


def test_a_cluster_that_cannot_be_reached(tmp_path: Path) -> None:
    paths = inputs(tmp_path, files=1, posts=50)
    with pytest.raises(
        ResourceError, match=r"cannot reach the Spark master spark://127\.0\.0\.1:9"
    ):
        make_pairs(paths, tmp_path / "p.parquet", settings("twitter"), engine="spark://127.0.0.1:9")
    assert not (tmp_path / "p.parquet").exists()
