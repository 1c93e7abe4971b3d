"""``rejoinder reply``: contexts in, the replies of dialogue systems out."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import JsonOption, OutputOption, check_output, print_json, say, seeded
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import RejoinderError, UsageError

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool
    from rejoinder.systems.base import Mask, Replies, System
    from rejoinder.systems.contexts import Context


def reply(
    contexts: Annotated[
        str, typer.Argument(metavar="CONTEXTS", help="Items, or records without a response; JSONL.")
    ],
    system: Annotated[
        list[str],
        typer.Option("--system", "-s", metavar="SPEC", help="Who replies, such as c-bm25; repeat."),
    ],
    pool: Annotated[
        str | None,
        typer.Option("--pool", "--evaluator", metavar="PATH", help="Pairs, or a folder of them."),
    ] = None,
    output: OutputOption = None,
    replies: Annotated[
        int, typer.Option("--replies", "-n", metavar="N", min=1, max=100, help="To each context.")
    ] = 1,
    seed: Annotated[int | None, seeded("For systems that draw.")] = None,
    as_references: Annotated[
        bool,
        typer.Option("--as-references", help="Write CONTEXTS, with the replies as references."),
    ] = False,
    keep_leaks: Annotated[
        bool, typer.Option("--keep-leaks", help="Also reply with pairs that the contexts have.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Let dialogue systems reply, and write their replies as items.

    Items with the same context count as one context; references are carried along. Pairs whose
    utterance is the last turn of a context, or nearly, are not replied with.
    """
    from rejoinder.io import JsonLines, open_output, read_items, write_jsonl
    from rejoinder.systems import records
    from rejoinder.systems.contexts import read_contexts

    complaints = []
    if json and output is None:
        complaints.append("--json prints a summary to stdout, where the replies go: add -o FILE")
    if as_references and JsonLines(contexts).once:
        complaints.append("--as-references reads the items twice: give a file, not a pipe")
    systems = _systems(system, seed, pool, complaints)
    check_output(output, [contexts, pool])
    asked = read_contexts(contexts)
    said: dict[str, list[Replies]] = {}
    with open_output(output) as stream, _opened(pool, systems) as opened:
        leaks = None if keep_leaks else _leaks(opened, asked)
        for each in systems:
            with pieces_progress(str(each)) as advance:
                found = each.reply(
                    [context.turns for context in asked],
                    opened,
                    n=replies,
                    leaks=leaks,
                    on_progress=advance,
                )
            said[str(each)] = found
            if not as_references:
                named = records.as_items(str(each), asked, found, numbered=replies > 1)
                write_jsonl(stream, list(named))
        if as_references:
            write_jsonl(stream, list(records.as_references(read_items(contexts), asked, said)))
    outcomes = [_Outcome.of(name, found) for name, found in said.items()]
    left_out = 0 if leaks is None else int(leaks.sum())
    if json:
        plain = [outcome.plain() for outcome in outcomes]
        print_json({"contexts": len(asked), "leaks": left_out, "systems": plain})
        return
    if left_out:
        say(f"{left_out:,} pairs of the pool left out: a context ends with their utterance")
    for outcome in outcomes:
        say(f"{outcome.system}: {outcome.replies:,} replies to {len(asked):,} contexts")
        for reason, count in outcome.none.items():
            say(f"{outcome.system}: {count:,} contexts without a reply: {reason}")


@dataclass(frozen=True)
class _Outcome:
    """What became of one system."""

    system: str
    replies: int
    none: dict[str, int]

    @classmethod
    def of(cls, system: str, found: list[Replies]) -> _Outcome:
        reasons = Counter(answer.reason for answer in found if answer.reason is not None)
        return cls(system, sum(len(answer.texts) for answer in found), dict(reasons))

    def plain(self) -> dict[str, Any]:
        return {"system": self.system, "replies": self.replies, "without_reply": self.none}


def _systems(
    specs: list[str], seed: int | None, pool: str | None, complaints: list[str]
) -> list[System]:
    """The systems; or all that is wrong with the arguments, at once."""
    from rejoinder.systems.base import make_system

    problems: list[str] = []
    missing: list[RejoinderError] = []
    systems: dict[str, System] = {}
    for spec in specs:
        try:
            made = make_system(spec, seed)
        except UsageError as error:
            problems += error.messages
            continue
        except RejoinderError as error:
            missing.append(error)
            continue
        if str(made) in systems:
            problems.append(f"the system '{made}' is asked for twice")
        systems[str(made)] = made
    waiting = [name for name, each in systems.items() if each.needs_pool]
    if waiting and pool is None:
        problems.append(f"{', '.join(waiting)}: add --pool PAIRS to take replies from")
    problems += complaints
    if problems:
        raise UsageError(*problems)
    if missing:
        raise missing[0]
    return list(systems.values())


@contextlib.contextmanager
def _opened(path: str | None, systems: list[System]) -> Iterator[Pool | None]:
    """The pool, where a system asks for one."""
    if path is None or not any(system.needs_pool for system in systems):
        yield None
        return
    from rejoinder.cli.evaluator import pool_in
    from rejoinder.retrieve.pool import open_pool

    with open_pool(pool_in(path)) as pool:
        yield pool


def _leaks(pool: Pool | None, contexts: list[Context]) -> Mask | None:
    """Rows of the pool whose utterance is, or nearly is, the last turn of a context."""
    if pool is None:
        return None
    from rejoinder.retrieve.leaks import find_leaks

    with pieces_progress("looking for leaks") as advance:
        mask, _ = find_leaks(pool, [c.turns[-1] for c in contexts if c.turns], advance)
    return mask
