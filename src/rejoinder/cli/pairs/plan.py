"""``rejoinder pairs plan``: which pairs of replies to ask about next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.common import (
    JsonOption,
    OutputOption,
    check_output,
    not_shares,
    print_json,
    say,
    seeded,
)
from rejoinder.cli.pairs.common import (
    CandidatesArgument,
    StrictOption,
    read_candidates,
    read_comparisons,
    stdin_twice,
    to_stdout,
)
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import UsageError

if TYPE_CHECKING:
    from rejoinder.pairwise.plan import Question

SeedOption = Annotated[int, seeded("Decides among equals.")]


def plan(
    candidates: CandidatesArgument,
    answers: Annotated[
        list[str] | None,
        typer.Argument(metavar="ANSWERS…", help="What has been answered so far (JSONL)."),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--pairs", "-n", metavar="N", min=1, help="How many, the most telling."),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--share", metavar="S", help="Up to this share of each context's pairs, such as .06."
        ),
    ] = None,
    output: OutputOption = None,
    annotator: Annotated[
        list[str] | None,
        typer.Option("--annotator", metavar="NAME", help="Deal the pairs out to these; repeat."),
    ] = None,
    shared: Annotated[
        float,
        typer.Option(
            "--shared", metavar="S", help="Share of the pairs that every annotator is asked."
        ),
    ] = 0.1,
    again: Annotated[
        bool, typer.Option("--again", help="Pairs that have answers may be asked again.")
    ] = False,
    texts: Annotated[
        bool, typer.Option("--texts", help="Write contexts and replies beside their ids.")
    ] = False,
    seed: SeedOption = 12345,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Choose the pairs of replies that are worth asking next.

    Ask a few, let people answer, plan again with all ANSWERS: that needs about
    half as many comparisons as pairs drawn at random. A line of the plan becomes
    an answer when "winner": "a", "b" or "tie" is added.
    """
    from rejoinder.io import open_output, write_jsonl
    from rejoinder.pairwise.plan import plan as planned
    from rejoinder.pairwise.records import questions

    paths = answers or []
    problems = stdin_twice([candidates, *paths])
    if (count is None) == (share is None):
        problems.append("say how many pairs: either -n N or --share S")
    if again and share is not None:
        problems.append("--again needs -n N: with --share, pairs that have answers count as asked")
    problems += not_shares({"--share": share, "--shared": shared})
    names = annotator or []
    problems += [f"--annotator {n}: given twice" for n, k in Counter(names).items() if k > 1]
    if json and to_stdout(output):
        problems.append("--json prints a summary to stdout, where the pairs go: add -o FILE")
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *paths])
    items = read_candidates(candidates)
    comparisons = read_comparisons(items, paths, strict=strict)
    with pieces_progress("planning") as advance:
        chosen = planned(
            comparisons, count=count, share=share, seed=seed, again=again, on_progress=advance
        )
    asked = _asked(chosen, names, shared, seed)
    with open_output(output) as stream:
        write_jsonl(stream, list(questions(items, asked, texts=texts)))
    per_context = Counter(question.context for question in chosen)
    if json:
        print_json(
            {
                "pairs": len(chosen),
                "questions": len(asked),
                "contexts": len(comparisons.contexts),
                "answers": len(comparisons),
                "per_context": dict(per_context),
            }
        )
        return
    say(
        f"{len(chosen):,} pairs of {len(per_context):,} contexts,"
        f" {len(asked):,} questions; {len(comparisons):,} answers so far"
    )
    if count is not None and len(chosen) < count:
        say(f"{count - len(chosen):,} fewer than asked for: all other pairs have answers")


def _asked(
    chosen: Sequence[Question], names: Sequence[str], shared: float, seed: int
) -> list[tuple[Question, str | None]]:
    from rejoinder.pairwise.plan import dealt

    if not names:
        return [(question, None) for question in chosen]
    return list(dealt(chosen, names, shared if len(names) > 1 else 0.0, seed))
