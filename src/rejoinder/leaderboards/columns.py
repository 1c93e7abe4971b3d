"""Scores of a judged set as columns, from several files that may lack replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from rejoinder.errors import DataError
from rejoinder.items import Item, Score
from rejoinder.meta_evaluation.correlate import Floats
from rejoinder.meta_evaluation.join import Ints, numbered


@dataclass
class RatedSet:
    """The rated replies of a set, and what metrics scored them."""

    items: Sequence[Item]
    """All replies of the file."""
    rated: list[Item]
    """Those with a rating, of the systems that are not left out."""
    scores: dict[str, Floats] = field(default_factory=dict)
    """By metric, values of the rated replies; NaN if there is none."""
    signatures: dict[str, str] = field(default_factory=dict)
    set_metrics: dict[str, None] = field(default_factory=dict)
    """Metrics that score sets of replies or systems, which are left out."""

    @classmethod
    def of(cls, items: Sequence[Item], without: Iterable[str] = ()) -> RatedSet:
        left_out = set(without)
        rated = [i for i in items if i.rating() is not None and i.system not in left_out]
        return cls(items, rated)

    @property
    def human(self) -> Floats:
        return np.array([item.rating() for item in self.rated], np.float64)

    @property
    def contexts(self) -> Ints:
        return numbered(item.group for item in self.rated)[0]

    @property
    def systems(self) -> list[str]:
        return list(dict.fromkeys(item.system for item in self.rated))

    def add(self, lines: Iterable[tuple[int, Score]], name: str) -> None:
        """Add the scores of one file.

        It may lack replies, but not have others, and a metric may be in one file only.
        """
        known = {item.id for item in self.items}
        place = {item.id: number for number, item in enumerate(self.rated)}
        columns: dict[str, Floats] = {}
        seen: set[tuple[str, str]] = set()
        for line, score in lines:
            if score.level != "item":
                self.set_metrics[score.metric] = None
                continue
            if score.metric not in columns:
                if score.metric in self.scores:
                    raise DataError(
                        f"{score.metric} is in another file of scores of this set, too; leave one"
                        " out, or give one of the metrics another name",
                        path=name,
                        line=line,
                    )
                columns[score.metric] = np.full(len(self.rated), np.nan)
                self.signatures[score.metric] = score.signature
            if score.id not in known:
                raise DataError(
                    f"the item '{score.id}' is not in the items of this set", path=name, line=line
                )
            if (score.metric, score.id) in seen:
                raise DataError(
                    f"a second score of '{score.id}' by {score.metric}", path=name, line=line
                )
            seen.add((score.metric, score.id))
            if score.value is not None and score.id in place:
                columns[score.metric][place[score.id]] = score.value
        self.scores |= columns
