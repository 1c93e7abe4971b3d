"""Follow-ups: what somebody might say after a good, or after a bad, reply.

A file names qualities, each with good and bad follow-ups; one of both lists may be missing.

    [relevant]
    good = ["That answers my question."]
    bad = ["That's not what I asked.", "What does that have to do with it?"]
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import read_toml
from rejoinder.files.paths import expand_user, is_file

FOLDER = Path(__file__).parent / "followups"
MAX_TEXTS = 1000


@dataclass(frozen=True)
class Quality:
    """A quality of replies, and what shows it."""

    name: str
    good: tuple[str, ...]
    bad: tuple[str, ...]

    @property
    def texts(self) -> tuple[str, ...]:
        """All follow-ups, the good ones first."""
        return self.good + self.bad


@dataclass(frozen=True)
class FollowUps:
    """The content of a file."""

    name: str
    qualities: tuple[Quality, ...]

    @property
    def identity(self) -> str:
        """The name and a digest of the content, for signatures."""
        content = repr(self.qualities).encode("utf-8", "surrogatepass")
        return f"{self.name}@{blake2b(content, digest_size=6).hexdigest()}"


def packaged() -> list[str]:
    """Return the names of the files of this project: the codes of their languages."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


@lru_cache(maxsize=8)
def read_followups(name: str) -> FollowUps:
    """Read a packaged file by its name, or a file of the user; all mistakes are told at once."""
    path = FOLDER / f"{name}.toml" if name in packaged() else expand_user(name)
    if not is_file(path):
        raise UsageError(f"followups={name} is neither a file nor one of {', '.join(packaged())}")
    content: dict[str, Any] = read_toml(path)
    problems: list[str] = []
    qualities = []
    for quality, lists in content.items():
        table = lists if isinstance(lists, dict) else {}
        if not isinstance(lists, dict) or not lists or set(lists) - {"good", "bad"}:
            problems.append(f"[{quality}] must have good = […] or bad = […], and nothing else")
        texts = {key: table.get(key, []) for key in ("good", "bad")}
        for key, some in texts.items():
            is_list = isinstance(some, list)
            if not is_list or not all(isinstance(t, str) and t.strip() for t in some):
                problems.append(f"[{quality}] {key} is not a list of texts that are not blank")
                texts[key] = []
        if len(texts["good"]) + len(texts["bad"]) == 0 and table:
            problems.append(f"[{quality}] has no follow-ups")
        qualities.append(Quality(quality, tuple(texts["good"]), tuple(texts["bad"])))
    if not content:
        problems.append("it names no quality such as [relevant]")
    if sum(len(each.texts) for each in qualities) > MAX_TEXTS:
        problems.append(f"it has more than {MAX_TEXTS:,} follow-ups")
    if problems:
        raise DataError("; ".join(dict.fromkeys(problems)), path=str(path))
    return FollowUps(path.stem, tuple(qualities))
