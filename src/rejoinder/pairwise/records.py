"""Scores as items: candidates with ratings, or test items with candidates as references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from rejoinder.items import UNNAMED, Item, Reference
from rejoinder.pairwise.answers import by_context
from rejoinder.pairwise.fit import Fit
from rejoinder.pairwise.plan import Question
from rejoinder.pairwise.rates import weight_of

SOURCE = "candidate"
"""Of a reference whose system has no name."""


def rated(
    candidates: Sequence[Item], found: Fit, by_annotator: Mapping[str, Fit] | None = None
) -> Iterator[dict[str, Any]]:
    """The candidates with their winning rates as ratings, all together or each annotator's, and
    under ``pairs`` what the rate is from. A candidate without comparison has neither."""
    for number, item in enumerate(candidates):
        ratings: dict[str, float] | float | None = _known(found.rate[number])
        if by_annotator is not None:
            each = {name: _known(one.rate[number]) for name, one in by_annotator.items()}
            ratings = {name: rate for name, rate in each.items() if rate is not None} or None
        plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(item, ratings=ratings))
        if found.part[number] >= 0:
            columns = {
                "rate": found.rate,
                "error": found.error,
                "votes": found.votes,
                "strength": found.strength,
                "strength_error": found.strength_error,
            }
            values = {name: _known(column[number]) for name, column in columns.items()}
            plain["pairs"] = {name: value for name, value in values.items() if value is not None}
            plain["pairs"]["part"] = int(found.part[number])
        yield plain


@dataclass
class Account:
    """What became of the items that candidates were laid into."""

    items: int = 0
    references: int = 0
    replaced: int = 0
    """References that the items had before."""
    without: int = 0
    """Items to whose context no candidate has a score."""
    unscored: set[str] = field(default_factory=set)
    """Candidates without a score, which can't be references: without weight they would count
    fully."""


def into(
    items: Iterable[Item], candidates: Sequence[Item], found: Fit, account: Account
) -> Iterator[Item]:
    """Items with the scored candidates of their context as references, weights from -1 to 1.

    An item is no reference of its own, and other references go: most have no score.
    """
    contexts = by_context(candidates)
    for item in items:
        references = []
        for number in contexts.get(item.group, ()):
            candidate = candidates[number]
            if np.isnan(found.rate[number]):
                account.unscored.add(candidate.id)
            elif candidate.id != item.id:
                source = SOURCE if candidate.system == UNNAMED else candidate.system
                weight = weight_of(float(found.rate[number]))
                references.append(Reference(candidate.response, weight, source))
        account.items += 1
        account.references += len(references)
        account.replaced += len(item.references)
        account.without += not references
        yield msgspec.structs.replace(item, references=references)


def questions(
    candidates: Sequence[Item],
    asked: Iterable[tuple[Question, str | None]],
    *,
    texts: bool = False,
) -> Iterator[dict[str, Any]]:
    """Planned pairs as lines that become answers with a ``winner``."""
    for question, annotator in asked:
        a, b = candidates[question.a], candidates[question.b]
        plain: dict[str, Any] = {}
        if a.context_id is not None:
            plain["context_id"] = a.context_id
        plain |= {"a": a.id, "b": b.id}
        if annotator is not None:
            plain["annotator"] = annotator
        if texts:
            plain |= {"context": a.context, "response_a": a.response, "response_b": b.response}
        yield plain


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
