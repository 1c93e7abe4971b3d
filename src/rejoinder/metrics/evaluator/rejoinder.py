"""``rejoinder``: the recommended metric; references, a rater and a learned scorer, blended.

With known good references:

    score = (n(vcosine(h)) + (n(rating(h)) + n(unreferenced(h))) / 2) / 2

Without them, or if the evaluator has no rater:

    score = (n(vcosine(h)) + n(unreferenced(h))) / 2

- ``vcosine``: how near the reply is to the item's references and to those that the evaluator
  retrieved from its logs. ``vbleu`` takes its place if the evaluator has no vectors.
- ``unreferenced``: the probability that the reply answers the context (Tao et al. 2018), by a
  network trained on the logs.
- ``rating``: how the evaluator's rater, trained to compare two replies, rates the reply given the
  references (Tsuta et al. 2020).

n brings each component to [0, 1]: (v - low) / (high - low), cut at 0 and 1, with the range of the
metric on held-out dialogues, which the evaluator's manifest lists. The structure is that of
``ruber``; all of its components were replaced. docs/evaluator-study.md has the comparison.

``ref``: another referenced metric, such as ``expanded(d=sentence-cosine)``.  ``unref``: another
unreferenced one.  ``rating=false`` leaves the rater out.  ``blend``: ``arithmetic``, ``geometric``,
``min`` or ``max``, in both places.

``norm=set`` takes the lowest and the highest value of the evaluated set instead of fixed ranges:
then a score depends on the other items, and all items are kept in memory.

``scale=odds`` takes the log odds ln(p / (1 - p)) of a component that gives probabilities, cut at
.001 and .999, before it is brought to [0, 1]: as they are, .9 and .99 would be nearly the same,
although the network is ten times surer. ``scale=plain`` takes them as they are.

The parts of a score (``--parts``) are ``ref``, ``unref`` and, where it entered, ``rating``. An item
without context is unscored. The corpus value is the mean over items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Floats
from rejoinder.metrics.evaluator.blend import BLENDS, UNREFERENCED, Blend
from rejoinder.metrics.evaluator.ranges import default_referenced, find_range
from rejoinder.metrics.metric import ItemMetric, make_metric, nested_signature

NO_RANGE = (
    "'fit' could not measure the range of the component rating on held-out dialogues: rejoinder is"
    " computed without it"
)


@dataclass(frozen=True, kw_only=True)
class Rejoinder(Blend):
    name: ClassVar[str] = "rejoinder"
    summary: ClassVar[str] = "recommended: references, a rater and a learned scorer, blended"
    optional: ClassVar[frozenset[str]] = frozenset({"rating"})

    ref: ItemMetric | None = None
    unref: ItemMetric = UNREFERENCED
    rating: bool = True

    @cached_property
    def components(self) -> Mapping[str, ItemMetric]:
        components = {
            "ref": self.ref or default_referenced(self.evaluator_or_none),
            "unref": self.unref,
        }
        if self._rater_is_usable:
            components["rating"] = make_metric("rating", evaluator=self.evaluator_or_none)
        return components  # type: ignore[return-value]

    @cached_property
    def _rater_is_usable(self) -> bool:
        evaluator = self.evaluator_or_none
        if not self.rating or evaluator is None or not evaluator.has_rater:
            return False
        return self.norm == "set" or self._rating_has_range

    @property
    def _rating_has_range(self) -> bool:
        evaluator = self.opened_evaluator
        return find_range(evaluator, make_metric("rating", evaluator=evaluator)) is not None

    def notes(self) -> list[str]:
        notes = super().notes()
        evaluator = self.evaluator_or_none
        if self.rating and not self._rater_is_usable and evaluator is not None:
            if evaluator.has_rater:
                notes.append(NO_RANGE)
            else:
                notes.append(f"{evaluator.name} has no rater: rejoinder is computed without rating")
        return notes

    def _signed(self, key: str) -> str:
        if key == "rating" and self._rater_is_usable:
            return nested_signature(self.components["rating"])
        if key == "rating":
            # without an evaluator, fixed ranges can only be explained, not computed
            is_possible = self.evaluator is None and self.norm == "fixed"
            return "yes" if self.rating and is_possible else "no"
        return super()._signed(key)

    def combine(self, parts: Mapping[str, Floats]) -> Floats:
        blend = BLENDS[self.blend]
        learned = parts["unref"]
        if "rating" in parts:
            rating = parts["rating"]
            learned = np.where(np.isfinite(rating), blend(rating, learned), learned)
        return blend(parts["ref"], learned)
