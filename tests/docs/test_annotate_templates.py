"""The page of study templates: its table, and its commands with people who answer in between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotate.studies import answer_next, join
from docs.blocks import DOCS, Block, blocks
from rejoinder.annotate import study_templates
from rejoinder.annotate.store import NextStep, Store
from rejoinder.cli.main import run

PAGE = DOCS / "annotate-templates.md"
MOST_TASKS = 40
"""Tasks that each person does; an export needs no complete study."""


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def record(context: int, system: str, number: int) -> dict[str, Any]:
    words = ["bread", "rain", "a train", "the sea", "music", "a cat"]
    return {
        "id": f"{context}:{system}:{number}",
        "context_id": f"c{context}",
        "context": [f"Shall we talk about {words[context]} and {words[-context]} today?"],
        "response": f"Yes, {words[(context + number) % 6]} is {system} number {number}.",
        "system": system,
        "references": [
            {"text": f"Let's talk about {words[context]}.", "weight": 1.0},
            {"text": f"No, not {words[context]} again.", "source": "retrieved", "weight": 0.5},
            {"text": f"I saw {words[-context]}.", "source": "retrieved", "weight": context / 10},
        ],
    }


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the commands of the page begin with, in the working folder."""
    monkeypatch.chdir(tmp_path)
    both = ("hal", "eliza")
    write_lines(Path("items.jsonl"), [record(c, each, 0) for c in range(6) for each in both])
    write_lines(
        Path("five.jsonl"),
        [record(c, each, n) for c in range(6) for each in both for n in range(5)],
    )
    write_lines(Path("expanded.jsonl"), [record(c, each, 0) for c in range(6) for each in both])
    return tmp_path


class Crowd:
    """People who answer at random, but as the forms want it."""

    def __init__(self, folder: Path) -> None:
        self.store = Store.open(folder)
        self.rng = np.random.default_rng(1)

    def answer(self) -> int:
        """Let as many people answer as a task needs; return the number of answers."""
        count = 0
        for number in range(self.store.settings.answers_per_task):
            person = join(self.store, f"person-{number}")
            for _ in range(MOST_TASKS):
                if answer_next(self.store, person, self.form).step != "task":
                    break
                count += 1
        self.store.close()
        return count

    def form(self, step: NextStep) -> dict[str, str]:
        assert step.lease is not None
        assert step.task is not None
        page = self.store.kind.page(step.task.content, step.lease.view)
        form: dict[str, str] = {}
        match self.store.settings.kind:
            case "rate":
                for dimension in page["dimensions"]:
                    for place in range(len(page["replies"])):
                        form[f"{dimension['name']}-{place}"] = self.value(dimension["steps"])
            case "write":
                for place, slot in enumerate(page["slots"]):
                    form[f"reply-{place}"] = self.text(slot["min_characters"])
            case "compare":
                form["winner"] = str(self.rng.choice(["left", "right"]))
            case "diversity":
                form = {f"fits-{place}": "1" for place in range(len(page["replies"]))}
                form["rating"] = self.value(page["steps"])
            case "comprehension":
                form["rating"] = "5"
        return form

    def value(self, steps: list[dict[str, Any]]) -> str:
        return str(steps[self.rng.integers(len(steps))]["value"])

    def text(self, least: int) -> str:
        """Return a new text of at least this length, and at most one character more."""
        letters = self.rng.choice(list("abcdefghijklmnopqrstuvwxyz"), max(least, 8))
        return "".join(letters) + "."


def with_init() -> list[Block]:
    return [block for block in blocks(PAGE) if block.language == "sh"]


def test_commands(files: Path) -> None:
    """All commands run in the order of the page; people answer after each ``init``."""
    made = []
    for block in with_init():
        for words in block.commands():
            assert words[0] == "rejoinder"
            assert run(words[1:]) == 0, f"{block}: {' '.join(words)}"
            if words[1:3] == ["annotate", "init"] and words[3] not in ("quick", "all-pairs"):
                assert Crowd(files / words[3]).answer() > 0
                made.append(words[words.index("--template") + 1])
    assert sorted(made) == study_templates.names()


def test_table_has_the_settings_of_the_templates() -> None:
    """Each row names kind, paper and people as its template does."""
    rows = {
        found[1]: line.split("|")
        for line in PAGE.read_text("utf-8").splitlines()
        if (found := re.match(r"\| \[`([a-z-]+)`\]", line))
    }
    assert sorted(rows) == study_templates.names()
    for name, cells in rows.items():
        about = study_templates.describe(name)
        assert cells[3].strip() == about.kind
        assert cells[2].partition(",")[0].strip() == about.paper.partition(",")[0]
        text = (
            Path(study_templates.__file__).parent / "templates" / name / "study.toml"
        ).read_text()
        people = re.search(r"^answers_per_task = (\d+)$", text, re.MULTILINE)
        assert people is not None
        assert re.match(rf" {people[1]}\b", cells[4]), name
