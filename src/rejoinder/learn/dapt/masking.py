"""Which tokens a masked language model must guess: drawn anew for every batch, from a seed.

As in BERT (Devlin et al., 2019), a share of the tokens of each row is chosen, at least one; of
these, 80 % are replaced by the mask, 10 % by a random token, and 10 % stay as they are, so that
the model must give every token a meaning that fits its place. Special tokens are never chosen.
With ``whole_words``, a word is chosen with all its pieces: guessing "##ing" after "walk" is easy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Marks = NDArray[np.bool_]

REPLACED, RANDOM = 0.8, 0.1


@dataclass(frozen=True)
class Vocabulary:
    """What masking must know of a tokenizer."""

    mask: int
    padding: int
    special: Marks
    """[size] tokens that are no part of a text: never chosen, never put in."""
    inside: Marks
    """[size] tokens that go on with the word before them."""

    @property
    def size(self) -> int:
        return len(self.special)


def choose(free: Marks, inside: Marks, share: float, chance: np.random.Generator) -> Marks:
    """[rows, width] the tokens to be guessed: a share of the ``free`` ones, at least one a row.

    A token that is ``inside`` a word shares the fate of the word's first one; then a few more
    than the share may be chosen, since words are not cut.
    """
    rows, width = free.shape
    inside = inside & free
    inside[:, 0] = False
    inside[:, 1:] &= free[:, :-1]  # a text may begin with a piece that usually goes on
    first = np.maximum.accumulate(np.where(inside, 0, np.arange(width)), axis=1)
    drawn = np.where(free, chance.random((rows, width)), 2.0)  # what is not free comes last
    drawn = np.take_along_axis(drawn, first, axis=1)
    order = np.argsort(drawn, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(width), (rows, width)), axis=1)
    wanted = np.maximum(1, np.rint(share * free.sum(axis=1)))
    chosen = np.take_along_axis(rank, first, axis=1) < wanted[:, None]
    marks: Marks = chosen & free
    return marks


def hide(ids: Ids, chosen: Marks, words: Vocabulary, chance: np.random.Generator) -> Ids:
    """The tokens with the chosen ones hidden."""
    hidden = ids.copy()
    fate = chance.random(ids.shape)
    ordinary = np.flatnonzero(~words.special)
    hidden[chosen & (fate < REPLACED)] = words.mask
    swapped = chosen & (fate >= REPLACED) & (fate < REPLACED + RANDOM)
    hidden[swapped] = chance.choice(ordinary, int(swapped.sum()))
    return hidden
