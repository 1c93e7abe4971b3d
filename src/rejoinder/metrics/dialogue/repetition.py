"""``repetition``: share of a reply's n-grams that its speaker has said before.

    rep(h) = |{ g ∈ n-grams of h : g occurs in an earlier turn of the speaker }| / |n-grams of h|

A bot that answers with the same sentence again and again gets high scores by any metric that looks
at one turn. n-gram overlap with the bot's own earlier turns is the usual measure of it (See et al.
2019, What makes a good conversation?); lower is better. N-grams are counted with their repetitions;
a reply that is shorter than ``n`` tokens counts as one n-gram.

``d``: a metric over vectors that finds what is said again in other words. Its value, where it is
higher than the share of n-grams, takes its place:

    rep(h) = max( share of n-grams, max over earlier turns t of d(h, t) )

as in ``repetition(d=sentence-cosine)``.

Choices: two speakers are assumed to take turns, so every second turn before the reply is the
speaker's own. A reply without an earlier turn of its speaker is unscored; a blank reply repeats
nothing and is 0. The corpus value is the mean over items.

>>> import rejoinder
>>> context = ["i like tea a lot", "me too", "i like milk", "so what ?"]
>>> round(rejoinder.score_one("repetition(n=2)", "i like tea too", context=context), 3)
0.667
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.dialogue.own_turns import OwnTurnsMetric, check_comparable, compared
from rejoinder.metrics.metric import ItemMetric, check_range
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.tokenized import Tokenized

MAX_N = 20


@dataclass(frozen=True, kw_only=True)
class Repetition(Tokenized, OwnTurnsMetric):
    name: ClassVar[str] = "repetition"
    summary: ClassVar[str] = "share of the reply that its speaker has said before"
    higher_is_better: ClassVar[bool] = False
    nested: ClassVar[tuple[str, ...]] = ("d",)

    n: int = 3
    d: ItemMetric | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer
        check_range("n", self.n, 1, MAX_N)
        if self.d is not None:
            check_comparable("d", self.d)
            object.__setattr__(self, "tolerance", self.d.tolerance)

    def languages(self) -> dict[str, frozenset[str]]:
        return super().languages() | ({} if self.d is None else self.d.languages())

    def notes(self) -> list[str]:
        return [] if self.d is None else self.d.notes()

    def compare(self, batch: Batch) -> tuple[Floats, Reasons]:
        tokens = self.tokens(batch)
        words = [
            tokens.ids[a:b].tolist() for a, b in zip(tokens.starts, tokens.starts[1:], strict=False)
        ]
        reasons: Reasons = np.full(len(batch), None, object)
        values = np.zeros(len(batch))
        for place, (reply, first, last) in enumerate(
            zip(
                batch.reply.tolist(),
                batch.first[:-1].tolist(),
                batch.first[1:].tolist(),
                strict=True,
            )
        ):
            texts = [reply, *batch.reference[first:last].tolist()]
            unreadable = [tokens.problems[text] for text in texts if text in tokens.problems]
            if unreadable:
                reasons[place] = unreadable[0]
                continue
            values[place] = repeated_share(words[reply], [words[t] for t in texts[1:]], self.n)
        if self.d is not None:
            by_vectors, why = compared(self.d, batch)
            known = np.array([reason is None for reason in why], bool)
            values[known] = np.maximum(values[known], by_vectors[known])
        return values, reasons


def repeated_share(reply: list[int], turns: list[list[int]], n: int) -> float:
    """Return the share of a reply's n-grams that occur in one of the turns."""
    n = min(n, len(reply))
    if not n:
        return 0.0
    said = {gram for turn in turns for gram in _ngrams(turn, n)}
    grams = _ngrams(reply, n)
    return sum(gram in said for gram in grams) / len(grams)


def _ngrams(words: list[int], n: int) -> list[tuple[int, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
