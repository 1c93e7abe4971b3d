"""``rejoinder contexts``."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder.cli.options import (
    JsonOption,
    OutputOption,
    PairsArgument,
    count_option,
    flag,
    seed_option,
    stdout_problems,
)
from rejoinder.cli.terminal import print_json, say
from rejoinder.verbs.arguments import SEED


def contexts(
    pairs: PairsArgument,
    output: OutputOption = None,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="Split of the pairs.")
    ] = "test",
    count: Annotated[int, count_option("--contexts", "Number of contexts.", short="-n")] = 200,
    min_words: Annotated[
        int,
        count_option("--min-words", "Minimum length of last turn and reply.", min=0),
    ] = 0,
    as_references: Annotated[
        bool, flag("--as-references", "Write the human reply as reference, not as response.")
    ] = False,
    seed: Annotated[int, seed_option()] = SEED,
    json: JsonOption = False,
) -> None:
    """Draw contexts from held-out pairs, with the replies that people gave.

    They are items of the system 'human' without references; or, with --as-references, contexts for
    'reply', each with the human reply as its only reference. The same seed draws the same contexts
    in both cases.
    """
    from rejoinder.errors import UsageError
    from rejoinder.verbs.contexts import contexts as run

    if problems := stdout_problems(json, output, "items"):
        raise UsageError(*problems)
    result = run(
        pairs,
        output="-" if output is None else output,
        split=split,
        count=count,
        min_words=min_words,
        as_references=as_references,
        seed=seed,
    )
    if json:
        print_json(result)
        return
    words = f" of {min_words} words or more" if min_words else ""
    say(f"{result.drawn:,} of {result.available:,} {split} contexts and replies{words}")
