"""Templates of the papers' studies: list them, describe them, make a study folder from one.

Each template is a folder in ``templates/``:

- ``study.toml``: the settings, with a comment on each; its texts are slots such as ``{{title}}``
- ``about.toml``: the paper, and which training round of ``templates/shared/training/`` it uses
- ``en.toml``, ``ja.toml``, ``zh.toml``: the texts, and a summary for the list of templates
- ``instructions.en.md``, …: what people read before they begin
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rejoinder.annotate.settings_file import (
    Path_,
    Problem,
    convert_table,
    further_problems,
    setting_name,
)
from rejoinder.annotate.study import LANGUAGES, STUDY_FILE, Study, StudySettings, setting_problems
from rejoinder.annotate.tasks import kind_of
from rejoinder.annotate.template_text import (
    change_settings,
    fill,
    include,
    setting_lines,
    setting_path,
    toml_value,
)
from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import ItemFile, OnNote, read_items
from rejoinder.files.jsonl import UniqueIds, write_jsonl_file
from rejoinder.files.output import whole_folder
from rejoinder.files.paths import AnyPath, check_new_folder
from rejoinder.items import Item, ItemReader
from rejoinder.spec import did_you_mean
from rejoinder.text.languages import language as text_language_of

if TYPE_CHECKING:
    from rejoinder.annotate.tasks.kind import Kind
    from rejoinder.files.columns import Columns

FILL_IN = "[[", "]]"
"""Enclose what the researcher has to fill in, in the consent text."""
CONSENT_FILE, TRAINING_FILE = "consent.md", "training.jsonl"
FIXED = {
    "kind": "each template has its kind",
    "items": "the items are copied to items.jsonl",
    "instructions": "edit instructions.md in the study folder",
    "consent": "ask for the consent text instead",
    "language": "choose the language instead",
    "text_language": "choose the language of the texts instead",
    "training.training": "ask for the training round instead",
    "training.test": "add the file to the study folder, then name it in study.toml",
}
"""Settings that can't be overridden, because they belong to the files of the new folder."""


class Description(NamedTuple):
    """What a template is for."""

    title: str
    """Title of the study, as people see it."""
    kind: str
    summary: str
    """One sentence for the researcher."""
    paper: str
    """Authors, year and section."""


@dataclass(frozen=True)
class NewStudy:
    """A study folder that was made from a template."""

    folder: Path
    template: str
    kind: str
    items: int
    contexts: int
    files: list[str]
    to_fill_in: int
    """Places in the consent text that the researcher has to fill in."""


def to_fill_in(text: str) -> int:
    """Return how many places of a consent text the researcher still has to fill in."""
    return text.count(FILL_IN[0])


def names() -> list[str]:
    """Return the names of all templates."""
    return sorted(each.name for each in _folder().iterdir() if (each / STUDY_FILE).is_file())


def describe(name: str, language: str = "en") -> Description:
    """Return title, kind, summary and paper of a template."""
    _check(name, language)
    texts = _texts(name, language)
    settings = tomllib.loads(_render(name, language, language, consent=False, training=False))
    return Description(texts["title"], settings["kind"], texts["summary"], _about(name)["paper"])


def write_study(
    name: str,
    folder: AnyPath,
    items_path: AnyPath,
    language: str = "en",
    text_language: str | None = None,
    *,
    consent: bool = False,
    training: bool = False,
    overrides: Mapping[str, Any] | None = None,
    columns: Columns | None = None,
    on_note: OnNote | None = None,
) -> NewStudy:
    """Make a study folder from a template; it appears whole or not at all.

    The items are copied as JSON lines. ``text_language`` is the language of the dialogues, by
    default that of the pages. ``overrides`` are settings by name, such as
    ``{"answers_per_task": 3, "people.sign_up": "open"}``.
    """
    _check(name, language, text_language)
    text = _render(name, language, text_language or language, consent=consent, training=training)
    text, settings = _changed(name, text, overrides or {})
    if (Path(folder) / STUDY_FILE).exists():
        raise UsageError(f"{folder}: is a study already; choose another name, or remove it first")
    check_new_folder(folder)
    items = _read(items_path, settings, columns, on_note)
    files = {STUDY_FILE: text, settings.instructions: _instructions(name, language)}
    if consent:
        files[CONSENT_FILE] = _shared("consent", f"{language}.md")
    if training:
        files[TRAINING_FILE] = _training(name, language)
    with whole_folder(folder) as hidden:
        for file, content in files.items():
            (hidden / file).write_bytes(content.encode())
        write_jsonl_file(hidden / settings.items, items)
        kind: Kind[Any] = kind_of(settings.kind)(Study(hidden, settings))
        if problems := kind.item_problems(items):
            raise DataError(
                f"the items do not fit the template {name}: {'; '.join(problems)}",
                path=str(items_path),
            )
        if training:
            _check_training(kind, hidden / TRAINING_FILE)
    if on_note is not None and not any(item.context for item in items):
        on_note("no item has a context: people will see the replies without a conversation")
    return NewStudy(
        Path(folder),
        name,
        settings.kind,
        len(items),
        len({item.group for item in items}),
        sorted([*files, settings.items]),
        to_fill_in(files.get(CONSENT_FILE, "")),
    )


