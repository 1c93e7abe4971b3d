"""Batches of pairs with masked tokens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rejoinder.learn.batches import LengthBatches, PlannedBatches, make_rng
from rejoinder.learn.dapt.masking import Mask, Vocabulary, choose_tokens, mask_tokens
from rejoinder.learn.dapt.tokens import TokenizedPairs


@dataclass(frozen=True)
class MaskedBatch:
    """Rows padded to the longest."""

    ids: Tensor
    """[rows, length]"""
    attention_mask: Tensor
    token_types: Tensor
    positions: Tensor
    """[m] positions of the masked tokens in the flattened batch."""
    targets: Tensor
    """[m] their original ids."""

    def to(self, device: torch.device) -> MaskedBatch:
        parts = (self.ids, self.attention_mask, self.token_types, self.positions, self.targets)
        return MaskedBatch(*(part.to(device) for part in parts))


@dataclass(frozen=True)
class MaskedBatches(PlannedBatches):
    """Batches that are masked anew in each epoch, or (``fixed``) always the same."""

    pairs: TokenizedPairs
    vocabulary: Vocabulary
    plan: LengthBatches
    mask_probability: float
    whole_word_mask: bool = False
    fixed: bool = False

    def batch(self, seed: int, epoch: int, step: int) -> MaskedBatch:
        rows = self.batches(seed, epoch)[step]
        starts, ends = self.pairs.starts[rows], self.pairs.starts[rows + 1]
        is_token: Mask = np.arange((ends - starts).max()) < (ends - starts)[:, None]
        places = np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)])
        ids = np.full(is_token.shape, self.vocabulary.padding, np.int64)
        types = np.zeros(is_token.shape, np.int64)
        ids[is_token], types[is_token] = self.pairs.ids[places], self.pairs.token_types[places]
        rng = make_rng(seed, epoch, step)
        maskable = is_token & ~self.vocabulary.special[ids]
        continues = np.zeros_like(maskable)
        if self.whole_word_mask:
            continues = self.vocabulary.continues_word[ids]
        chosen = choose_tokens(maskable, continues, self.mask_probability, rng)
        return MaskedBatch(
            ids=torch.from_numpy(mask_tokens(ids, chosen, self.vocabulary, rng)),
            attention_mask=torch.from_numpy(is_token.astype(np.int64)),
            token_types=torch.from_numpy(types),
            positions=torch.from_numpy(np.flatnonzero(chosen)),
            targets=torch.from_numpy(ids[chosen]),
        )
