"""``rejoinder pairs fit``: winning rates from people's answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.annotators import (
    DISTRACTOR,
    LEAST_KAPPA,
    MOST_DISTRACTOR,
    DistractorOption,
    DropAnnotatorOption,
    DropBadOption,
    LeastKappaOption,
    MostDistractorOption,
    check_distractor,
    check_names,
    wrong_limits,
)
from rejoinder.cli.common import JsonOption, OutputOption, check_output, print_json, say, show
from rejoinder.cli.pairs.common import (
    AnswersArgument,
    CandidatesArgument,
    StrictOption,
    read_candidates,
    read_comparisons,
    stdin_twice,
    to_stdout,
)
from rejoinder.cli.progress import pieces_progress
from rejoinder.errors import DataError, UsageError

if TYPE_CHECKING:
    from rejoinder.items import Item
    from rejoinder.meta_evaluation.annotators import Agreement, Bad
    from rejoinder.pairwise.answers import Comparisons
    from rejoinder.pairwise.fit import Fit, Way


def fit(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    output: OutputOption = None,
    by: Annotated[
        str, typer.Option("--by", metavar="WAY", help="rate (counted) or bradley-terry.")
    ] = "bradley-terry",
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="ITEMS", help="Write these, with candidates as weighted references."
        ),
    ] = None,
    per_annotator: Annotated[
        bool, typer.Option("--per-annotator", help="Ratings of each annotator, not one number.")
    ] = False,
    drop_annotator: DropAnnotatorOption = None,
    drop_bad: DropBadOption = False,
    least_kappa: LeastKappaOption = LEAST_KAPPA,
    most_distractor: MostDistractorOption = MOST_DISTRACTOR,
    distractor: DistractorOption = DISTRACTOR,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Turn answers into winning rates, as ratings or as weights of references.

    Annotators who hardly agree with the others, or who prefer a planted
    distractor, are listed, and left out with --drop-bad.
    """
    from rejoinder.io import open_output
    from rejoinder.pairwise.annotators import agreement, bad_annotators

    problems = stdin_twice([candidates, *answers, *([into] if into else [])])
    problems += wrong_limits(least_kappa, most_distractor)
    way = _way(by, problems)
    if into is not None and per_annotator:
        problems.append("--per-annotator gives candidates ratings, --into weights: choose one")
    if json and to_stdout(output):
        problems.append("--json prints a summary to stdout, where the items go: add -o FILE")
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *answers, *([into] if into else [])])
    items = read_candidates(candidates)
    check_distractor(distractor, (item.system for item in items))
    everybody = read_comparisons(items, answers, strict=strict)
    check_names(drop_annotator or [], everybody.annotators)
    before = agreement(everybody, distractor)
    kept = everybody.without(drop_annotator or [])
    bad = bad_annotators(
        kept, least_kappa=least_kappa, most_preferred=most_distractor, distractor=distractor
    )
    if drop_bad:
        kept = kept.without([each.name for each in bad])
    if not len(kept):
        raise DataError("no answers are left when these annotators are left out", path=answers[0])
    dropped = len(kept) < len(everybody)
    after = agreement(kept, distractor) if dropped else None
    with open_output(output) as stream:
        found, laid = _fitted(stream, items, kept, way, into=into, per_annotator=per_annotator)
    judged = {
        "answers": len(everybody),
        "repeated": everybody.repeated,
        "contradicting": everybody.contradicting,
        "before": asdict(before),
        "bad": [asdict(each) for each in bad],
        "after": None if after is None else {"answers": len(kept), **asdict(after)},
    }
    if json:
        print_json({**_plain(found), **judged, "into": laid})
        return
    _print_annotators(everybody, before, bad)
    if after is not None:
        _say_agreement("without those left out: ", after, len(kept))
    _print_fit(items, found, laid, on_stdout=to_stdout(output))


def _fitted(
    stream: Any,
    items: Sequence[Item],
    kept: Comparisons,
    way: Way,
    *,
    into: str | None,
    per_annotator: bool,
) -> tuple[Fit, dict[str, Any] | None]:
    """Fit and write; with ``into`` also what became of the items there."""
    from rejoinder.io import read_items, write_jsonl
    from rejoinder.pairwise.fit import fit as fitted
    from rejoinder.pairwise.records import Account, rated
    from rejoinder.pairwise.records import into as laid_into

    with pieces_progress("fitting") as advance:
        found = fitted(kept, way, advance)
    if into is not None:
        account = Account()
        laid = list(laid_into(read_items(into), items, found, account))
        if account.without == account.items:
            raise DataError("no item replies to a context of a scored candidate", path=into)
        write_jsonl(stream, laid)
        return found, {**asdict(account), "unscored": len(account.unscored)}
    each = None
    if per_annotator:
        alone = {name: kept.annotator == number for number, name in enumerate(kept.annotators)}
        with pieces_progress("fitting annotators") as advance:
            each = {
                name: fitted(kept.only(own), way, advance)
                for name, own in alone.items()
                if own.any()
            }
    write_jsonl(stream, list(rated(items, found, each)))
    return found, None


def _way(name: str, problems: list[str]) -> Way:
    from rejoinder.pairwise.fit import WAYS
    from rejoinder.spec import did_you_mean

    for way in WAYS:
        if way == name:
            return way
    problems.append(f"--by {name}: {did_you_mean(name, WAYS)}")
    return WAYS[0]


def _print_annotators(everybody: Comparisons, before: Agreement, bad: Sequence[Bad]) -> None:
    from rejoinder.reporting.annotators import annotators_table

    if before.annotators:
        show(annotators_table(before, bad), stderr=True)
    _say_agreement("", before, len(everybody))
    for count, what in (
        (everybody.repeated, "repeat"),
        (everybody.contradicting, "contradict"),
    ):
        if count:
            say(f"{count:,} answers {what} an earlier one of their annotator: they share one vote")


def _say_agreement(prefix: str, found: Agreement, answers: int) -> None:
    from rejoinder.reporting.annotators import agreement_line

    say(prefix + agreement_line(found, answers))


def _print_fit(
    items: Sequence[Item], found: Fit, laid: dict[str, Any] | None, *, on_stdout: bool
) -> None:
    from rejoinder.meta_evaluation.join import listed
    from rejoinder.reporting.pairs import systems_table

    show(systems_table(items, found), stderr=on_stdout)
    missing = int((found.part < 0).sum())
    if missing:
        say(f"{missing:,} of {len(items):,} candidates have no score: nobody compared them")
    if found.unconnected:
        say(
            f"{len(found.unconnected):,} contexts fall into parts that no comparison connects;"
            f" scores are comparable inside one only: {listed(found.unconnected)}"
        )
    if found.bounded and found.way == "bradley-terry":
        say(
            f"{found.bounded:,} candidates always won, or lost, against a part of the others: only"
            " the prior keeps their strengths finite"
        )
    if found.circles:
        say(
            f"{found.circles:,} of {found.triples:,} triples go in a circle:"
            " each is preferred to the next"
        )
    if laid is not None:
        say(
            f"{laid['items']:,} items with {laid['references']:,} weighted references,"
            f" instead of {laid['replaced']:,} that they had"
        )
        if laid["without"]:
            say(f"{laid['without']:,} items have none: no candidate of their context has a score")


def _plain(found: Fit) -> dict[str, Any]:
    return {
        "by": found.way,
        "contexts": found.contexts,
        "scored": int((found.part >= 0).sum()),
        "unscored": int((found.part < 0).sum()),
        "unconnected": found.unconnected,
        "bounded": found.bounded,
        "circles": found.circles,
        "triples": found.triples,
    }
