"""Small studies for tests: a folder with settings and items, people who answer, their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.study import Study
from rejoinder.annotate.tasks import kind_of
from rejoinder.annotate.tasks.kind import EarlierReply, Kind, NewTask, StoredAnswer

RATE = """
kind = "rate"
title = "Ratings"
[rate]
[[rate.dimensions]]
name = "appropriateness"
question = "Does the reply fit?"
scale = [1, 2, 3, 4, 5]
"""

FormOf = Callable[[NextStep], dict[str, str]]
"""Fills in the form of a task."""


def make_study(
    folder: Path,
    settings: str,
    items: Iterable[Mapping[str, Any]],
    files: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Path:
    """Write a study folder; ``files`` are further JSON Lines files, such as training.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(settings)
    (folder / "instructions.md").write_text("Read, then answer.")
    for name, records in {"items.jsonl": list(items), **(files or {})}.items():
        lines = [json.dumps(record, ensure_ascii=False) for record in records]
        (folder / name).write_text("".join(line + "\n" for line in lines))
    return folder


def template_records(contexts: int = 3) -> list[dict[str, Any]]:
    """Items that fit every template: 2 systems with 5 replies each, references of all kinds."""
    return [
        {
            "id": f"{context}:{system}:{number}",
            "context_id": f"c{context}",
            "context": [f"Question {context}?", f"Remark {context}."],
            "response": f"Reply {number} of {system} to {context}.",
            "system": system,
            "references": [
                f"Original {context}.",
                {"text": f"Collected {context}.", "source": "human"},
                {"text": f"Retrieved {context}.", "source": "retrieved", "score": 0.5},
                {"text": f"Remark {context}.", "source": "parrot"},
            ],
        }
        for context in range(contexts)
        for system in ("a", "b")
        for number in range(5)
    ]


def make_kind(folder: Path, settings: str, items: Iterable[Mapping[str, Any]]) -> Kind:
    """Return the kind of a study that has no database."""
    study = Study.read(make_study(folder, settings, items))
    kind: Kind = kind_of(study.settings.kind)(study)
    return kind


def join(store: Store, name: str) -> int:
    """Add a person who has read the instructions, and return their number."""
    person = store.person_of_link(store.invite([name])[0])
    assert person is not None
    store.advance(person, "consent")
    store.advance(person, "instructions")
    return person


def answer_next(store: Store, person: int, form_of: FormOf) -> NextStep:
    """Answer a person's next task and return it; any other step is returned as it is."""
    step = store.next_step(person)
    if step.step == "batch":
        store.next_batch(person)
        step = store.next_step(person)
    if step.step == "task":
        assert step.lease is not None
        reply = store.submit(person, {**form_of(step), "lease": step.lease.code})
        assert reply.outcome == "stored", reply
    return step


def answer_all(store: Store, person: int, form_of: FormOf) -> int:
    """Answer all tasks of a person, and return how many there were."""
    count = 0
    while answer_next(store, person, form_of).step == "task":
        count += 1
    return count


def stored(
    task: NewTask, value: Mapping[str, Any], person: str = "ann", view: Any = None
) -> StoredAnswer:
    """Return an answer to a task as the store gives it."""
    return StoredAnswer(person, task.key, task.content, view or {}, dict(value), "", 3.0, 0.0, [])


def no_earlier() -> list[EarlierReply]:
    """Nobody has written anything yet."""
    return []
