"""Which texts go through a network together: those of about the same length, few enough to fit.

Sorted by their number of tokens, neighbours need hardly any padding, and texts of the very same
length are attended to as one block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.pieces import Split

Ints = NDArray[np.int64]


def batches(lengths: Ints, budget: int) -> Iterator[Ints]:
    """Rows in groups of at most ``budget`` tokens when padded (or of one text), longest first.

    Rows without tokens are in no group.

    >>> [group.tolist() for group in batches(np.array([3, 9, 0, 3, 4]), 8)]
    [[1], [4, 0], [3]]
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < order.size:
        longest = int(lengths[order[start]])
        size = max(1, budget // longest)
        yield order[start : start + size]
        start += size


def take(split: Split, rows: Ints) -> tuple[NDArray[np.int32], Ints]:
    """The tokens of some rows, one after the other, and their lengths."""
    lengths = split.lengths[rows]
    ends = np.cumsum(lengths)
    # each token's place: where its row starts, and how far it stands behind that
    places = np.arange(ends[-1]) + np.repeat(split.starts[rows] - (ends - lengths), lengths)
    return split.ids[places], lengths
