"""All that is known about each judge before it takes the place of people.

Where it makes sense, the same is told of every other metric: it stands beside the judges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rejoinder.estimation.people import single_ratings
from rejoinder.meta_evaluation.annotators import Resampling
from rejoinder.meta_evaluation.correlate import Estimate, correlate_many
from rejoinder.meta_evaluation.join import Joined
from rejoinder.meta_evaluation.ratings import MAX_CELLS, annotator_names, rating_table
from rejoinder.metrics.costs import MetricCost
from rejoinder.trust.alternative import (
    EPSILON,
    MIN_ANNOTATORS,
    MIN_REPLIES,
    Alignment,
    AlternativeTest,
    alternative_test,
)
from rejoinder.trust.bias import MiddleBias, OwnBias, length_bias, middle_bias, own_bias
from rejoinder.trust.cost import Cost, cost_of, judged_cost
from rejoinder.trust.position import OrderedAnswer, PositionBias, position_bias
from rejoinder.trust.repeatability import (
    Repeatability,
    repeatability,
    repeatability_of_answers,
)
from rejoinder.trust.runs import is_judge, own_systems, same_question
from rejoinder.trust.scales import HumanScale, cross_fitted, scale_of

Floats = NDArray[np.float64]

MIN_RATED = 3
UNNAMED = (
    "the ratings name no annotator; who gave which rating must be known:"
    ' "ratings": {"annotator-1": 2, …}'
)


@dataclass(frozen=True)
class JudgeReview:
    """What is known about one judge, or another metric."""

    metric: str
    judge: bool
    n: int
    """Replies that are rated and scored."""
    spearman: Estimate
    alternative: AlternativeTest | None
    length: Estimate
    """Partial rank correlation with the length of the reply, given people's rating."""
    own: OwnBias | None
    middle: MiddleBias | None
    """None for metrics without a scale."""
    repeatability: Repeatability | None
    cost: Cost | None
    """None if nobody recorded it."""


@dataclass(frozen=True)
class JudgesReview:
    """Judges beside other metrics."""

    reviews: list[JudgeReview]
    people_length: Estimate
    """Rank correlation of people's ratings with the length of the reply."""
    constant: AlternativeTest | None
    """The alternative-annotator test of the mean of all other contexts' ratings."""
    refused: str | None
    """Why there is no alternative-annotator test."""
    position: list[PositionBias] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ReviewOptions:
    """What a review is told beside items and scores."""

    resampling: Resampling
    epsilon: float = EPSILON
    alignment: Alignment | None = None
    """None: rmse, and accuracy where people gave only two different ratings."""
    own: Sequence[str] = ()
    """Systems that use the judges' model, beside those that can be recognised."""
    again: Mapping[str, Floats] = field(default_factory=dict)
    """By metric, scores of the same items from a second run."""
    costs: Mapping[str, MetricCost] = field(default_factory=dict)
    answers: Iterable[OrderedAnswer] = ()
    """Answers of judges of pairs."""


def review_judges(joined: Joined, options: ReviewOptions) -> JudgesReview:
    """Review all metrics that score single replies."""
    return _Reviewer(joined, options).review()


