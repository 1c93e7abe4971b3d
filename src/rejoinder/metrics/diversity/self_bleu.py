"""``self-bleu``: how much the replies to one context resemble each other (Zhu et al. 2018).

    Self-BLEU = mean over the replies of BLEU(reply, all other replies as references)

Lower is more diverse. It needs no references, but at least two replies to a context.
``n``, ``smooth``, ``smooth_value``, ``bp``, ``short``, ``tok`` and ``lower`` are BLEU's (see
``bleu``).

Choices: the mean of the replies' own BLEU scores, as in Zhu et al.; a system's value is the
mean over its contexts. A reply that occurs twice is its own best reference: 1. A
context with a reply without words has no value.

>>> import rejoinder
>>> replies = ["i see a dog", "i see a cat"]
>>> items = [{"id": r, "context": ["hm?"], "response": r} for r in replies]
>>> [score.value for score in rejoinder.diversity(items, ["self-bleu(n=1)"])]
[0.75]
"""

# the example: i see a are 3 of 4 words, either way

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch
from rejoinder.metrics.diversity.distinct import TokenizedSet
from rejoinder.metrics.overlap.bleu import Bleu

MAX_REFERENCES = 1 << 20
"""Number of references that are compared at a time."""


@dataclass(frozen=True, kw_only=True)
class SelfBleu(TokenizedSet):
    name: ClassVar[str] = "self-bleu"
    summary: ClassVar[str] = "mean BLEU of each reply against the others; low is diverse"
    min_replies: ClassVar[int] = 2
    higher_is_better: ClassVar[bool] = False

    n: int = 4
    smooth: str = "epsilon"
    smooth_value: float | None = None
    bp: str = "closest"
    short: str = "one"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.bleu

    @cached_property
    def bleu(self) -> Bleu:
        return Bleu(
            n=self.n,
            smooth=self.smooth,
            smooth_value=self.smooth_value,
            bp=self.bp,
            short=self.short,
            tok=self.tok,
            lower=self.lower,
        )

    def _signed(self, key: str) -> str:
        return self.bleu._signed(key)

    def reason(self, batch: Batch) -> str | None:
        """Also refuse replies without words: they resemble no other, and would count as diverse."""
        if (missing := super().reason(batch)) is not None:
            return missing
        empty = int((self.tokens(batch).lengths[batch.reply] == 0).sum())
        return f"a reply without words ({empty} of {len(batch)} replies)" if empty else None

    def measure(self, batch: Batch) -> float:
        count = len(batch)
        step = max(MAX_REFERENCES // count, 1)
        blocks = (
            _against_others(batch, begin, min(begin + step, count))
            for begin in range(0, count, step)
        )
        values = [self.bleu.values(self.bleu.rows(block)) for block in blocks]
        return float(np.concatenate(values).mean())


def _against_others(batch: Batch, begin: int, end: int) -> Batch:
    """Return the replies from ``begin`` to ``end``, each with all others as references."""
    others = len(batch) - 1
    owner = np.repeat(np.arange(begin, end), others)
    other = np.tile(np.arange(others), end - begin)
    other += other >= owner
    return Batch.from_arrays(
        batch.items[begin:end],
        batch.table,
        batch.reply[begin:end],
        batch.reply[other],
        np.arange(end - begin + 1, dtype=np.int64) * others,
    )
