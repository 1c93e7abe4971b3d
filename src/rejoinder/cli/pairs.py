"""``rejoinder pairs``: which pairs of replies to ask about, and scores from the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.common import (
    JsonOption,
    OutputOption,
    check_output,
    naming,
    pieces_progress,
    print_json,
    progress,
    say,
    show,
)
from rejoinder.errors import DataError, UsageError

if TYPE_CHECKING:
    from rejoinder.items import Item
    from rejoinder.pairwise.annotators import Agreement, Bad
    from rejoinder.pairwise.answers import Comparisons
    from rejoinder.pairwise.fit import Fit, Way
    from rejoinder.pairwise.plan import Question

app = typer.Typer(
    help="Plan comparisons of replies, and turn people's answers into scores.",
    no_args_is_help=True,
)

CandidatesArgument = Annotated[
    str, typer.Argument(metavar="CANDIDATES", help="Items; those of one context are compared.")
]
AnswersArgument = Annotated[
    list[str], typer.Argument(metavar="ANSWERS…", help="JSONL: a, b, winner, annotator.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Refuse answers that contradict their annotator's others.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, help="Decides among equals.")
]


@app.command("plan")
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
    from rejoinder.io import open_output
    from rejoinder.pairwise.plan import plan as planned
    from rejoinder.pairwise.records import questions

    paths = answers or []
    problems = _inputs([candidates, *paths])
    if (count is None) == (share is None):
        problems.append("say how many pairs: either -n N or --share S")
    if again and share is not None:
        problems.append("--again needs -n N: with --share, pairs that have answers count as asked")
    problems += _shares({"--share": share, "--shared": shared})
    names = annotator or []
    problems += [f"--annotator {n}: given twice" for n, k in Counter(names).items() if k > 1]
    if json and _to_stdout(output):
        problems.append("--json prints a summary to stdout, where the pairs go: add -o FILE")
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *paths])
    items = _candidates(candidates)
    comparisons = _answers(items, paths, strict=strict)
    with pieces_progress("planning") as advance:
        chosen = planned(
            comparisons, count=count, share=share, seed=seed, again=again, on_progress=advance
        )
    asked = _asked(chosen, names, shared, seed)
    with open_output(output) as stream:
        _write(stream, list(questions(items, asked, texts=texts)))
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


@app.command("fit")
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
    drop_annotator: Annotated[
        list[str] | None,
        typer.Option("--drop-annotator", metavar="NAME", help="Leave these out; repeat."),
    ] = None,
    drop_bad: Annotated[
        bool, typer.Option("--drop-bad", help="Leave out those who are listed as bad.")
    ] = False,
    least_kappa: Annotated[
        float,
        typer.Option("--least-kappa", metavar="K", help="Below it an annotator is bad."),
    ] = 0.2,
    most_distractor: Annotated[
        float,
        typer.Option(
            "--most-distractor", metavar="S", help="Who prefers distractors more often is bad."
        ),
    ] = 0.25,
    distractor: Annotated[
        str, typer.Option("--distractor", metavar="NAME", help="System of planted bad replies.")
    ] = "distractor",
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """Turn answers into winning rates, as ratings or as weights of references.

    Annotators who hardly agree with the others, or who prefer a planted
    distractor, are listed, and left out with --drop-bad.
    """
    from rejoinder.io import open_output
    from rejoinder.pairwise.annotators import agreement, bad_annotators

    problems = _inputs([candidates, *answers, *([into] if into else [])])
    problems += _shares({"--most-distractor": most_distractor})
    way = _way(by, problems)
    if not -1 <= least_kappa <= 1:
        problems.append(f"--least-kappa must be from -1 to 1, got {least_kappa:g}")
    if into is not None and per_annotator:
        problems.append("--per-annotator gives candidates ratings, --into weights: choose one")
    if json and _to_stdout(output):
        problems.append("--json prints a summary to stdout, where the items go: add -o FILE")
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *answers, *([into] if into else [])])
    items = _candidates(candidates)
    everybody = _answers(items, answers, strict=strict)
    _check_names(drop_annotator or [], everybody)
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
    _print_fit(items, found, laid, to_stdout=_to_stdout(output))


@app.command("curve")
def curve(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    draws: Annotated[
        int, typer.Option("--draws", metavar="N", min=1, max=10_000, help="Draws of each share.")
    ] = 20,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, max=2**63 - 1, help="Seed of the draws.")
    ] = 12345,
    strict: StrictOption = False,
    json: JsonOption = False,
) -> None:
    """How many pairs are enough? Agreement over the share of judged pairs.

    Winning rates from some of an annotator's answers, against those from all of
    them (in annotator) and from all of another's (between annotators).
    """
    from rejoinder.pairwise.agreement import share_curve
    from rejoinder.report.pairs import curve_table

    if problems := _inputs([candidates, *answers]):
        raise UsageError(*problems)
    comparisons = _answers(_candidates(candidates), answers, strict=strict)
    with naming(answers[0]), pieces_progress("drawing") as advance:
        points = share_curve(comparisons, draws=draws, seed=seed, on_progress=advance)
    if json:
        print_json({"curve": [asdict(point) for point in points]})
    else:
        show(curve_table(points))


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
    _write(stream, list(rated(items, found, each)))
    return found, None


def _candidates(path: str) -> list[Item]:
    from rejoinder.io import read_items

    items = list(read_items(path))
    if len({item.group for item in items}) == len(items):
        raise DataError(
            "no two candidates reply to the same context, so there is nothing to compare;"
            " expected items that share a context_id, or the turns of their context",
            path=path,
        )
    return items


def _answers(items: Sequence[Item], paths: Sequence[str], *, strict: bool) -> Comparisons:
    from rejoinder.io import JsonLines
    from rejoinder.pairwise.answers import read_answers

    sources = [JsonLines(path) for path in paths]

    def fraction() -> float | None:
        """Of the file that is being read."""
        return next((s.fraction for s in sources if s.fraction is not None), None)

    with progress("reading", fraction) as advance:
        return read_answers(items, sources, strict=strict, on_progress=advance)


def _inputs(paths: Sequence[str]) -> list[str]:
    return ["only one input can be - (stdin)"] if list(paths).count("-") > 1 else []


def _shares(given: dict[str, float | None]) -> list[str]:
    wrong = {name: s for name, s in given.items() if s is not None and not 0 <= s <= 1}
    return [f"{name} must be from 0 to 1, got {value:g}" for name, value in wrong.items()]


def _way(name: str, problems: list[str]) -> Way:
    from rejoinder.pairwise.fit import WAYS
    from rejoinder.spec import did_you_mean

    for way in WAYS:
        if way == name:
            return way
    problems.append(f"--by {name}: {did_you_mean(name, WAYS)}")
    return WAYS[0]


def _check_names(names: Sequence[str], comparisons: Comparisons) -> None:
    from rejoinder.spec import did_you_mean

    there = comparisons.annotators
    if unknown := [name for name in names if name not in there]:
        raise UsageError(*(f"--drop-annotator {n}: {did_you_mean(n, there)}" for n in unknown))


def _to_stdout(output: Path | None) -> bool:
    return output is None or str(output) == "-"


def _asked(
    chosen: Sequence[Question], names: Sequence[str], shared: float, seed: int
) -> list[tuple[Question, str | None]]:
    from rejoinder.pairwise.plan import dealt

    if not names:
        return [(question, None) for question in chosen]
    return list(dealt(chosen, names, shared if len(names) > 1 else 0.0, seed))


def _write(stream: Any, records: Sequence[dict[str, Any]]) -> None:
    import msgspec

    if records:
        stream.write(msgspec.json.Encoder().encode_lines(records))


def _print_annotators(everybody: Comparisons, before: Agreement, bad: Sequence[Bad]) -> None:
    from rejoinder.report.pairs import annotators_table

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
    from rejoinder.report.pairs import agreement_line

    say(prefix + agreement_line(found, answers))


def _print_fit(
    items: Sequence[Item], found: Fit, laid: dict[str, Any] | None, *, to_stdout: bool
) -> None:
    from rejoinder.meta.join import listed
    from rejoinder.report.pairs import systems_table

    show(systems_table(items, found), stderr=to_stdout)
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
