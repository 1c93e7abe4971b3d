"""Tell what the answer to a scheme of Potato says.

Every answer is stored as scheme → label → value, without the type of the scheme, so the types are
told apart by what is stored: a Likert scale stores the point as its label, a radio button the text
of its label, a number or slider its value, a pairwise choice ``selection``. In version 1 the value
of a radio button is the key that selects it, so the label decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rejoinder.annotate.imports.interpret import (
    Given,
    Label,
    Other,
    RawAnswer,
    Side,
    Winner,
    plain_number,
)

Stored = Mapping[str, Mapping[str, Any]]
"""Scheme → label → value."""

_PAIRWISE = {"selection", "scale_value"}
_SIDES: dict[str, Side] = {"A": "a", "B": "b", "tie": "tie"}
_BY_VALUE = {"number", "slider", "text_box", "confidence_level"}
"""Labels of schemes that store the answer as their value."""


def numeric_schemes(answers: Iterable[Stored]) -> set[str]:
    """Return the schemes that store numbers as values.

    In version 1 the label of a number is that of a text box, so all values have to be looked at.
    """
    numeric: dict[str, bool] = {}
    for schemes in answers:
        for scheme, labels in schemes.items():
            if _BY_VALUE & labels.keys() or scheme in labels:
                are = all(plain_number(value) is not None for value in labels.values())
                numeric[scheme] = numeric.get(scheme, True) and are
    return {scheme for scheme, are in numeric.items() if are}


def scheme_answer(
    answer: RawAnswer, scheme: str, labels: Mapping[str, Any], numeric: set[str]
) -> dict[str, Given]:
    """Return what was given by name: the scheme, and more for texts beside a pairwise choice."""
    if scheme == "slider" and "slider" not in labels:  # version 1: slider → scheme → value
        return {name: answer.number(name, value) for name, value in labels.items()}
    if "" in labels:  # the column of the final answer beside those of its labels
        return {scheme: Label(str(labels[""]))}
    if labels.keys() & _PAIRWISE:
        texts = {f"{scheme}.{name}": Other("text") for name in labels.keys() - _PAIRWISE}
        return {scheme: _winner(answer, scheme, labels), **texts}
    if len(labels) != 1:
        return {scheme: Other("several labels")} if labels else {}
    ((label, value),) = labels.items()
    return {scheme: _single(answer, scheme, label, value, numeric)}


def _single(answer: RawAnswer, scheme: str, label: str, value: Any, numeric: set[str]) -> Given:
    if label.startswith("_"):
        return Other(label[1:])
    if label == "bad_text":
        return Other("marked as bad text")
    if scheme in numeric:
        return answer.number(scheme, value)
    if label == "select-one":
        return Label(str(value).removeprefix(f"{scheme}:::"))
    if label in ("text_box", "free_response"):
        return Other("text")
    if label in _BY_VALUE:
        return answer.number(scheme, value)
    return Label(re.sub(r"^scale_(?=\d+$)", "", label))


def _winner(answer: RawAnswer, scheme: str, labels: Mapping[str, Any]) -> Winner:
    if "selection" not in labels:
        strength = answer.number(scheme, labels["scale_value"])  # below 0: the first is better
        return Winner("tie" if strength == 0 else "a" if strength < 0 else "b")
    chosen = labels["selection"]
    if not isinstance(chosen, str) or chosen not in _SIDES:
        raise answer.wrong(f"{scheme}: {chosen!r} is chosen; expected A, B or tie")
    return Winner(_SIDES[chosen])
