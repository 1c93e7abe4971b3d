"""A study: a folder with ``study.toml``, the items, the instructions and, by default, a database.

``study.toml`` says what people are asked, how many of them, and how. One of the tables ``[rate]``,
``[write]``, ``[compare]``, ``[diversity]`` and ``[comprehension]`` belongs to the kind of task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from rejoinder.annotate.settings_file import (
    Path_,
    Problem,
    SettingsFile,
    convert_table,
    further_problems,
)
from rejoinder.errors import DataError
from rejoinder.files.checked import inside, read_bytes
from rejoinder.files.item_file import read_items
from rejoinder.files.paths import file_digest, is_file, is_folder
from rejoinder.items import Item

STUDY_FILE = "study.toml"
DATABASE_FILE = "answers.sqlite"
KINDS = ("rate", "write", "compare", "diversity", "comprehension")
LANGUAGES = ("en", "ja", "zh")
"""Languages of the pages."""
MAX_TEXT_BYTES = 2**20

KindName = Literal["rate", "write", "compare", "diversity", "comprehension"]
LanguageName = Literal["en", "ja", "zh"]


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """One question about a reply, answered on a scale."""

    name: str
    """Name in the exported files, such as "appropriateness"."""
    question: str
    scale: list[int]
    """The values, from the worst to the best."""
    labels: list[str] = []
    """What the values mean; none, the two ends, or one for each value."""


class RateSettings(msgspec.Struct, frozen=True, kw_only=True):
    """People rate replies on scales."""

    dimensions: list[Dimension]
    layout: Literal["reply", "context"] = "reply"
    """A page with one reply, or with all replies of a context in random order."""
    replies: Literal["responses", "references", "original-collected"] = "responses"
    """What is rated: the responses of the items, their references, or of each context the first
    reference (original) and a randomly chosen other one (collected)."""
    distractors: int = 0
    """Replies from other contexts that are added to each context, to find careless people."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """A reply to write, with its allowed length in characters (both inclusive)."""

    count: int = 1
    min_characters: int = 2
    max_characters: int = 500


class Mask(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the people who reply to a context see it with some of its words masked."""

    share: float
    people: int


class WriteSettings(msgspec.Struct, frozen=True, kw_only=True):
    """People write several different replies to a context."""

    question: str
    slots: list[Slot]
    masks: list[Mask] = []
    """Without masks everybody sees the whole context."""
    max_similarity: float = 0.9
    """Replies that are more similar to an earlier one, the context or a reference are refused."""
    compare_with: Literal["own", "everyone"] = "everyone"
    """Whose earlier replies to the same context a new one is compared with."""


class CompareSettings(msgspec.Struct, frozen=True, kw_only=True):
    """People say which of two replies to a context is better."""

    question: str
    ties: bool = True
    planned: bool = True
    """Ask the most informative pairs; otherwise random ones."""
    share: float = 1.0
    """Stop a context when this share of its pairs has been asked, repeated ones counted once."""
    max_error: float = 0.0
    """Stop a context when the mean standard error of its winning rates is below this; 0: never."""
    repeated_share: float = 0.1
    """Share of the pairs that answers_per_task people judge, and at least two, to measure
    agreement; all others are judged by one."""


class DiversitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """People mark which replies of a set fit, then rate how different the fitting ones are."""

    fit_question: str
    question: str
    scale: list[int]
    labels: list[str] = []
    replies: int = 5
    """Replies of a system to a context that are shown; sets with fewer are refused."""
    at_most_fitting: bool = False
    """The scale counts different replies, so a rating must not exceed the fitting ones."""


class ComprehensionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """People rate how well an utterance is understood without its context."""

    question: str
    scale: list[int]
    labels: list[str] = []
    keep_from: int
    """Export keeps the utterances that all people rated this high or higher."""


class PeopleSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Who may take part, and how much everybody does."""

    sign_up: Literal["invited", "open", "platform"] = "invited"
    """invited: links of 'annotate invite' only; open: a public link; platform: a public link with
    the platform's own id in its address."""
    platform_parameter: str = "PROLIFIC_PID"
    """Parameter of the address that holds the platform's id of a person (MTurk: workerId)."""
    completion_code: str = ""
    """Shown after the last task of a batch; people enter it on the platform."""
    max_tasks: int = 0
    """Tasks that one person may do; 0: no limit."""
    max_people: int = 0
    """People who may sign up; 0: no limit."""


class QualitySettings(msgspec.Struct, frozen=True, kw_only=True):
    """What the researcher is told about people."""

    min_seconds: float = 1.0
    """Faster answers are noted as too fast."""
    min_kappa: float = 0.2
    """People whose kappa with the others is lower would be left out."""
    max_distractor: float = 0.25
    """People who rate distractors above this share of the other replies would be left out."""


