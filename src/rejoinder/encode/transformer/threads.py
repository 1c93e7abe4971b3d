"""Split work on concatenated texts over threads, by their number of tokens.

Compiled loops release Python's lock, so threads run in parallel. There are as many as numpy uses
for matrix products: ``OPENBLAS_NUM_THREADS`` or ``OMP_NUM_THREADS``, else one per processor core.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from rejoinder.machine import num_threads

Ints = NDArray[np.int64]

MIN_TOKENS = 64
"""Tokens from which on another thread is worth its cost."""


class TextShards:
    """Groups of consecutive texts with about as many tokens each, one group per thread.

    A context manager: its threads end with the block.
    """

    def __init__(self, lengths: Ints) -> None:
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        total = int(self.starts[-1])
        count = max(1, min(num_threads(), total // MIN_TOKENS))
        edges = np.searchsorted(self.starts, np.arange(count + 1) * total // count)
        self._edges = np.unique(edges).tolist()
        shards = len(self._edges) - 1
        self._pool = ThreadPoolExecutor(shards - 1) if shards > 1 else None

    def __enter__(self) -> TextShards:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map_texts(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(first, last)`` for each group of texts; ``last`` is exclusive."""
        *rest, own = zip(self._edges, self._edges[1:], strict=False)
        futures = [self._pool.submit(work, *shard) for shard in rest] if self._pool else []
        work(*own)
        for future in futures:
            future.result()

    def map_tokens(self, work: Callable[[slice], None]) -> None:
        """Call ``work`` with the slice of the tokens of each group."""
        self.map_texts(lambda first, last: work(slice(self.starts[first], self.starts[last])))
