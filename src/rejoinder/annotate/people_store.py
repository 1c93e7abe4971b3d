"""The people of a study: links, sessions, names, who is left out."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from rejoinder.annotate import schema
from rejoinder.annotate.answering import COUNTED
from rejoinder.annotate.clock import Clock
from rejoinder.annotate.database import Database
from rejoinder.annotate.dealing import EXPIRED, OPEN, WORK, give_back, new_id
from rejoinder.annotate.schema import answers, leases, names, people, sessions, tasks
from rejoinder.annotate.study import StudySettings
from rejoinder.errors import UsageError

EXCLUDED = "excluded"
"""State of a person, and of the answers of a person who was excluded."""
ACTIVE = "active"
MAX_SESSIONS = 20
"""Browsers of one person that stay signed in; a further one signs out the oldest."""


_SESSION = select(sessions.c.person).where(sessions.c.hash == bindparam("of_hash"))


class PeopleStore:
    """The part of the store that knows people."""

    database: Database
    settings: StudySettings
    clock: Clock

    def invite(self, people_names: Sequence[str]) -> list[str]:
        """Add people and return the secret token of each one's link."""
        with self.database.writing() as connection:
            return [self.add_person(connection, name)[1] for name in people_names]

    def sign_up(self, name: str, platform_id: str | None = None) -> int | None:
        """Add a person who came by the public link and return their number.

        A person of a platform who comes again is the same person. None if the study is full.
        """
        with self.database.writing() as connection:
            if platform_id is not None:
                known = self._person_of_platform(connection, platform_id)
                if known is not None:
                    return known
            if self._is_full(connection):
                return None
            try:
                with connection.begin_nested():
                    return self.add_person(connection, name, platform_id)[0]
            except IntegrityError:  # the same person, at the same moment
                return self._person_of_platform(connection, platform_id or "")

    def _is_full(self, connection: Connection) -> bool:
        """Return whether the study has all its people; others sign up after this transaction."""
        limit = self.settings.people.max_people
        if not limit:
            return False
        schema.one_at_a_time(connection)
        return (connection.scalar(select(func.count()).select_from(people)) or 0) >= limit

    def new_link(self, person: int) -> str:
        """Give a person a new secret link and return its token; the old one ends."""
        token = secrets.token_urlsafe(16)
        with self.database.writing() as connection:
            connection.execute(
                update(people).where(people.c.id == person).values(link_hash=hashed(token))
            )
        return token

    def person_of_platform(self, platform_id: str) -> int | None:
        """Return the person with a platform's id."""
        with self.database.reading() as connection:
            return self._person_of_platform(connection, platform_id)

    def _person_of_platform(self, connection: Connection, platform_id: str) -> int | None:
        found = connection.scalar(select(names.c.person).where(names.c.platform_id == platform_id))
        return None if found is None else int(found)

    def add_person(
        self, connection: Connection, name: str, platform_id: str | None = None
    ) -> tuple[int, str]:
        """Add a person and return their number and the secret token of their link."""
        token = secrets.token_urlsafe(16)
        now = self.clock.now()
        added = connection.execute(
            insert(people).values(
                pseudonym=f"p-{secrets.token_hex(4)}",
                link_hash=hashed(token),
                stage=self._first_stage(),
                state=ACTIVE,
                created=now,
                seen=now,
                batch_end=self.settings.tasks_per_batch,
            )
        )
        person = new_id(added)
        connection.execute(insert(names).values(person=person, name=name, platform_id=platform_id))
        return person, token

    def _first_stage(self) -> str:
        return "consent" if self.settings.consent else "instructions"

    def new_names(self, count: int) -> list[str]:
        """Return names for people who are invited by number, such as "annotator-1"."""
        with self.database.reading() as connection:
            known = set(connection.scalars(select(names.c.name)))
        numbered = (f"annotator-{number}" for number in itertools.count(1))
        return list(itertools.islice((n for n in numbered if n not in known), count))

    def person_of_link(self, token: str) -> int | None:
        """Return the person of a secret link."""
        with self.database.reading() as connection:
            found = connection.scalar(
                select(people.c.id).where(people.c.link_hash == hashed(token))
            )
        return None if found is None else int(found)

    def start_session(self, person: int | None) -> str:
        """Return a new session token for a person's browser, or the researcher's (None)."""
        token = secrets.token_urlsafe(24)
        with self.database.writing() as connection:
            connection.execute(
                insert(sessions).values(hash=hashed(token), person=person, created=self.clock.now())
            )
            own = (
                select(sessions.c.hash)
                .where(sessions.c.person == person)  # IS NULL for the researcher
                .order_by(sessions.c.created.desc())
                .offset(MAX_SESSIONS)
            )
            if ended := connection.scalars(own).all():
                connection.execute(delete(sessions).where(sessions.c.hash.in_(ended)))
        return token

    def session(self, token: str) -> tuple[bool, int | None]:
        """Return whether a session exists, and its person (None: the researcher)."""
        with self.database.reading() as connection:
            found = connection.execute(_SESSION, {"of_hash": hashed(token)}).first()
        return (False, None) if found is None else (True, found.person)

    def find_person(self, name: str) -> int:
        """Return the number of a person by name or pseudonym."""
        with self.database.reading() as connection:
            found = connection.execute(
                select(people.c.id, people.c.pseudonym, names.c.name)
                .join(names, names.c.person == people.c.id, isouter=True)
                .order_by(people.c.id)
            ).all()
        matches = [row.id for row in found if name in (row.pseudonym, row.name)]
        if len(matches) != 1:
            known = ", ".join(row.name or row.pseudonym for row in found[:20])
            problem = (
                f"{len(matches)} people have this name: use the pseudonym"
                if matches
                else (f"nobody has this name; there are {known or 'no people yet'}")
            )
            raise UsageError(f"{name}: {problem}")
        return int(matches[0])

    def exclude(self, person: int, excluded: bool) -> None:
        """Leave a person's answers out and give their tasks to others, or take them in again."""
        self.database.write(lambda connection: self._exclude(connection, person, excluded))

    def _exclude(self, connection: Connection, person: int, excluded: bool) -> None:
        old, new = (COUNTED, EXCLUDED) if excluded else (EXCLUDED, COUNTED)
        step = -1 if excluded else 1
        changed = connection.execute(
            update(people)
            .where(people.c.id == person)
            .values(state=EXCLUDED if excluded else ACTIVE)
        )
        if not changed.rowcount:
            return
        if excluded:
            self._release(connection, person)
        own = connection.scalars(
            select(answers.c.task).where(
                answers.c.person == person, answers.c.state == old, answers.c.phase == WORK
            )
        ).all()
        for task in own:
            connection.execute(
                update(tasks)
                .where(tasks.c.id == task)
                .values(taken=tasks.c.taken + step, answers=tasks.c.answers + step)
            )
        connection.execute(
            update(answers)
            .where(answers.c.person == person, answers.c.state == old)
            .values(state=new)
        )

    def _release(self, connection: Connection, person: int) -> None:
        """Return the open tasks of a person."""
        for lease, task in connection.execute(
            select(leases.c.id, leases.c.task).where(
                leases.c.person == person, leases.c.state == OPEN
            )
        ).all():
            connection.execute(update(leases).where(leases.c.id == lease).values(state=EXPIRED))
            give_back(connection, task)

    def forget(self, person: int, *, answers_too: bool = False) -> None:
        """Delete a person's name, link and browsers, and on demand their answers."""
        self.database.write(lambda connection: self._forget(connection, person, answers_too))

    def _forget(self, connection: Connection, person: int, answers_too: bool) -> None:
        if answers_too:
            self._exclude(connection, person, True)
        connection.execute(delete(names).where(names.c.person == person))
        connection.execute(delete(sessions).where(sessions.c.person == person))
        self._release(connection, person)
        unreachable = hashed(secrets.token_urlsafe(24))
        connection.execute(
            update(people).where(people.c.id == person).values(link_hash=unreachable)
        )
        if answers_too:
            for table in (answers, schema.refusals, leases):
                connection.execute(delete(table).where(table.c.person == person))
            connection.execute(delete(people).where(people.c.id == person))
        else:
            connection.execute(update(answers).where(answers.c.person == person).values(comment=""))

    def labels(self, *, named: bool = True) -> dict[int, str]:
        """Return a label for each person: the name, or the pseudonym if it is not unique."""
        with self.database.reading() as connection:
            rows = connection.execute(
                select(people.c.id, people.c.pseudonym, names.c.name).join(
                    names, names.c.person == people.c.id, isouter=True
                )
            ).all()
        counts = Counter(row.name for row in rows)
        return {
            row.id: row.name if named and row.name and counts[row.name] == 1 else row.pseudonym
            for row in rows
        }


def hashed(token: str) -> str:
    """Return the hash under which a secret token is stored."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
