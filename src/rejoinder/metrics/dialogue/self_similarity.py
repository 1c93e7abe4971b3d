"""``self-similarity``: cosine of a reply with the most similar earlier turn of the same speaker.

    score = max over earlier turns t of the speaker of cos(s(h), s(t))

Values near 1 are turns that say the same again, also in other words: look at the highest first. A
contradiction ("I have a dog", "I never had a pet") is similar, too, and only a look can tell the
two apart. Below that, a similar turn is one that keeps to the topic: where people rated replies,
higher is better (see below). For a measure of repetition alone, use ``repetition``.

``d`` is the metric that compares two texts: ``sentence-cosine`` by default, as in
``self-similarity(d=sentence-cosine(model=DIR))`` with an encoder of your own; or one over word
vectors, ``self-similarity(d=embedding-average(vectors=FILE))``, in any language.

Choices: two speakers are assumed to take turns, so every second turn before the reply is the
speaker's own. A reply without an earlier turn of its speaker is unscored. The corpus value is the
mean over items.

>>> import rejoinder
>>> metric = "self-similarity(d=rouge-l)"
>>> rejoinder.score_one(metric, "no , thanks", context=["no , thanks", "are you sure ?"])
1.0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.dialogue.own_turns import OwnTurnsMetric, check_comparable, compared
from rejoinder.metrics.metric import ItemMetric, nested_default
from rejoinder.metrics.reasons import Reasons

DEFAULT = nested_default("sentence-cosine")


@dataclass(frozen=True, kw_only=True)
class SelfSimilarity(OwnTurnsMetric):
    name: ClassVar[str] = "self-similarity"
    summary: ClassVar[str] = "similarity to the nearest earlier turn of the same speaker"
    nested: ClassVar[tuple[str, ...]] = ("d",)

    d: ItemMetric = DEFAULT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_comparable("d", self.d)
        object.__setattr__(self, "tolerance", self.d.tolerance)

    def languages(self) -> dict[str, frozenset[str]]:
        return self.d.languages()

    def notes(self) -> list[str]:
        return self.d.notes()

    def compare(self, batch: Batch) -> tuple[Floats, Reasons]:
        return compared(self.d, batch)
