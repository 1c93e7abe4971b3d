"""``ruber``: a referenced and an unreferenced scorer, blended, as Tao et al. 2018 published it.

    a = n(ref(h)),  b = n(unref(h)),  n(v) = (v - min) / (max - min)  over the evaluated set
    score = (a + b) / 2

``ref`` is ``vector-pool``, the cosine of pooled word vectors with the reference (§ 3.1); ``unref``
is ``unreferenced``, a network trained to tell real replies from random ones (§ 3.2). Both may be
replaced by any other item metric. ``rejoinder`` is made of stronger components, and agrees
better with people.

``blend``: ``arithmetic``, ``geometric``, ``min`` or ``max`` (§ 3.3).

``norm``: how both are brought to [0, 1]. ``set``, as in the paper, takes the lowest and the highest
value of the evaluated set: a score depends on the other items, and all items are kept in memory.
Equal values become ½. ``fixed`` takes the range that the evaluator measured on held-out dialogues
(its manifest lists them), so that a score does not depend on other items; values outside of it are
cut to 0 or 1. A metric whose lower values are better enters as 1 - n(v).

``scale``: ``plain`` takes probabilities as they are, as the paper does; ``odds`` takes their log
odds, see ``rejoinder``.

An item that one of both cannot score is unscored, with the reason. The corpus value is the mean
over items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rejoinder.metrics.evaluator.blend import Blend
from rejoinder.metrics.metric import ItemMetric, nested_default

VECTOR_POOL = nested_default("vector-pool")


@dataclass(frozen=True, kw_only=True)
class Ruber(Blend):
    name: ClassVar[str] = "ruber"
    summary: ClassVar[str] = "word vectors and a learned scorer, blended (Tao et al. 2018)"

    ref: ItemMetric = VECTOR_POOL
    norm: str = "set"
    scale: str = "plain"
