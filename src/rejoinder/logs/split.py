"""Which pairs train, which validate, which test; a dialogue is never divided.

By dialogue: a hash of the dialogue and the seed decides, so a dialogue keeps its side when the
corpus grows. By time: the dialogue's first post decides, so that an evaluator can learn from
one year and be tried on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

NAMES = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """``shares`` of train, validation and test, or one or two ``dates`` between them."""

    shares: tuple[float, ...] = (0.9, 0.05, 0.05)
    dates: tuple[datetime, ...] = ()
    seed: int = 12345

    def __post_init__(self) -> None:
        if len(self.shares) != 3 or min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError("shares are three numbers that add up to 1, such as 0.9,0.05,0.05")
        if len(self.dates) > 2 or list(self.dates) != sorted(set(self.dates)):
            raise ValueError("give one or two dates, the earlier first")

    def sql(self, pairs: str) -> str:
        """The query that adds the column ``split`` to a table with dialogue_id and time."""
        if self.dates:
            return f"SELECT p.*, {self._by_time()} AS split FROM {pairs} p"
        return f"SELECT p.*, {self._by_dialogue()} AS split FROM {pairs} p"

    def _by_time(self) -> str:
        names = ("train", "test") if len(self.dates) == 1 else NAMES
        first = "MIN(p.time) OVER (PARTITION BY p.dialogue_id)"
        cases = "".join(
            f" WHEN {first} < TIMESTAMP '{date:%Y-%m-%d %H:%M:%S}' THEN '{name}'"
            for date, name in zip(self.dates, names, strict=False)
        )
        return f"CASE WHEN p.time IS NULL THEN 'train'{cases} ELSE '{names[-1]}' END"

    def _by_dialogue(self) -> str:
        """Hexadecimal digits of a hash, compared as text: the same on every engine."""
        drawn = f"substr(md5(concat(p.dialogue_id, ':{self.seed}')), 1, 8)"
        train = self.shares[0]
        bounds = [(train, "train"), (train + self.shares[1], "validation")]
        cases = "".join(
            f" WHEN {drawn} < '{_hex(bound)}' THEN '{name}'" for bound, name in bounds if bound > 0
        )
        return f"CASE{cases} ELSE 'test' END" if cases else "'test'"


def _hex(share: float) -> str:
    """A share of all 8-digit hexadecimal numbers; past the last one for a share of 1."""
    number = round(share * 2**32)
    return f"{number:08x}" if number < 2**32 else "g"
