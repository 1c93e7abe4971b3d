"""``rejoinder reply``."""

from __future__ import annotations

from typing import Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnyLanguageOption,
    ColumnsOption,
    JsonOption,
    KeepLeaksOption,
    OutputOption,
    count_option,
    flag,
    parse_columns,
    seed_option,
    stdout_problems,
)
from rejoinder.cli.terminal import print_json, say


def reply(
    contexts: Annotated[
        str,
        typer.Argument(metavar="CONTEXTS", help="Items, or records with a context; - is stdin."),
    ],
    system: Annotated[
        list[str],
        typer.Option(
            "--system", "-s", metavar="SPEC", help="A system, such as c-bm25; repeatable; see 'ls'."
        ),
    ],
    pool: Annotated[
        str | None,
        typer.Option(
            "--pool", "--evaluator", metavar="PATH", help="File of pairs, index or evaluator."
        ),
    ] = None,
    output: OutputOption = None,
    replies: Annotated[
        int,
        count_option("--replies", "Replies to each context.", short="-n", max=100),
    ] = 1,
    seed: Annotated[int | None, seed_option("Random seed of systems that draw.")] = None,
    as_references: Annotated[
        bool, flag("--as-references", "Write the items of CONTEXTS with the replies as references.")
    ] = False,
    keep_leaks: KeepLeaksOption = False,
    columns: ColumnsOption = None,
    any_language: AnyLanguageOption = False,
    json: JsonOption = False,
) -> None:
    """Let dialogue systems reply, and write their replies as items.

    Items with the same context count as one context; references are carried along. Pairs whose
    utterance is (nearly) the last turn of a context are not used.
    """
    from rejoinder.verbs.reply import reply as run

    result = run(
        contexts,
        system,
        pool=pool,
        output="-" if output is None else output,
        replies=replies,
        seed=seed,
        as_references=as_references,
        keep_leaks=keep_leaks,
        columns=parse_columns(columns),
        any_language=any_language,
        problems=stdout_problems(json, output, "replies"),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    if result.leaks:
        say(f"{result.leaks:,} pairs of the pool left out: a context ends with their utterance")
    for outcome in result.systems:
        say(f"{outcome.system}: {outcome.replies:,} replies to {result.contexts:,} contexts")
        for reason, count in outcome.without_reply.items():
            say(f"{outcome.system}: {count:,} contexts without a reply: {reason}")
