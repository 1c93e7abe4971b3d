"""The metrics of one run: built with their language and evaluator, each under its label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from rejoinder.errors import RejoinderError, UsageError
from rejoinder.metrics.metric import ItemMetric, Metric, SetMetric, make_metric
from rejoinder.spec import Spec, parameters, parse
from rejoinder.text.languages import Language
from rejoinder.text.languages import language as language_defaults

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

MetricSpec = str | Spec | Metric | type[Metric]
"""A metric as users give it: ``"bleu(n=2)"``, ``Bleu(n=2)`` or ``Bleu``."""


@dataclass(frozen=True)
class MetricSet:
    """Metrics in the order of the user's specs; iterates over (label, metric)."""

    labels: dict[Metric, str]
    """For each metric the name of its scores: the spec as the user wrote it."""

    def __iter__(self) -> Iterator[tuple[str, Metric]]:
        return ((label, metric) for metric, label in self.labels.items())

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def item_metrics(self) -> list[ItemMetric]:
        return [metric for metric in self.labels if isinstance(metric, ItemMetric)]

    @property
    def set_metrics(self) -> list[SetMetric]:
        return [metric for metric in self.labels if isinstance(metric, SetMetric)]

    def notes(self) -> list[str]:
        """Return what readers of the scores should know, each note once."""
        return list(dict.fromkeys(note for metric in self.labels for note in metric.notes()))

    def evaluators(self) -> list[Evaluator]:
        """Return the evaluators that the metrics use, each once."""
        return list(dict.fromkeys(e for metric in self.labels for e in metric.evaluators()))


def make_metrics(
    specs: MetricSpec | Iterable[MetricSpec],
    language: str | None = None,
    evaluator: str | PathLike[str] | Evaluator | None = None,
    *,
    ready: bool = True,
) -> MetricSet:
    """Build the metrics of a run; all wrong specs are reported at once.

    ``evaluator`` (a folder, or an opened evaluator) is used by all metrics that need one and whose
    spec names no other; its language is the default of ``language``. Unless ``ready`` is False,
    UsageError is raised if a metric lacks what it needs to score, such as an evaluator.
    """
    spec_list = [specs] if isinstance(specs, str | Spec | Metric | type) else list(specs)
    labels: dict[Metric, str] = {}
    problems: list[str] = []
    missing: list[RejoinderError] = []
    defaults = None
    explicit = language is not None
    if evaluator is not None and language is None:
        language = _opened(evaluator).manifest.language
    try:
        defaults = language_defaults(language) if language else None
    except UsageError as error:
        problems.extend(error.messages)
    for spec in spec_list:
        try:
            metric = make_metric(spec, defaults, evaluator)
            label = _label(spec, defaults if explicit else None)
            if ready and (requirement := metric.missing_requirement()) is not None:
                raise UsageError(f"{label} {requirement}")
            if metric in labels:
                problems.append(f"the metric '{label}' is given twice")
            labels[metric] = label
        except UsageError as error:
            problems.extend(error.messages)
        except RejoinderError as error:
            missing.append(error)
    if problems:
        raise UsageError(*problems)
    if missing:
        raise missing[0]
    return MetricSet(labels)


def _opened(evaluator: str | PathLike[str] | Evaluator) -> Evaluator:
    from rejoinder.evaluator.evaluator import Evaluator, open_evaluator

    return evaluator if isinstance(evaluator, Evaluator) else open_evaluator(fspath(evaluator))


def _label(metric: MetricSpec, language: Language | None) -> str:
    """Return the spec as the user wrote it; with the tokenizer, if an explicit language changes
    the metric."""
    plain = make_metric(metric)
    spec = metric if isinstance(metric, Spec) else plain.spec()
    if isinstance(metric, str):
        spec = parse(metric)
    if language is None:
        return str(spec)
    return str(_with_language(spec, plain, make_metric(metric, language)))


def _with_language(spec: Spec, plain: Metric, metric: Metric) -> Spec:
    """Add to ``spec`` the parameters in which ``metric``, built with a language, differs."""
    if metric == plain:
        return spec
    shown: dict[str, Any] = dict(spec.params)
    for key in metric.nested:
        before, after = getattr(plain, key), getattr(metric, key)
        if isinstance(after, tuple):
            each = zip(shown.get(key, before), before, after, strict=True)
            shown[key] = tuple(_with_language(_as_spec(s), b, a) for s, b, a in each)
        elif before != after:
            shown[key] = _with_language(_as_spec(shown.get(key, before)), before, after)
    for key in ("tok", "stem", *(("language",) if metric.asks_model else ())):
        if key in parameters(type(metric)):
            shown.setdefault(key, getattr(metric, key))
    return Spec(spec.name, tuple(shown.items()))


def _as_spec(value: str | Spec | Metric) -> Spec:
    if isinstance(value, str):
        return Spec(value)
    return value.spec() if isinstance(value, Metric) else value
