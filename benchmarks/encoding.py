"""Encoding 4,000 distinct utterances of self-dialogue: our encoder and sentence-transformers.

Both have the same weights, texts and number of threads, and their vectors are compared. Ours
writes a new cache in every round. Rounds alternate and the fastest of each side counts, because
timing is noisy; on a busy machine, ``OMP_NUM_THREADS=1`` is fairer to the peer, whose threads
wait for each other. Then the same texts from the cache: sentence vectors as a whole process,
including the start of Python, and token vectors within a process.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.encode.transformer import Encoder
from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.files.cache import open_cache
from rejoinder.machine import num_threads
from table import show

HERE = Path(__file__).resolve().parent

TEXTS = 4000
ROUNDS = 3

RUN = """
import json, sys
from rejoinder.encode.transformer import Encoder
Encoder().sentences(json.load(open(sys.argv[1])))
"""


def utterances() -> list[str]:
    """Return distinct turns, spread over the corpus."""
    data = Path(os.environ.get("REJOINDER_DATA") or HERE.parent.parent / "shared" / "data")
    source = data / "self-dialogue" / "dialogues.jsonl.gz"
    with gzip.open(source, "rt") as stream:
        turns = [turn for line in stream for turn in json.loads(line)["turns"]]
    distinct = list(dict.fromkeys(turns))
    return distinct[:: len(distinct) // TEXTS][:TEXTS]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def with_new_cache(work: Callable[[], Any]) -> Callable[[], Any]:
    def run() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["REJOINDER_CACHE"] = folder
            result = work()
            open_cache().close()
            return result

    return run


def against_sentence_transformers(texts: list[str]) -> dict[str, Any]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(num_threads())
    peer = SentenceTransformer(str(find_model_folder("minilm")), device="cpu")
    encoder = Encoder()

    def mine() -> Any:
        return encoder.sentences(texts)

    def theirs() -> Any:
        return peer.encode(texts, show_progress_bar=False)

    encoder.sentences(texts[:32])  # kernels are compiled, weights are read
    peer.encode(texts[:32], show_progress_bar=False)
    ours, others = [], []
    for _ in range(ROUNDS):
        seconds, vectors = timed(with_new_cache(mine))
        ours.append(seconds)
        seconds, expected = timed(theirs)
        others.append(seconds)
    cosines = (vectors * expected).sum(axis=1) / np.linalg.norm(expected, axis=1)
    assert cosines.min() >= 0.999, cosines.min()
    count = f"{num_threads()} thread{'s' * (num_threads() > 1)}"
    name = f"{len(texts)} utterances, {count}: sentence-transformers"
    return row(name, min(ours), min(others), 1.5)


def whole_processes(texts: list[str]) -> dict[str, Any]:
    """Sentence vectors, from the start of Python to its end."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "texts.json"
        source.write_text(json.dumps(texts))
        environment = os.environ | {"REJOINDER_CACHE": folder}

        def run() -> None:
            arguments = [sys.executable, "-c", RUN, str(source)]
            subprocess.run(arguments, env=environment, check=True)

        first, _ = timed(run)
        second = min(timed(run)[0] for _ in range(ROUNDS))
    return row(f"{len(texts)} utterances from the cache: the first run", second, first, 20)


def tokens_within_a_process(texts: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["REJOINDER_CACHE"] = folder
        encoder = Encoder()
        first, expected = timed(lambda: encoder.tokens(texts))
        seconds = []
        for number in range(ROUNDS):
            # the same file under another name, so that the memory cache is not used
            open_cache().close()
            link = Path(folder).with_name(f"{Path(folder).name}-{number}")
            link.symlink_to(folder)
            os.environ["REJOINDER_CACHE"] = str(link)
            took, cached = timed(lambda: encoder.tokens(texts))
            seconds.append(took)
            assert np.array_equal(cached.vectors, expected.vectors)
            link.unlink()
    return row("their token vectors from the cache: the first time", min(seconds), first, 20)


def row(name: str, mine: float, theirs: float, required: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ours_seconds": mine,
        "peer_seconds": theirs,
        "ratio": theirs / mine,
        "required": required,
    }


def run() -> list[dict[str, Any]]:
    texts = utterances()
    return [
        against_sentence_transformers(texts),
        whole_processes(texts),
        tokens_within_a_process(texts),
    ]


if __name__ == "__main__":
    show(run())
