"""The recipes that come with the project name verbs, options, retrievers and metrics that exist."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from rejoinder.cli.main import app
from rejoinder.metrics.metric import make_metric
from rejoinder.recipe.file import Recipe, read_recipe
from rejoinder.registry import WRITERS
from rejoinder.retrieve.retriever import make_retriever
from rejoinder.spec import parse

FOLDER = Path(__file__).resolve().parents[2] / "recipes"
DEMO = FOLDER.parent / "src" / "rejoinder" / "examples" / "demo.toml"
RECIPES = [*sorted(FOLDER.glob("*.toml")), DEMO]


def read(path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setenv("REJOINDER_DATA", "data")
    return read_recipe(str(path), Path("work"))


def test_there_are_recipes() -> None:
    assert RECIPES


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_command_line_is_understood(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in read(path, monkeypatch).steps:
        command, arguments = typer.main.get_command(app), list(step.arguments)
        context = command.make_context("rejoinder", list(arguments))
        while hasattr(command, "resolve_command"):
            name, command, arguments = command.resolve_command(context, arguments)
            context = command.make_context(name, list(arguments), parent=context)
        assert command.callback is not None


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_spec_is_understood(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in read(path, monkeypatch).steps:
        for option, value in zip(step.arguments, step.arguments[1:], strict=False):
            if option == "--by" and parse(value).name in WRITERS.names():
                WRITERS.make(parse(value))
            elif option == "--by":
                make_retriever(value)
            elif option == "-m":
                make_metric(value)
