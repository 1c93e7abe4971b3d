"""Retrieval: the exact scan against plain matrix products, and FAISS against the exact scan.

Rows: (1) 1,000 queries over a million vectors of 384 numbers (random: the work is the same): the
products of these shapes alone over our scan with its exact best 15, which also reads the vectors
from a file; (2) 1 GB over its peak memory, in a process of its own; (3, 4) HNSW and IVF-PQ over a
million real texts: seconds of the scan over seconds of the search, for 1,000 turns of
DailyDialog. The recall@15 of IVF-PQ must reach 0.95; HNSW is shown beside it. The time to build
them is reported.

The texts are turns of self-dialogue, chitchat and RealPersonaChat; where those are not enough
distinct ones, two consecutive turns make a text, as in ``turns=2``. Their
vectors are averages of MiniLM's word vectors.

``--rows N`` takes another number of rows, ``--keep FOLDER`` keeps vectors and indexes there for
the next run, ``--index SPEC`` (repeated) measures these indexes instead.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.topk import Best
from rejoinder.registry import READERS
from rejoinder.retrieve.ann import AnnIndex, ApproximateSearch, make_approximate_search
from rejoinder.retrieve.retriever import DEFAULT_OPTIONS, EncodedQueries, Queries, make_retriever
from rejoinder.retrieve.scan import BLOCK, DenseIndex
from rejoinder.retrieve.vector_file import write_vectors
from rejoinder.spec import parse
from table import show

QUERIES, K, DIMENSIONS = 1000, 15, 384
ROUNDS = 3
BATCH = 16_384
RECALL, LIMITED = 0.95, "ivf-pq"
DATA = Path(os.environ.get("REJOINDER_DATA") or Path(__file__).parents[2] / "shared" / "data")
CORPORA = (
    ("self-dialogue", "en", "self-dialogue/dialogues.jsonl.gz"),
    ("chitchat", "en", "chitchat"),
    ("real-persona-chat", "ja", "real-persona-chat-ja/dialogues.jsonl.gz"),
)
TURNS = "dailydialog/test.txt"

Vectors = NDArray[np.float32]


class PrecomputedQueries:
    """A retriever whose query vectors are given; it is its own text encoder."""

    keys = ("utterance",)

    def __init__(self, queries: Vectors) -> None:
        self._queries = queries
        self.text_encoder = self

    def encode_key(self, key: str, texts: list[str]) -> Vectors:
        return self._queries

    def problems(self, texts: list[str]) -> dict[int, str]:
        return {}


# the exact scan, in a process of its own


def random_vectors(rows: int, seed: int) -> Vectors:
    vectors = np.random.default_rng(seed).standard_normal((rows, DIMENSIONS), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write_random(folder: Path, rows: int) -> None:
    blocks = ([""] * min(BATCH, rows - first) for first in range(0, rows, BATCH))
    seeds = iter(range(rows))
    write_vectors(
        folder / "utterance.npy",
        (rows, DIMENSIONS),
        lambda _: blocks,
        BATCH,
        lambda texts, _: random_vectors(len(texts), next(seeds)),
    )


def measure_scan(folder: Path, rows: int) -> dict[str, float]:
    """Seconds of the scan and of its products alone, and the peak memory of the scan in GB."""
    queries = random_vectors(QUERIES, rows + 1)
    index = DenseIndex(PrecomputedQueries(queries), folder, rows)  # type: ignore[arg-type]
    asked = EncodedQueries({"utterance": queries}, np.arange(QUERIES))

    def scan(until: int) -> float:
        began = time.perf_counter()
        best = Best.empty(QUERIES, K)
        index.scan(asked, range(until), best, DEFAULT_OPTIONS)
        return time.perf_counter() - began

    scan(min(rows, BLOCK))  # compiles
    ours = scan(rows)
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**20
    peer = min(products(queries, rows, size) for size in (BLOCK // 2, BLOCK, 2 * BLOCK))
    for _ in range(ROUNDS - 1):
        ours = min(ours, scan(rows))
        peer = min(peer, products(queries, rows, BLOCK))
    return {"ours": ours, "peer": peer, "peak": peak}


def products(queries: Vectors, rows: int, size: int) -> float:
    """Time the matrix products alone, without reading vectors or selecting the best."""
    block, out = random_vectors(size, 0), np.empty((QUERIES, size), np.float32)
    np.matmul(queries, block.T, out=out)
    began = time.perf_counter()
    for first in range(0, rows, size):
        some = block[: rows - first]
        np.matmul(queries, some.T, out=out[:, : len(some)] if len(some) < size else out)
    return time.perf_counter() - began


def scan_rows(rows: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        write_random(Path(name), rows)
        command = [sys.executable, __file__, "--scan", name, "--rows", str(rows)]
        output = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return [
        row(f"scan of {rows:,} rows: products alone over all", output["ours"], output["peer"], 0.7),
        row("GB: 1 over the peak of the scan", output["peak"], 1.0, 1.0),
    ]


# FAISS on real texts


def dialogues(format: str, path: str) -> Iterator[list[str]]:
    reader = READERS.make(format)
    thread, turns = None, []
    for chunk in reader.chunk(path if format == "chitchat" else str(DATA / path)):
        for post in reader.records(chunk):
            if (post.source, post.line, post.thread) != thread:
                yield turns
                thread, turns = (post.source, post.line, post.thread), []
            turns.append(post.text)
    yield turns


def distinct_texts(known: set[str]) -> Iterator[tuple[str, str]]:
    """Yield texts with their language: single turns of all corpora, then two consecutive turns."""
    for several in (False, True):
        for format, language, path in CORPORA:
            for turns in dialogues(format, path):
                for text in map(" ".join, pairwise(turns)) if several else turns:
                    if text not in known:
                        known.add(text)
                        yield language, text


def write_real(folder: Path, rows: int) -> None:
    """Write the vectors of texts and queries to files."""
    retrievers = {language: make_retriever("vectors", language) for _, language, _ in CORPORA}
    asked: dict[str, None] = {}
    for turns in dialogues("dailydialog", TURNS):
        asked |= dict.fromkeys(turns)
    queries = list(asked)[:QUERIES]
    texts = islice(distinct_texts(set(queries)), rows)

    def batches(_: int) -> Iterator[list[tuple[str, str]]]:
        while batch := list(islice(texts, BATCH)):
            yield batch

    def encode(batch: list[tuple[str, str]], _: object) -> Vectors:
        vectors = np.zeros((len(batch), DIMENSIONS), np.float32)
        for language, retriever in retrievers.items():
            places = [i for i, (spoken, _) in enumerate(batch) if spoken == language]
            if places:
                vectors[places] = retriever.encode([batch[i][1] for i in places])  # type: ignore[attr-defined]
        return vectors

    shape = (rows, DIMENSIONS)
    write_vectors(folder / "utterance.npy", shape, batches, BATCH, encode)  # type: ignore[arg-type]
    np.save(folder / "queries.npy", retrievers["en"].encode(queries))  # type: ignore[attr-defined]


def faiss_rows(rows: int, specs: list[str], keep: Path | None) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as name:
        folder = keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "queries.npy").exists():
            write_real(folder, rows)
        vectors = np.load(folder / "queries.npy")
        encoder, queries = (
            PrecomputedQueries(vectors),
            Queries(["-"] * len(vectors), [None] * len(vectors)),
        )
        scan = DenseIndex(encoder, folder, rows)  # type: ignore[arg-type]
        began = time.perf_counter()
        exact = scan.search(queries, K)
        scanned = time.perf_counter() - began
        for spec in specs:
            nearest = make_approximate_search(parse(spec))
            assert nearest is not None
            place, built = made(nearest, spec, folder)
            index = AnnIndex(nearest, encoder, place, rows)  # type: ignore[arg-type]
            index.search(queries, K)  # reads the index
            seconds = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                hits = index.search(queries, K)
                seconds.append(time.perf_counter() - began)
            pairs = zip(exact.rows, hits.rows, strict=True)
            recall = float(np.mean([len(set(a) & set(b)) / K for a, b in pairs]))
            size = (place / "nearest.faiss").stat().st_size / 2**20
            details = f"recall@{K} {recall:.4f}, {size:,.0f} MB, made in {built:,.0f} s"
            name = f"{spec} over {rows:,} texts: {details}"
            limited = nearest.name == LIMITED
            measured = row(name, min(seconds), scanned, 10.0 if limited else None)
            if limited and recall < RECALL:
                measured["name"] += f", below the {RECALL} that it must reach"
            yield measured | {"enough": recall >= RECALL or not limited}


def made(nearest: ApproximateSearch, spec: str, folder: Path) -> tuple[Path, float]:
    """Return the folder of an index, and the seconds it took to build it."""
    place = folder / f"made-{spec}"
    place.mkdir(exist_ok=True)
    note = place / "seconds"
    if not note.exists():
        began = time.perf_counter()
        nearest.build(folder / "utterance.npy", place)
        note.write_text(str(time.perf_counter() - began))
        (place / "utterance.npy").symlink_to((folder / "utterance.npy").absolute())
    return place, float(note.read_text())


def row(name: str, ours: float, peer: float, required: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "required": required,
    }


def run(rows: int, specs: list[str], keep: Path | None = None) -> list[dict[str, Any]]:
    return [*scan_rows(rows), *faiss_rows(rows, specs, keep)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--index", action="append")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--scan", type=Path)
    arguments = parser.parse_args()
    if arguments.scan:
        print(json.dumps(measure_scan(arguments.scan, arguments.rows)))
        sys.exit()
    show(run(arguments.rows, arguments.index or ["hnsw", "ivf-pq"], arguments.keep))
