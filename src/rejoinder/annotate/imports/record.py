"""The record that every reader of an export yields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class ImportedAnswer:
    """What one person answered about one item, or about one pair of items."""

    person: str
    item: str
    """The id of the item, or of the pair."""
    values: dict[str, float | str]
    """The number of each dimension, and for pairs ``winner``: ``a``, ``b`` or ``tie``."""
    seconds: float | None = None
    """How long the person took."""
    time: datetime | None = None
    """When the answer was given, with its time zone."""
    items: tuple[str, str] | None = None
    """The ids of the two items of a pair, a first."""
