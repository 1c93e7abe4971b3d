"""What the user asked for: metrics by spec, with the defaults of a language and the evaluator
filled in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

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


def requests(
    specs: Iterable[str],
    language_code: str | None = None,
    evaluator: str | None = None,
    *,
    ready: bool = True,
) -> Requests:
    """Build every metric that was asked for; all that is wrong is reported at once.

    Metrics that may ask an evaluator ask this one, unless their spec names another; and if no
    language is given, it is the evaluator's. ``ready`` metrics lack nothing that scoring needs.
    """
    asked: dict[Metric, Request] = {}
    problems: list[str] = []
    missing: list[RejoinderError] = []
    spoken = None
    told = language_code is not None
    if evaluator is not None and language_code is None:
        from rejoinder.evaluator.folder import open_evaluator

        language_code = open_evaluator(evaluator).manifest.language
    try:
        spoken = language(language_code) if language_code else None
    except UsageError as error:
        problems.extend(error.messages)
    for text in specs:
        try:
            request = _request(text, spoken, evaluator, told=told)
            if ready and (lacking := request.metric.lacking()) is not None:
                raise UsageError(f"{request.label} {lacking}")
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


def _request(text: str, spoken: Language | None, evaluator: str | None, *, told: bool) -> Request:
    """The metric under the name that the user gave it, unless a language that was ``told`` changes
    its meaning."""
    spec = parse(text)
    metric = make_metric(spec)
    filled = spec if spoken is None else with_language(spec, spoken)
    if told and make_metric(filled) != metric:
        spec = filled
    return Request(str(spec), make_metric(with_evaluator(filled, evaluator)))


def with_evaluator(spec: Spec, folder: str | None) -> Spec:
    """The spec with an evaluator, where it may ask one and names none of its own."""
    if folder is None:
        return spec
    known = parameters(METRICS.find(spec.name))
    given = dict(spec.params)
    for key in ("ref", "unref"):
        if key in known and (inner := _inner(given.get(key, known[key].default))) is not None:
            given[key] = with_evaluator(inner, folder)
    if "evaluator" in known:
        given.setdefault("evaluator", folder)
    return Spec(spec.name, tuple(given.items()))


def _inner(value: Any) -> Spec | None:
    """A metric inside another, if there is one."""
    return value if value is None or isinstance(value, Spec) else Spec(str(value))


def with_language(spec: Spec, spoken: Language) -> Spec:
    """The spec with the language's tokenizer and stemmer, where it sets none of its own."""
    known = parameters(METRICS.find(spec.name))
    given = dict(spec.params)
    for key in ("d", "d2", "d3", "d4", "ref", "unref"):
        if key in known and (inner := _inner(given.get(key, known[key].default))) is not None:
            filled = with_language(inner, spoken)
            if make_metric(filled) != make_metric(inner):
                given[key] = filled
    if "tok" in known:
        given.setdefault("tok", parse(spoken.tokenizer))
    if "stem" in known:
        given.setdefault("stem", spoken.stemmer)
    return Spec(spec.name, tuple(given.items()))
