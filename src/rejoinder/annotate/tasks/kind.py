"""The interface of a kind of task.

A kind says which tasks a study consists of, what a person sees of a task, which answers are
accepted, and what is exported. Dealing out, storing, blindness, pages and statistics are written
once for all kinds.

Texts and ids of a task are in its ``content``; how one person sees it (the order of replies, the
sides of a pair, which words are masked) is in the ``view``, decided when the task is dealt out and
stored with the lease. A page gets nothing but what :meth:`Kind.page` returns: positions and texts,
no ids, systems or sources.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from sqlalchemy import func, select

from rejoinder.annotate.schema import tasks
from rejoinder.items import Item
from rejoinder.meta_evaluation.annotators import (
    AnnotatorAgreement,
    AnnotatorLimits,
    AnnotatorReview,
    UnreliableAnnotator,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from rejoinder.annotate.imports.record import ImportedAnswer
    from rejoinder.annotate.settings_file import Problem
    from rejoinder.annotate.study import Study, StudySettings

Options = TypeVar("Options", bound=msgspec.Struct)
"""The table of a kind in study.toml."""

Json = dict[str, Any]
Form = Mapping[str, str]
"""The fields of a form; a field that was sent several times has its first value."""


@dataclass(frozen=True)
class NewTask:
    """A task that a kind makes of the items."""

    key: str
    """Unique within the study, for example the id of the item."""
    context: int
    """Number of the context, for balance."""
    system: int
    """Number of the system, for balance; -1 if the task shows several."""
    content: Json
    wanted: int | None = None
    """Answers of a planned task; None: as many as the study wants for each."""


@dataclass(frozen=True)
class Known:
    """A task with an expected answer, for the training round and the entrance test."""

    content: Json
    expected: Any
    explanation: str


@dataclass(frozen=True)
class Refusal:
    """Why an answer is not accepted, for the person who gave it."""

    name: str
    """Name of the form's field that the message belongs to."""
    reason: str
    """Key of the message in the texts of the pages, such as ``too_short``."""
    values: Json = field(default_factory=dict)
    """Values that the message contains, such as the number of characters."""


@dataclass(frozen=True)
class Accepted:
    """An answer that can be stored."""

    value: Json
    flags: list[str] = field(default_factory=list)
    """What the researcher should know: ``pasted``, ``too_fast``, …"""


@dataclass(frozen=True)
class EarlierReply:
    """A reply that somebody has written in this study."""

    text: str
    is_own: bool
    """Whether the person who is answering now wrote it."""
    same_context: bool


EarlierReplies = Callable[[], list[EarlierReply]]
"""Reads all earlier replies to the context of the task, and the person's own to other contexts."""


@dataclass(frozen=True)
class StoredAnswer:
    """An answer with its task, as export and statistics read it."""

    person: str
    """The annotator's name or pseudonym."""
    key: str
    """Key of the task."""
    content: Json
    view: Json
    value: Json
    comment: str
    seconds: float
    received: float
    flags: list[str]


@dataclass(frozen=True)
class Export:
    """What people have answered, as the records of JSON Lines files."""

    what: str
    """What the records are: ``items``, ``pair answers`` or ``set ratings`` (docs/formats.md)."""
    records: list[Json]
    """What ``annotate export`` writes."""
    others: dict[str, list[Json]] = field(default_factory=dict)
    """Records of further files, each by a name that tells what it is for."""


@dataclass(frozen=True)
class ImportedTask:
    """An answer of another program, as an answer to a task of this study."""

    task: NewTask
    view: Json
    value: Json
    seconds: float | None
    time: datetime | None


class Review(Protocol):
    """Agreement of people, and who would be left out."""

    @property
    def agreement(self) -> AnnotatorAgreement: ...
    @property
    def unreliable(self) -> list[UnreliableAnnotator]: ...


class Kind(ABC, Generic[Options]):
    """A kind of task in a study."""

    name: ClassVar[str]
    template: ClassVar[str]
    """HTML template of the task, in web/templates/tasks/."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.settings: StudySettings = study.settings
        self.options: Options = study.settings.of_kind

    @classmethod
    @abstractmethod
    def setting_problems(cls, options: Options, settings: StudySettings) -> list[Problem]:
        """Return values of the kind's table that are out of range or contradict each other."""

    @abstractmethod
    def item_problems(self, items: Sequence[Item]) -> list[str]:
        """Return what the items lack for this kind, in words for the researcher."""

    @abstractmethod
    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        """Return the tasks of the study, in the order of the items."""

    def replies(self, value: Json) -> list[str]:
        """Return the replies that an answer consists of; [] if people write none."""
        return []

    def variants(self) -> list[int]:
        """Return how many of a task's people get each variant (such as a mask); [] if all get the
        same."""
        return []

    @abstractmethod
    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        """Decide how one person sees a task."""

    @abstractmethod
    def page(self, content: Json, view: Json) -> Json:
        """Return what the template shows; nothing else of the task reaches the browser."""

    @abstractmethod
    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        """Check a form and return the answer, or why it is refused.

        ``earlier`` reads the replies that people have written so far; only ``write`` calls it.
        """

    def next_task(
        self, connection: Connection, person: int, rng: np.random.Generator
    ) -> NewTask | None:
        """Return a task that is planned from the answers so far; None if all tasks are made when
        the study begins, or if there is nothing more to ask this person."""
        return None

    planned: ClassVar[bool] = False
    """Whether :meth:`next_task` makes the tasks."""

    @abstractmethod
    def known_tasks(self, path: str) -> list[Known]:
        """Read a file of tasks with expected answers."""

    @abstractmethod
    def is_expected(self, known: Json, value: Json) -> bool:
        """Return whether an answer to a task of the training round or test is as expected."""

    def expected(self, connection: Connection) -> tuple[int, int]:
        """Return how many tasks the study has, and how many answers are wanted in all."""
        row = connection.execute(
            select(func.count(), func.coalesce(func.sum(tasks.c.wanted), 0)).where(
                tasks.c.phase == "work"
            )
        ).one()
        return int(row[0]), int(row[1])

    def review(self, answers: Sequence[StoredAnswer], limits: AnnotatorLimits) -> Review | None:
        """Return the agreement of the people, and who would be left out; None if their answers
        cannot agree, because they write."""
        return AnnotatorReview.of(self.rated_items(answers), limits)

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        """Return which values of which fields of the form are right, for the page that people see
        after a task of the training round."""
        return {}

    @abstractmethod
    def rated_items(self, answers: Sequence[StoredAnswer]) -> list[Item]:
        """Return the items with the answers as ratings, for agreement and export."""

    def dimensions(self) -> list[str]:
        """Return the names of the questions among which ``export`` chooses; [] if there is one."""
        return []

    def imported(
        self, answers: Sequence[ImportedAnswer], unread: Counter[str]
    ) -> list[ImportedTask]:
        """Return one person's answers in another program as answers to tasks of this study.

        What does not belong to the study is counted in ``unread``, by reason.
        """
        unread[f"answers: a study of the kind {self.name} can't import any"] += len(answers)
        return []

    @abstractmethod
    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return what people have answered, in the formats that other verbs read.

        ``items`` are those of the study. ``dimension`` is one of :meth:`dimensions`, by default
        the first.
        """


def item_record(item: Item) -> Json:
    """Return an item as a line of an item file has it."""
    record: Json = msgspec.to_builtins(item)
    return record
