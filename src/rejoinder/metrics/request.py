"""What the user asked for: metrics by spec, with the defaults of a language filled in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rejoinder.errors import RejoinderError, UsageError
from rejoinder.metrics.base import ItemMetric, Metric, SetMetric, make_metric
from rejoinder.registry import METRICS
from rejoinder.spec import Spec, parameters, parse
from rejoinder.text.languages import Language, language


@dataclass(frozen=True)
class Request:
    """A metric and the name under which its scores go: the spec as the user wrote it."""

    label: str
    metric: Metric


@dataclass(frozen=True)
class Requests:
    items: list[Request]
    sets: list[Request]

    @property
    def labels(self) -> dict[Metric, str]:
        return {request.metric: request.label for request in [*self.items, *self.sets]}

    @property
    def item_metrics(self) -> list[ItemMetric]:
        return [r.metric for r in self.items if isinstance(r.metric, ItemMetric)]

    @property
    def set_metrics(self) -> list[SetMetric]:
        return [r.metric for r in self.sets if isinstance(r.metric, SetMetric)]


def notes(asked: Requests) -> list[str]:
    """What metrics have to say of the scores, each thing once."""
    every = [*asked.items, *asked.sets]
    return list(dict.fromkeys(note for request in every for note in request.metric.notes()))


def requests(specs: Iterable[str], language_code: str | None = None) -> Requests:
    """Build every metric that was asked for; all that is wrong is reported at once."""
    asked: dict[Metric, Request] = {}
    problems: list[str] = []
    missing: list[RejoinderError] = []
    spoken = None
    try:
        spoken = language(language_code) if language_code else None
    except UsageError as error:
        problems.extend(error.messages)
    for text in specs:
        try:
            request = _request(text, spoken)
            if request.metric in asked:
                problems.append(f"the metric '{request.label}' is asked for twice")
            asked[request.metric] = request
        except UsageError as error:
            problems.extend(error.messages)
        except RejoinderError as error:
            missing.append(error)
    if problems:
        raise UsageError(*problems)
    if missing:
        raise missing[0]
    both = list(asked.values())
    return Requests(
        [r for r in both if isinstance(r.metric, ItemMetric)],
        [r for r in both if isinstance(r.metric, SetMetric)],
    )


def _request(text: str, spoken: Language | None) -> Request:
    """The metric under the name that the user gave it, unless the language changes its meaning."""
    spec = parse(text)
    metric = make_metric(spec)
    if spoken is None:
        return Request(str(spec), metric)
    filled = with_language(spec, spoken)
    spoken_metric = make_metric(filled)
    return Request(str(spec if spoken_metric == metric else filled), spoken_metric)


def with_language(spec: Spec, spoken: Language) -> Spec:
    """The spec with the language's tokenizer and stemmer, where it sets none of its own."""
    known = parameters(METRICS.find(spec.name))
    given = dict(spec.params)
    if "d" in known:
        inner = given.get("d", known["d"].default)
        inner = inner if isinstance(inner, Spec) else Spec(str(inner))
        given["d"] = with_language(inner, spoken)
    if "tok" in known:
        given.setdefault("tok", parse(spoken.tokenizer))
    if "stem" in known:
        given.setdefault("stem", spoken.stemmer)
    return Spec(spec.name, tuple(given.items()))
