"""Approximate search: recall, and exact similarities."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rejoinder.errors import MissingExtra, UsageError
from rejoinder.retrieve import ann
from rejoinder.retrieve.ann import AnnIndex
from rejoinder.retrieve.index_folder import build_index, open_pool
from rejoinder.retrieve.pool import Pool
from rejoinder.retrieve.retriever import Queries, make_retriever

SIZE = 12_000


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """300 words around 20 topics."""
    rng = np.random.default_rng(7)
    topics = rng.normal(size=(20, 16))
    vectors = topics[rng.integers(20, size=300)] + 0.5 * rng.normal(size=(300, 16))
    lines = [f"w{i} " + " ".join(f"{x:.4f}" for x in v) for i, v in enumerate(vectors)]
    path = tmp_path_factory.mktemp("vectors") / "words.txt"
    path.write_text("300 16\n" + "\n".join(lines) + "\n")
    return str(path)


def texts(count: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(f"w{i}" for i in rng.integers(300, size=4)) for _ in range(count)]


@pytest.fixture
def large(pool_of: Any) -> Pool:
    return pool_of([(text, f"r{i % 4000}") for i, text in enumerate(texts(SIZE, 8))])  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", ["hnsw", "ivf-pq", "hnsw(links=8,construction=40,search=64)"])
def test_recall_and_exact_similarities(large: Pool, words: str, kind: str) -> None:
    queries = Queries(texts(100, 9), [None] * 100)
    exact = large.search(make_retriever(f'vectors(vectors="{words}")'), queries, 15)
    near = make_retriever(f'vectors(vectors="{words}",index={kind})')
    assert isinstance(large.index(near), AnnIndex)
    hits = large.search(near, queries, 15)
    found = [len(set(a) & set(b)) / 15 for a, b in zip(exact.rows, hits.rows, strict=True)]
    assert np.mean(found) > 0.95
    for i in range(100):
        known = dict(zip(exact.rows[i].tolist(), exact.scores[i], strict=True))
        for row, score in zip(hits.rows[i].tolist(), hits.scores[i], strict=True):
            assert score == known.get(row, score)
        assert hits.scores[i].tolist() == sorted(hits.scores[i].tolist(), reverse=True)


def test_excluded_rows_are_replaced_by_further_hits(large: Pool, words: str) -> None:
    """Of what FAISS proposes, all but a few rows are left out: it is asked for more, and in the
    end everything is scanned."""
    near = make_retriever(f'vectors(vectors="{words}",index=hnsw(candidates=20))')
    exact = make_retriever(f'vectors(vectors="{words}")')
    queries = Queries(texts(5, 10), [None] * 5)
    for share in (0.5, 0.999):
        out = np.random.default_rng(11).random(SIZE) < share
        hits = large.search(near, queries, 10, exclude=out, distinct=True)
        wanted = large.search(exact, queries, 10, exclude=out, distinct=True)
        assert (hits.rows >= 0).sum() == (wanted.rows >= 0).sum()
        assert not out[hits.rows[hits.rows >= 0]].any()
        for rows in hits.rows:
            replies = large.responses(rows[rows >= 0])
            assert len(set(replies)) == len(replies)
        if share > 0.9:  # about 12 rows are left: nothing but the scan finds ten of them
            assert (hits.rows == wanted.rows).all()


def test_a_small_pool_is_scanned(pool_of: Any, words: str) -> None:
    pool = pool_of([("w1", "r")])
    for kind in ("hnsw", "ivf-pq"):
        near = make_retriever(f'vectors(vectors="{words}",index={kind})')
        assert pool.search(near, Queries(["w1"], [None]), 3).rows.tolist() == [[0, -1, -1]]
        assert not isinstance(pool.index(near), AnnIndex)


def test_the_faiss_index_is_part_of_the_folder(pairs: Any, words: str, tmp_path: Path) -> None:
    path = pairs([(text, "r") for text in texts(SIZE, 8)])
    near = make_retriever(f'vectors(vectors="{words}",index=ivf-pq(lists=50,codes=8))')
    progress: list[int] = []
    manifest = build_index(
        path, near, tmp_path / "index", on_progress=lambda a, b: progress.append(a)
    )
    assert progress[-1] == SIZE
    assert any(name.endswith(".faiss") for name in manifest.files)
    with open_pool(tmp_path / "index") as pool:
        hits = pool.search(near, Queries(texts(1, 8), [None]), 1)
        assert hits.rows.tolist() == [[0]]  # the text itself


def test_without_faiss(large: Pool, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    near = make_retriever(f'vectors(vectors="{words}",index=hnsw)')
    with pytest.raises(MissingExtra, match=r"pip install 'rejoinder\[faiss\]'"):
        large.index(near)


def test_codes_must_divide_the_dimensions(large: Pool, words: str) -> None:
    near = make_retriever(f'vectors(vectors="{words}",index=ivf-pq(codes=5))')
    with pytest.raises(UsageError, match="codes=5 does not divide the 16 dimensions"):
        large.index(near)
    assert ann._divisor(100, 25) == 25
    assert ann._divisor(7, 1) == 1
