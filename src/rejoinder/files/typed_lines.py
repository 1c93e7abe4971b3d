"""Decode many lines of an items file at once, straight into columns.

The fields of a line are decoded by their types, in compiled code and without a dictionary for each
line. That accepts what careful reading (:mod:`rejoinder.files.item_file`) accepts without a change
beyond a cast; for everything else, such as chat messages or a mistake, it gives up, and those lines
are read carefully, which knows what to say about them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from rejoinder.files.columns import ITEM_FIELDS, field_like
from rejoinder.item_table import ItemTable
from rejoinder.items import MAX_RATING, UNNAMED, Ratings, Reference

MAX_EXTRA_FIELDS = 64
"""Fields of other names that are decoded, too; lines with more of them are read carefully."""

_FIELDS: list[tuple[str, Any, Any]] = [
    ("context", str | list[str] | UnsetType, UNSET),
    ("system", str | None | UnsetType, UNSET),
    ("references", str | list[str | Reference] | UnsetType, UNSET),
    ("ratings", Ratings | UnsetType, UNSET),
    ("context_id", str | int | None | UnsetType, UNSET),
]

_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)


class TypedLines:
    """Decodes lines; it remembers the names of the fields that are not read."""

    def __init__(self) -> None:
        self.ignored: dict[tuple[str, str], int] = {}
        """Of the lines that were decoded last, those with a field that is not read but looks like
        one that is missing."""
        self._extra: list[str] = []
        self._use(())

    def _use(self, extra: Iterable[str]) -> None:
        self._extra = sorted(extra)
        fields: list[Any] = [("id", str | int), ("response", str), *_FIELDS]
        # an extra field is decoded like any JSON, so that a mistake in it is found
        fields += [
            (f"extra_{number}", Any, msgspec.field(name=name, default=UNSET))
            for number, name in enumerate(self._extra)
        ]
        line = msgspec.defstruct("Line", fields, forbid_unknown_fields=True, gc=False)
        self._decode = msgspec.json.Decoder(line).decode

    def table(self, lines: Sequence[bytes]) -> ItemTable | None:
        """Return the items of lines; None if they must be read carefully."""
        # thousands of new lists would be searched for cycles again and again
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._table(lines)
        finally:
            if collecting:
                gc.enable()

    def _table(self, lines: Sequence[bytes]) -> ItemTable | None:
        try:
            records: list[Any] = list(map(self._decode, lines))
        except _BROKEN as error:
            if "unknown field" not in str(error) or not self._learn(lines):
                return None
            try:
                records = list(map(self._decode, lines))
            except _BROKEN:
                return None
        references = [_references(record.references) for record in records]
        ratings = [None if record.ratings is UNSET else record.ratings for record in records]
        if not (_are_sane(references) and all(map(_in_range, ratings))):
            return None
        self.ignored = self._lookalikes(records)
        return ItemTable(
            ids=[str(record.id) for record in records],
            responses=[record.response for record in records],
            contexts=[_turns(record.context) for record in records],
            systems=[each if isinstance(each := r.system, str) else UNNAMED for r in records],
            references=references,
            ratings=ratings,
            context_ids=[_name(record.context_id) for record in records],
        )

    def _learn(self, lines: Sequence[bytes]) -> bool:
        """Add the names of fields that some lines have; False if they are too many."""
        decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        try:
            names = set(chain.from_iterable(map(decode, lines))) - ITEM_FIELDS
        except _BROKEN:
            return False
        if len(names | set(self._extra)) > MAX_EXTRA_FIELDS:
            return False
        self._use(names | set(self._extra))
        return True

    def _lookalikes(self, records: list[Any]) -> dict[tuple[str, str], int]:
        """Count the lines in which a field that is not read stands for a missing one."""
        attributes = {name: f"extra_{number}" for number, name in enumerate(self._extra)}
        counts = {}
        for name, own in attributes.items():
            if (field := field_like(name)) in ("", name):
                continue
            meant = field if field in ITEM_FIELDS else attributes.get(field)
            counts[name, field] = sum(
                getattr(record, own) is not UNSET
                and (meant is None or getattr(record, meant) is UNSET)
                for record in records
            )
        return {key: count for key, count in counts.items() if count}


def _references(value: Any) -> list[str | Reference]:
    if value is UNSET:
        return []
    return [value] if isinstance(value, str) else value


def _turns(value: Any) -> list[str]:
    if value is UNSET:
        return []
    return value.split("\n") if isinstance(value, str) else value


def _name(value: Any) -> str | None:
    return None if value is UNSET or value is None else str(value)


def _are_sane(references: list[list[str | Reference]]) -> bool:
    """Return whether references have weights in their range, and no ratings."""
    return all(
        isinstance(each, str)
        or (each.ratings is None and (each.weight is None or -1 <= each.weight <= 1))
        for each in chain.from_iterable(references)
    )


def _in_range(ratings: Ratings) -> bool:
    """Return whether ratings are in the range of :func:`rejoinder.items.checked`."""
    if ratings is None:
        return True
    several = ratings.values() if isinstance(ratings, dict) else ratings
    numbers = [several] if isinstance(several, (int, float)) else several
    return all(-MAX_RATING <= rating <= MAX_RATING for rating in numbers)