def _check(name: str, language: str, text_language: str | None = None) -> None:
    """Report an unknown template and unknown languages, all at once."""
    problems = []
    if name not in names():
        problems.append(f"unknown template '{name}': {did_you_mean(name, names())}")
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        problems.append(f"there are no pages in the language '{language}'; choose one of {known}")
    if text_language is not None:
        try:
            text_language_of(text_language)
        except UsageError as error:
            problems.append(str(error))
    if problems:
        raise UsageError(*problems)


def _changed(name: str, text: str, overrides: Mapping[str, Any]) -> tuple[str, StudySettings]:
    """Return text and settings with other values; all that is wrong is reported at once."""
    numbers = setting_lines(text)
    known = {setting_name(path): path for path in numbers}
    problems = []
    changes: list[tuple[Path_, Any]] = []
    for key, value in overrides.items():
        path = setting_path(key)
        if path not in numbers:
            problems.append(
                f"{key}: the template {name} has no such setting: {did_you_mean(key, known)}"
            )
        elif (fixed := FIXED.get(setting_name(path))) is not None:
            problems.append(f"{key}: can't be changed here; {fixed}")
        elif problem := _unwritable(value):
            problems.append(f"{key}: {problem}")
        else:
            changes.append((path, value))
    text = change_settings(text, changes)
    found: list[Problem] = []
    settings = convert_table(tomllib.loads(text), StudySettings, (), found)
    if settings is not None:
        found += further_problems(found, setting_problems(settings))
    problems += [f"{setting_name(path)}: {message}" for path, message in found]
    if problems or settings is None:
        raise UsageError(*problems)
    return text, settings


def _unwritable(value: Any) -> str | None:
    """Return why a value can't be written as TOML; None if it can."""
    try:
        toml_value(value)
    except TypeError as error:
        return str(error)
    except UnicodeEncodeError:
        return "the text is not valid Unicode"
    return None


def _read(
    path: AnyPath, settings: StudySettings, columns: Columns | None, on_note: OnNote | None
) -> list[Item]:
    """Return the items of a file; where people judge no replies, contexts without them will do."""
    if settings.kind not in ("write", "comprehension"):
        return list(read_items(path, columns, on_note))
    file = ItemFile(path, columns, on_note, needed=("context",))
    reader, ids = ItemReader(), UniqueIds(file)
    found = []
    for line, item in file.decode(lambda each: reader.item({"response": ""} | each)):
        ids.add(line, item.id)
        found.append(item)
    ids.check()
    if not found:
        raise file.wrong(None, "the file is empty; expected contexts, one a line")
    return found


def _check_training(kind: Kind[Any], path: Path) -> None:
    """Refuse a training round that does not fit settings which were overridden."""
    try:
        kind.known_tasks(str(path))
    except DataError:
        raise UsageError(
            "the training round of this template does not fit the changed settings; make the study"
            " without it, and add a training.jsonl of your own"
        ) from None


def _render(name: str, language: str, text_language: str, *, consent: bool, training: bool) -> str:
    """Return the study.toml of a template in a language."""
    values = {
        **_texts(name, language),
        "language": language,
        "text_language": text_language,
        "consent": CONSENT_FILE if consent else "",
        "training": TRAINING_FILE if training else "",
    }
    return fill(include(_file(name, STUDY_FILE), _shared), values)


def _texts(name: str, language: str) -> dict[str, Any]:
    return tomllib.loads(_file(name, f"{language}.toml"))


def _about(name: str) -> dict[str, str]:
    return tomllib.loads(_file(name, "about.toml"))


def _instructions(name: str, language: str) -> str:
    return _file(name, f"instructions.{language}.md")


def _training(name: str, language: str) -> str:
    return _shared("training", f"{_about(name)['training']}.{language}.jsonl")


def _shared(*parts: str) -> str:
    return _file("shared", *parts)


def _file(*parts: str) -> str:
    return _folder().joinpath(*parts).read_text("utf-8")


@cache
def _folder() -> Traversable:
    return resources.files("rejoinder.annotate") / "templates"
