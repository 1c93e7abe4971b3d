"""Index folders: whole or absent, resumed after an interruption, refused when they don't fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rejoinder.encode.text_encoders import WordVectorEncoder
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.retrieve import pool as pools
from rejoinder.retrieve.index_folder import build_index, open_pool, work_on
from rejoinder.retrieve.retriever import Queries, Retriever, make_retriever

ROWS = [(f"w{i % 10} w{i % 7}", f"r{i}") for i in range(100)]


@pytest.fixture
def retriever(tmp_path: Path) -> Retriever:
    rng = np.random.default_rng(6)
    lines = [f"w{i} " + " ".join(f"{x:.3f}" for x in rng.normal(size=5)) for i in range(10)]
    (tmp_path / "words.vec").write_text("10 5\n" + "\n".join(lines) + "\n")
    return make_retriever(f'vectors(vectors="{tmp_path}/words.vec")')


@pytest.mark.parametrize("spec", ["bm25(on=both)", "tfidf", None])
def test_an_index_gives_the_same_hits_as_its_pairs(
    pairs: Any, tmp_path: Path, retriever: Retriever, spec: str | None
) -> None:
    chosen = make_retriever(spec) if spec else retriever
    manifest = build_index(pairs(ROWS), chosen, tmp_path / "index")
    assert manifest.rows == 100
    queries = Queries(["w1 w2", "w3"], ["r1", "r2"])
    with open_pool(tmp_path / "pairs.parquet") as plain:
        expected = plain.search(chosen, queries, 5)
    (tmp_path / "pairs.parquet").unlink()  # the folder needs nothing else
    with open_pool(tmp_path / "index") as pool:
        assert pool.retriever == chosen
        hits = pool.search(chosen, queries, 5)
        assert pool.responses([5]) == ["r5"]
        assert (pool.size, pool.digest) == (100, plain.digest)
        # another retriever than that of the index makes its own
        assert pool.search(make_retriever("bm25"), queries, 1).rows.shape == (2, 1)
    assert (hits.rows == expected.rows).all()
    assert (hits.scores == expected.scores).all()
    assert {p.name for p in tmp_path.iterdir()} <= {"index", "words.vec"}


def test_an_interrupted_run_resumes(
    pairs: Any, tmp_path: Path, retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "BATCH_ROWS", 16)
    path = pairs(ROWS)
    build_index(path, retriever, tmp_path / "whole")
    encoded: list[int] = []
    encode = WordVectorEncoder.encode

    def counted(self: WordVectorEncoder, texts: list[str], *rest: Any) -> Any:
        encoded.append(len(texts))
        return encode(self, texts, *rest)

    monkeypatch.setattr(WordVectorEncoder, "encode", counted)

    def stop(done: int, total: int) -> None:
        assert total == 100
        if done >= 48:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(path, retriever, tmp_path / "index", on_progress=stop)
    assert not (tmp_path / "index").exists()
    assert encoded == [16, 16, 16]
    half = next((tmp_path / ".index.work").glob("index-*/utterance.npy"))
    with open(half, "ab") as file:
        file.write(b"half a row")  # what a kill in the middle of writing leaves
    encoded.clear()
    build_index(path, retriever, tmp_path / "index")
    assert encoded == [16, 16, 16, 4]
    one, other = (next((tmp_path / n).glob("index-*/utterance.npy")) for n in ("whole", "index"))
    assert one.read_bytes() == other.read_bytes()
    assert not (tmp_path / ".index.work").exists()


def test_work_on_other_pairs_is_discarded(
    pairs: Any, tmp_path: Path, retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an interrupted run has of other pairs is of no use."""
    monkeypatch.setattr(pools, "BATCH_ROWS", 16)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(pairs(ROWS), retriever, tmp_path / "index", on_progress=stop)
    build_index(pairs(ROWS[::-1]), retriever, tmp_path / "index")
    build_index(pairs(ROWS[::-1]), retriever, tmp_path / "fresh")
    one, other = (next((tmp_path / n).glob("index-*/utterance.npy")) for n in ("fresh", "index"))
    assert one.read_bytes() == other.read_bytes()


def test_a_new_index_replaces_an_old_one(pairs: Any, tmp_path: Path) -> None:
    build_index(pairs(ROWS), make_retriever("bm25"), tmp_path / "index")
    build_index(pairs(ROWS[:7]), make_retriever("tfidf"), tmp_path / "index")
    with open_pool(tmp_path / "index") as pool:
        assert pool.size == 7
        assert str(pool.retriever) == "tfidf"
    assert {p.name for p in tmp_path.iterdir()} == {"index", "pairs.parquet"}
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").touch()
    with pytest.raises(UsageError, match="exists and is not an index"):
        build_index(pairs(ROWS), make_retriever("bm25"), tmp_path / "folder")
    assert (tmp_path / "folder" / "precious").exists()


def test_a_failure_leaves_nothing_behind(pairs: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the pool is empty"):
        build_index(pairs([]), make_retriever("bm25"), tmp_path / "index")
    assert {p.name for p in tmp_path.iterdir()} == {"pairs.parquet"}


def test_a_second_run_is_refused(pairs: Any, tmp_path: Path) -> None:
    path = pairs(ROWS)
    with work_on(tmp_path / "index"), pytest.raises(ResourceError, match="another run"):
        build_index(path, make_retriever("bm25"), tmp_path / "index")


def changed(folder: Path, **fields: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_an_index_of_another_version(pairs: Any, tmp_path: Path) -> None:
    build_index(pairs(ROWS), make_retriever("bm25"), tmp_path / "index")
    changed(tmp_path / "index", format=0, rejoinder="0.0.9")
    with pytest.raises(
        DataError, match=r"rejoinder 0\.0\.9 made it in format 0.*make it anew: rejoinder.index"
    ):
        open_pool(tmp_path / "index")
    changed(tmp_path / "index", kind="evaluator")
    with pytest.raises(DataError, match="no index, but 'evaluator'"):
        open_pool(tmp_path / "index")
    (tmp_path / "index" / "manifest.json").write_text("{")
    with pytest.raises(DataError, match="not the manifest of an index"):
        open_pool(tmp_path / "index")


def test_an_index_of_another_model(pairs: Any, tmp_path: Path, retriever: Retriever) -> None:
    path = pairs(ROWS)
    build_index(path, retriever, tmp_path / "index")
    with open(tmp_path / "words.vec", "a") as file:
        file.write("w99 1 2 3 4 5\n")
    text = (tmp_path / "words.vec").read_text().replace("10 5", "11 5", 1)
    (tmp_path / "words.vec").write_text(text)
    from rejoinder.encode.static import open_vectors

    open_vectors.cache_clear()  # as in a new process
    with pytest.raises(DataError) as caught:
        open_pool(tmp_path / "index")
    assert "it was made with the vectors" in str(caught.value)
    assert f"make it anew: rejoinder.index('{path}', by='vectors(vectors=" in str(caught.value)


def test_a_damaged_index(pairs: Any, tmp_path: Path, retriever: Retriever) -> None:
    build_index(pairs(ROWS), retriever, tmp_path / "index")
    vectors = next((tmp_path / "index").glob("index-*/utterance.npy"))
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-1])
    with pytest.raises(DataError, match=r"damaged: index-\w+/utterance.npy is not as it was"):
        open_pool(tmp_path / "index")
    vectors.unlink()
    with pytest.raises(DataError, match="damaged"):
        open_pool(tmp_path / "index")
    vectors.write_bytes(whole)
    open_pool(tmp_path / "index").close()
