"""Read the file of a leaderboard: its judged sets, and what is known of its metrics.

    title = "Metrics on judged sets"

    [[sets]]
    name = "convai2"
    label = "ConvAI2"
    items = "convai2.jsonl"
    scores = ["convai2-scores.jsonl", "convai2-of-a-colleague.jsonl"]
    costs = ["convai2-costs.json"]

    [[sets]]
    name = "dstc7"
    items = "dstc7.jsonl"
    scores = ["dstc7-scores.jsonl"]
    without = ["human"]
    chosen_on = true

    [[metrics]]
    name = "colleague"
    about = "A colleague's judge."
    needs = "a server"
    fitted_to = ["convai2"]

Paths are relative to the folder of the leaderboard. On a set with ``chosen_on``, settings of
metrics were chosen, so its figures are shown apart. Metrics have the names that they have in the
scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import read_toml
from rejoinder.files.paths import AnyPath
from rejoinder.spec import did_you_mean


class JudgedSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Items that people rated, and files with scores of them."""

    name: str
    items: str
    scores: list[str]
    costs: list[str] = []
    """As ``score --costs`` writes them."""
    label: str = ""
    without: list[str] = []
    """Systems whose replies are left out."""
    chosen_on: bool = False
    """Settings of metrics were chosen on this set."""

    @property
    def title(self) -> str:
        return self.label or self.name


class MetricNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a metric besides its scores."""

    name: str
    about: str = ""
    needs: str = ""
    trained_on: str = ""
    fitted_to: list[str] | None = None
    """Sets whose ratings it was fitted to."""
    chosen_on: list[str] = []
    """Sets on which its settings were chosen."""
    seconds: float | None = None
    """For 1,000 replies, if no costs are measured."""
    lower_is_better: bool = False


class BoardFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A leaderboard: judged sets with files of scores, and notes on metrics."""

    sets: list[JudgedSet]
    title: str = "Leaderboard"
    metrics: list[MetricNote] = []

    def note(self, metric: str) -> MetricNote:
        """Return what is known of a metric."""
        return next((note for note in self.metrics if note.name == metric), MetricNote(metric))


def read_board(path: AnyPath) -> BoardFile:
    """Read the file of a leaderboard; a DataError names all problems."""
    board: BoardFile = read_toml(path, BoardFile)
    problems = list(_problems(board))
    if problems:
        raise DataError("; ".join(problems), path=str(path))
    return board


def _problems(board: BoardFile) -> Iterable[str]:
    names = [each.name for each in board.sets]
    if not names:
        yield "no judged set: add [[sets]] with name, items and scores"
    yield from (f"two sets are named '{name}'" for name in _repeated(names))
    yield from (
        f"two entries of [[metrics]] describe '{name}'"
        for name in _repeated(note.name for note in board.metrics)
    )
    for each in board.sets:
        if not each.scores:
            yield f"set '{each.name}' has no scores: name at least one file"
    for note in board.metrics:
        for name in [*(note.fitted_to or ()), *note.chosen_on]:
            if name not in names:
                yield f"metric '{note.name}': no set is named '{name}': {did_you_mean(name, names)}"
        if note.seconds is not None and note.seconds < 0:
            yield f"metric '{note.name}': seconds is {note.seconds:g}; expected 0 or more"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
