"""Imports point one way, and the command line starts light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "rejoinder"

# each layer may import itself and what stands before it
LAYERS = [
    {"version", "machine", "progress", "wording"},
    {"errors"},
    {"spec", "items"},
    {"item_table", "worker_pool"},
    {"files", "registry"},
    {"kernels"},
    {"text"},
    {"testsets", "examples", "engine"},
    {"logs"},
    {"encode"},
    {"llm"},
    {"retrieve", "learn"},
    {"evaluator"},
    {"judges"},
    {"metrics", "systems"},
    {"meta_evaluation"},
    {"estimation"},
    {"trust"},
    {"leaderboards"},
    {"pairwise"},
    {"annotate"},
    {"fitting", "reporting", "recipe"},
    {"inputs"},
    {"verbs"},
    {"cli", "pytest_plugin"},
    {"__main__"},
]


def layer_of(name: str) -> int:
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    raise AssertionError(f"'{name}' stands in no layer: add it to LAYERS")


def imports(path: Path) -> set[str]:
    """The first-level names of rejoinder that a file imports, wherever the import stands."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "rejoinder":
                modules = [f"rejoinder.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        names |= {m.split(".")[1] for m in modules if m.startswith("rejoinder.")}
    return names


def test_imports_point_one_way() -> None:
    checked = 0
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).with_suffix("").parts[0]
        if own == "__init__":
            continue
        for other in imports(path):
            assert layer_of(other) <= layer_of(own), f"{path.name} imports rejoinder.{other}"
            checked += 1
    assert checked > 100


def test_retrieve_and_learn_do_not_import_each_other() -> None:
    """Both read texts through encode/text_encoders.py."""
    for own, other in (("retrieve", "learn"), ("learn", "retrieve")):
        for path in (SOURCE / own).rglob("*.py"):
            assert other not in imports(path), f"{path.name} imports rejoinder.{other}"


def test_the_command_line_starts_light() -> None:
    """Neither help nor listing needs compiled kernels, scipy, torch or scikit-learn."""
    for arguments, heavy in (
        (["--help"], {"torch", "sklearn", "numba", "scipy", "numpy", "httpx2"}),
        (
            ["ls", "--json"],
            {"torch", "sklearn", "numba", "scipy", "httpx2", "transformers", "asyncio"},
        ),
        (["score", "-", "-m", "bleu"], {"torch", "sklearn"}),
    ):
        code = (
            "import sys\nfrom rejoinder.cli.main import run\n"
            f"run({arguments!r})\nsys.stderr.write(' '.join(sys.modules))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            input='{"id": "1", "response": "a b", "references": ["a b"]}',
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout
        assert not heavy & set(done.stderr.split())
