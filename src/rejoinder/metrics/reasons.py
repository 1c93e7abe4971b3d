"""Reasons why items are unscored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NO_CONTEXT = "no context"
NO_REFERENCES = "no references"
BLANK_REPLY = "the reply is blank"
NEITHER = f"{NO_CONTEXT} and {NO_REFERENCES}"
ONLY_BAD_REFERENCES = "no reference has a weight above 0"

Reasons = NDArray[np.object_]
"""For each item the reason why it cannot be scored, or None."""
