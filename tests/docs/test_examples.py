"""Every example of the documentation is executed, or has a reason why not and valid options."""

from __future__ import annotations

import glob
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

import rejoinder
from docs.blocks import ROOT, Block, blocks, pages
from docs.sandbox import answer, fill, learn
from rejoinder.cli.main import app, run

pytestmark = pytest.mark.xdist_group("docs-examples")  # files are created once

MAX_NOT_RUN = 14
ELSEWHERE = {
    "tour.md": "test_tour.py",
    "own-metric.md": "test_own_metric.py",
    "evaluator-study.md": "its recipe takes half an hour",
    "report.md": "tests/cli/test_report.py",
    "demo.md": "tests/cli/test_demo.py",
    "python.md": "tests/verbs/test_page.py",
    "annotate.md": "test_annotate.py",
    "annotate-templates.md": "test_annotate_templates.py",
    "leaderboard.md": "tests/cli/test_leaderboard.py",
}
"""Pages whose examples are run by other tests."""
SHELL = ("sh", "console")

PAGES = [*(page for page in pages() if page.name not in ELSEWHERE), ROOT / "README.md"]
RUN = [
    page
    for page in PAGES
    if any(block.language in (*SHELL, "python") and not block.reason for block in blocks(page))
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REJOINDER_SALT", "docs")  # hold out the same dialogues each time
        patch.setattr(
            "rejoinder.engine.duckdb.cores", lambda: 1
        )  # starting more processes takes longer
        fill(folder)
        learn(folder)
        yield folder


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_examples(
    page: Path,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Examples run in the order of the page: one may use the files of another."""
    if "rejoinder datasets export" in page.read_text("utf-8"):
        request.getfixturevalue("data")
    for path in files.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    done = 0
    for block in blocks(page):
        if block.reason:
            continue
        if block.language == "python":
            exec(compile(block.text, str(block), "exec"), {})
            done += 1
        elif block.language in SHELL:
            for words in block.commands():
                type_in(words, block)
                done += 1
    assert done


def type_in(words: list[str], block: Block) -> None:
    if words[0] != "rejoinder":
        check_other(words, block)
        return
    made = [Path(words[i + 1]) for i, word in enumerate(words) if word in ("-o", "--work")]
    for path in made:  # do not write through a link
        if path.is_symlink():
            path.unlink()
    arguments = [name for word in words[1:] for name in (sorted(glob.glob(word)) or [word])]
    assert run(arguments) == 0, f"{block}: {' '.join(words)}"
    for path in made:
        assert path.exists(), f"{block}: {path} was not written"
        if words[1:3] == ["pairs", "plan"]:
            answer(path)


def check_other(words: list[str], block: Block) -> None:
    """Other commands are not run, but extras and make targets must exist."""
    match words:
        case ["pip", "install", *what]:
            known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
            for extra in what[0].partition("[")[2].rstrip("]").split(","):
                assert not extra or extra in known["optional-dependencies"], f"{block}: {extra}"
        case ["make", target, *_]:
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(), f"{block}: {target}"
        case ["export", "REJOINDER_DATA=…"]:
            pass
        case _:
            raise AssertionError(f"{block}: unexpected command '{' '.join(words)}'")


COMMAND = typer.main.get_command(app)


def parses(arguments: list[str]) -> None:
    """Parse a command line without running it; raise if verb, option or value is unknown."""
    command: Any = COMMAND
    context = None
    name = "rejoinder"
    while True:
        given = command.make_context(name, list(arguments), parent=context)
        if not hasattr(command, "commands"):
            return
        context = given
        name, *arguments = [*given._protected_args, *given.args]
        command = command.commands[name]


MARKED = [
    block
    for page in [*pages(), ROOT / "README.md"]
    for block in blocks(page)
    if block.language in SHELL and (block.reason or page.name in ELSEWHERE)
]


@pytest.mark.parametrize("block", MARKED, ids=str)
def test_commands_that_are_not_run_parse(block: Block) -> None:
    for words in block.commands():
        if words[0] == "rejoinder":
            parses(words[1:])


@pytest.mark.parametrize("line", ["scroe items.jsonl", "score --no-such", "pairs plan --share x y"])
def test_invalid_command_lines_are_detected(line: str) -> None:
    with pytest.raises(Exception):  # noqa: B017  # Typer's errors, or an unknown verb
        parses(line.split())


def test_json_on_pages_is_valid(tmp_path: Path) -> None:
    """A block is one JSON value or JSON lines; items must be readable as items."""
    items = 0
    for page in PAGES:
        for block in (block for block in blocks(page) if block.language == "json"):
            try:
                records = [json.loads(block.text)]
            except json.JSONDecodeError:
                records = [json.loads(line) for line in block.text.splitlines()]
            for record in records:
                if "response" in record:
                    (tmp_path / "item.jsonl").write_text(json.dumps(record))
                    (item,) = rejoinder.load(tmp_path / "item.jsonl")
                    assert item.response == record["response"]
                    items += 1
    assert items >= 2  # README and formats


def test_recipe_on_page_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REJOINDER_DATA", str(tmp_path))
    recipe, _ = (b for b in blocks(ROOT / "docs" / "recipes.md") if b.language == "toml")
    (tmp_path / "page.toml").write_text(recipe.text, "utf-8")
    (tmp_path / "pairs.parquet").touch()
    assert run(["run", "page.toml", "--dry-run", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in plan["steps"]] == ["test", "expand-bm25", "expand-encoder"]


def test_few_blocks_are_excluded() -> None:
    marked = [block for page in PAGES for block in blocks(page) if block.reason]
    assert len(marked) <= MAX_NOT_RUN, [str(block) for block in marked]
    assert all(len(block.reason or "") > 10 for block in marked)


def test_every_block_has_a_language() -> None:
    """A block without language would not be tested."""
    for page in PAGES:
        for block in blocks(page):
            assert block.language in (
                "sh",
                "console",
                "python",
                "json",
                "toml",
                "yaml",
                "markdown",
                "text",
                "",
            ), block
            if block.language in ("", "text"):
                assert "rejoinder " not in block.text, block


def test_exclusion_marks_are_parsed(tmp_path: Path) -> None:
    page = tmp_path / "p.md"
    page.write_text(
        "a\n\n<!-- not run: takes days -->\n```sh\nx \\\n  y  # z\n```\n\n```sh\nq\n```\n"
    )
    first, second = blocks(page)
    assert (first.reason, first.line, second.reason) == ("takes days", 4, None)
    assert list(first.commands()) == [["x", "y"]]
