"""Ratings of sets: one system's replies to one context, rated together, as for their diversity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from rejoinder.errors import DataError
from rejoinder.items import TURN_END, Item
from rejoinder.meta_evaluation.ratings import merged_ratings

SetKey = tuple[str, str]
"""Context and system."""


def rated_sets(sets: Iterable[Item]) -> dict[SetKey, Item]:
    """Return the rated sets by context and system; ratings of several records are merged."""
    found: dict[SetKey, Item] = {}
    for rated in sets:
        key = rated.group, rated.system
        if key in found:
            both = merged_ratings(found[key].ratings, rated.ratings)
            if both is None:
                raise DataError(
                    f"the replies of the system '{rated.system}' to the context"
                    f" '{shown(rated.group)}' have two different ratings; expected one line for"
                    " each set, or one for each annotator"
                )
            rated = msgspec.structs.replace(rated, ratings=both)
        found[key] = rated
    return found


def match_sets(
    rated: Mapping[SetKey, Item], items: Sequence[Item]
) -> tuple[dict[SetKey, Item], list[SetKey]]:
    """Return the rated sets whose replies are among the items, and the keys of the others.

    A set that names its context by the turns is also found if the items have a context_id.
    DataError if no set is found.
    """
    replies = {(item.group, item.system) for item in items}
    by_turns = {TURN_END.join(item.context): item.group for item in items if item.context}
    matched: dict[SetKey, Item] = {}
    others = []
    for (context, system), each in rated.items():
        group = context if each.context_id is not None else by_turns.get(context, context)
        if (group, system) in replies:
            matched[group, system] = msgspec.structs.replace(each, context_id=group)
        else:
            others.append((context, system))
    if not matched:
        context, system = others[0]
        raise DataError(
            f"none of the {len(rated):,} rated sets is among the items, such as the replies of"
            f" the system '{system}' to the context '{shown(context)}'; expected context_id and"
            " system of items"
        )
    return matched, others


def shown(context: str) -> str:
    """Return the key of a context for a message: its name, or the beginning of its turns."""
    return context.replace(TURN_END, " / ")[:60]
