"""Reasons why items are unscored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NO_CONTEXT = "no context"
NO_REFERENCES = "no references"
BLANK_REPLY = "the reply is blank"
NEITHER = f"{NO_CONTEXT} and {NO_REFERENCES}"
ONLY_BAD_REFERENCES = "no reference has a weight above 0"


class Reason(str):
    """A reason with details of one item, such as what a model answered; ``kind`` has none, so that
    it can be counted."""

    __slots__ = ("kind",)

    kind: str

    def __new__(cls, text: str, kind: str) -> Reason:
        reason = super().__new__(cls, text)
        reason.kind = kind
        return reason


def kind_of(reason: str) -> str:
    """Return a reason without details of a single item."""
    return reason.kind if isinstance(reason, Reason) else reason


Reasons = NDArray[np.object_]
"""For each item the reason why it cannot be scored, or None."""
