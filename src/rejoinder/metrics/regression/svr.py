"""``svr``: a regression from similarities to people's scores (Sugiyama et al. 2019, § 2.3).

    x_i = (s(r_i, r_1), …, s(r_i, r_N)),  e_i = (w_i + 1) / 2        i = 1 … N
    SVR(h) = Σ_i β_i · exp(-γ · |x_i - x(h)|²) + b

For each context, a support vector regression learns from its N references, good and bad, how their
scores e follow from how similar they are to one another, and then estimates the score of the reply
from how similar that is to them: about 0 for the worst, about 1 for the best. ``c`` (5, as in the
paper), ``epsilon`` and ``gamma`` are those of scikit-learn's SVR, with the same results; if no
``gamma`` is given, it is 1 / (features · their variance). ``d`` is the metric that gives s: any
that compares a reply with a reference; ``d2``, ``d3`` and ``d4`` add N features each.

A reply that is itself among the references is scored by the others (``loo=true``: leave one out):
the regression uses neither its score nor the similarities to it.

In the paper such a regression needs about 25 references (Figure 4). ``share`` decides about replies
with fewer than ``min_references`` (25) references. ``auto``: the regression is corrected by another
one over the references of all other contexts, with features that mean the same in all contexts.
``never``: each context is used alone, and items with fewer than 3 references are unscored.
``always``: all replies are scored in the first way. See docs/estimators.md. The shared regression
is learnt from the set that is scored, so that a score depends on the other contexts; all items are
kept in memory. With a single context, ``auto`` is like ``never``.

Choices: an item is unscored if one of its references has no weight, or if its context has more than
1,000 distinct references, all of which would be compared with one another. Equal scores give that
score, and so do equal references with one score. The corpus value is the mean over items.

>>> import rejoinder
>>> weights = [("a b c d", 1.0), ("a b c x", 0.6), ("p q r s", -1.0), ("p q r x", -0.8)]
>>> scored = [{"text": text, "weight": weight} for text, weight in weights]
>>> near, far = (rejoinder.score_one("svr", reply, scored) for reply in ("a b c y", "p q r y"))
>>> near > 0.7 > 0.2 > far
True
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rejoinder.metrics.batch import Batch, Floats, Ints
from rejoinder.metrics.metric import check_choice, check_range
from rejoinder.metrics.reasons import Reasons
from rejoinder.metrics.regression.context_regression import MIN_REFERENCES, ContextRegression
from rejoinder.metrics.regression.contexts import Context
from rejoinder.metrics.regression.estimator import NO_SCORE, Estimator
from rejoinder.metrics.regression.shared_regression import TOO_LITTLE, SharedRegression

TOO_FEW = f"fewer than {MIN_REFERENCES} references with a score"
SHARE = ("auto", "never", "always")
MAX_MIN_REFERENCES = 10**6
MAX_REFERENCES = 1000
"""Regressions of larger contexts would take minutes and gigabytes."""


@dataclass(frozen=True, kw_only=True)
class Svr(Estimator):
    name: ClassVar[str] = "svr"
    summary: ClassVar[str] = "regression from similarities d to the scores of references"
    tolerance: ClassVar[float] = 1e-5
    max_references: ClassVar[int | None] = MAX_REFERENCES

    c: float = 5.0
    epsilon: float = 0.1
    gamma: float | None = None
    share: str = "auto"
    min_references: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("c", self.c, 0, above=True)
        check_range("epsilon", self.epsilon, 0)
        if self.gamma is not None:
            check_range("gamma", self.gamma, 0, above=True)
        check_choice("share", self.share, SHARE)
        check_range("min_references", self.min_references, 1, MAX_MIN_REFERENCES)

    @property
    def needs_whole_set(self) -> bool:
        return self.share != "never"

    @property
    def _own(self) -> ContextRegression:
        return ContextRegression(self.c, self.epsilon, self.gamma)

    def _signed(self, key: str) -> str:
        if key == "gamma" and self.gamma is None:
            return "scale"
        return super()._signed(key)

    def estimate(
        self, batch: Batch, every: Iterable[Context], values: Floats, reasons: Reasons
    ) -> None:
        shared = SharedRegression(batch.table.texts, self._own) if self.needs_whole_set else None
        for context in every:
            compared = self._references_of_items(context, reasons)
            if self.share != "always":
                self._score_alone(context, compared, values, reasons)
            if shared is not None:
                few = {p: s for p, s in compared.items() if self._is_few(s)}
                shared.read(context, few, self.loo)
        if shared is None:
            return
        for number, value in zip(*shared.predictions(), strict=True):
            if not np.isnan(value):
                values[number], reasons[number] = value, None
            elif self.share == "always":
                reasons[number] = TOO_LITTLE

    def _references_of_items(self, context: Context, reasons: Reasons) -> dict[int, Ints]:
        """Return the references of each item that can be scored."""
        references = {}
        for place in range(len(context.items)):
            own = slice(context.first[place], context.first[place + 1])
            if np.isnan(context.weight[own]).any():
                reasons[context.items[place]] = NO_SCORE
            elif (compared := self.references_to_compare(context, place, reasons)) is not None:
                references[place] = compared
        return references

    def _is_few(self, compared: Ints) -> bool:
        return self.share == "always" or len(compared) < self.min_references

    def _score_alone(
        self, context: Context, compared: dict[int, Ints], values: Floats, reasons: Reasons
    ) -> None:
        """Score the items of a context by its own references; replies with the same references
        share a regression."""
        models: dict[bytes, list[int]] = {}
        for place, own in compared.items():
            if len(own) < MIN_REFERENCES:
                reasons[context.items[place]] = TOO_FEW
                continue
            key = context.column[own].tobytes() + context.weight[own].tobytes()
            models.setdefault(key, []).append(place)
        for places in models.values():
            own = compared[places[0]]
            if (why := context.incomparable(context.column[own])) is not None:
                reasons[context.items[places]] = why
            else:
                columns, weight = context.column[own], context.weight[own]
                estimates = self._own.estimate(context, columns, weight, context.reply[places])
                values[context.items[places]] = estimates
