"""Read which of two replies a judge calls better, with the probabilities that the model gave.

The answer is 1, 2 or tie; A and B mean the same as 1 and 2. Its probabilities are those of these
answers at the place where it stands, divided by their sum; without probabilities, the answer that
was written has all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.judges.reading import MIN_MASS, Token, token_at, tokens_of
from rejoinder.judges.scale import plain_digits
from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import FENCE, UNREADABLE, Unreadable, plain_answer

BETTER = "better"
"""Name of the answer where it is JSON."""
FIRST, SECOND, TIE = "1", "2", "tie"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {BETTER: {"type": "string", "enum": [FIRST, SECOND, TIE]}},
    "required": [BETTER],
    "additionalProperties": False,
}
"""The JSON schema of an answer."""

_CHOICE = re.compile(
    r"[\s*_`\"'(「『【]*(?:(?:answer|reply|response|回答|返答|応答|回复)\s*[:：]?[\s*_`\"']*)?"
    r"(?P<choice>1|2|A|B|tie|引き分け|平局)[\s*_`\"')」』】.。!！]*",
    re.IGNORECASE,
)
_DIGITS = {FIRST: FIRST, SECOND: SECOND}
_LETTERS = {"a": FIRST, "b": SECOND}
_TIES = ("tie", "引き分け", "平局")
_TIE_TOKENS = {word[:end] for word in _TIES for end in range(2 if word == "tie" else 1, 9)}
"""Texts with which one of these words begins; "t" alone begins too many others."""


@dataclass(frozen=True)
class Choice:
    """The probabilities of the three answers; their sum is 1."""

    first: float
    second: float
    tie: float
    mass: float | None = None
    """Share of the probability that the three answers had; None without probabilities."""


def read_choice(answer: Answer) -> Choice | Unreadable:
    """Return which of two replies an answer calls better, or why it cannot be read."""
    text, start, problem = plain_answer(answer)
    if problem is not None:
        return problem
    tokens = tokens_of(answer)
    if text.lstrip().startswith(("{", "```")):
        found = _in_object(text)
    else:
        match = _CHOICE.fullmatch(plain_digits(text))
        found = None if match is None else (match["choice"], match.start("choice"))
    if found is None:
        # the first token, if it could have been one of the answers
        choice = _weighted(tokens[0] if tokens and not start else None, "")
        if choice is not None and (choice.mass or 0.0) >= MIN_MASS:
            return choice
        return Unreadable(UNREADABLE, text)
    written, place = found
    weighted = _weighted(token_at(tokens, start + place), written)
    return _certain(written) if weighted is None else weighted


def _in_object(text: str) -> tuple[str, int] | None:
    """Return the choice in a JSON object and where it stands."""
    fence = FENCE.fullmatch(text)
    inside, begin = (text, 0) if fence is None else (fence["inside"], fence.start("inside"))
    try:
        record = json.loads(inside)
    except (ValueError, RecursionError):
        return None
    written = record.get(BETTER) if isinstance(record, dict) else None
    match = _CHOICE.fullmatch(plain_digits(str(written)))
    place = re.search(rf'"{BETTER}"\s*:\s*"?', inside)
    if match is None or place is None:
        return None
    return match["choice"], begin + place.end() + match.start("choice")


def _certain(written: str) -> Choice:
    """Return the choice that was written, without probabilities."""
    meant = (_DIGITS | _LETTERS).get(written.lower(), TIE)
    return Choice(float(meant == FIRST), float(meant == SECOND), float(meant == TIE))


def _weighted(token: Token | None, written: str) -> Choice | None:
    """Return the choice by the probabilities at a token; None if it has none of the answers."""
    if token is None or not token.top_logprobs:
        return None
    labels: Mapping[str, str] = _LETTERS if written.lower() in _LETTERS else _DIGITS
    of = dict.fromkeys((FIRST, SECOND, TIE), 0.0)
    for text, probability in token.probabilities.items():
        plain = plain_digits(text).strip().lower()
        if plain in labels:
            of[labels[plain]] += probability
        elif plain in _TIE_TOKENS or (text == token.token and written.lower() in _TIES):
            of[TIE] += probability
    mass = sum(of.values())
    if mass <= 0:
        return None
    return Choice(of[FIRST] / mass, of[SECOND] / mass, of[TIE] / mass, min(mass, 1.0))
