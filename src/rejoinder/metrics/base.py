"""What a metric is.

An **item metric** turns a batch into additive sufficient statistics, a row an item, and
summed rows into a value: one row gives the item's score, the sum of all rows the corpus
score, resampled sums the bootstrap. A **set metric** judges several replies together and
does not add up over items.

Parameters are the fields of a frozen dataclass; from them follow the spec syntax, the
signature, the command line and the documentation. What applies to every metric (finding
items that cannot be scored, pooling over references) is written here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.pooling import Pooling, averaged
from rejoinder.metrics.tokenized import Tokenized
from rejoinder.registry import METRICS
from rejoinder.spec import Spec, parameters, spec_of
from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator
    from rejoinder.metrics.sitting import Scored, Sitting

NO_CONTEXT = "no context"
NO_REFERENCES = "no references"
ONLY_BAD_REFERENCES = "no reference has a weight above 0"

LARGEST = 1e6
"""No parameter of a metric is meant to be larger; its powers would leave the range of floats."""

Reasons = NDArray[np.object_]
"""For each item None, or the reason why it can't be scored."""


@dataclass(frozen=True, kw_only=True)
class Metric(ABC):
    """What item metrics and set metrics share: a name, parameters, a signature."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for ``rejoinder ls``."""
    needs: ClassVar[frozenset[str]] = frozenset({"references"})
    best: ClassVar[float | None] = None
    """The value of a reply that equals a reference; None where there is no such value."""
    higher_is_better: ClassVar[bool] = True
    tolerance: ClassVar[float] = 0.0
    """How far a score may move with the way texts were batched: a network's arithmetic."""

    def spec(self) -> Spec:
        return spec_of(self, self.name)

    def __str__(self) -> str:
        return str(self.spec())

    def notes(self) -> list[str]:
        """What a person should know of the scores so far, such as texts that were cut."""
        return []

    def evaluators(self) -> list[Evaluator]:
        """The evaluators that are asked; opened, if they were not."""
        return []

    def lacking(self) -> str | None:
        """What the metric can't do without, and how to get it; None if nothing is lacking."""
        return None

    def signature(self) -> str:
        """All parameters and versions that decide the number."""
        parts = [self.name]
        parts += [f"{key}:{self._signed(key)}" for key in parameters(type(self))]
        return "|".join([*parts, f"version:{__version__}"])

    def _signed(self, key: str) -> str:
        value = getattr(self, key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        # repr: a digit more or less is another number
        return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


@dataclass(frozen=True, kw_only=True)
class ItemMetric(Metric):
    """A metric with a value for each reply.

    A subclass writes :meth:`stats`, :meth:`finish` unless it averages over items, and
    :meth:`reasons` where it can be stopped by more than missing references. Callers use
    :meth:`rows` and :meth:`values`, which also pool over references as ``refs`` says.
    """

    judges: ClassVar[str] = "item"

    refs: Spec = Spec("max")

    own_multireference: ClassVar[bool] = False
    """``stats`` reads all references of an item at once; needed for ``refs=all``."""
    probability: ClassVar[bool] = False
    """A value is the probability that a reply is a good one."""
    most_letters: ClassVar[int | None] = None
    """Items are worked on in pieces with about so many letters, where the vectors of a whole
    batch would be too large, or would take too long to show how far things are."""

    def __post_init__(self) -> None:
        _ = self.pooling

    @cached_property
    def pooling(self) -> Pooling:
        return Pooling.of(self.refs, self.own_multireference)

    @property
    def whole_set(self) -> bool:
        """A score depends on those of all other items, so that they must come in one batch."""
        return False

    def judge(self, sitting: Sitting) -> Scored:
        """What the metric says of a batch: by the references that its items came with."""
        from rejoinder.metrics.sitting import judged

        return judged(self, sitting.batch)

    @abstractmethod
    def stats(self, batch: Batch) -> Floats:
        """[n, d] additive statistics. Every item has a reference; just one, unless refs=all."""

    def finish(self, rows: Floats) -> Floats:
        """[..., d] → [...]: the value of summed statistics. For metrics that average the values of
        items, these have the value in the first column and 1 in the last."""
        return averaged(rows)

    def parts(self, rows: Floats) -> dict[str, Floats]:
        """Named ingredients of the value, such as precision and recall; may be empty."""
        return {}

    def reasons(self, batch: Batch) -> Reasons:
        """Why items can't be scored; None for those that can."""
        found: Reasons = np.full(len(batch), None, object)
        if "references" in self.needs:
            found[batch.counts == 0] = NO_REFERENCES
        return found

    def rows(self, batch: Batch) -> Floats:
        """[n, d] statistics of each item, pooled over its references."""
        pieces = [batch] if self.most_letters is None else batch.slices(self.most_letters)
        rows = [self.pooling.rows(piece, self.stats, self.finish) for piece in pieces]
        return rows[0] if len(rows) == 1 else np.concatenate(rows)

    def values(self, rows: Floats) -> Floats:
        """The value of each row, or of a sum of rows."""
        return self.pooling.finish(rows, self.finish)

    def ingredients(self, rows: Floats) -> dict[str, Floats]:
        """The parts of pooled rows; an average over references has none."""
        return self.parts(rows) if self.pooling.keeps_rows else {}


@dataclass(frozen=True, kw_only=True)
class OverlapMetric(Tokenized, ItemMetric):
    """An item metric over tokens."""

    best: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.tokenizer

    @property
    def tokens_for_best(self) -> int:
        """A reply that equals its reference reaches ``best`` from this many tokens on."""
        return 1

    def reasons(self, batch: Batch) -> Reasons:
        found = super().reasons(batch)
        problems = self.tokens(batch).problems
        if problems:
            for i in np.flatnonzero(np.isin(batch.reply, list(problems))):
                found[i] = problems[int(batch.reply[i])]
            owner = np.repeat(np.arange(len(batch)), batch.counts)
            for j in np.flatnonzero(np.isin(batch.reference, list(problems))):
                if found[owner[j]] is None:
                    found[owner[j]] = problems[int(batch.reference[j])]
        return found


@dataclass(frozen=True, kw_only=True)
class WholeItemMetric(ItemMetric):
    """An item metric for which the references of an item are no alternatives to choose among:
    it has no parameter ``refs``, and ``stats`` reads items as they are."""

    own_multireference: ClassVar[bool] = True

    refs: ClassVar[Spec] = Spec("all")  # type: ignore[misc]  # no field any more


@dataclass(frozen=True, kw_only=True)
class SetMetric(Metric):
    """A metric of a set of replies: those of one system to one context, or to all.

    ``pooled`` metrics put all replies of a system together for its value; the others
    average over contexts.
    """

    judges: ClassVar[str] = "set"
    pooled: ClassVar[bool] = False
    fewest: ClassVar[int] = 1
    """How many replies a context needs before the metric says anything about it."""

    @abstractmethod
    def measure(self, batch: Batch) -> float:
        """The value of a set of replies."""

    def reason(self, batch: Batch) -> str | None:
        """Why this set can't be judged, or None."""
        if len(batch) < self.fewest:
            return f"fewer than {self.fewest} replies"
        if "references" in self.needs and not batch.counts.any():
            return NO_REFERENCES
        return None


def check_range(
    key: str, value: float, low: float, high: float = LARGEST, *, above: bool = False
) -> None:
    """ValueError unless a parameter lies from ``low`` (or above it) to ``high``; NaN never does."""
    if not low <= value <= high or (above and value == low):
        bounds = f"above {low:g} and at most {high:g}" if above else f"from {low:g} to {high:g}"
        raise ValueError(f"{key}={value:g} is not {bounds}")


def make_metric(spec: str | Spec) -> Metric:
    """The metric that a spec describes."""
    return METRICS.make(spec)  # type: ignore[no-any-return]
