"""Scales: their values as radio buttons of a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rejoinder.annotate.tasks.kind import Form, Refusal


def scale_page(scale: Sequence[int], labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return value and label of each step of a scale.

    >>> scale_page([0, 1, 2], ["bad", "good"])[2]
    {'value': 2, 'label': 'good'}
    """
    texts = list(labels)
    if len(texts) == 2 != len(scale):
        texts = [texts[0], *[""] * (len(scale) - 2), texts[1]]
    texts = texts or [""] * len(scale)
    return [{"value": value, "label": text} for value, text in zip(scale, texts, strict=True)]


def chosen_value(form: Form, field: str, scale: Sequence[int]) -> int | Refusal:
    """Return the value that was chosen in a field, or why there is none."""
    text = form.get(field, "")
    for value in scale:
        if text == str(value):
            return value
    return Refusal(field, "choose_one" if not text else "not_on_scale")


def is_on_scale(values: object, scale: Sequence[int]) -> bool:
    """Return whether an object of a file is a list of values of a scale."""
    return isinstance(values, list) and all(
        type(value) is int and value in scale for value in values
    )
