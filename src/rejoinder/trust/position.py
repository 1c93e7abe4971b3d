"""Position bias: does a judge of pairs prefer the reply that stands first?

Each pair is asked about in both orders. A judge without bias prefers the same reply both times;
where it prefers the same place both times, the answer tells about the place, not about the reply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.meta_evaluation.join import numbered
from rejoinder.trust.resampled import Floats, estimate_of_sums

Choice = Literal["a", "b", "tie"]


class OrderedAnswer(msgspec.Struct, frozen=True):
    """A judge's answers about a pair: ``orders`` has the better reply with ``a`` first, then with
    ``b`` first."""

    a: str
    b: str
    annotator: str = "judge"
    context_id: str | None = None
    orders: tuple[Choice, Choice] | None = None


@dataclass(frozen=True)
class PositionBias:
    """What a judge of pairs prefers, beside the better reply."""

    judge: str
    pairs: int
    """Pairs that were asked about in both orders."""
    consistent: int
    """The same reply was preferred both times, or neither."""
    first: int
    """The reply that stood first was preferred both times."""
    second: int
    share_first: Estimate
    """Share of all answers that prefer the reply that stands first, half of the ties included: 1/2
    without bias."""


def position_bias(answers: Iterable[OrderedAnswer], resampling: Resampling) -> list[PositionBias]:
    """Return the bias of each judge; answers without both orders are not counted."""
    by_judge: dict[str, list[OrderedAnswer]] = {}
    for answer in answers:
        if answer.orders is not None:
            by_judge.setdefault(answer.annotator, []).append(answer)
    return [_of_one(judge, own, resampling) for judge, own in by_judge.items()]


def _of_one(judge: str, answers: Sequence[OrderedAnswer], resampling: Resampling) -> PositionBias:
    orders = [answer.orders for answer in answers if answer.orders is not None]
    rows = np.array([(_first(order), 2.0) for order in orders])
    groups = (each.context_id or f"{each.a}\n{each.b}" for each in answers)

    def finish(sums: Floats) -> Floats:
        return np.asarray(sums[..., 0] / sums[..., 1])

    return PositionBias(
        judge,
        len(orders),
        sum(order[0] == order[1] for order in orders),
        orders.count(("a", "b")),
        orders.count(("b", "a")),
        estimate_of_sums(rows, numbered(groups)[0], finish, resampling),
    )


def _first(orders: tuple[Choice, Choice]) -> float:
    """Return how many of the two answers prefer the reply that stands first."""
    worth = {"a": (1.0, 0.0), "b": (0.0, 1.0), "tie": (0.5, 0.5)}
    return worth[orders[0]][0] + worth[orders[1]][1]
