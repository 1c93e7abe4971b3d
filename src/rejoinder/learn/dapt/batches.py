"""Batches of pairs with hidden tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rejoinder.learn.batches import LengthBatches, Planned, generator
from rejoinder.learn.dapt.masking import Marks, Vocabulary, choose, hide
from rejoinder.learn.dapt.tokens import Sequences


@dataclass(frozen=True)
class MaskedBatch:
    """Rows padded to the longest."""

    ids: Tensor
    """[rows, width]"""
    attention: Tensor
    types: Tensor
    places: Tensor
    """[m] where the hidden tokens stand, counted over the whole batch."""
    truth: Tensor
    """[m] what they were."""

    def to(self, device: torch.device) -> MaskedBatch:
        parts = (self.ids, self.attention, self.types, self.places, self.truth)
        return MaskedBatch(*(part.to(device) for part in parts))


@dataclass(frozen=True)
class MaskedPairs(Planned):
    """A source of batches: new ones in each epoch, or (``fixed``) the same rows in order."""

    sequences: Sequences
    words: Vocabulary
    plan: LengthBatches
    share: float
    """Of the tokens, which are hidden."""
    whole_words: bool = False
    fixed: bool = False

    def batch(self, seed: int, epoch: int, step: int) -> MaskedBatch:
        rows = self.batches(seed, epoch)[step]
        starts, ends = self.sequences.starts[rows], self.sequences.starts[rows + 1]
        there: Marks = np.arange((ends - starts).max()) < (ends - starts)[:, None]
        places = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        ids = np.full(there.shape, self.words.padding, np.int64)
        types = np.zeros(there.shape, np.int64)
        ids[there], types[there] = self.sequences.ids[places], self.sequences.types[places]
        chance = generator(seed, epoch, step)
        free = there & ~self.words.special[ids]
        inside = self.words.inside[ids] if self.whole_words else np.zeros_like(free)
        chosen = choose(free, inside, self.share, chance)
        return MaskedBatch(
            ids=torch.from_numpy(hide(ids, chosen, self.words, chance)),
            attention=torch.from_numpy(there.astype(np.int64)),
            types=torch.from_numpy(types),
            places=torch.from_numpy(np.flatnonzero(chosen)),
            truth=torch.from_numpy(ids[chosen]),
        )
