"""Small studies for tests: folders with items, instructions and study.toml."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rejoinder.annotate.database import Database
from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.study import DATABASE_FILE, Study

OPENED: list[Database] = []
"""Databases of the running test, closed at its end."""

SYSTEMS = ("careful", "dull", "rude")
RATE = """
[rate]
layout = "reply"
[[rate.dimensions]]
name = "appropriateness"
question = "How appropriate is the reply?"
scale = [1, 2, 3, 4, 5]
labels = ["Not at all", "Very"]
"""


def items(contexts: int = 4, systems: Iterable[str] = SYSTEMS) -> list[dict[str, Any]]:
    """Return replies of some systems to some contexts, each with two references."""
    return [
        {
            "id": f"{number}:{system}",
            "context_id": str(number),
            "system": system,
            "context": [f"Hello, this is number {number}.", f"What did you do on day {number}?"],
            "response": f"On day {number} I was {system}.",
            "references": [f"I read book {number}.", f"I slept until {number} o'clock."],
        }
        for number in range(contexts)
        for system in systems
    ]


def make_study(
    folder: Path,
    table: str = RATE,
    *,
    kind: str = "rate",
    settings: str = "answers_per_task = 3",
    records: list[dict[str, Any]] | None = None,
) -> Path:
    """Write a study folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(record) for record in (items() if records is None else records)]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "instructions.md").write_text("# What to do\n\nRead, then answer.\n")
    text = f'kind = "{kind}"\ntitle = "A study"\n{settings}\n{table}'
    (folder / "study.toml").write_text(text)
    return folder


def open_store(folder: Path, address: str | None = None, clock: Any = None) -> Store:
    """Open a study, on demand with a clock of the test's own."""
    file = None if address else folder / DATABASE_FILE
    database = Database(address or "", sqlite_file=file)
    OPENED.append(database)
    return Store(Study.read(folder), database, clock)


def join(store: Store, name: str) -> int:
    """Invite a person who reads the instructions and is ready for the first task."""
    (token,) = store.invite([name])
    person = store.person_of_link(token)
    assert person is not None
    store.advance(person, "consent")
    store.advance(person, "instructions")
    return person


Answer = Callable[[NextStep], dict[str, str]]


def rate_five(step: NextStep) -> dict[str, str]:
    """Give every reply on the page the best rating."""
    assert step.task is not None
    replies = step.task.content["replies"]
    return {f"appropriateness-{place}": "5" for place in range(len(replies))}


def form(step: NextStep, fields: dict[str, str]) -> dict[str, str]:
    """Return the whole form of a task."""
    assert step.lease is not None
    return {"lease": step.lease.code, "seconds": "4.5", **fields}


def answer_all(store: Store, person: int, answer: Answer = rate_five, most: int = 10_000) -> int:
    """Answer tasks until there is none left for this person; return how many."""
    count, step = 0, store.next_step(person)
    while step is not None and count < most:
        if step.step == "batch":
            store.next_batch(person)
            step = store.next_step(person)
            continue
        if step.step != "task":
            break
        reply, step = store.submit_and_continue(person, form(step, answer(step)))  # type: ignore[assignment]
        assert reply.outcome == "stored", reply
        count += 1
    return count


class FakeClock:
    """A clock that the test sets."""

    def __init__(self, time: float = 1_000_000.0) -> None:
        self.time = time

    def now(self) -> float:
        return self.time
