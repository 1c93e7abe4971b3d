"""Word vectors: training GloVe against gensim's word2vec, and opening against gensim's loader.

    python benchmarks/vectors.py

Both learn from the same texts (every eighth self-dialogue) with the same threads, each with its
own defaults in Rejoinder: GloVe counts neighbours once and goes 25 times over the counts, word2vec
5 times over the texts. The ratio is the peer's time over ours: above 1 means that we are faster.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from gensim.models import KeyedVectors

from rejoinder.encode.static.train.corpus import Corpus
from rejoinder.encode.static.train.gensim_models import train_gensim
from rejoinder.encode.static.train.glove import Glove
from rejoinder.encode.static.vectors_folder import Batch, new_vectors_folder, open_vectors_folder
from rejoinder.registry import TOKENIZERS
from table import show

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 2
WORDS, DIMENSIONS = 300_000, 100


def run() -> list[dict[str, Any]]:
    return [_training(), _opening()]


def _training() -> dict[str, Any]:
    corpus = Corpus.of([_texts()], TOKENIZERS.make("13a"), True, 5)
    threads = os.cpu_count() or 1
    glove = Glove()
    shared = {"dimensions": 100, "window": 5, "epochs": 5, "seed": 0, "threads": threads}
    short = Corpus.of([["a b c d e f g"] * 50], TOKENIZERS.make("13a"), True, 5)
    _glove(glove, short, threads)  # compiles
    ours, peers = [], []
    for _ in range(ROUNDS):
        ours.append(_timed(lambda: _glove(glove, corpus, threads)))
        peers.append(_timed(lambda: train_gensim(corpus, **shared)))
    tokens = len(corpus.ids)
    return {
        "name": f"GloVe ({tokens / min(ours):,.0f} tokens/s) against gensim's word2vec"
        f" ({tokens / min(peers):,.0f} tokens/s), {tokens:,} tokens, {threads} threads",
        "ours_seconds": min(ours),
        "peer_seconds": min(peers),
        "ratio": min(peers) / min(ours),
        "required": None,
    }


def _glove(glove: Glove, corpus: Corpus, threads: int) -> None:
    glove.train(glove.count(corpus.ids, corpus.starts, threads), len(corpus.words), threads)


def _opening() -> dict[str, Any]:
    """From a name to the vectors of a thousand words."""
    words = [f"word{i}" for i in range(WORDS)]
    rows = np.random.default_rng(0).random((WORDS, DIMENSIONS), np.float32)
    asked = words[:: WORDS // 1000]
    with tempfile.TemporaryDirectory() as home:
        folder, file = Path(home) / "ours", str(Path(home) / "v.bin")
        with new_vectors_folder(folder, "benchmark") as writer:
            writer.add(Batch([word.encode() for word in words], rows))
            writer.finish({})
        keyed = KeyedVectors(DIMENSIONS)
        keyed.add_vectors(words, rows)
        keyed.save_word2vec_format(file, binary=True)
        ours = [_timed(lambda: open_vectors_folder(folder).find(asked)) for _ in range(ROUNDS)]
        peers = [
            _timed(lambda: KeyedVectors.load_word2vec_format(file, binary=True)[asked])
            for _ in range(ROUNDS)
        ]
    return {
        "name": f"opening {WORDS:,} words and reading 1,000, against gensim's load_word2vec_format",
        "ours_seconds": min(ours),
        "peer_seconds": min(peers),
        "ratio": min(peers) / min(ours),
        "required": 5.0,
    }


def _texts() -> list[str]:
    data = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")
    path = data / "self-dialogue" / "dialogues.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [turn for line in islice(lines, 0, None, 8) for turn in json.loads(line)["turns"]]


def _timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    show(run())
