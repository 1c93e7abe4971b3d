"""Leaks of a pool that is asked again and again: its utterances are looked up, not gone through.

:func:`rejoinder.retrieve.leaks.find_leaks` reads the whole pool for one test set. Inside a training
loop every step is a small test set of its own; so here the pool is read once, and each 4-gram knows
which utterances have it. What is found is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.logs.contamination import GRAM, LONG_ENOUGH, THRESHOLD, codes, normalise
from rejoinder.retrieve.base import Mask

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool

Ints = NDArray[np.int64]


class Known:
    """The utterances of a pool."""

    def __init__(self, pool: Pool) -> None:
        from rejoinder.kernels.shingles import gram_sets

        texts: list[str] = []
        for batch in pool.batches(["utterance"]):
            texts += normalise(batch.column(0).to_pylist())
        self.size = len(texts)
        self._exact: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            if text:
                self._exact.setdefault(text, []).append(row)
        self._long = np.array([r for r, t in enumerate(texts) if len(t) >= LONG_ENOUGH], np.int64)
        grams, self._starts = gram_sets(*codes([texts[row] for row in self._long.tolist()]), GRAM)
        owners = np.repeat(np.arange(len(self._long), dtype=np.int32), np.diff(self._starts))
        self._grams = grams
        order = np.argsort(grams, kind="stable")
        self._owners = owners[order]
        self._keys, places = np.unique(grams[order], return_index=True)
        self._places = np.append(places, len(order))

    def leaks(self, last_turns: Iterable[str]) -> Mask:
        """[rows of the pool] whether the utterance is one of these turns, or nearly."""
        from rejoinder.kernels.shingles import gram_sets

        mask: Mask = np.zeros(self.size, np.bool_)
        turns = sorted(set(normalise(list(last_turns))) - {""})
        for turn in turns:
            mask[self._exact.get(turn, [])] = True
        long = [turn for turn in turns if len(turn) >= LONG_ENOUGH]
        if long and self._long.size:
            grams, starts = gram_sets(*codes(long), GRAM)
            for first, last in pairwise(starts.tolist()):
                mask[self._long[self._near(grams[first:last])]] = True
        return mask

    def _near(self, mine: Ints) -> Ints:
        """Utterances whose grams are those of a turn, up to the threshold of similarity."""
        slots = np.searchsorted(self._keys, mine)
        known = np.flatnonzero(self._keys[np.minimum(slots, len(self._keys) - 1)] == mine)
        slots = slots[known]
        often = self._places[slots + 1] - self._places[slots]
        # J >= t needs t·|x| shared grams, so one of any |x| - ceil(t·|x|) + 1 must be shared; those
        # that the pool has nowhere come first among them, and the rarest next
        enough = len(known) - int(np.ceil(THRESHOLD * len(mine) - 1e-9)) + 1
        rarest = slots[np.argsort(often, kind="stable")[: max(0, enough)]]
        found = [self._owners[self._places[s] : self._places[s + 1]] for s in rarest.tolist()]
        candidates = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
        return np.array([c for c in candidates.tolist() if self._alike(mine, c)], np.int64)

    def _alike(self, mine: Ints, other: int) -> bool:
        theirs = self._grams[self._starts[other] : self._starts[other + 1]]
        if min(len(mine), len(theirs)) < THRESHOLD * max(len(mine), len(theirs)):
            return False
        shared = len(np.intersect1d(mine, theirs, assume_unique=True))
        return shared / (len(mine) + len(theirs) - shared) >= THRESHOLD
