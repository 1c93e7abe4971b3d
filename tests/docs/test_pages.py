"""Single pages: length, tables that repeat constants, links that work in the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from docs.blocks import DOCS, ROOT, pages
from rejoinder.cli.main import app
from rejoinder.files.columns import SYNONYMS

OTHER_PROGRAMS = {"--no-python", "--nproc-per-node", "--install-completion", "--help", "--no-deps"}
"""Options of torchrun, of Typer itself, and of pip."""


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 120


def test_files_page_lists_all_synonyms() -> None:
    text = (DOCS / "files.md").read_text("utf-8")
    for field, synonyms in SYNONYMS.items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{field}` |"))
        assert re.findall(r"`(\w+)`", row) == [field, *synonyms]


@pytest.mark.parametrize(
    "page", [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_links_work_in_the_repository(page: Path) -> None:
    """Pages are also read without the built site, so they must not link to generated pages."""
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_readme_picture_is_small() -> None:
    (picture,) = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert (ROOT / picture).stat().st_size < 150_000


def options(command: Any) -> set[str]:
    """Return all options of a command and of its subcommands."""
    names = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    return names.union(*(options(each) for each in getattr(command, "commands", {}).values()))


def test_documented_options_exist() -> None:
    known = options(typer.main.get_command(app)) | OTHER_PROGRAMS
    for page in [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page.read_text("utf-8")))
        assert named <= known, page.name


def test_modules_on_the_architecture_page_exist() -> None:
    source = ROOT / "src" / "rejoinder"
    text = (DOCS / "architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:[a-z_]+/)*[a-z_0-9]+(?:\.py|\.toml|/))`", text)
    assert len(named) > 50
    for name in named:
        assert (source / name).exists() or (ROOT / name).exists(), name
