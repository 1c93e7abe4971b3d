"""Read the replies in an answer: a JSON object, a JSON list, or numbered lines."""

from __future__ import annotations

import json
import re
from typing import Any

from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import FENCE, UNREADABLE, Unreadable, plain_answer

REPLIES = "replies"
"""Name of the list where the answer is a JSON object."""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {REPLIES: {"type": "array", "items": {"type": "string"}}},
    "required": [REPLIES],
    "additionalProperties": False,
}

_LINE = re.compile(r"\s*(?:\d{1,3}\s*[.):：、．]|[-*•・])\s*(?P<reply>\S.*)")
_SPEAKER = re.compile(r"B\s*[:：]\s*")
_QUOTED = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("'", "'"))


def read_replies(answer: Answer) -> list[str] | Unreadable:
    """Return the replies that an answer lists, or why it cannot be read."""
    text, _, problem = plain_answer(answer)
    if problem is not None:
        return problem
    fence = FENCE.fullmatch(text)
    inside = (text if fence is None else fence["inside"]).strip()
    if inside.startswith(("{", "[")):
        found = _of_json(inside)
    else:
        found = _of_lines(inside, cut=answer.finish_reason == "length")
    if not found:
        return Unreadable(UNREADABLE, text)
    return [reply for each in found if (reply := _plain(each))]


def _of_json(text: str) -> list[str] | None:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = record.get(REPLIES) if isinstance(record, dict) else record
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        return None
    return listed


def _of_lines(text: str, *, cut: bool) -> list[str] | None:
    """Return the numbered lines after a heading that ends in a colon; of an answer that was cut
    short, all but the last."""
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and lines[0].rstrip().endswith((":", "：")):
        lines = lines[1:]
    matches = [_LINE.fullmatch(line) for line in lines]
    found = [match["reply"] for match in matches if match is not None]
    if len(found) < len(lines):
        return None
    return found[:-1] if cut else found


def _plain(text: str) -> str:
    """Return a reply without its speaker and without quotation marks around it."""
    text = _SPEAKER.sub("", " ".join(text.split()), count=1) if _SPEAKER.match(text) else text
    text = " ".join(text.split())
    for first, last in _QUOTED:
        inner = text[1:-1]
        if text.startswith(first) and text.endswith(last) and len(text) > 2:
            return inner.strip() if first not in inner and last not in inner else text
    return text
