"""Add answers of other programs to a study, as if people had given them here.

Items and people are matched by id and by name. An answer that a person has given already, in this
study or in an earlier import, is not added twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from rejoinder.annotate.answering import COUNTED
from rejoinder.annotate.dealing import ANSWERED, WORK, new_id, task_row
from rejoinder.annotate.imports.label_studio import read_label_studio
from rejoinder.annotate.imports.potato import read_potato
from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.annotate.schema import answers, leases, names, people, tasks
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import ImportedTask
from rejoinder.errors import DataError, UsageError
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

POTATO, LABEL_STUDIO = "potato", "label-studio"


def import_files(
    store: Store,
    paths: Sequence[str],
    format: str,
    labels: Mapping[str, Any],
    item_field: str | None = None,
    pair_fields: tuple[str, str] | None = None,
    dimensions: Sequence[str] = (),
) -> dict[str, Any]:
    """Add the answers of exported files and return what was added (``ImportResult``)."""
    _check(format, item_field, pair_fields)
    options: dict[str, Any] = {"labels": labels, "dimensions": list(dimensions) or None}
    if format == LABEL_STUDIO:
        options |= {"item": item_field, "pair": pair_fields}
    reader: Any = read_potato if format == POTATO else read_label_studio
    unread: Counter[str] = Counter()
    read: dict[str, list[ImportedAnswer]] = {}
    for path in paths:
        for answer in reader(path, unread=unread, **options):
            read.setdefault(answer.person, []).append(answer)
    made = {name: store.kind.imported(own, unread) for name, own in read.items()}
    unread = +unread  # without reasons that never applied
    if not any(made.values()):
        left_out = "; ".join(f"{count:,} {reason}" for reason, count in unread.items())
        raise DataError(f"no answer fits the study: {left_out}", path=paths[0])
    added = repeated = 0
    with store.database.writing() as connection:
        for name, own in made.items():
            person = _person(store, connection, name)
            for task in own:
                if _add(store, connection, person, task):
                    added += 1
                else:
                    repeated += 1
    return {
        "people": sum(bool(own) for own in made.values()),
        "answers": added,
        "repeated": repeated,
        "unknown": dict(unread),
    }


def _check(format: str, item_field: str | None, pair_fields: tuple[str, str] | None) -> None:
    if format not in (POTATO, LABEL_STUDIO):
        known = did_you_mean(format, [POTATO, LABEL_STUDIO])
        raise UsageError(f"{option('format', format)}: {known}")
    if format == POTATO and (item_field or pair_fields):
        raise UsageError(
            f"{option('item_field')} and {option('pair_fields')} are for Label Studio; Potato has"
            " an id for each of its instances"
        )


def _person(store: Store, connection: Connection, name: str) -> int:
    """Return the person of this name, who is added if the study has none."""
    known = connection.scalar(select(names.c.person).where(names.c.name == name))
    return int(known) if known is not None else store.add_person(connection, name)[0]


def _add(store: Store, connection: Connection, person: int, imported: ImportedTask) -> bool:
    """Add an answer; False if the person has answered the task already."""
    task = _task(store, connection, imported)
    had = connection.scalar(
        select(leases.c.id).where(leases.c.task == task, leases.c.person == person)
    )
    if had is not None:
        return False
    now = store.clock.now() if imported.time is None else imported.time.timestamp()
    lease = connection.execute(
        insert(leases).values(
            code=f"imported-{task}-{person}",
            task=task,
            person=person,
            state=ANSWERED,
            view=imported.view,
            issued=now,
            expires=now,
        )
    )
    connection.execute(
        insert(answers).values(
            lease=new_id(lease),
            task=task,
            person=person,
            phase=WORK,
            state=COUNTED,
            value=imported.value,
            seconds=imported.seconds or 0.0,
            received=now,
            flags=["imported"],
        )
    )
    connection.execute(
        update(tasks)
        .where(tasks.c.id == task)
        .values(taken=tasks.c.taken + 1, answers=tasks.c.answers + 1)
    )
    connection.execute(
        update(people).where(people.c.id == person).values(answers=people.c.answers + 1)
    )
    return True


def _task(store: Store, connection: Connection, imported: ImportedTask) -> int:
    """Return the task of an imported answer; a planned pair is added if nobody was asked it."""
    known = connection.scalar(select(tasks.c.id).where(tasks.c.key == imported.task.key))
    if known is not None:
        return int(known)
    row = task_row(imported.task, WORK, store.settings.answers_per_task, 0.0)
    return new_id(connection.execute(insert(tasks).values(**row)))
