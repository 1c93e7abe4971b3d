"""The page about studies: every command on it, with a real server and people who answer."""

from __future__ import annotations

import json
import re
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from annotate.imports.given import LABEL_STUDIO, POTATO_1
from annotate.imports.test_add import RECORDS
from annotate.server import running_server
from docs.blocks import DOCS, blocks
from docs.test_annotate_templates import Crowd, write_lines
from rejoinder.cli.main import run

PAGE = DOCS / "annotate.md"
MANY = 50


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Items, and exports of other programs about some of them, in the working folder."""
    monkeypatch.chdir(tmp_path)
    items = [
        {
            **RECORDS[number % 4],
            "id": f"{number}:{system}" if number else RECORDS[place]["id"],
            "context": [f"Question {number}?"],
            "response": f"The {system} answer {number}.",
            "system": system,
            "references": [f"An answer to question {number}."],
        }
        for number in range(4)
        for place, system in enumerate(("retrieval", "seq2seq"))
    ]
    write_lines(Path("items.jsonl"), [*items, *RECORDS[2:]])
    shutil.copy(LABEL_STUDIO / "ratings.json", "export.json")
    shutil.copytree(POTATO_1 / "output", "annotation_output")
    return tmp_path


def test_commands(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All commands run in the order of the page; people answer after they were invited."""
    done = 0
    servers = 0
    with ExitStack() as serving:
        for block in blocks(PAGE):
            if block.language == "python":
                exec(block.text, {})
                continue
            for words in block.commands() if block.language == "sh" else ():
                assert words[0] == "rejoinder"
                if words[1:3] == ["annotate", "serve"]:
                    serving.pop_all().close()
                    server = serving.enter_context(running_server(Path(words[3]), *words[4:]))
                    servers += 1
                    continue
                assert run(words[1:]) == 0, f"{block}: {' '.join(words)}"
                done += 1
                if "--name" in words:
                    assert Crowd(files / "study").answer() >= MANY
        assert server.address == "https://HOST"
        capsys.readouterr()
        assert run(["annotate", "invite", "study", "-n", "1", "--json"]) == 0
        (link,) = json.loads(capsys.readouterr().out)["links"]
        assert link.startswith("https://HOST/p/")
    assert (done >= 11, servers) == (True, 2)
    assert all(block.reason is None for block in blocks(PAGE))
    assert Path("answers.csv").exists()


def test_the_page_names_what_exists() -> None:
    """Kinds of tasks and settings on the page are those of the program."""
    from rejoinder.annotate import study

    text = PAGE.read_text("utf-8")
    kinds = re.findall(r"^\| `([a-z]+)` \|", text, re.MULTILINE)
    assert tuple(kinds) == study.KINDS
    settings = set()
    for table in vars(study).values():
        settings |= set(getattr(table, "__struct_fields__", ()))
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text))
    assert named <= settings
    assert "lease_minutes" in named
