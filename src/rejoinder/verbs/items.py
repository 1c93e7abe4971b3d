"""``load``: items in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import UsageError
from rejoinder.inputs.items import as_items
from rejoinder.items import UNNAMED, Item, Ratings
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult, to_plain

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike


class Items(TableResult, list[Item]):
    """Items in memory. The frame has a row per item, with the columns of the items format."""

    def __init__(self, items: Sequence[Item], frame_kind: str | None = None) -> None:
        super().__init__(items)
        self.frame_kind = frame_kind

    def to_dict(self) -> dict[str, Any]:
        return {"items": to_plain(list(self))}

    def columns(self) -> FrameColumns:
        columns: FrameColumns = {
            "id": [item.id for item in self],
            "context_id": [item.context_id for item in self],
            "system": [None if item.system == UNNAMED else item.system for item in self],
            "context": [item.context for item in self],
            "response": [item.response for item in self],
            "references": self._references(),
            "ratings": _rating_column([item.ratings for item in self]),
            "dialogue_id": [item.dialogue_id for item in self],
            "turn": [item.turn for item in self],
            "dialogue_ratings": _rating_column([item.dialogue_ratings for item in self]),
            "inclusion_probability": [item.inclusion_probability for item in self],
        }
        # a column without any value has no type
        return {name: each for name, each in columns.items() if any(v is not None for v in each)}

    def _references(self) -> list[list[dict[str, Any]]]:
        """Return the references of each item; all of them have the same keys."""
        ratings = iter(_rating_column([r.ratings for item in self for r in item.references]))
        return [
            [msgspec.structs.asdict(r) | {"ratings": next(ratings)} for r in item.references]
            for item in self
        ]


@keep_notes
def load(items: ItemsLike, *, columns: Columns | None = None, monitor: Monitor = SILENT) -> Items:
    """Read all items of a file, a frame, or a list of dictionaries.

    ``columns`` maps fields to the columns that hold them; columns that were recognised by their
    names are reported in a warning.
    """
    read, kind = as_items(items, columns, monitor.note)
    return Items(list(read), kind)


def _rating_column(ratings: list[Ratings]) -> list[Any]:
    """Return ratings of one type; where annotators are named, with all of them in every row."""
    kinds = {type(each) for each in ratings if each is not None}
    if kinds == {dict}:
        names = dict.fromkeys(name for r in ratings if isinstance(r, dict) for name in r)
        return [
            {name: r.get(name) for name in names} if isinstance(r, dict) else r for r in ratings
        ]
    if len(kinds) > 1 and not kinds <= {int, float}:
        raise UsageError(
            "some ratings name their annotators, others are a list or one number: they do not fit"
            " into one column of a frame"
        )
    return list(ratings)
