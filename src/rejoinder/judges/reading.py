"""Read what a judge answered: strictly, and with the probabilities that the model gave it.

The value of an answer is the mean over the scale, weighted by the probabilities that the model gave
to each number at the place of its answer (Liu et al. 2023, G-Eval, § 2.3):

    score = sum of s p(s) / sum of p(s),   s from the lowest to the highest number of the scale

Without probabilities it is the number that was written. An answer that begins with other words is
read by its first token alone, if the model gave the numbers of the scale at least
:data:`MIN_MASS` of the probability there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from rejoinder.judges.scale import Scale, plain_digits
from rejoinder.llm.chat import Answer
from rejoinder.llm.readable import FENCE, UNREADABLE, Unreadable, plain_answer

MIN_MASS = 0.1
"""Smallest share of the probability that numbers of the scale must have."""
ONLY = "rating"
"""Name of the number of a rubric without dimensions, where the answer is JSON."""
OFF_SCALE = "the answer is not on the scale"

_NUMBER = re.compile(
    r"[\s*_`\"'(「『【]*(?:(?:the |my )?"
    r"(?:score|rating|answer|评分|分数|得分|回答|评价|評価|点数|スコア)"
    r"\s*(?:is|は|为|是)?\s*[:：=]?[\s*_`\"']*)?"
    r"(?P<number>\d{1,4})(?:\.0+)?\s*(?:/\s*(?P<of>\d{1,4})|点|分|points?)?[\s*_`\"')」』】.。!！]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Reading:
    """What an answer says, by dimension."""

    values: dict[str, float]
    mass: float | None = None
    """Share of the probability that the numbers of the scale had, the least of all dimensions;
    None if the server gave no probabilities."""


class _Top(msgspec.Struct):
    token: str
    logprob: float | None = None


class Token(msgspec.Struct):
    token: str
    logprob: float | None = None
    top_logprobs: list[_Top] = []

    @property
    def probabilities(self) -> dict[str, float]:
        """The probabilities that the model gave to tokens at this place, by their texts."""
        return {
            top.token: math.exp(min(0.0, top.logprob))
            for top in (_Top(self.token, self.logprob), *self.top_logprobs)
            if top.logprob is not None and top.logprob == top.logprob
        }


class _Logprobs(msgspec.Struct):
    content: list[Token] | None = None


def read(answer: Answer, scale: Scale, dimensions: Sequence[str]) -> Reading | Unreadable:
    """Return what an answer to a rubric says, or why it cannot be read."""
    text, start, problem = plain_answer(answer)
    if problem is not None:
        return problem
    tokens = tokens_of(answer)
    if dimensions or text.lstrip().startswith(("{", "```")):
        return _object(text, start, tokens, scale, dimensions or (ONLY,))
    return _number(text, start, tokens, scale)


def _number(text: str, start: int, tokens: Sequence[Token], scale: Scale) -> Reading | Unreadable:
    match = _NUMBER.fullmatch(plain_digits(text))
    if match is not None and (match["of"] is None or int(match["of"]) == scale.high):
        value = scale.labels.get(match["number"].lstrip("0") or "0")
        if value is not None:
            weighted = _expectation(token_at(tokens, start + match.start("number")), scale)
            if weighted is not None:
                return Reading({ONLY: weighted[0]}, weighted[1])
            return Reading({ONLY: float(value)})
    # the first token, if it could have been a number of the scale
    first = _expectation(tokens[0] if tokens and not start else None, scale)
    if first is not None and first[1] >= MIN_MASS:
        return Reading({ONLY: first[0]}, first[1])
    return Unreadable(UNREADABLE if match is None else OFF_SCALE, text)


def _object(
    text: str, start: int, tokens: Sequence[Token], scale: Scale, dimensions: Sequence[str]
) -> Reading | Unreadable:
    fence = FENCE.fullmatch(text)
    inside, begin = (text, start) if fence is None else (fence["inside"], start + fence.start(1))
    try:
        record = json.loads(inside)
    except (ValueError, RecursionError):
        return Unreadable(UNREADABLE, text)
    if not isinstance(record, dict):
        return Unreadable(UNREADABLE, text)
    values, masses = {}, []
    for name in dimensions:
        if name not in record:
            return Unreadable(f"the answer has no '{name}'", text)
        value = _whole(record[name])
        if value is None or str(value) not in scale.labels:
            return Unreadable(f"'{name}' is not on the scale {scale}", text)
        values[name] = float(value)
        place = re.search(rf'"{re.escape(name)}"\s*:\s*"?', inside)
        token = None if place is None else token_at(tokens, begin + place.end())
        if (weighted := _expectation(token, scale)) is not None:
            values[name] = weighted[0]
            masses.append(weighted[1])
    return Reading(values, min(masses) if len(masses) == len(dimensions) else None)


def _whole(value: object) -> int | None:
    if isinstance(value, str):
        text = plain_digits(value).strip()
        return int(text) if re.fullmatch(r"\d{1,4}", text) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _expectation(token: Token | None, scale: Scale) -> tuple[float, float] | None:
    """Return the mean over the scale by the probabilities at a token, and their sum; None without
    probabilities of numbers of the scale."""
    if token is None or not token.top_logprobs or not scale.is_told_by_one_token:
        return None
    probability = dict.fromkeys(scale.labels.values(), 0.0)
    for text, p in token.probabilities.items():
        # " 4" and "4" are different tokens with the same meaning
        if (value := scale.value(text)) is not None:
            probability[value] += p
    mass = math.fsum(probability.values())
    if mass <= 0:
        return None
    return math.fsum(value * p for value, p in probability.items()) / mass, min(mass, 1.0)


def tokens_of(answer: Answer) -> list[Token]:
    """Return the tokens of an answer with their probabilities; none if the server gave none, or
    in another form."""
    if answer.logprobs is None:
        return []
    try:
        return msgspec.convert(answer.logprobs, _Logprobs).content or []
    except msgspec.ValidationError:
        return []


def token_at(tokens: Sequence[Token], place: int) -> Token | None:
    """Return the token in which a character of the text stands, if it is its first one that is no
    blank or mark; None if the tokens do not spell the text."""
    begin = 0
    for token in tokens:
        end = begin + len(token.token)
        if begin <= place < end:
            before = token.token[: place - begin]
            return token if not before.strip() else None
        begin = end
    return None
