"""Batches of texts of similar length, of limited size.

Texts are sorted by their number of tokens: neighbours then need hardly any padding, and texts of
the same length are attended to as one block.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.tokenizer import TokenizedTexts

Ints = NDArray[np.int64]


def length_batches(lengths: Ints, batch_tokens: int) -> Iterator[Ints]:
    """Yield the rows of each batch, longest texts first; texts without tokens are left out.

    A batch has at most ``batch_tokens`` tokens, padding included, or a single text.

    >>> [rows.tolist() for rows in length_batches(np.array([3, 9, 0, 3, 4]), 8)]
    [[1], [4, 0], [3]]
    """
    order = np.argsort(-lengths, kind="stable")
    order = order[: np.count_nonzero(lengths)]
    start = 0
    while start < order.size:
        longest = int(lengths[order[start]])
        size = max(1, batch_tokens // longest)
        yield order[start : start + size]
        start += size


def select_texts(texts: TokenizedTexts, rows: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Return the concatenated token ids of some of the texts, and their lengths."""
    lengths = texts.lengths[rows]
    ends = np.cumsum(lengths)
    # the place of each token: where its text starts, plus its offset in the text
    places = np.arange(ends[-1]) + np.repeat(texts.starts[rows] - (ends - lengths), lengths)
    return texts.ids[places], lengths
