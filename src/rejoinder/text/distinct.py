"""Distinct texts: work that depends on a text alone is done once for each of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Text = TypeVar("Text", bound=Hashable)
"""One text, or several that belong together."""


def number_distinct(texts: Iterable[Text]) -> dict[Text, int]:
    """Number the distinct texts in the order of their first occurrence.

    >>> number_distinct(["b", "a", "b"])
    {'b': 0, 'a': 1}
    """
    numbers: dict[Text, int] = {}
    for text in texts:
        numbers.setdefault(text, len(numbers))
    return numbers


def distinct(texts: Iterable[Text]) -> tuple[list[Text], NDArray[np.int64]]:
    """Return the distinct texts and for each text its index among them.

    >>> distinct(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    numbers: dict[Text, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(rows, np.int64)
