"""Output of the pairwise verbs: candidates with ratings, items with references, questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from rejoinder.items import UNNAMED, Item, Reference
from rejoinder.pairwise.answers import by_context
from rejoinder.pairwise.candidate_scores import CandidateScores
from rejoinder.pairwise.plan import Question
from rejoinder.pairwise.winning_rates import reference_weight

SOURCE = "candidate"
"""Source of a reference whose system has no name."""


def rated_candidates(
    candidates: Sequence[Item],
    scores: CandidateScores,
    by_annotator: Mapping[str, CandidateScores] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the candidates with their winning rates as ratings, and the details under ``pairs``.

    With ``by_annotator`` the ratings are each annotator's own. A candidate without comparison gets
    neither ratings nor details.
    """
    for number, item in enumerate(candidates):
        ratings: dict[str, float] | float | None = _defined(scores.rate[number])
        if by_annotator is not None:
            each = {name: _defined(one.rate[number]) for name, one in by_annotator.items()}
            ratings = {name: rate for name, rate in each.items() if rate is not None} or None
        record: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(item, ratings=ratings))
        if scores.component[number] >= 0:
            columns = {
                "rate": scores.rate,
                "error": scores.error,
                "votes": scores.votes,
                "strength": scores.strength,
                "strength_error": scores.strength_error,
            }
            values = {name: _defined(column[number]) for name, column in columns.items()}
            record["pairs"] = {name: value for name, value in values.items() if value is not None}
            record["pairs"]["component"] = int(scores.component[number])
        yield record


@dataclass
class AttachmentReport:
    """Counts of the items and references of :func:`attach_references`."""

    items: int = 0
    references: int = 0
    replaced: int = 0
    """References that the items had before."""
    without: int = 0
    """Items without any scored candidate of their context."""
    unscored: set[str] = field(default_factory=set)
    """Ids of candidates without a score, which are not used: a reference without weight counts
    fully."""


def attach_references(
    items: Iterable[Item],
    candidates: Sequence[Item],
    scores: CandidateScores,
    report: AttachmentReport,
) -> Iterator[Item]:
    """Yield the items with the scored candidates of their context as weighted references.

    Weights are from -1 to 1. An item is not its own reference. References that an item had before
    are dropped, because most of them have no score.
    """
    contexts = by_context(candidates)
    for item in items:
        references = []
        for number in contexts.get(item.group, ()):
            candidate = candidates[number]
            if np.isnan(scores.rate[number]):
                report.unscored.add(candidate.id)
            elif candidate.id != item.id:
                source = SOURCE if candidate.system == UNNAMED else candidate.system
                weight = reference_weight(float(scores.rate[number]))
                references.append(Reference(candidate.response, weight, source))
        report.items += 1
        report.references += len(references)
        report.replaced += len(item.references)
        report.without += not references
        yield msgspec.structs.replace(item, references=references)


def question_records(
    candidates: Sequence[Item],
    questions: Iterable[tuple[Question, str | None]],
    *,
    texts: bool = False,
) -> Iterator[dict[str, Any]]:
    """Yield planned pairs as records that become answers when a ``winner`` is added."""
    for question, annotator in questions:
        a, b = candidates[question.a], candidates[question.b]
        record: dict[str, Any] = {}
        if a.context_id is not None:
            record["context_id"] = a.context_id
        record |= {"a": a.id, "b": b.id}
        if annotator is not None:
            record["annotator"] = annotator
        if texts:
            record |= {"context": a.context, "response_a": a.response, "response_b": b.response}
        yield record


def _defined(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
