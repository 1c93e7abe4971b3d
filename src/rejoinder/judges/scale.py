"""The scale of a judge: whole numbers from a lowest to a highest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

MAX_STEPS = 101

_FULL_WIDTH = {0xFF10 + digit: str(digit) for digit in range(10)}


@dataclass(frozen=True)
class Scale:
    """Whole numbers from ``low`` to ``high``."""

    low: int
    high: int

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high or self.high - self.low >= MAX_STEPS:
            raise ValueError(
                f"the scale {self} is not one of 2 to {MAX_STEPS} whole numbers from 0 on, such as"
                " 1-5"
            )

    @classmethod
    def parse(cls, text: str) -> Scale:
        """Return the scale that is written as 1-5; ValueError if it is not.

        >>> Scale.parse("1-5")
        Scale(low=1, high=5)
        """
        match = re.fullmatch(r"(\d{1,4})\s*-\s*(\d{1,4})", text.strip())
        if match is None:
            raise ValueError(f"the scale '{text}' is no range of whole numbers, such as 1-5")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"

    @cached_property
    def labels(self) -> dict[str, int]:
        """The answers, as they are written, with their values."""
        return {str(value): value for value in range(self.low, self.high + 1)}

    @property
    def is_told_by_one_token(self) -> bool:
        """Whether the first token of an answer tells it: no answer is the beginning of another,
        as 1 is of 10."""
        return self.high < 10

    def value(self, text: str) -> int | None:
        """Return the value of an answer, also in full-width digits; None if it is not on the
        scale."""
        return self.labels.get(plain_digits(text).strip())


def plain_digits(text: str) -> str:
    """Return a text with full-width digits, as in Japanese, replaced by plain ones."""
    return text.translate(_FULL_WIDTH)
