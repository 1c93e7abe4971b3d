"""What ``meta`` and the report tell about judges, beside other metrics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rejoinder.errors import DataError, UsageError
from rejoinder.files.jsonl import JsonLines
from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate
from rejoinder.meta_evaluation.join import Floats, Joined, join
from rejoinder.metrics.costs import read_costs
from rejoinder.spec import did_you_mean
from rejoinder.trust.alternative import EPSILON
from rejoinder.trust.position import OrderedAnswer
from rejoinder.trust.review import JudgesReview, ReviewOptions, review_judges
from rejoinder.trust.runs import is_judge
from rejoinder.verbs.scores import open_scores
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.paths import AnyPath
    from rejoinder.verbs.scores import ScoresLike


@dataclass(frozen=True)
class JudgeQuestions:
    """What a caller wants to know about judges."""

    as_judges: bool = False
    epsilon: float | None = None
    own_systems: Sequence[str] = ()
    again: ScoresLike | None = None
    costs: AnyPath | None = None
    answers: Sequence[AnyPath] = ()

    @property
    def asked(self) -> dict[str, Any]:
        """The parameters that were given."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in given.items() if not _left_out(value)}

    def problems(self, level: str, correct: Sequence[str]) -> list[str]:
        """Return a message for each parameter that is wrong or has no use."""
        problems = []
        for name, value in self.asked.items():
            if level != "item":
                problems.append(f"{option(name, value)} can only be used with level item")
            elif correct:
                problems.append(f"{option(name, value)}: with correct systems, no ratings are read")
        if self.epsilon is not None and not 0 <= self.epsilon < 1:
            problems.append(f"{option('epsilon', self.epsilon)}: expected a number from 0 to 1")
        return problems

    def wanted(self, joined: Joined) -> bool:
        """Return whether there is a judge, or something was asked."""
        return bool(self.asked) or any(map(is_judge, joined.item_scores))

    def review(self, joined: Joined, resampling: Resampling) -> JudgesReview:
        """Review all metrics of the scores."""
        systems = list(dict.fromkeys(item.system for item in joined.items))
        if unknown := [name for name in self.own_systems if name not in systems]:
            raise UsageError(
                *(
                    f"{option('own_systems', name)}: no reply is of this system:"
                    f" {did_you_mean(name, systems)}"
                    for name in unknown
                )
            )
        return review_judges(
            joined,
            ReviewOptions(
                resampling,
                EPSILON if self.epsilon is None else self.epsilon,
                own=self.own_systems,
                again={} if self.again is None else _again(self.again, joined),
                costs={} if self.costs is None else read_costs(self.costs),
                answers=_answers(self.answers),
            ),
        )


def _left_out(value: Any) -> bool:
    """Return whether a parameter has the value that says nothing; 0 is a number as any other."""
    return value is None or value is False or (isinstance(value, list | tuple) and not value)


def _again(scores: ScoresLike, joined: Joined) -> Mapping[str, Floats]:
    """Return the scores of a second run; DataError if no metric was run before."""
    source = open_scores(scores)
    second = join(joined.items, source.lines, items_name="the items", scores_name=source.name)
    shared = {name: v for name, v in second.item_scores.items() if name in joined.item_scores}
    if not shared:
        raise DataError(
            f"has no metric of the first scores, which are by {', '.join(joined.item_scores)}",
            path=source.name,
        )
    return shared


def _answers(paths: Sequence[AnyPath]) -> Iterator[OrderedAnswer]:
    """Read answers of judges of pairs; DataError if none of a file has both orders."""
    for path in paths:
        name, known = os.fspath(path), False
        for _, answer in JsonLines(name).decode(
            lambda record: msgspec.convert(record, OrderedAnswer)
        ):
            known = known or answer.orders is not None
            yield answer
        if not known:
            raise DataError(
                "has no answer with 'orders', what was preferred in each order;"
                " 'pairs judge' writes them",
                path=name,
            )


def judges_to_dict(review: JudgesReview | None) -> dict[str, Any] | None:
    """Return a review for the JSON of ``meta``."""
    return None if review is None else plain_review(review)


def plain_review(value: Any) -> Any:
    """Return a review of :mod:`rejoinder.trust` as JSON has it."""
    if isinstance(value, Estimate):
        ends = None if value.low is None else [value.low, value.high]
        return {"value": value.value, "ci": ends}
    if is_dataclass(value):
        return {each.name: plain_review(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, list | tuple):
        return [plain_review(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
