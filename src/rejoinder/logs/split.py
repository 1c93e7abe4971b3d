"""Split pairs into train, validation and test without dividing a dialogue.

By dialogue: a hash of the dialogue and the seed decides, so a dialogue keeps its split when the
corpus grows. By time: the dialogue's first post decides, so that an evaluator can be trained on one
year and tested on another.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

NAMES = ("train", "validation", "test")


@dataclass(frozen=True)
class Split:
    """``shares`` of train, validation and test, or one or two ``dates`` between them (in UTC,
    unless they have a time zone)."""

    shares: tuple[float, ...] = (0.9, 0.05, 0.05)
    dates: tuple[datetime, ...] = ()
    seed: int = 12345

    def __post_init__(self) -> None:
        if len(self.shares) != 3 or min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ValueError("shares are three numbers that add up to 1, such as 0.9,0.05,0.05")
        object.__setattr__(self, "dates", tuple(map(_in_utc, self.dates)))
        if len(self.dates) > 2 or list(self.dates) != sorted(set(self.dates)):
            raise ValueError("give one or two dates, the earlier first")

    def sql(self, pairs: str) -> str:
        """Return the query that adds the column ``split`` to a table with dialogue_id and time."""
        if self.dates:
            return f"SELECT p.*, {self._by_time()} AS split FROM {pairs} p"
        return f"SELECT p.*, {self._by_dialogue()} AS split FROM {pairs} p"

    def _by_time(self) -> str:
        names = ("train", "test") if len(self.dates) == 1 else NAMES
        first = "MIN(p.time) OVER (PARTITION BY p.dialogue_id)"
        cases = "".join(
            f" WHEN {first} < TIMESTAMP '{date.isoformat(' ', 'seconds')}' THEN '{name}'"
            for date, name in zip(self.dates, names, strict=False)
        )
        return f"CASE WHEN p.time IS NULL THEN 'train'{cases} ELSE '{names[-1]}' END"

    def _by_dialogue(self) -> str:
        """Compare hexadecimal digits of a hash as text: all engines agree on that."""
        digits = f"substr(md5(concat(p.dialogue_id, ':{self.seed}')), 1, 8)"
        train = self.shares[0]
        bounds = [(train, "train"), (train + self.shares[1], "validation")]
        cases = "".join(
            f" WHEN {digits} < '{_hex(bound)}' THEN '{name}'" for bound, name in bounds if bound > 0
        )
        return f"CASE{cases} ELSE 'test' END" if cases else "'test'"


def _hex(share: float) -> str:
    """Return a share of all 8-digit hexadecimal numbers; past the last one for a share of 1."""
    number = round(share * 2**32)
    return f"{number:08x}" if number < 2**32 else "g"


def _in_utc(date: datetime) -> datetime:
    """Return the time in UTC, without its time zone."""
    if date.tzinfo is None:
        return date
    try:
        return date.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError(f"{date} is not between the years 1 and 9999 in UTC") from None


def _sql_time(date: datetime) -> str:
    return date.isoformat(" ", "seconds")
