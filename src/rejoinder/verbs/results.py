"""What the verbs return: results that can become a frame, of the kind that went in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec

from rejoinder.errors import UsageError
from rejoinder.inputs.frames import make_frame
from rejoinder.items import UNNAMED, Item, Ratings
from rejoinder.meta_evaluation.correlate import Correlations
from rejoinder.meta_evaluation.ranking import Ranking
from rejoinder.meta_evaluation.study import Study
from rejoinder.metrics.base import ItemMetric
from rejoinder.metrics.batch import Floats
from rejoinder.metrics.evaluate import Judged
from rejoinder.metrics.summary import Estimate

Columns = dict[str, list[Any]]


class Framed:
    """Something with rows and columns."""

    kind: str | None = None
    """The kind of frame that the items came in."""

    def frame(self, to: str | None = None) -> Any:
        """A frame: ``to`` pandas, polars, pyarrow or datasets. By default the kind that went in;
        if that was none, the first of these that is installed."""
        return make_frame(self.columns(), to or self.kind)

    @abstractmethod
    def columns(self) -> Columns:
        """The columns of the frame, as lists."""


@dataclass(frozen=True)
class Scores:
    """One metric's scores of a list of items."""

    metric: ItemMetric
    values: Floats
    """[n] NaN where unscored."""
    unscored: dict[str, str]
    """Item id → why it has no score."""
    corpus: dict[str, Estimate | None]
    """For each system the value of all its items together, with its interval."""
    mean: dict[str, Estimate | None]

    @property
    def signature(self) -> str:
        return self.metric.signature()


class Results(Framed, dict[str, Scores]):
    """For each metric, by the spec as it was given, its scores.

    The frame has a row for each item: ``id``, ``system``, and a column for each metric, null
    where unscored.
    """

    def __init__(
        self, found: dict[str, Scores], ids: list[str], systems: list[str], kind: str | None = None
    ) -> None:
        super().__init__(found)
        self.ids, self.systems, self.kind = ids, systems, kind

    def columns(self) -> Columns:
        scores = {
            spec: [None if value != value else value for value in found.values.tolist()]
            for spec, found in self.items()
        }
        return {"id": self.ids, "system": _named(self.systems), **scores}


class Rankings(Framed, list[Ranking]):
    """For each metric how it ranks the systems.

    The frame has a row for each metric and system, best first: ``value``, ``low``, ``high`` (95 %
    interval), ``group`` (systems that share a letter can't be told apart), ``contexts``.
    """

    def __init__(
        self, found: Sequence[Ranking], labels: dict[Any, str], kind: str | None = None
    ) -> None:
        super().__init__(found)
        self._labels, self.kind = labels, kind

    def columns(self) -> Columns:
        rows = [
            {
                "metric": self._labels[ranking.metric],
                "system": each.system,
                "value": each.value,
                "low": each.low,
                "high": each.high,
                "group": each.group,
                "contexts": ranking.contexts,
            }
            for ranking in self
            for each in ranking.systems
        ]
        return _columns(rows)


@dataclass(frozen=True)
class Agreement(Framed, Study):
    """How well metrics agree with people.

    The frame has a row for each metric: how many items, Spearman's, Pearson's and Kendall's
    correlation, each with its p-value and 95 % interval.
    """

    kind: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, found: Study, kind: str | None) -> Agreement:
        return cls(**vars(found), kind=kind)

    def columns(self) -> Columns:
        rows = [
            {
                "metric": result.metric,
                "level": result.level,
                "n": result.correlations.n,
                "unscored": result.unscored,
                **_correlations(result.correlations),
            }
            for result in self.results
        ]
        return _columns(rows)


class SetResults(Framed, list[Judged]):
    """What set metrics say of systems. The frame has a row for each metric and system."""

    def __init__(
        self, found: Sequence[Judged], labels: dict[Any, str], kind: str | None = None
    ) -> None:
        super().__init__(found)
        self._labels, self.kind = labels, kind

    def columns(self) -> Columns:
        rows = [
            {
                "metric": self._labels[each.metric],
                "system": None if each.system == UNNAMED else each.system,
                "value": each.value,
                "unscored": each.reason,
            }
            for each in self
        ]
        return _columns(rows)


class Items(Framed, list[Item]):
    """Items. The frame has a row for each, with the columns of the format."""

    def __init__(self, found: Sequence[Item], kind: str | None = None) -> None:
        super().__init__(found)
        self.kind = kind

    def columns(self) -> Columns:
        columns: Columns = {
            "id": [item.id for item in self],
            "context_id": [item.context_id for item in self],
            "system": _named([item.system for item in self]),
            "context": [item.context for item in self],
            "response": [item.response for item in self],
            "references": [[msgspec.structs.asdict(r) for r in item.references] for item in self],
            "ratings": _ratings([item.ratings for item in self]),
        }
        # a column that nobody has anything in has no type either
        return {name: each for name, each in columns.items() if any(v is not None for v in each)}


def _named(systems: Sequence[str]) -> list[str | None]:
    return [None if system == UNNAMED else system for system in systems]


def _ratings(given: list[Ratings]) -> list[Any]:
    """Of one kind; where annotators are known, a struct that has all of them in every row."""
    kinds = {type(ratings) for ratings in given if ratings is not None}
    if kinds == {dict}:
        names = dict.fromkeys(name for r in given if isinstance(r, dict) for name in r)
        return [{name: r.get(name) for name in names} if isinstance(r, dict) else r for r in given]
    if len(kinds) > 1 and not kinds <= {int, float}:
        raise UsageError(
            "some ratings are by annotator, others are a list or one number: they do not fit into"
            " one column of a frame"
        )
    return list(given)


def _columns(rows: list[dict[str, Any]]) -> Columns:
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _correlations(found: Correlations) -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for name in ("spearman", "pearson", "kendall"):
        value = asdict(getattr(found, name))
        flat |= {name if key == "value" else f"{name}_{key}": value[key] for key in value}
    return flat
