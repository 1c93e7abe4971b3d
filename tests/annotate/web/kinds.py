"""A small study of each kind for tests of pages, and a form that answers its tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from annotate.rating_studies import open_store
from annotate.studies import make_study
from rejoinder.annotate.store import Store

CONTEXT = ["What did you do at the weekend?", "We went hiking.", "Any pictures?"]
REPLIES = ["Yes, hundreds!", "I like turtles.", "My camera broke.", "Do you want to see them?"]
SCALE = 'scale = [1, 2, 3, 4, 5]\nlabels = ["not at all", "very much"]\n'
TABLES = {
    "rate": "[rate]\ndistractors = 1\n[[rate.dimensions]]\nname = 'fit'\nquestion = 'Does it fit?'"
    f"\n{SCALE}",
    "write": "[write]\nquestion = 'Write two replies.'\n[[write.slots]]\ncount = 2\n"
    "min_characters = 2\nmax_characters = 60\n",
    "compare": "[compare]\nquestion = 'Which one is better?'\nplanned = false\n",
    "diversity": "[diversity]\nfit_question = 'Which fit?'\nquestion = 'How different?'\n"
    f"replies = 4\n{SCALE}",
    "comprehension": f"[comprehension]\nquestion = 'Understood?'\nkeep_from = 4\n{SCALE}",
}
EXPECTED: dict[str, Any] = {
    "rate": [[4, 5]],
    "write": ["A good example."],
    "compare": "a",
    "diversity": {"fits": [True, False, True, True], "ratings": [5]},
    "comprehension": [4, 5],
}
SHOWN = {"rate": 1, "write": 0, "compare": 2, "diversity": 4, "comprehension": 0}


def items(
    kind: str, replies: Sequence[str] = tuple(REPLIES), context: Sequence[str] = tuple(CONTEXT)
) -> list[dict[str, Any]]:
    """Return items with two contexts for a kind: several systems, or one system for diversity."""
    return [
        {
            "id": f"secret-id-{number}-{place}",
            "context_id": f"secret-context-{number}",
            "context": [f"{number}. {context[0]}", *context[1:-1], f"{context[-1]} {number}"],
            "response": f"{reply} {number}",
            "system": "secret-system" if kind == "diversity" else f"secret-system-{place}",
            "references": [{"text": f"reference {number} {place}", "source": "secret-source"}],
        }
        for number in range(2)
        for place, reply in enumerate(replies)
    ]


def study(
    folder: Path,
    kind: str,
    *,
    settings: str = "",
    tables: str = "",
    training: bool = False,
    records: Sequence[Mapping[str, Any]] | None = None,
    files: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    title: str = "'A study'",
    address: str | None = None,
) -> Store:
    """Make and open a study of a kind, on demand with a task to practise."""
    known = {
        "context": CONTEXT,
        "replies": REPLIES[: SHOWN[kind]],
        "expected": EXPECTED[kind],
        "explanation": "That is why.",
    }
    if training:
        tables += "[training]\ntraining = 'training.jsonl'\n"
        files = {"training.jsonl": [known], **(files or {})}
    text = f"kind = '{kind}'\ntitle = {title}\n{settings}\n{tables}\n{TABLES[kind]}"
    made = make_study(folder, text, items(kind) if records is None else records, files)
    return open_store(made, address)


def fill_in(kind: str, number: int = 0) -> dict[str, str]:
    """Return an acceptable answer to a task of a kind."""
    words = ["apples", "bridges", "clouds", "doors", "engines", "forests", "gardens", "houses"]
    return {
        "rate": {"fit-0": str(1 + number % 5)},
        "write": {
            f"reply-{slot}": f"{words[(2 * number + slot) % 8]} {words[number % 8]} are fine {slot}"
            for slot in range(2)
        },
        "compare": {"winner": ("left", "right", "tie")[number % 3]},
        "diversity": {"fits-0": "1", "fits-2": "1", "rating": "4"},
        "comprehension": {"rating": "3"},
    }[kind]


def radio(html: str, name: str, value: str) -> str:
    """Return the tag of a radio button."""
    found = re.search(rf'<input type="radio" name="{name}" value="{value}"[^>]*>', html)
    assert found is not None, f"no button {name}={value}"
    return found[0]
