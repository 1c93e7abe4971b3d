"""``annotate``: studies in which people rate, write or compare replies in a browser."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError, missing_extra
from rejoinder.verbs.arguments import SEED, as_names, as_paths
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.results import FrameColumns, Result, TableResult, records_to_columns, to_plain
from rejoinder.wording import option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rejoinder.annotate.rehearse.outcome import Rehearsal
    from rejoinder.annotate.status import StudyStatus
    from rejoinder.annotate.store import Store
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath

DEFAULT_PORT = 8600
MAX_INVITED = 10_000


@dataclass(frozen=True)
class InitResult(Result):
    """The study that was made."""

    folder: Path
    template: str
    kind: str
    items: int
    tasks: int
    """0 if tasks are planned from the answers."""
    answers_per_task: int
    to_fill_in: int
    """Places in the consent text that the researcher has to fill in."""

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "folder": str(self.folder)}


@dataclass(frozen=True)
class TemplatesResult(TableResult):
    """The templates that studies can be made of. The frame has a row per template."""

    templates: list[dict[str, str]]

    def columns(self) -> FrameColumns:
        return records_to_columns(self.templates)

    def to_dict(self) -> dict[str, Any]:
        return {"templates": self.templates}


@dataclass(frozen=True)
class InviteResult(TableResult):
    """The secret links of the people who were invited. The frame has a row per person."""

    names: list[str]
    links: list[str]

    def columns(self) -> FrameColumns:
        return {"name": self.names, "link": self.links}

    def to_dict(self) -> dict[str, Any]:
        return {"links": self.links, "names": self.names}


@dataclass(frozen=True)
class StatusResult(TableResult):
    """Progress, people, agreement and ranking of a study. The frame has a row per person."""

    status: StudyStatus

    def columns(self) -> FrameColumns:
        return records_to_columns(to_plain(self.status.people))

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(self.status)
        return plain


@dataclass(frozen=True)
class ExportResult(TableResult):
    """What was exported. The frame has a row per answer."""

    kind: str
    records: list[dict[str, Any]]
    """Items, answers about pairs, or ratings of sets, depending on the kind of study."""
    content: str
    """What the records are: items, pair answers or set ratings."""
    others: dict[str, str]
    """Further files that were written beside the output, and what they are for."""
    answers: list[dict[str, Any]]
    """One record per person and task."""
    left_out: list[str]
    """People whose answers were left out."""
    notes: list[str]

    def columns(self) -> FrameColumns:
        return records_to_columns(self.answers)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "content": self.content,
            "others": self.others,
            "records": len(self.records),
            "answers": len(self.answers),
            "left_out": self.left_out,
            "notes": self.notes,
        }


@dataclass(frozen=True)
class ImportResult(Result):
    """What was imported."""

    people: int
    answers: int
    repeated: int
    """Answers that the study had already."""
    unknown: dict[str, int]
    """What could not be imported, by reason."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class RehearsalResult(TableResult):
    """What was planted in a rehearsal, and what came out. The frame has a row per person."""

    rehearsal: Rehearsal

    def columns(self) -> FrameColumns:
        return records_to_columns(to_plain(self.rehearsal.people))

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(self.rehearsal)
        return plain


@dataclass(frozen=True)
class ForgetResult(Result):
    """The person who was forgotten."""

    pseudonym: str
    answers_deleted: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@contextmanager
