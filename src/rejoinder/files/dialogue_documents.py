"""Read files that are one JSON document: a list of items, or of rated dialogues as others publish.

FED (Mehri & Eskenazi 2020) is a list of objects with ``context`` (lines that begin with ``User:``
or ``System:``), ``system`` and ``annotations`` (lists of ratings by quality). With ``response`` it
is one rated turn, without it a whole rated dialogue. ConTurE (Ghazarian et al. 2022) is a list of
dialogues with ``turns`` and ``dialog_ratings``. Both become records of the items format, an object
for each turn of the system; of several qualities, the overall one is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

OVERALL = ("overall", "human (overall)", "overall impression")
_SPEAKER = re.compile(r"^\s*(user|system|chatbot)\s*:\s*", re.IGNORECASE)


def item_records(document: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number of each object of the document, from 1, and the records made of it."""
    if not isinstance(document, list):
        raise msgspec.ValidationError("Expected a list of items or dialogues")
    for number, entry in enumerate(document, 1):
        if not isinstance(entry, dict):
            raise msgspec.ValidationError(f"Expected an object - at `$[{number - 1}]`")
        try:
            for record in _records(entry, number):
                yield number, record
        except (KeyError, TypeError, AttributeError) as error:
            raise msgspec.ValidationError(
                f"Expected a dialogue as in FED or ConTurE ({error}) - at `$[{number - 1}]`"
            ) from None


def _records(entry: dict[str, Any], number: int) -> Iterable[dict[str, Any]]:
    if "turns" in entry and "dialog_id" in entry:
        return conture_records(entry)
    if "annotations" in entry and "id" not in entry and "dialogue_id" not in entry:
        return fed_records(entry, number)
    return [entry]


def fed_records(entry: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    """Yield a rated turn, or the system's turns of a rated dialogue."""
    context = entry["context"]
    lines = context.split("\n") if isinstance(context, str) else list(context)
    turns = [_turn(line) for line in lines if line.strip()]
    ratings = overall(entry["annotations"])
    system = entry.get("system")
    named = {} if system is None else {"system": system}
    response = entry.get("response")
    if isinstance(response, str) and response.strip():
        yield {
            "id": f"turn-{number}",
            "response": _turn(response)[1],
            "context": [text for _, text in turns],
            "ratings": ratings,
            **named,
        }
        return
    for place, (speaker, text) in enumerate(turns):
        if speaker == "user" or (speaker == "" and place % 2 == 0):
            continue
        yield {
            "id": f"dialogue-{number}:{place}",
            "response": text,
            "context": [text for _, text in turns[:place]],
            "dialogue_id": f"dialogue-{number}",
            "turn": place,
            "dialogue_ratings": ratings,
            **named,
        }


def conture_records(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the system's turns of a dialogue, with the ratings of the turns and of the dialogue."""
    name = str(entry["dialog_id"])
    rated = [overall(each) for each in entry.get("dialog_ratings", [])]
    told: list[str] = []
    for number, turn in enumerate(entry["turns"]):
        told.append(_turn(turn["user"])[1])
        reply = _turn(turn["chatbot"])[1]
        yield {
            "id": f"{name}:{number}",
            "response": reply,
            "context": [text for text in told if text],
            "context_id": f"{name}:{number}",
            "dialogue_id": name,
            "turn": number,
            "ratings": overall(turn),
            "dialogue_ratings": [rating for rating in rated if rating is not None] or None,
        }
        told.append(reply)


def overall(annotations: dict[str, Any]) -> Any:
    """Return the ratings of the overall quality; what is no number, such as N/A, is left out."""
    for name, ratings in annotations.items():
        if name.lower() in OVERALL:
            if isinstance(ratings, list):
                return [float(each) for each in ratings if _is_number(each)] or None
            return float(ratings) if _is_number(ratings) else None
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _turn(line: str) -> tuple[str, str]:
    """Return the speaker of a line, in lower case, and its text."""
    match = _SPEAKER.match(line)
    if match is None:
        return "", line.strip()
    return match[1].lower(), line[match.end() :].strip()
