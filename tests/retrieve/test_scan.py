"""The exact scan is exact: the same rows and the same numbers as comparing everything by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rejoinder.kernels.topk import Best, Threads, margin, offer
from rejoinder.retrieve import scan
from rejoinder.retrieve.retriever import EncodedQueries, SearchOptions
from rejoinder.retrieve.scan import DenseIndex

Vectors = NDArray[np.float32]


@dataclass
class Fake:
    """A retriever whose vectors are there already."""

    keys: tuple[str, ...]


def unit(vectors: Any) -> Vectors:
    wide = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0).astype(np.float32)


def by_hand(queries: list[Vectors], pool: list[Vectors]) -> NDArray[np.float64]:
    """All similarities: every sum in float64, one number after the other."""
    parts = []
    for asked, rows in zip(queries, pool, strict=True):
        products = asked.astype(np.float64)[:, None] * rows.astype(np.float64)[None]
        parts.append(np.add.accumulate(products, axis=2)[:, :, -1])
    if len(parts) == 1:
        return parts[0]
    return np.maximum(parts[0], 0) * np.maximum(parts[1], 0)


def scanned(
    folder: Path, queries: list[Vectors], pool: list[Vectors], k: int, **options: Any
) -> Best:
    keys = ("utterance", "response")[: len(pool)]
    for key, vectors in zip(keys, pool, strict=True):
        np.save(folder / f"{key}.npy", vectors)
    index = DenseIndex(Fake(keys), folder, len(pool[0]))  # type: ignore[arg-type]
    asked = EncodedQueries(dict(zip(keys, queries, strict=True)), np.arange(len(queries[0])))
    best = Best.empty(len(asked), k, distinct=options.get("groups") is not None)
    index.scan(asked, range(len(pool[0])), best, SearchOptions(**options))
    return best


@pytest.mark.parametrize("block", [1, 7, 64, 100, 1000])
@pytest.mark.parametrize("parts", [1, 2])
def test_hits_do_not_depend_on_the_block_size(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ranked: Any,
    listed: Any,
    block: int,
    parts: int,
) -> None:
    rng = np.random.default_rng(1)
    pool = [unit(rng.normal(size=(300, 24))) for _ in range(parts)]
    for part in pool:
        part[rng.integers(300, size=60)] = part[rng.integers(300, size=60)]  # ties
        part[rng.integers(300, size=10)] = 0  # no vector
    queries = [unit(rng.normal(size=(9, 24))) for _ in range(parts)]
    queries[0][0] = pool[0][17]
    skip, holds = rng.random(300) < 0.2, rng.integers(40, size=300)
    monkeypatch.setattr(scan, "BLOCK", block)
    monkeypatch.setattr(scan, "QUERIES", 4)
    all_of_them = by_hand(queries, pool)
    best = scanned(tmp_path, queries, pool, 12)
    assert listed(best.rows, best.scores) == ranked(all_of_them, 12)
    best = scanned(tmp_path, queries, pool, 12, skip=skip, groups=holds)
    assert listed(best.rows, best.scores) == ranked(
        all_of_them, 12, np.flatnonzero(skip).tolist(), holds.tolist()
    )


def test_rows_that_float32_cannot_tell_apart(tmp_path: Path, ranked: Any, listed: Any) -> None:
    """A matrix product in float32 puts near ties in the wrong order; the scan does not."""
    rng = np.random.default_rng(2)
    centre = rng.normal(size=384)
    # a thousand directions within 0.001 of each other
    pool = unit(centre + 0.02 * rng.normal(size=(1000, 384)) * np.linspace(0, 0.02, 1000)[:, None])
    queries = unit(centre + 0.001 * rng.normal(size=(20, 384)))
    naive = np.argsort(-(queries @ pool.T), axis=1, kind="stable")[:, :15]
    best = scanned(tmp_path, [queries], [pool], 15)
    expected = ranked(by_hand([queries], [pool]), 15)
    assert listed(best.rows, best.scores) == expected
    assert (naive != best.rows).any(), "these vectors are too easy to show anything"


def test_the_margin_holds_for_any_order_of_summation() -> None:
    rng = np.random.default_rng(3)
    for dimensions in (4, 100, 384, 768):
        a, b = unit(rng.normal(size=(2000, dimensions))), unit(rng.normal(size=(2000, dimensions)))
        exact = np.einsum("nd,nd->n", a.astype(np.float64), b.astype(np.float64))
        products = np.abs(a * b)  # adding up in falling and in rising order is the worst case
        order = np.argsort(products, axis=1)
        signed = np.take_along_axis(a * b, order, axis=1)
        for worst in (signed, signed[:, ::-1]):
            summed = np.add.accumulate(worst, axis=1, dtype=np.float32)[:, -1]
            assert np.abs(summed - exact).max() < margin(dimensions, 1)


@given(data=st.data())
@settings(max_examples=60)
def test_small_integers_where_nearly_everything_ties(data: Any, ranked: Any, listed: Any) -> None:
    rows, k = data.draw(st.integers(1, 150)), data.draw(st.integers(1, 8))
    small = st.integers(-1, 1)
    pool = np.array(
        data.draw(st.lists(st.tuples(small, small, small), min_size=rows, max_size=rows)),
        np.float32,
    )
    queries = np.array(data.draw(st.lists(st.tuples(small, small, small), min_size=1)), np.float32)
    holds = np.array(data.draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows)), np.int64)
    best = Best.empty(len(queries), k, distinct=True)
    skip = ~pool.any(axis=1)
    with Threads() as threads:
        offer(threads, best, [queries @ pool.T], [queries], [pool], 0, skip, holds)
    assert listed(best.rows, best.scores) == ranked(
        queries.astype(np.float64) @ pool.T, k, (), holds.tolist()
    )


def test_k_larger_than_the_number_of_rows(tmp_path: Path) -> None:
    pool, queries = unit([[1, 0], [1, 1], [0, 0]]), unit([[1, 0]])
    best = scanned(tmp_path, [queries], [pool], 5)
    assert best.rows.tolist() == [[0, 1, -1, -1, -1]]
    assert best.scores[0, 1] == np.float32(np.sqrt(0.5))


def test_negative_similarities_count_alone_but_not_in_a_product(tmp_path: Path) -> None:
    utterances, responses = unit([[-1, 0], [1, 0]]), unit([[-1, 0], [-1, 0]])
    query = unit([[1, 0]])
    alone = scanned(tmp_path, [query], [utterances], 2)
    assert alone.rows.tolist() == [[1, 0]]
    assert alone.scores.tolist() == [[1, -1]]
    product = scanned(tmp_path, [query, query], [utterances, responses], 2)
    assert product.rows.tolist() == [[-1, -1]]  # -1 · -1 is no similarity, nor is 1 · -1


@pytest.mark.parametrize("threads", ["1", "3"])
def test_the_number_of_threads_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    rng = np.random.default_rng(4)
    pool, queries = unit(rng.normal(size=(500, 8))), unit(rng.normal(size=(17, 8)))
    expected = scanned(tmp_path, [queries], [pool], 5)
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    best = scanned(tmp_path, [queries], [pool], 5)
    assert (best.rows == expected.rows).all()
