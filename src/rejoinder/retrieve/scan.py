"""Exact search: compare every vector of the pool with every query, by matrix products.

A block of the pool times all queries is one product in float32, which runs at the full speed of the
machine; similarities near the k-th best are computed again in float64
(:mod:`rejoinder.kernels.topk`). So the hits do not depend on the block size or on the number of
machines.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.errors import DataError
from rejoinder.retrieve.retriever import EncodedQueries, Index, Queries, SearchOptions
from rejoinder.retrieve.vector_file import VectorFile, Vectors, blocks

if TYPE_CHECKING:
    from rejoinder.kernels.topk import Best
    from rejoinder.retrieve.dense import VectorRetriever

BLOCK = 8192
"""Rows of the pool in a product: 12 MB with 384 dimensions."""
QUERIES = 1024
"""Queries in a product: the result has 32 MB."""
STEP = 16 * BLOCK


class DenseIndex(Index):
    """Vectors in files, one file for each key."""

    step = STEP

    def __init__(self, retriever: VectorRetriever, folder: Path, size: int) -> None:
        self.size, self.path = size, folder
        self._retriever = retriever
        self._files = [VectorFile(folder / f"{key}.npy", size) for key in retriever.keys]

    def encode_queries(self, queries: Queries) -> EncodedQueries:
        reasons = queries.missing_keys(self._retriever.keys)
        encoded = {}
        for key, file in zip(self._retriever.keys, self._files, strict=True):
            texts = queries.texts(key)
            vectors = self._retriever.encode_key(key, texts)
            if vectors.shape[1] != file.dimensions:
                raise DataError(
                    f"has {file.dimensions} dimensions; queries have {vectors.shape[1]}",
                    path=str(file.path),
                )
            encoded[key] = vectors
            blank = np.flatnonzero(~vectors.any(axis=1)).tolist()
            without = dict.fromkeys(blank, f"no word of the {key} has a vector")
            reasons = without | self._retriever.text_encoder.problems(texts) | reasons
        numbers = np.array([i for i in range(len(queries)) if i not in reasons], np.int64)
        arrays = {key: vectors[numbers] for key, vectors in encoded.items()}
        return EncodedQueries(arrays, numbers, reasons)

    def scan(
        self, queries: EncodedQueries, rows: range, best: Best, options: SearchOptions
    ) -> None:
        from rejoinder.kernels.topk import NO_NUMBERS, Threads, offer, skip_blank

        skip, groups = options.skip, options.groups
        vectors = [np.ascontiguousarray(queries.arrays[key]) for key in self._retriever.keys]
        width = min(BLOCK, len(rows))
        products = [np.empty(min(QUERIES, len(queries)) * width, np.float32) for _ in vectors]
        with Threads() as threads:
            for first, block in blocks(self._files, rows, BLOCK):
                last = first + len(block[0])
                out = np.zeros(last - first, np.bool_) if skip is None else skip[first:last].copy()
                for part in block:
                    skip_blank(part, out)
                numbers = NO_NUMBERS if groups is None else np.array(groups[first:last])
                for low in range(0, len(queries), QUERIES):
                    some = [part[low : low + QUERIES] for part in vectors]
                    near = [_product(*args) for args in zip(some, block, products, strict=True)]
                    chosen = best.slice(low, low + QUERIES)
                    offer(threads, chosen, near, some, block, first, out, numbers)
                if options.on_progress:
                    options.on_progress(last - rows.start, len(rows))


def _product(queries: Vectors, block: Vectors, buffer: Vectors) -> Vectors:
    out = buffer[: len(queries) * len(block)].reshape(len(queries), len(block))
    return np.matmul(queries, block.T, out=out)
