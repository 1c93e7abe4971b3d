"""Work on texts that lie one after the other, divided among threads by their tokens.

Compiled loops leave Python's lock, so threads run at once. As many are used as the matrix
products of numpy use: what ``OMP_NUM_THREADS`` says, or one a processor.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from rejoinder.machine import cores

Ints = NDArray[np.int64]

FEWEST = 64
"""Fewer tokens are not worth a thread."""


def threads() -> int:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "").partition(",")[0]
        if value.isdecimal() and int(value) > 0:
            return int(value)
    return cores()


class Shares:
    """Texts in groups of about as many tokens each; a context, for its threads end with it."""

    def __init__(self, lengths: Ints) -> None:
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        total = int(self.starts[-1])
        count = max(1, min(threads(), total // FEWEST))
        edges = np.searchsorted(self.starts, np.arange(count + 1) * total // count)
        self._edges = np.unique(edges).tolist()
        parts = len(self._edges) - 1
        self._pool = ThreadPoolExecutor(parts - 1) if parts > 1 else None

    def __enter__(self) -> Shares:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, work: Callable[[int, int], None]) -> None:
        """Call ``work`` with the first and last (exclusive) text of each group."""
        *others, mine = zip(self._edges, self._edges[1:], strict=False)
        waiting = [self._pool.submit(work, *share) for share in others] if self._pool else []
        work(*mine)
        for future in waiting:
            future.result()

    def rows(self, work: Callable[[slice], None]) -> None:
        """Call ``work`` with the tokens of each group."""
        self.each(lambda first, last: work(slice(self.starts[first], self.starts[last])))
