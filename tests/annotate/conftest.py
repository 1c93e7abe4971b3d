"""Databases for tests of studies: SQLite, and a real PostgreSQL server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url, text

from annotate.postgres import running_postgres
from annotate.rating_studies import OPENED

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def closed_databases() -> Iterator[None]:
    """Close the databases that the test opened."""
    yield
    while OPENED:
        OPENED.pop().close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server."""
    with running_postgres() as address:
        yield address


@pytest.fixture
def postgres_database(postgres: str) -> str:
    """The address of a new, empty PostgreSQL database."""
    name = f"study_{next(_numbers)}"
    url = make_url(postgres).set(drivername="postgresql+psycopg")
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return postgres.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """The address of a new database: None is SQLite in the study's folder."""
    if request.param == "sqlite":
        return None
    database: str = request.getfixturevalue("postgres_database")
    return database
