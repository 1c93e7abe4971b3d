"""Errors name what the user can do: extras that exist, exit codes that differ."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import rejoinder

ROOT = Path(rejoinder.__file__).parent


def test_every_missing_extra_is_declared() -> None:
    """``pip install 'rejoinder[unknown]'`` would install nothing and only warn."""
    project = ROOT.parents[1] / "pyproject.toml"
    declared = set(tomllib.loads(project.read_text())["project"]["optional-dependencies"])
    named: dict[str, Path] = {}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", None) == "missing_extra"
                and isinstance(node.args[0], ast.Constant)
            ):
                named |= dict.fromkeys(str(node.args[0].value).split(","), path)
    assert {"logs", "neural", "fit"} <= set(named)
    assert {extra: path for extra, path in named.items() if extra not in declared} == {}
