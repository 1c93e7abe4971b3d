"""Which tokens a masked language model must predict: drawn anew for every batch, from a seed.

As in BERT (Devlin et al. 2019), a share of the tokens of each row is chosen, at least one; of
these, 80 % are replaced by the mask token, 10 % by a random token, and 10 % are kept, so that the
model must represent every token in its context. Special tokens are never chosen. With whole-word
masking, all subwords of a word are chosen together: predicting "##ing" after "walk" is easy.

``DataCollatorForLanguageModeling`` of transformers is not used: it draws from torch's global
generator, so that a resumed run would mask other tokens, and it may choose no token of a short
pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]

MASK_SHARE, RANDOM_SHARE = 0.8, 0.1


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a tokenizer, as masking needs them."""

    mask: int
    padding: int
    special: Mask
    """[size] special tokens: never masked, never inserted."""
    continues_word: Mask
    """[size] subwords that continue the word before them."""

    @property
    def size(self) -> int:
        return len(self.special)


def choose_tokens(
    maskable: Mask, continues: Mask, probability: float, rng: np.random.Generator
) -> Mask:
    """[rows, length] choose a share of the maskable tokens to predict, at least one per row.

    A subword that ``continues`` a word is chosen with the word's first subword; then slightly more
    than the share may be chosen, because words are not split.
    """
    rows, length = maskable.shape
    continues = continues & maskable
    continues[:, 0] = False
    continues[:, 1:] &= maskable[:, :-1]  # a text may begin with such a subword
    first = np.maximum.accumulate(np.where(continues, 0, np.arange(length)), axis=1)
    drawn = np.where(maskable, rng.random((rows, length)), 2.0)  # others come last
    drawn = np.take_along_axis(drawn, first, axis=1)
    order = np.argsort(drawn, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(length), (rows, length)), axis=1)
    count = np.maximum(1, np.rint(probability * maskable.sum(axis=1)))
    chosen = np.take_along_axis(rank, first, axis=1) < count[:, None]
    mask: Mask = chosen & maskable
    return mask


def mask_tokens(ids: Ids, chosen: Mask, vocabulary: Vocabulary, rng: np.random.Generator) -> Ids:
    """Return the ids with the chosen tokens masked, replaced or kept."""
    masked = ids.copy()
    drawn = rng.random(ids.shape)
    ordinary = np.flatnonzero(~vocabulary.special)
    masked[chosen & (drawn < MASK_SHARE)] = vocabulary.mask
    replaced = chosen & (drawn >= MASK_SHARE) & (drawn < MASK_SHARE + RANDOM_SHARE)
    masked[replaced] = rng.choice(ordinary, int(replaced.sum()))
    return masked
