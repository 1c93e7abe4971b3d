"""The exact scan: every vector of the pool against every query, with matrix products.

A block of the pool times all queries is one product, which runs at the machine's full speed; what
is good enough is computed again exactly (:mod:`rejoinder.kernels.topk`). So the result is that of
comparing everything by hand, for any size of blocks and on any number of machines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.progress import Progress
from rejoinder.retrieve.base import Asked, Index, Ints, Mask, Queries
from rejoinder.retrieve.vectors import VectorFile, Vectors, blocks

if TYPE_CHECKING:
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.dense import VectorRetriever

BLOCK = 8192
"""Rows of the pool in a product: with 384 dimensions 12 MB."""
QUERIES = 1024
"""Queries in a product: its result has 32 MB."""
STEP = 16 * BLOCK


class DenseIndex(Index):
    """Vectors in files, one for each key."""

    step = STEP

    def __init__(self, retriever: VectorRetriever, folder: Path, size: int) -> None:
        self.size = size
        self._retriever = retriever
        self._files = [VectorFile(folder / f"{key}.npy") for key in retriever.keys]

    def ask(self, queries: Queries) -> Asked:
        reasons = queries.reasons(self._retriever.keys)
        found = {}
        for key in self._retriever.keys:
            texts = queries.texts(key)
            vectors, problems = self._retriever.places(key, texts), self._retriever.problems(texts)
            found[key] = vectors
            blank = np.flatnonzero(~vectors.any(axis=1)).tolist()
            without = dict.fromkeys(blank, f"no word of the {key} has a vector")
            reasons = without | problems | reasons
        chosen = np.array([i for i in range(len(queries)) if i not in reasons], np.int64)
        return Asked({key: vectors[chosen] for key, vectors in found.items()}, chosen, reasons)

    def scan(
        self,
        asked: Asked,
        rows: range,
        best: Best,
        *,
        skip: Mask | None,
        holds: Ints | None,
        on_progress: Progress | None = None,
    ) -> None:
        from rejoinder.kernels.topk import NO_NUMBERS, Threads, offer, skip_blank

        vectors = [np.ascontiguousarray(asked.arrays[key]) for key in self._retriever.keys]
        width = min(BLOCK, len(rows))
        products = [np.empty(min(QUERIES, len(asked)) * width, np.float32) for _ in vectors]
        with Threads() as threads:
            for first, block in blocks(self._files, rows, BLOCK):
                last = first + len(block[0])
                out = np.zeros(last - first, np.bool_) if skip is None else skip[first:last].copy()
                for part in block:
                    skip_blank(part, out)
                numbers = NO_NUMBERS if holds is None else np.array(holds[first:last])
                for low in range(0, len(asked), QUERIES):
                    some = [part[low : low + QUERIES] for part in vectors]
                    near = [_product(*args) for args in zip(some, block, products, strict=True)]
                    chosen = best.part(low, low + QUERIES)
                    offer(threads, chosen, near, some, block, first, out, numbers)
                if on_progress:
                    on_progress(last - rows.start, len(rows))


def _product(queries: Vectors, block: Vectors, room: Vectors) -> Vectors:
    out = room[: len(queries) * len(block)].reshape(len(queries), len(block))
    return np.matmul(queries, block.T, out=out)
