"""``rejoinder pairs simulate``: judges with a known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.common import JsonOption, print_json, say, seeded
from rejoinder.errors import UsageError


def simulate(
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where the files go.")
    ],
    contexts: Annotated[
        int, typer.Option("--contexts", metavar="N", min=1, max=10_000, help="How many.")
    ] = 10,
    references: Annotated[
        int, typer.Option("--references", metavar="N", min=3, max=1000, help="To each context.")
    ] = 100,
    tests: Annotated[
        int, typer.Option("--tests", metavar="N", min=1, max=1000, help="Further replies to each.")
    ] = 20,
    judges: Annotated[
        int, typer.Option("--judges", metavar="N", min=1, max=100, help="Who compare all pairs.")
    ] = 2,
    seed: Annotated[int, seeded("Seed of all chance.")] = 12345,
    json: JsonOption = False,
) -> None:
    """Make up contexts whose replies have a known worth, and people who compare them.

    Writes candidates.jsonl, answers.jsonl (all pairs, by every judge) and
    tests.jsonl, further replies with their worth as rating. Judges agree with
    each other and with themselves as those of Sugiyama et al. 2019.
    """
    import numpy as np

    from rejoinder.io import open_output, write_jsonl
    from rejoinder.pairwise.simulate import Simulation

    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{output}: cannot be made: {reason}") from None
    found = Simulation.of(
        np.random.default_rng(seed),
        contexts=contexts,
        references=references,
        tests=tests,
        judges=judges,
    )
    for name, items in (("candidates", found.candidates), ("tests", found.tests)):
        with open_output(output / f"{name}.jsonl") as stream:
            write_jsonl(stream, items)
    with open_output(output / "answers.jsonl") as stream:
        write_jsonl(stream, found.answers)
    counts = {
        "candidates": len(found.candidates),
        "answers": len(found.answers),
        "tests": len(found.tests),
    }
    if json:
        print_json(counts)
    else:
        say(", ".join(f"{count:,} {what}" for what, count in counts.items()) + f" in {output}")