def needs_extra() -> Iterator[None]:
    """Explain which extra is missing, if SQLAlchemy or Starlette is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in ("sqlalchemy", "starlette", "uvicorn", "psycopg"):
            raise
        raise missing_extra("annotate", package, task="annotate") from None


@contextmanager
def opened(folder: AnyPath, database: str | None) -> Iterator[Store]:
    """Open a study and close it at the end."""
    with needs_extra():
        from rejoinder.annotate.store import Store

        store = Store.open(Path(folder), database)
    try:
        yield store
    finally:
        store.close()


def templates(language: str = "en") -> TemplatesResult:
    """List the templates: the studies of the papers."""
    with needs_extra():
        from rejoinder.annotate import study_templates

        return TemplatesResult(
            [
                {"name": name, **study_templates.describe(name, language)._asdict()}
                for name in study_templates.names()
            ]
        )


def init(
    folder: AnyPath,
    *,
    template: str,
    items: AnyPath,
    language: str = "en",
    text_language: str | None = None,
    consent: bool = False,
    training: bool = False,
    overrides: Mapping[str, Any] | None = None,
    columns: Columns | None = None,
    monitor: Monitor = SILENT,
) -> InitResult:
    """Make a study folder from a template and items.

    ``language`` is that of the pages (en, ja, zh), ``text_language`` that of the dialogues.
    ``consent`` adds a text that people must agree to, ``training`` a training round.
    ``overrides`` replace settings of the template, such as ``{"answers_per_task": 3}``.
    """
    with needs_extra():
        import numpy as np

        from rejoinder.annotate import study_templates
        from rejoinder.annotate.study import Study
        from rejoinder.annotate.tasks import kind_of

        made = study_templates.write_study(
            template,
            folder,
            items,
            language,
            text_language,
            consent=consent,
            training=training,
            overrides=overrides,
            columns=columns,
            on_note=monitor.note,
        )
        study = Study.read(made.folder)
        kind = kind_of(made.kind)(study)
        tasks = kind.tasks(study.items, np.random.default_rng(study.settings.seed))
    return InitResult(
        made.folder,
        template,
        made.kind,
        made.items,
        len(tasks),
        study.settings.answers_per_task,
        made.to_fill_in,
    )


def parse_overrides(settings: Sequence[str]) -> dict[str, Any]:
    """Parse ``KEY=VALUE`` settings; a value is TOML, or else a text.

    >>> parse_overrides(["answers_per_task=3", "title=Which is better?"])
    {'answers_per_task': 3, 'title': 'Which is better?'}
    """
    overrides: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not key or not equals:
            raise UsageError(f"{option('overrides', setting)}: expected KEY=VALUE")
        try:
            overrides[key] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            overrides[key] = value
    return overrides


def parse_labels(labels: Sequence[str]) -> dict[str, float | str]:
    """Parse ``TEXT=MEANING``, what the labels of a scale or of a comparison mean.

    >>> parse_labels(["Very good=5", "Both=tie"])
    {'Very good': 5.0, 'Both': 'tie'}
    """
    meanings: dict[str, float | str] = {}
    for label in labels:
        text, _, meaning = label.rpartition("=")
        try:
            meanings[text] = meaning if meaning in ("a", "b", "tie") else float(meaning)
        except ValueError:
            raise UsageError(
                f"{option('labels', label)}: expected TEXT=NUMBER, or a, b or tie"
            ) from None
    return meanings


def serve(
    folder: AnyPath,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    database: str | None = None,
    address: str | None = None,
    proxy: bool = False,
    on_ready: Callable[[str, str], None] | None = None,
) -> None:
    """Run the server of a study until it is interrupted.

    ``address`` is the public address, if it is not that of this machine. ``on_ready`` receives the
    study's address and the secret link of the researcher's page, which is new at every start;
    browsers that opened an earlier one stay signed in.
    """
    with opened(folder, database) as store, needs_extra():
        from rejoinder.annotate.study_templates import to_fill_in
        from rejoinder.annotate.web.serve import serve as run

        consent = store.settings.consent
        if consent and (places := to_fill_in(store.study.text(consent))):
            raise UsageError(
                f"{Path(folder) / consent}: {places} places are marked [[ ]]; fill them in before"
                " people read it"
            )

        def ready(base: str) -> None:
            store.set_address(base)
            token = store.secret("researcher", renew=True)
            if on_ready is not None:
                on_ready(base, f"{base}/researcher/{token}")

        run(store, host, port, ready, base_address=address, behind_proxy=proxy)


def invite(
    folder: AnyPath,
    *,
    count: int | None = None,
    names: str | Sequence[str] = (),
    database: str | None = None,
    address: str | None = None,
) -> InviteResult:
    """Add people to a study, by ``names`` or by number, and return their secret links."""
    from rejoinder.annotate.person_names import MAX_INVITED_NAME, clean_name

    given = as_names(names)
    cleaned = {name: clean_name(name, MAX_INVITED_NAME) for name in given}
    chosen = [name for each in given if (name := cleaned[each]) is not None]
    problems = []
    if (count is None) == (not given):
        problems.append("give either the number of people or their names")
    elif count is not None and not 1 <= count <= MAX_INVITED:
        problems.append(f"the number of people must be from 1 to {MAX_INVITED:,}, got {count:,}")
    problems += [f"the name {name!r} is given twice" for name in _repeated(chosen)]
    problems += [
        f"the name {name!r} cannot be used: expected 1 to {MAX_INVITED_NAME} printable characters"
        for name, usable in cleaned.items()
        if usable is None
    ]
    if problems:
        raise UsageError(*problems)
    with opened(folder, database) as store:
        if not chosen:
            chosen = store.new_names(count or 0)
        elif known := sorted(set(chosen) & set(store.labels().values())):
            raise UsageError(*(f"{name} has been invited already" for name in known))
        base = store.address(address)
        return InviteResult(chosen, [f"{base}/p/{token}" for token in store.invite(chosen)])


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def status(folder: AnyPath, *, database: str | None = None) -> StatusResult:
    """Return progress, people, agreement and ranking of a study."""
    with opened(folder, database) as store:
        from rejoinder.annotate.status import study_status

        return StatusResult(study_status(store))


def export(
    folder: AnyPath,
    *,
    output: AnyPath | None = None,
    raw: AnyPath | None = None,
    database: str | None = None,
    pseudonyms: bool = False,
    drop_unreliable: bool = False,
    drop_annotators: str | Sequence[str] = (),
    dimension: str | None = None,
) -> ExportResult:
    """Write the answers as other verbs read them, and on demand one row per person and task.

    ``output`` receives items with ratings, weighted references or written replies, answers about
    pairs, or ratings of sets, depending on the kind of study; ``raw`` all answers with times, as
    JSONL, CSV or Parquet. ``pseudonyms`` replace names. ``dimension`` chooses the ratings of a
    study with several dimensions.
    """
    with opened(folder, database) as store:
        from rejoinder.annotate.export import export_study

        return ExportResult(
            **export_study(
                store,
                output=output,
                raw=raw,
                pseudonyms=pseudonyms,
                drop_unreliable=drop_unreliable,
                drop_annotators=as_names(drop_annotators),
                dimension=dimension,
            )
        )


def import_answers(
    folder: AnyPath,
    files: AnyPath | Sequence[AnyPath],
    *,
    format: str,
    labels: Mapping[str, Any] | None = None,
    item_field: str | None = None,
    pair_fields: str | Sequence[str] = (),
    dimensions: str | Sequence[str] = (),
    database: str | None = None,
) -> ImportResult:
    """Add answers that people gave in Potato or Label Studio (``format``) to a study.

    ``labels`` gives the meaning of each label, where these programs store texts: a number, or
    ``a``, ``b`` or ``tie``. ``item_field`` is the field of Label Studio's tasks that holds the id
    of the item, ``pair_fields`` the two fields with the ids of a pair. ``dimensions`` are the
    questions of the other program that are imported, by default all.
    """
    with opened(folder, database) as store:
        from rejoinder.annotate.imports.add import import_files

        pair = as_names(pair_fields)
        if len(pair) not in (0, 2):
            raise UsageError(f"{option('pair_fields')}: expected two fields, got {len(pair)}")
        return ImportResult(
            **import_files(
                store,
                as_paths(files),
                format,
                labels or {},
                item_field,
                (pair[0], pair[1]) if pair else None,
                as_names(dimensions),
            )
        )


def rehearse(
    folder: AnyPath,
    *,
    people: int | None = None,
    careless: int | None = None,
    fast: int | None = None,
    pasting: int | None = None,
    seconds: float | None = None,
    seed: int = SEED,
    keep: AnyPath | None = None,
    database: str | None = None,
    monitor: Monitor = SILENT,
) -> RehearsalResult:
    """Let simulated people answer a copy of a study over HTTP, and compare what comes out with
    what they think.

    ``people`` is the number of all, of whom some are ``careless`` (they answer without reading),
    too ``fast``, or ``pasting`` what they should write. ``seconds`` is the median time of a careful
    answer. The study and its database are not changed: in PostgreSQL, the rehearsal creates a
    database of its own and deletes it at the end. ``keep`` is a new folder for the copy with its
    answers.
    """
    with needs_extra():
        from rejoinder.annotate.rehearse.run import rehearse as run

        with monitor.pieces("answers") as progress:
            return RehearsalResult(
                run(
                    Path(folder),
                    people=people,
                    careless=careless,
                    fast=fast,
                    pasting=pasting,
                    seconds=seconds,
                    seed=seed,
                    keep=None if keep is None else Path(keep),
                    database=database,
                    progress=progress,
                )
            )


def forget(
    folder: AnyPath, person: str, *, answers: bool = False, database: str | None = None
) -> ForgetResult:
    """Delete a person's name and link, and with ``answers`` their answers, too."""
    with opened(folder, database) as store:
        number = store.find_person(person)
        pseudonym = store.labels(named=False)[number]
        store.forget(number, answers_too=answers)
        return ForgetResult(pseudonym, answers)