QUALITY_RANGES = {"min_seconds": (0, 3600), "min_kappa": (-1, 1), "max_distractor": (0, 1)}
"""The lowest and the highest value of each setting of ``[quality]``."""


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Tasks with known answers before the first real one (``training.jsonl``, ``test.jsonl``)."""

    training: str = ""
    """File of the training round: after each task, people see the expected answer and why."""
    test: str = ""
    """File of the entrance test."""
    pass_share: float = 0.75
    """Share of the test's tasks that a person must answer as expected."""


class PlanSettings(msgspec.Struct, frozen=True, kw_only=True):
    """People rate a random choice of the replies, until a question is decided."""

    budget: int
    """Ratings to ask for at most; it may be raised later, which adds replies."""
    scores: str = ""
    """File of scores of all items, which make the intervals narrower; empty: none."""
    metrics: list[str] = []
    """Those of the scores that are used; empty: all."""
    question: Literal["", "mean", "difference", "ranking"] = ""
    """What is to be decided; empty: what fits the number of systems."""
    systems: list[str] = []
    """The systems in question; empty: all."""
    width: float = 0.0
    """Decided when the intervals are as narrow as this; 0: when they exclude 0."""
    uneven: float = 0.0
    """Share of the choice that goes by how far scores are apart; 0: all replies alike."""


class StudySettings(msgspec.Struct, frozen=True, kw_only=True):
    """study.toml."""

    kind: KindName
    title: str
    language: LanguageName = "en"
    """Language of the pages."""
    text_language: str = "en"
    """Language of the dialogues: its tokenizer splits words for masks."""
    items: str = "items.jsonl"
    instructions: str = "instructions.md"
    consent: str = ""
    """File with the text that people must agree to; empty: none."""
    answers_per_task: int = 1
    tasks_per_batch: int = 20
    lease_minutes: float = 30
    """A task that is not answered in this time is given to somebody else."""
    comments: bool = True
    """Whether people may add a comment to an answer."""
    seed: int = 12345
    people: PeopleSettings = PeopleSettings()
    quality: QualitySettings = QualitySettings()
    training: TrainingSettings = TrainingSettings()
    plan: PlanSettings | None = None
    """Without it, all replies are rated."""
    rate: RateSettings | None = None
    write: WriteSettings | None = None
    compare: CompareSettings | None = None
    diversity: DiversitySettings | None = None
    comprehension: ComprehensionSettings | None = None

    @property
    def of_kind(self) -> Any:
        """The table of the kind of task."""
        return getattr(self, self.kind)


@dataclass(frozen=True)
class Study:
    """A study folder, read and checked."""

    folder: Path
    settings: StudySettings

    @classmethod
    def read(cls, folder: Path) -> Study:
        """Read and check ``study.toml`` and the files that it names."""
        if not is_folder(folder):
            raise DataError(
                "is not a study folder; make one with 'rejoinder annotate init'", path=str(folder)
            )
        if not is_file(folder / STUDY_FILE):
            raise DataError(
                f"has no {STUDY_FILE}; make a study with 'rejoinder annotate init'",
                path=str(folder),
            )
        file = SettingsFile(folder / STUDY_FILE)
        problems: list[Problem] = []
        settings = convert_table(file.table, StudySettings, (), problems)
        if settings is None:
            file.check(problems)
        assert settings is not None
        study = cls(folder, settings)
        more = [*setting_problems(settings), *study.file_problems()]
        file.check(problems + further_problems(problems, more))
        return study

    def file_problems(self) -> list[Problem]:
        """Return the names of files that do not exist or are outside of the folder."""
        problems: list[Problem] = []
        named: list[tuple[Path_, str]] = [
            (("items",), self.settings.items),
            (("instructions",), self.settings.instructions),
            (("consent",), self.settings.consent),
            (("training", "training"), self.settings.training.training),
            (("training", "test"), self.settings.training.test),
            (("plan", "scores"), self.settings.plan.scores if self.settings.plan else ""),
        ]
        for path, name in named:
            if not name:
                continue
            try:
                if not is_file(inside(self.folder, name)):
                    problems.append((path, f"there is no file '{name}' in the study folder"))
            except DataError as error:
                problems.append((path, str(error)))
        return problems

    @cached_property
    def items(self) -> list[Item]:
        return list(read_items(str(inside(self.folder, self.settings.items))))

    @property
    def items_digest(self) -> str:
        """Digest of the items, which must not change while there are answers."""
        return file_digest(inside(self.folder, self.settings.items)).hex()

    def text(self, name: str) -> str:
        """Return the text of a file of the folder, such as the instructions."""
        path = inside(self.folder, name)
        try:
            return read_bytes(path, MAX_TEXT_BYTES).decode()
        except UnicodeDecodeError:
            raise DataError("the file is not UTF-8", path=str(path)) from None


