"""``ruber``: a referenced and an unreferenced metric, blended (Tao et al. 2018, § 3.3).

    a = n(ref(h)),  b = n(unref(h))  in [0, 1]
    score = (a + b) / 2,  √(a · b),  min(a, b)  or  max(a, b)

The two sides may be any two item metrics: ``ref``, such as ``vector-pool`` (the paper's) or
``vbertscore``; and ``unref``, by default ``unreferenced``. If no ``ref`` is given, it is
``vcosine`` where the evaluator knows the range of that, as it does if it has vectors, and
``vbleu`` elsewhere; the signature tells.

``blend``: ``arithmetic``, ``geometric``, ``min`` or ``max``.

``norm``: how both are brought to [0, 1]. ``fixed`` takes the lowest and the highest value that
the evaluator saw for this metric on replies of its held-out dialogues (its manifest lists them),
so that a score does not depend on which other items are scored. ``set`` takes the lowest and the
highest value of the evaluated set itself, as the paper does: then a score says nothing outside
its set, and all items are kept in memory. Where all values of a set are equal, they become ½.
What lies beyond is cut to 0 or 1. A metric of which less is better is turned round.

``scale``: ``odds`` reads a side that gives probabilities (``unreferenced``) by its log odds before
it is brought to [0, 1]: a network that is ten times surer says .99 instead of .9, and as they are,
those two are nearly the same. On validation sets such blends were better
(docs/evaluator-study.md). Probabilities are cut at .001 and .999. ``plain`` takes them as they
are, as the paper does.

A side may be a blend itself: ``ruber(unref=ruber(ref=rating))`` is half ``vcosine``, a quarter what
the rater says of the reply and a quarter ``unreferenced``.

An item that one of the sides can't score is unscored, with the reason. The corpus value is the
mean over items.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from rejoinder.metrics.base import ItemMetric, Reasons, WholeItemMetric
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluated import HOW, TOLERANCE, Evaluated
from rejoinder.metrics.inner import inner_metric, signed_inner
from rejoinder.metrics.ranges import range_of, usual_reference
from rejoinder.spec import Spec

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator
    from rejoinder.metrics.sitting import Scored, Sitting

BLENDS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: np.sqrt(a * b),
    "min": np.minimum,
    "max": np.maximum,
}
NORMS = ("fixed", "set")
SCALES = ("odds", "plain")
SURE = 0.999
"""Beyond it, probabilities are all the same."""


def log_odds(probabilities: Floats) -> Floats:
    """
    >>> log_odds(np.array([0.5, 0.9, 1.0])).round(2).tolist()
    [0.0, 2.2, 6.91]
    """
    known = np.clip(probabilities, 1 - SURE, SURE)
    found: Floats = np.log(known / (1 - known))
    return found


@dataclass(frozen=True, kw_only=True)
class Ruber(WholeItemMetric, Evaluated):
    name: ClassVar[str] = "ruber"
    summary: ClassVar[str] = "a referenced and an unreferenced metric, blended"
    needs: ClassVar[frozenset[str]] = frozenset({"context", "evaluator"})
    tolerance: ClassVar[float] = TOLERANCE

    ref: Spec | None = None
    unref: Spec = Spec("unreferenced")
    blend: str = "arithmetic"
    norm: str = "fixed"
    scale: str = "odds"

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, known in (("blend", tuple(BLENDS)), ("norm", NORMS), ("scale", SCALES)):
            if getattr(self, key) not in known:
                raise ValueError(f"{key}={getattr(self, key)} is not one of {', '.join(known)}")
        for key, spec in (("ref", self.ref), ("unref", self.unref)):
            if spec is not None and inner_metric(key, spec).whole_set:
                raise ValueError(f"{spec} is normalised over a set itself; take norm=fixed there")

    @cached_property
    def sides(self) -> tuple[ItemMetric, ItemMetric]:
        referenced = usual_reference(self.opened) if self.ref is None else self.ref
        return inner_metric("ref", referenced), inner_metric("unref", self.unref)

    @property
    def whole_set(self) -> bool:
        return self.norm == "set"

    def evaluators(self) -> list[Evaluator]:
        every = super().evaluators() + [e for side in self.sides for e in side.evaluators()]
        return list(dict.fromkeys(every))

    def lacking(self) -> str | None:
        if self.norm == "fixed" and self.evaluator is None:
            return f"with norm=fixed {HOW}; with norm=set any two metrics can be blended"
        lacking = next((f"{side}: {why}" for side in self.sides if (why := side.lacking())), None)
        if lacking is None and self.norm == "fixed":
            for side in self.sides:  # better now than in the midst of scoring
                self._fixed(side)
        return lacking

    def notes(self) -> list[str]:
        return [note for side in self.sides for note in side.notes()]

    def _signed(self, key: str) -> str:
        if key in ("ref", "unref"):
            return signed_inner(self.sides[key == "unref"])
        return super()._signed(key)

    def judge(self, sitting: Sitting) -> Scored:
        from rejoinder.metrics.sitting import laid_out

        found = [sitting.score(side) for side in self.sides]
        reasons: Reasons = np.array(
            [a if a is not None else b for a, b in zip(*(f.reasons for f in found), strict=True)],
            object,
        )
        keep = np.flatnonzero([reason is None for reason in reasons])
        a, b = (
            self._normalised(side, result.values[keep])
            for side, result in zip(self.sides, found, strict=True)
        )
        rows = np.column_stack([BLENDS[self.blend](a, b), a, b, np.ones(len(keep))])
        expansion = next((f.expansion for f in found if f.expansion is not None), None)
        return laid_out(self, sitting.batch, rows, keep, reasons, expansion)

    def _normalised(self, side: ItemMetric, values: Floats) -> Floats:
        """[n] from 0 to 1."""
        if not values.size:
            return values
        low, high = self._range(side, values)
        if self.scale == "odds" and side.probability:
            values = log_odds(values)
            low, high = log_odds(np.array([low, high])).tolist()
        if high <= low:
            return np.full(len(values), 0.5)
        share = np.clip((values - low) / (high - low), 0.0, 1.0)
        return share if side.higher_is_better else 1.0 - share

    def _range(self, side: ItemMetric, values: Floats) -> tuple[float, float]:
        if self.norm == "set":
            return float(values.min()), float(values.max())
        return self._fixed(side)

    def _fixed(self, side: ItemMetric) -> tuple[float, float]:
        # a blend of blends: the inner one lies from 0 to 1 already
        return (0.0, 1.0) if isinstance(side, Ruber) else range_of(self.asked, side)

    def stats(self, batch: Batch) -> Floats:
        """The blend, both sides, and 1."""
        from rejoinder.metrics.sitting import Sitting

        return self.judge(Sitting(batch)).rows

    def parts(self, rows: Floats) -> dict[str, Floats]:
        return {"ref": rows[..., 1] / rows[..., 3], "unref": rows[..., 2] / rows[..., 3]}
