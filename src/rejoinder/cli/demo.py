"""``rejoinder demo``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.options import JsonOption, count_option, output_folder, seed_option
from rejoinder.cli.run import say_log, say_running
from rejoinder.cli.terminal import WIDTH, print_json, say, show

if TYPE_CHECKING:
    from rich.table import Table

    from rejoinder.recipe.file import Step
    from rejoinder.recipe.run import Outcome
    from rejoinder.verbs.demo import DemoResult


def demo(
    output: Annotated[Path, output_folder("Folder of all files.")] = Path("demo-output"),
    pairs: Annotated[int, count_option("--pairs", "Pairs to learn from.", min=100)] = 8000,
    contexts: Annotated[int, count_option("--contexts", "Contexts to reply to.", min=2)] = 200,
    logs: Annotated[
        str,
        typer.Option("--logs", metavar="FILE", help="Your own logs instead of the packaged chats."),
    ] = "chitchat-dataset",
    format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Format of the logs; see 'ls'.")
    ] = "chitchat",
    seed: Annotated[int, seed_option(high=2**32 - 1)] = 0,
    json: JsonOption = False,
) -> None:
    """Evaluate four bots and people on real chats: from logs to a report.

    It takes about five minutes on two cores, asks nothing and downloads nothing. Finished steps are
    not repeated: a second run takes seconds, and an interrupted one continues.
    """
    from rejoinder.recipe.run import StepFailed
    from rejoinder.verbs.demo import demo as run

    on_terminal = sys.stderr.isatty()

    def started(step: Step, number: int, total: int) -> None:
        say("\n".join([f"\n{number}/{total} {step.name}", *_typed(step)]))

    def finished(outcome: Outcome, number: int, total: int) -> None:
        if outcome.state == "skipped":
            say(f"{number}/{total} {outcome.name} … as before")
        else:
            say(f"  … {outcome.seconds:.1f} s")

    try:
        result = run(
            output=output,
            pairs=pairs,
            contexts=contexts,
            logs=logs,
            format=format,
            seed=seed,
            on_start=started,
            on_finish=finished,
            on_wait=say_running,
            show_messages=on_terminal,
        )
    except StepFailed as failure:
        say_log(failure, on_terminal=on_terminal)
        say("finished steps are kept: 'rejoinder demo' continues from here")
        raise
    if json:
        print_json(result)
        return
    for table in _tables(result):
        show(table)
    say("vbleu and single BLEU: of all replies together; the report averages single replies")
    say(f"The report: {result.report} (open it in a browser)")
    if result.people_report is not None:
        say(f"Metrics and people: {result.people_report}")


def _typed(step: Step) -> Iterator[str]:
    """Yield the lines of a command as it may be typed, each within the width of a terminal."""
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


def _tables(result: DemoResult) -> Iterator[Table]:
    """Yield the rankings, and the agreement of metrics with people, if it was measured."""
    from rejoinder.reporting.tables import plain_table
    from rejoinder.verbs.demo import BLEU, METRICS

    table = plain_table("system", *METRICS, "single BLEU", right=[1, 2, 3, 4])
    table.title = f"Best first by {METRICS[0]}; rank by each metric in brackets"
    for row in result.rankings[METRICS[0]]:
        places = (_place(result.rankings[metric], row["system"]) for metric in [*METRICS, BLEU])
        table.add_row(row["system"], *places)
    yield table
    if result.agreement is not None:
        people = plain_table("metric", "Spearman", "95 % CI", right=[1])
        people.title = "Agreement with people on 500 replies to DailyDialog"
        for each in result.agreement:
            low, high = each["spearman_ci"] or (None, None)
            interval = "" if low is None else f"[{low:.3f}, {high:.3f}]"
            value = each["spearman"]
            people.add_row(each["metric"], "–" if value is None else f"{value:.3f}", interval)
        yield people


def _place(ranking: list[dict[str, Any]], system: str) -> str:
    for place, row in enumerate(ranking, 1):
        if row["system"] == system:
            return f"{row['value']:.3f} ({place})"
    return "is the reference"
