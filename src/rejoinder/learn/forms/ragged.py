"""Texts as numbers, one text after the other: rows of different lengths without padding."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.learn.forms.base import Ints
from rejoinder.text.tokenizers.base import starts_of

Text = TypeVar("Text", bound=Hashable)
"""One text, or several that belong together."""


@dataclass(frozen=True)
class Ragged:
    """Prepared texts; a batch is padded to its longest row."""

    ids: NDArray[np.int32]
    starts: Ints
    """[n + 1]"""
    padding: int

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]], padding: int) -> Ragged:
        starts = starts_of(len(row) for row in rows)
        return cls(np.fromiter(chain.from_iterable(rows), np.int32, starts[-1]), starts, padding)

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.starts)

    def batch(self, numbers: Ints) -> Tensor:
        """[n, longest], one wide at least."""
        starts = self.starts[numbers]
        lengths = self.starts[numbers + 1] - starts  # of these rows alone: there may be millions
        places = np.arange(max(1, int(lengths.max(initial=0))))
        there = places < lengths[:, None]
        found = np.full(there.shape, self.padding, np.int64)
        found[there] = self.ids[(starts[:, None] + places)[there]]
        return torch.from_numpy(found)


def joined(turns: Sequence[Sequence[int]], between: int, longest: int) -> list[int]:
    """The turns of a context in one row; of what is too long, the beginning is lost.

    >>> joined([[5, 6], [7], [8, 9]], between=1, longest=5)
    [1, 7, 1, 8, 9]
    """
    row: list[int] = []
    for number, turn in enumerate(turns):
        row += [between, *turn] if number else turn
    return row[-longest:]


def distinct(texts: Iterable[Text]) -> dict[Text, int]:
    """Each text once, with a number."""
    numbers: dict[Text, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def numbered(texts: Sequence[Text]) -> tuple[list[Text], Ints]:
    """Each text once, and for every text the number of its own.

    >>> numbered(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    numbers = distinct(texts)
    return list(numbers), np.fromiter((numbers[text] for text in texts), np.int64, len(texts))
