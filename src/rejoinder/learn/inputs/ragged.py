"""Token ids of texts, one text after the other: rows of different lengths without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.learn.inputs.input_encoder import Ints
from rejoinder.text.tokenizers.tokenizer import starts_of


@dataclass(frozen=True)
class RaggedIds:
    """Encoded texts as token ids; a batch is padded to its longest row."""

    ids: NDArray[np.int32]
    starts: Ints
    """[n + 1]"""
    padding: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], padding: int) -> RaggedIds:
        starts = starts_of(len(row) for row in rows)
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, starts[-1]), starts, padding)

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def batch(self, rows: Ints) -> Tensor:
        """[n, longest row], at least one column."""
        starts = self.starts[rows]
        lengths = self.starts[rows + 1] - starts  # of these rows only: there may be millions
        columns = np.arange(max(1, int(lengths.max(initial=0))))
        filled = columns < lengths[:, None]
        batch = np.full(filled.shape, self.padding, np.int64)
        batch[filled] = self.ids[(starts[:, None] + columns)[filled]]
        return torch.from_numpy(batch)


def join_turns(turns: Sequence[Sequence[int]], separator: int, max_tokens: int) -> list[int]:
    """Join the turns of a context; of a context that is too long, the beginning is cut.

    >>> join_turns([[5, 6], [7], [8, 9]], separator=1, max_tokens=5)
    [1, 7, 1, 8, 9]
    """
    row: list[int] = []
    for number, turn in enumerate(turns):
        row += [separator, *turn] if number else turn
    return row[-max_tokens:]
