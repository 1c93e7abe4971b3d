"""What all exports of Label Studio say about an answer: who, about what, when, how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rejoinder.annotate.imports.interpret import RawAnswer, Side, Winner

EXPECTED = "expected an export of Label Studio as JSON, JSON-MIN, CSV or TSV"

_SIDES: dict[str, Side] = {"left": "a", "right": "b"}


@dataclass(frozen=True)
class TaskFields:
    """The fields of a task that hold ids."""

    item: str | None = None
    """The field with the id of the item; None takes the number of the task."""
    pair: tuple[str, str] | None = None
    """The fields with the ids of the two items of a pair."""

    @property
    def names(self) -> set[str]:
        return {name for name in (self.item, *(self.pair or ())) if name is not None}

    def fill(
        self, answer: RawAnswer, who: Any, data: Mapping[str, Any], record: Mapping[str, Any]
    ) -> RawAnswer:
        """Complete an answer with its person, ids, duration and time."""
        if isinstance(who, dict):
            who = who.get("email") or who.get("id")
        if not _is_id(who):
            raise answer.wrong(f"the annotator is {who!r}; expected a number or an e-mail address")
        answer.person = str(who)
        if self.item is not None:
            answer.item = _id(answer, data, self.item)
        if self.pair is not None:
            answer.items = (_id(answer, data, self.pair[0]), _id(answer, data, self.pair[1]))
        if record.get("lead_time") not in (None, ""):
            answer.seconds = answer.number("lead_time", record["lead_time"])
        if record.get("created_at") not in (None, ""):
            answer.time = _time(answer, record["created_at"])
        return answer


def winner(answer: RawAnswer, name: str, side: Any) -> Winner:
    if not isinstance(side, str) or side not in _SIDES:
        raise answer.wrong(f"{name}: {side!r} is selected; expected left or right")
    return Winner(_SIDES[side])


def _id(answer: RawAnswer, data: Mapping[str, Any], name: str) -> str:
    if not _is_id(data.get(name)):
        known = ", ".join(data)
        raise answer.wrong(f"the task has no id in '{name}'; expected one of its fields: {known}")
    return str(data[name])


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _time(answer: RawAnswer, value: Any) -> datetime:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise answer.wrong(
            f"created_at is {value!r}; expected a time like 2026-11-18T04:37:56Z"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
