"""Base classes of metrics, and how a metric is built from its spec.

An **item metric** turns a batch of items into additive sufficient statistics, one row per item,
and sums of rows into a value: one row gives the score of the item, the sum of all rows the corpus
score, sums of resampled rows the bootstrap. A **set metric** measures several replies together and
does not add up over items.

Parameters are the fields of a frozen dataclass; spec syntax, signature, command line and
documentation follow from them. What all metrics have in common (items that cannot be scored,
pooling over references, nested metrics) is written here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rejoinder.errors import UsageError
from rejoinder.items import Item
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.batch_scores import BatchScores, score_references
from rejoinder.metrics.pooling import Pooling, averaged
from rejoinder.metrics.reasons import NO_CONTEXT, NO_REFERENCES, Reasons
from rejoinder.metrics.third_party import (
    checked_parts,
    checked_stats,
    checked_values,
    third_party_errors,
)
from rejoinder.metrics.tokenized import Tokenized
from rejoinder.registry import METRICS
from rejoinder.spec import (
    Spec,
    build,
    check_types,
    explicit_parameters,
    parameters,
    parse,
    spec_of,
)
from rejoinder.text.languages import Language
from rejoinder.text.languages import language as language_defaults
from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator
    from rejoinder.metrics.scoring_context import ScoringContext

MAX_PARAMETER = 1e6
"""Upper limit of numeric parameters; powers of larger numbers would overflow."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """Name, parameters and signature: what item metrics and set metrics share."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    needs: ClassVar[frozenset[str]] = frozenset({"references"})
    """What an item must have (``references``, ``weights``, ``context``), and what else is needed:
    ``evaluator``, ``language model``."""
    best: ClassVar[float | None] = None
    """The value of a reply that equals a reference; None where there is no such value."""
    higher_is_better: ClassVar[bool] = True
    tolerance: ClassVar[float] = 0.0
    """How much a score may differ between batchings, because of floating-point arithmetic in a
    network."""
    nested: ClassVar[tuple[str, ...]] = ()
    """Parameters that are metrics themselves."""
    asks_model: ClassVar[bool] = False
    """Each score costs requests to a language model."""
    shares_evaluator: ClassVar[bool] = False
    """Nested metrics get the evaluator, too."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Give a metric without a docstring of its own its summary, for ``help()``."""
        super().__init_subclass__(**arguments)
        own = vars(cls)
        if own.get("__doc__") is None and "name" in own and "summary" in own:
            summary = cls.summary[:1].upper() + cls.summary[1:]
            cls.__doc__ = (
                f"{summary}.\n\nFor the definition, see ``rejoinder.explain({cls.name!r})``."
            )

    def __post_init__(self) -> None:
        check_types(self, self.name)
        for key in self.nested:
            value = getattr(self, key)
            if isinstance(value, tuple):
                inner: Any = tuple(_nested_metric(key, each) for each in value)
                object.__setattr__(self, key, inner)
            elif value is not None:
                object.__setattr__(self, key, _nested_metric(key, value))

    def spec(self) -> Spec:
        """Return the shortest spec that builds this metric again."""
        return spec_of(self, self.name)

    def __str__(self) -> str:
        return str(self.spec())

    def notes(self) -> list[str]:
        """Return what readers of the scores should know, such as how many texts were truncated."""
        return []

    def evaluators(self) -> list[Evaluator]:
        """Return the evaluators that the metric uses, opened."""
        return []

    def asking(self) -> list[Metric]:
        """Return the metrics that ask a language model: this one, or nested ones."""
        inside = [each for value in vars(self).values() for each in _metrics_in(value)]
        return [self] if self.asks_model else [m for each in inside for m in each.asking()]

    def languages(self) -> dict[str, frozenset[str]]:
        """Return which encoders and evaluators know only certain languages, with their ISO 639-1
        codes. Texts in other languages are refused by the scoring loop."""
        return {}

    def missing_requirement(self) -> str | None:
        """Return what is missing before the metric can score, and how to get it; or None."""
        return None

    def signature(self) -> str:
        """Return all parameters and versions that decide the number."""
        parts = [self.name]
        parts += [f"{key}:{self._signed(key)}" for key in parameters(type(self))]
        return "|".join([*parts, f"version:{__version__}"])

    def _signed(self, key: str) -> str:
        value = getattr(self, key)
        if key in self.nested:
            if isinstance(value, tuple):
                return "".join(map(nested_signature, value))
            return "none" if value is None else nested_signature(value)
        if isinstance(value, bool):
            return "yes" if value else "no"
        # repr: another digit is another number
        return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class ItemMetric(Metric):
    """A metric with a value for each reply.

    A subclass implements :meth:`stats`; :meth:`finish`, unless its corpus value is the mean over
    items; and :meth:`reasons`, if items may be unscored for other reasons than missing references.
    Callers use :meth:`rows` and :meth:`values`, which also pool over references (``refs``).
    """

    level: ClassVar[str] = "item"

    refs: Spec = Spec("max")

    own_multireference: ClassVar[bool] = False
    """``stats`` reads all references of an item at once, as ``refs=all`` requires."""
    unweighted: ClassVar[str | None] = None
    """Name of the metric that a weighted one equals with weights of 1."""
    probability: ClassVar[bool] = False
    """Values are probabilities that a reply is good."""
    max_characters: ClassVar[int | None] = None
    """Split batches at about this many characters, if the vectors of a whole batch would be too
    large, or if progress would be shown too rarely."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.pooling

    @cached_property
    def pooling(self) -> Pooling:
        return Pooling.of(self.refs, self.own_multireference)

    @property
    def needs_whole_set(self) -> bool:
        """Whether a score depends on the other items, so that all must come in one batch."""
        return False

    def score(self, scoring: ScoringContext) -> BatchScores:
        """Score a batch by the references of its items."""
        return score_references(self, scoring.batch)

    @abstractmethod
    def stats(self, batch: Batch) -> Floats:
        """Return [n, d] additive statistics.

        If the metric needs references, each item has one; several only if ``refs=all``. A metric
        without references reads ``batch.items[i].context`` and ``batch.items[i].response``.
        """

    def finish(self, rows: Floats) -> Floats:
        """Return the value of summed statistics, [..., d] → [...].

        The default averages over items: the value is in the first column and 1 in the last.
        """
        return averaged(rows)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        """Return named parts of the value, such as precision and recall; NaN where an item has
        none."""
        return {}

    def reasons(self, batch: Batch) -> Reasons:
        """Return for each item why it cannot be scored, or None."""
        reasons: Reasons = np.full(len(batch), None, object)
        if "references" in self.needs:
            reasons[batch.counts == 0] = NO_REFERENCES
        elif "context" in self.needs:
            reasons[[not has_context(item) for item in batch.items]] = NO_CONTEXT
        return reasons

    def rows(self, batch: Batch) -> Floats:
        """Return [n, d] statistics of each item, pooled over its references."""
        pieces = [batch] if self.max_characters is None else batch.slices(self.max_characters)
        if "references" in self.needs:
            rows = [self.pooling.rows(piece, self._stats, self._finish) for piece in pieces]
        else:
            rows = [self._stats(piece) for piece in pieces]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def values(self, rows: Floats) -> Floats:
        """Return the value of each row, or of a sum of rows."""
        if "references" not in self.needs:
            return self._finish(rows)
        return self.pooling.finish(rows, self._finish)

    def intervals(self, rows: Floats) -> tuple[Floats, Floats] | None:
        """Return the ends of the interval in which people's rating of each item is expected, if
        the metric knows one."""
        return None

    def ingredients(self, rows: Floats) -> dict[str, Floats]:
        """Return the parts of pooled rows; an average over references has none."""
        if not self.pooling.keeps_rows:
            return {}
        with third_party_errors(type(self)):
            return checked_parts(self, self.parts(rows), rows)

    def _stats(self, batch: Batch) -> Floats:
        with third_party_errors(type(self)):
            return checked_stats(self, self.stats(batch), len(batch))

    def _finish(self, rows: Floats) -> Floats:
        with third_party_errors(type(self)):
            return checked_values(self, self.finish(rows), rows)


@dataclass(frozen=True, kw_only=True)
class OverlapMetric(Tokenized, ItemMetric):
    """An item metric over the tokens of replies and references."""

    best: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer

    @property
    def tokens_for_best(self) -> int:
        """Number of tokens from which on a reply that equals its reference scores ``best``."""
        return 1

    def reasons(self, batch: Batch) -> Reasons:
        reasons = super().reasons(batch)
        problems = self.tokens(batch).problems
        if problems:
            for i in np.flatnonzero(np.isin(batch.reply, list(problems))):
                reasons[i] = problems[int(batch.reply[i])]
            owner = np.repeat(np.arange(len(batch)), batch.counts)
            for j in np.flatnonzero(np.isin(batch.reference, list(problems))):
                if reasons[owner[j]] is None:
                    reasons[owner[j]] = problems[int(batch.reference[j])]
        return reasons


@dataclass(frozen=True, kw_only=True)
class WholeItemMetric(ItemMetric):
    """An item metric without the parameter ``refs``: ``stats`` reads whole items."""

    own_multireference: ClassVar[bool] = True

    refs: ClassVar[Spec] = Spec("all")  # type: ignore[misc]  # no field any more


@dataclass(frozen=True, kw_only=True)
class SetMetric(Metric):
    """A metric of a set of replies: those of one system to one context, or to all contexts.

    The value of a system is that of all its replies together (``pooled``), or the mean over
    contexts.
    """

    level: ClassVar[str] = "set"
    pooled: ClassVar[bool] = False
    min_replies: ClassVar[int] = 1
    """Smallest set of replies that has a value."""

    @abstractmethod
    def measure(self, batch: Batch) -> float:
        """Return the value of a set of replies."""

    def reason(self, batch: Batch) -> str | None:
        """Return why this set has no value, or None."""
        if len(batch) < self.min_replies:
            return f"fewer than {self.min_replies} replies"
        if "references" in self.needs and not batch.counts.any():
            return NO_REFERENCES
        return None


def _metrics_in(value: Any) -> list[Metric]:
    several = value if isinstance(value, list | tuple) else [value]
    return [each for each in several if isinstance(each, Metric)]


def check_range(
    key: str, value: float, low: float, high: float = MAX_PARAMETER, *, above: bool = False
) -> None:
    """Raise ValueError unless ``low <= value <= high`` (``low < value`` if ``above``)."""
    if not low <= value <= high or (above and value == low):
        bounds = f"above {low:g} and at most {high:g}" if above else f"from {low:g} to {high:g}"
        raise ValueError(f"{key}={value:g} is not {bounds}")


def check_choice(key: str, value: str, choices: Collection[str]) -> None:
    """Raise ValueError unless a parameter has one of the values it may have."""
    if value not in choices:
        raise ValueError(f"{key}={value} is not one of {', '.join(choices)}")


def has_context(item: Item) -> bool:
    """Return whether an item has a turn that is not blank."""
    return any(turn.strip() for turn in item.context)


def _nested_metric(key: str, value: Metric | Spec | str) -> ItemMetric:
    """Return the metric of a nested parameter; ValueError unless it scores single replies."""
    metric = make_metric(value)
    if not isinstance(metric, ItemMetric):
        raise ValueError(f"{key}={metric} scores sets of replies, not single replies")
    return metric


def nested_default(text: str) -> Any:
    """Return the default of a nested parameter: a spec, from which the metric is built when the
    outer one is."""
    return parse(text)


def nested_signature(metric: Metric) -> str:
    """Return the signature of a nested metric, without the version, which the outer one has."""
    return "(" + metric.signature().rpartition("|version:")[0] + ")"


def make_metric(
    spec: str | Spec | Metric | type[Metric],
    language: str | Language | None = None,
    evaluator: str | PathLike[str] | Evaluator | None = None,
) -> Metric:
    """Build a metric: from its spec, a metric object such as ``Bleu(n=2)``, or its class.

    ``language`` decides the tokenizer and the stemmer, ``evaluator`` (a folder, or an opened
    evaluator) is used by metrics that need one; both apply to nested metrics, and only where the
    spec does not say otherwise.

    >>> str(make_metric("bleu(n=2)", language="ja"))
    'bleu(n=2,tok=ja-mecab)'
    """
    if isinstance(language, str):
        language = language_defaults(language)
    if isinstance(spec, type) and issubclass(spec, Metric):
        spec = spec()
    if not isinstance(spec, str | Spec | Metric):
        raise UsageError(f"expected a metric, such as 'bleu(n=2)' or Bleu(n=2), got {spec!r}")
    if isinstance(spec, Metric):
        if language is None and evaluator is None:
            return spec
        cls, params = type(spec), explicit_parameters(spec)
    else:
        parsed = parse(spec) if isinstance(spec, str) else spec
        cls, params = METRICS.find(parsed.name), dict(parsed.params)
    allowed = parameters(cls)
    for key in cls.nested if language is not None or evaluator is not None else ():
        inner = params.get(key, allowed[key].default)
        shared = evaluator if cls.shares_evaluator else None
        if isinstance(inner, tuple):
            params[key] = tuple(make_metric(each, language, shared) for each in inner)
        elif isinstance(inner, str | Spec | Metric):
            params[key] = make_metric(inner, language, shared)
    if language is not None and "tok" in allowed:
        params.setdefault("tok", parse(language.tokenizer))
    if language is not None and "stem" in allowed:
        params.setdefault("stem", language.stemmer)
    if language is not None and cls.asks_model and "language" in allowed:
        params.setdefault("language", language.code)
    if evaluator is None or "evaluator" not in allowed or "evaluator" in params:
        return _build(cls, params)
    opened = None if isinstance(evaluator, str | PathLike) else evaluator
    params["evaluator"] = str(evaluator if opened is None else opened.path)
    metric = _build(cls, params)
    if opened is not None:
        vars(metric)["evaluator_or_none"] = opened  # instead of opening its folder again
    return metric


def _build(cls: type[Metric], params: dict[str, Any]) -> Metric:
    with third_party_errors(cls):
        return build(cls, cls.name, params)
