"""Who wrote a reply, in place of what people said of it.

Where nobody has rated anything, it is still known that what somebody really answered is right, and
that a reply from elsewhere is wrong: a metric that can't tell these apart need not be asked more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from rejoinder.errors import UsageError
from rejoinder.items import Item
from rejoinder.spec import did_you_mean


def rated_by_author(items: Sequence[Item], right: Collection[str]) -> list[Item]:
    """Replies of these systems are right (1), all others wrong (0), however they were rated."""
    systems = sorted({item.system for item in items})
    if unknown := [name for name in right if name not in systems]:
        hints = (f"{name}: {did_you_mean(name, systems)}" for name in unknown)
        raise UsageError(*(f"right: no reply is of the system {hint}" for hint in hints))
    if items and set(systems) <= set(right):
        raise UsageError(f"right: {', '.join(systems)}: no reply is left to be wrong")
    return [msgspec.structs.replace(item, ratings=float(item.system in right)) for item in items]