def setting_problems(settings: StudySettings) -> list[Problem]:
    """Return contradictions between settings and values out of range."""
    problems: list[Problem] = []

    def check(wrong: bool, path: Path_, message: str) -> None:
        if wrong:
            problems.append((path, message))

    for kind in KINDS:
        table = getattr(settings, kind)
        if kind == settings.kind:
            check(table is None, (kind,), f"a study of the kind {kind} needs the table [{kind}]")
        else:
            check(
                table is not None,
                (kind,),
                f"the kind of this study is {settings.kind}: remove the table [{kind}]",
            )
    check(not settings.title.strip(), ("title",), "must not be empty")
    check(
        not 1 <= settings.answers_per_task <= 1000, ("answers_per_task",), "must be from 1 to 1000"
    )
    check(
        not 1 <= settings.tasks_per_batch <= 10_000, ("tasks_per_batch",), "must be from 1 to 10000"
    )
    check(
        not 0.01 <= settings.lease_minutes <= 43_200,
        ("lease_minutes",),
        "must be from 0.01 to 43200",
    )
    check(settings.seed < 0, ("seed",), "must not be negative")
    people, training = settings.people, settings.training
    check(
        people.sign_up == "platform" and not people.platform_parameter.isidentifier(),
        ("people", "platform_parameter"),
        "must be a name such as PROLIFIC_PID",
    )
    for name in ("max_tasks", "max_people"):
        check(getattr(people, name) < 0, ("people", name), "must not be negative")
    check(not 0 <= training.pass_share <= 1, ("training", "pass_share"), "must be from 0 to 1")
    for name, (lowest, highest) in QUALITY_RANGES.items():
        check(
            not lowest <= getattr(settings.quality, name) <= highest,
            ("quality", name),
            f"must be from {lowest} to {highest}",
        )
    if (plan := settings.plan) is not None:
        responses = settings.rate is not None and settings.rate.replies == "responses"
        check(not responses, ("plan",), "a plan is for studies in which replies are rated")
        check(plan.budget < 1, ("plan", "budget"), "must be at least 1")
        check(not 0 <= plan.width < math.inf, ("plan", "width"), "must be a number from 0")
        check(not 0 <= plan.uneven <= 0.9, ("plan", "uneven"), "must be from 0 to 0.9")
    if settings.of_kind is not None:
        from rejoinder.annotate.tasks import kind_of

        problems += kind_of(settings.kind).setting_problems(settings.of_kind, settings)
    return problems


def scale_problems(scale: list[int], labels: list[str], path: Path_) -> list[Problem]:
    """Return what is wrong with a scale and its labels."""
    problems: list[Problem] = []
    if not 2 <= len(scale) <= 101:
        problems.append(((*path, "scale"), "needs from 2 to 101 values"))
    elif sorted(set(scale)) != scale:
        problems.append(((*path, "scale"), "values must be different and in rising order"))
    if labels and len(labels) not in (2, len(scale)):
        problems.append(
            ((*path, "labels"), f"needs 2 labels (the two ends) or {len(scale)}, has {len(labels)}")
        )
    return problems


MAY_CHANGE = frozenset(
    {
        *("title", "instructions", "answers_per_task", "tasks_per_batch", "lease_minutes"),
        *("comments", "people", "quality", "consent"),
        *(
            "compare.share",
            "compare.max_error",
            "compare.repeated_share",
            "comprehension.keep_from",
            "plan.budget",
            "plan.width",
        ),
    }
)
"""Settings that may change while answers exist, each alone or with everything below it."""


def refused_changes(before: StudySettings, after: StudySettings) -> list[Problem]:
    """Return the settings that differ although answers exist, with the reason."""
    problems: list[Problem] = []
    _compare(msgspec.to_builtins(before), msgspec.to_builtins(after), (), problems)
    if after.answers_per_task < before.answers_per_task:
        problems.append(
            (
                ("answers_per_task",),
                f"cannot become less than {before.answers_per_task}: tasks may have that many"
                " answers already",
            )
        )
    return problems


def _compare(before: Any, after: Any, path: Path_, problems: list[Problem]) -> None:
    if ".".join(map(str, path)) in MAY_CHANGE or before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            _compare(before.get(key), after.get(key), (*path, key), problems)
        return
    if _are_tables(before) and _are_tables(after) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            _compare(old, new, (*path, number), problems)
        return
    problems.append(
        (
            path,
            f"was {before!r} when the first answer came in, now {after!r}: answers to different"
            " questions cannot be mixed; undo the change, or make a new study",
        )
    )


def _are_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