class _Reviewer:
    def __init__(self, joined: Joined, options: ReviewOptions) -> None:
        self._joined, self._options = joined, options
        self._resampling = options.resampling
        self._human, self._contexts = joined.human, joined.contexts
        self._lengths = np.array([len(item.response.strip()) for item in joined.items], float)
        self._scale = HumanScale.of(joined.items)
        self._names: list[str] = []
        self._table = np.zeros((0, 0))
        self._refused = self._why_refused()
        if self._refused is None:
            self._names, self._table = rating_table(joined.items)
        self._runs = self._find_runs()

    def review(self) -> JudgesReview:
        rated = np.flatnonzero(~np.isnan(self._human))
        constant = np.full(len(self._human), np.nan)
        constant[rated] = 0.0
        reviews = [self._review(name) for name in self._joined.order if name in self._scores]
        people = correlate_many(
            self._human[rated][np.newaxis],
            self._lengths[rated],
            clusters=self._contexts[rated],
            resamples=self._resampling.resamples,
            seed=self._resampling.seed,
        )[0].spearman
        return JudgesReview(
            reviews,
            people,
            self._alternative("constant", "", constant),
            self._refused,
            position_bias(self._options.answers, self._resampling),
            self._notes(reviews),
        )

    @property
    def _scores(self) -> Mapping[str, Floats]:
        return self._joined.item_scores

    def _review(self, name: str) -> JudgeReview:
        scores, resampling = self._scores[name], self._resampling
        signature = self._joined.signatures.get(name, "")
        known = np.flatnonzero(~np.isnan(scores) & ~np.isnan(self._human))
        own, human, contexts = scores[known], self._human[known], self._contexts[known]
        if len(known) < MIN_RATED:
            spearman = length = Estimate()
        else:
            spearman = correlate_many(
                own[np.newaxis],
                human,
                clusters=contexts,
                resamples=resampling.resamples,
                seed=resampling.seed,
            )[0].spearman
            length = length_bias(own, self._lengths[known], human, contexts, resampling)
        return JudgeReview(
            name,
            is_judge(name),
            len(known),
            spearman,
            self._alternative(name, signature, scores),
            length,
            self._own(name, known),
            self._middle(name, signature, known),
            self._repeatability(name),
            self._cost(name, spearman.value),
        )

    def _why_refused(self) -> str | None:
        names = annotator_names(self._joined.items)
        if self._scale is None:
            return "all ratings are the same"
        if not names:
            return UNNAMED
        if len(names) < MIN_ANNOTATORS:
            return f"{len(names)} annotators; the test needs at least {MIN_ANNOTATORS}"
        if len(names) * len(self._joined.items) > MAX_CELLS:
            return f"{len(names):,} annotators are too many for a table of all replies"
        return None

    def _alternative(self, name: str, signature: str, scores: Floats) -> AlternativeTest | None:
        if self._refused is not None or self._scale is None:
            return None
        mapped = not self._scale.is_of(name, signature)
        values: Floats | None = scores
        if mapped:
            values = cross_fitted(name, scores, self._human, self._contexts, self._resampling.seed)
        if values is None:
            return None
        alignment = self._options.alignment
        if alignment is None:
            alignment = "rmse" if len(self._scale.values) > 2 else "accuracy"
        if alignment == "accuracy":
            known = ~np.isnan(values)
            values = values.copy()
            values[known] = self._scale.nearest(values[known])
        return alternative_test(
            self._names,
            self._table,
            values,
            self._contexts,
            alignment=alignment,
            epsilon=self._options.epsilon,
            mapped=mapped,
            resampling=self._resampling,
        )

    def _own(self, name: str, known: NDArray[np.int64]) -> OwnBias | None:
        if not is_judge(name):
            return None
        items = self._joined.items
        systems = list(dict.fromkeys(item.system for item in items))
        chosen = [s for s in systems if s in (*self._options.own, *own_systems(name, systems))]
        if not chosen:
            return None
        mask = np.array([items[number].system in chosen for number in known.tolist()], bool)
        return own_bias(
            self._scores[name][known],
            mask,
            self._human[known],
            self._contexts[known],
            self._resampling,
            chosen,
        )

    def _middle(self, name: str, signature: str, known: NDArray[np.int64]) -> MiddleBias | None:
        scale = scale_of(signature)
        if scale is None or self._scale is None or not known.size:
            return None
        return middle_bias(
            self._scores[name][known],
            (scale.low, scale.high),
            self._human[known],
            [single_ratings(self._joined.items[number]) for number in known.tolist()],
            (self._scale.low, self._scale.high),
            self._contexts[known],
            self._resampling,
        )

    def _find_runs(self) -> dict[str, list[Floats]]:
        """Return the runs of each metric that was run more than once."""
        runs: dict[str, list[Floats]] = {}
        for group in same_question(self._scores):
            for name in group:
                runs[name] = [self._scores[each] for each in group]
        for name, scores in self._options.again.items():
            if name in self._scores:
                runs.setdefault(name, [self._scores[name]]).append(scores)
        return runs

    def _repeatability(self, name: str) -> Repeatability | None:
        if name in self._runs:
            return repeatability(np.array(self._runs[name]), self._contexts, self._resampling)
        judging = self._joined.judging.get(name, {})
        if "spread" not in judging or "answers" not in judging:
            return None
        return repeatability_of_answers(
            self._scores[name],
            judging["spread"],
            judging["answers"],
            self._contexts,
            self._resampling,
        )

    def _cost(self, name: str, spearman: float | None) -> Cost | None:
        total = judged_cost(self._joined.judging.get(name, {})) or self._options.costs.get(name)
        return None if total is None or not total.replies else cost_of(total, spearman)

    def _notes(self, reviews: Sequence[JudgeReview]) -> list[str]:
        notes = []
        if self._refused is not None:
            notes.append(f"no alternative-annotator test: {self._refused}")
        elif all(each.alternative is None for each in reviews):
            notes.append(
                "no alternative-annotator test: fewer than"
                f" {MIN_ANNOTATORS} annotators rated {MIN_REPLIES} replies together with others"
            )
        return notes
