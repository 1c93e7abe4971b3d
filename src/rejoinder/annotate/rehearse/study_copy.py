"""A copy of a study for a rehearsal: its files in a temporary folder, and an empty database."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from rejoinder.annotate.database import Database
from rejoinder.annotate.study import STUDY_FILE, Study
from rejoinder.errors import UsageError
from rejoinder.files.checked import inside
from rejoinder.files.paths import check_new_folder


@contextmanager
def copied_study(study: Study, keep: Path | None) -> Iterator[Path]:
    """Copy the files of a study, without its database, to a folder that is deleted at the end,
    or to the new folder ``keep``."""
    settings = study.settings
    files = [
        *(STUDY_FILE, settings.items, settings.instructions, settings.consent),
        *(settings.training.training, settings.training.test),
    ]
    with ExitStack() as stack:
        if keep is None:
            temporary = tempfile.TemporaryDirectory(prefix="rejoinder-rehearsal-")
            folder = Path(stack.enter_context(temporary))
        else:
            check_new_folder(keep)
            folder = keep
        for file in filter(None, files):
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(inside(study.folder, file), target)
        yield folder


@contextmanager
def new_database(address: str | None) -> Iterator[str | None]:
    """Create an empty database beside the given one, and delete it at the end.

    None stands for SQLite in the study's folder, which is a copy already.
    """
    if address is None:
        yield None
        return
    database = Database(address)
    engine = database.engine.execution_options(isolation_level="AUTOCOMMIT")
    name = f"rejoinder_rehearsal_{secrets.token_hex(6)}"
    try:
        with database.explained(), engine.connect() as connection:
            try:
                connection.execute(text(f"CREATE DATABASE {name}"))
            except DBAPIError as error:
                raise UsageError(
                    f"a rehearsal needs a database of its own: {str(error.orig).strip()}"
                ) from None
        try:
            yield make_url(address).set(database=name).render_as_string(hide_password=False)
        finally:
            with engine.connect() as connection:
                connection.execute(text(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"))
    finally:
        database.close()
