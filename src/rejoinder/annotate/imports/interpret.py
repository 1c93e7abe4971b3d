"""Turn the answers of an export into numbers and winners, the same way for every program.

A reader says what it found under each name: a number, the text of a label, which reply of a pair
is better, or a kind of answer that is no rating. What a label means is for the user to say.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isfinite
from typing import Literal

from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.errors import DataError, UsageError
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

Side = Literal["a", "b", "tie"]
SIDES: tuple[Side, ...] = ("a", "b", "tie")
WINNER = "winner"

Labels = Mapping[str, float | Side | None]
"""What each label means: a number, which reply is better, or None to leave the answer out."""


@dataclass(frozen=True)
class Label:
    """A label that a person chose."""

    text: str


@dataclass(frozen=True)
class Winner:
    """Which reply of a pair a person chose."""

    side: Side


@dataclass(frozen=True)
class Other:
    """An answer that is neither a number nor a single choice."""

    kind: str


Given = float | Label | Winner | Other


@dataclass
class RawAnswer:
    """An answer as it stands in an export, with its place for error messages."""

    path: str
    person: str
    item: str
    given: dict[str, Given]
    line: int | None = None
    place: str = ""
    """Where in the file, if not in a line of its own: ``task 3, annotation 7``."""
    seconds: float | None = None
    time: datetime | None = None
    items: tuple[str, str] | None = None

    def wrong(self, message: str) -> DataError:
        place = f"{self.place}: " if self.place else ""
        return DataError(place + message, path=self.path, line=self.line)

    def number(self, name: str, value: object) -> float:
        """Return a value that must be a number."""
        found = plain_number(value)
        if found is None:
            raise self.wrong(f"{name} is {value!r}; expected a number")
        return found


@dataclass
class Meanings:
    """What the user said about labels and dimensions."""

    labels: Labels = field(default_factory=dict)
    dimensions: Collection[str] | None = None
    """Read these only; None reads all."""

    def __post_init__(self) -> None:
        wrong = [
            f"the label '{label}' means {meaning!r}; expected a number, 'a', 'b', 'tie' or None"
            for label, meaning in self.labels.items()
            if not (meaning is None or meaning in SIDES or _is_number(meaning))
        ]
        if isinstance(self.dimensions, str) or self.dimensions in ([], (), set()):
            wrong.append(f"the dimensions are {self.dimensions!r}; expected a list of names")
        if wrong:
            raise UsageError(*wrong)

    def knows(self, label: str) -> bool:
        return label in self.labels or plain_number(label) is not None

    def of(self, label: str) -> float | Side | None:
        """Return what a known label means; a label that is a number means that number."""
        meaning = self.labels.get(label, plain_number(label))
        return float(meaning) if isinstance(meaning, int) else meaning


def plain_number(value: object) -> float | None:
    """Return the number that a value or its text is; None if it is none.

    >>> plain_number("4"), plain_number(2.5), plain_number("four"), plain_number("nan")
    (4.0, 2.5, None, None)
    """
    if isinstance(value, str) and "_" not in value:
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if _is_number(value) else None  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def interpret(
    answers: Sequence[RawAnswer], meanings: Meanings, unread: Counter[str], path: str
) -> Iterator[ImportedAnswer]:
    """Yield the answers with numbers and winners, and count in ``unread`` what has neither.

    A name whose labels all have no meaning is left out and counted. One with a label that has a
    meaning is a rating, so that each of its labels must have one.
    """
    found = dict.fromkeys(name for answer in answers for name in answer.given)
    for name in meanings.dimensions or ():
        if name not in found:
            raise DataError(f"no answer has '{name}'; {did_you_mean(name, found)}", path=path)
    rated = _rated_by_label(answers, meanings)
    imported = 0
    for answer in answers:
        values = _values(answer, meanings, rated, unread)
        if values:
            imported += 1
            yield ImportedAnswer(
                person=answer.person,
                item=answer.item,
                values=values,
                seconds=answer.seconds,
                time=answer.time,
                items=answer.items,
            )
        elif not answer.given:
            unread["empty answers"] += 1
    if not imported:
        left_out = ", ".join(f"{name}: {count:,}" for name, count in sorted(unread.items()))
        raise DataError(
            f"no rating and no choice between two replies; left out: {left_out or 'nothing'};"
            f" if labels stand for numbers: {option('labels', {'Very appropriate': 5})}",
            path=path,
        )


def _rated_by_label(answers: Sequence[RawAnswer], meanings: Meanings) -> set[str]:
    """Return the names whose labels must have a meaning."""
    labels: defaultdict[str, set[str]] = defaultdict(set)
    for answer in answers:
        for name, given in answer.given.items():
            if isinstance(given, Label):
                labels[name].add(given.text)
    wanted = set(meanings.dimensions or ())
    return {n for n, texts in labels.items() if n in wanted or any(map(meanings.knows, texts))}


def _values(
    answer: RawAnswer, meanings: Meanings, rated: set[str], unread: Counter[str]
) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    sources: dict[str, str] = {}
    for name, given in answer.given.items():
        if meanings.dimensions is not None and name not in meanings.dimensions:
            continue
        if isinstance(given, Other):
            unread[f"{name} ({given.kind})"] += 1
            continue
        if isinstance(given, Label):
            if name not in rated:
                unread[f"{name} (labels without a meaning)"] += 1
                continue
            if not meanings.knows(given.text):
                known = ", ".join(f"'{label}'" for label in meanings.labels)
                raise answer.wrong(
                    f"{name}: the label '{given.text}' has no meaning; expected a number, or a"
                    f" label of {option('labels')} ({known or 'none is given'})"
                )
            meaning = meanings.of(given.text)
            if meaning is None:
                unread[f"{name} (label '{given.text}')"] += 1
                continue
        else:
            meaning = given.side if isinstance(given, Winner) else given
        key = WINNER if isinstance(meaning, str) else name
        if key in values:
            raise answer.wrong(
                f"'{sources[key]}' and '{name}' both say which reply is better; expected one,"
                f" chosen with {option('dimensions')}"
            )
        values[key], sources[key] = meaning, name
    return values
