"""``rejoinder pairs``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import (
    AnswersArgument,
    CandidatesArgument,
    ColumnsOption,
    DistractorOption,
    DropAnnotatorOption,
    DropUnreliableOption,
    JsonOption,
    LanguageOption,
    MaxDistractorOption,
    MinKappaOption,
    OutputOption,
    ResamplesOption,
    StrictAnswersOption,
    SvgOption,
    count_option,
    flag,
    output_folder,
    parse_columns,
    seed_option,
    stdout_problems,
    svg_problems,
)
from rejoinder.cli.terminal import draw, print_json, say, show
from rejoinder.verbs.arguments import MAX_DISTRACTOR, MIN_KAPPA, SEED

if TYPE_CHECKING:
    from rejoinder.verbs.pairs import PairsFitResult

app = typer.Typer(
    help="Plan comparisons of replies, and turn people's answers into scores.",
    no_args_is_help=True,
)


@app.command("plan")
def plan(
    candidates: CandidatesArgument,
    answers: Annotated[
        list[str] | None,
        typer.Argument(metavar="ANSWERS", help="Answers so far (JSONL)."),
    ] = None,
    count: Annotated[
        int | None,
        count_option("--pairs", "Number of pairs to ask about.", short="-n"),
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
        typer.Option("--annotator", metavar="NAME", help="Divide the pairs among these."),
    ] = None,
    shared: Annotated[
        float,
        typer.Option("--shared", metavar="S", help="Share of the pairs that all annotators get."),
    ] = 0.1,
    again: Annotated[bool, flag("--again", "Also ask pairs that have answers.")] = False,
    texts: Annotated[bool, flag("--texts", "Write contexts and replies beside their ids.")] = False,
    seed: Annotated[int, seed_option("Random seed; breaks ties.")] = SEED,
    columns: ColumnsOption = None,
    strict: StrictAnswersOption = False,
    json: JsonOption = False,
) -> None:
    """Choose the pairs of replies that are most worth asking about next.

    Ask a few, let people answer, plan again with all ANSWERS: that needs about half as many
    comparisons as pairs drawn at random. A line of the plan becomes an answer when "winner": "a",
    "b" or "tie" is added.
    """
    from rejoinder.verbs import pairs

    result = pairs.plan(
        candidates,
        answers or (),
        count=count,
        share=share,
        annotators=annotator or (),
        shared=shared,
        again=again,
        texts=texts,
        output="-" if output is None else output,
        columns=parse_columns(columns),
        strict=strict,
        seed=seed,
        problems=stdout_problems(json, output, "pairs"),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    say(
        f"{result.pairs:,} pairs of {len(result.per_context):,} contexts,"
        f" {len(result.questions):,} questions; {result.answers:,} answers so far"
    )
    if count is not None and result.pairs < count:
        say(f"{count - result.pairs:,} fewer than asked for: all other pairs have answers")


@app.command("judge")
def judge(
    candidates: CandidatesArgument,
    answers: Annotated[
        list[str] | None,
        typer.Argument(metavar="ANSWERS", help="Answers so far (JSONL)."),
    ] = None,
    judge: Annotated[
        str,
        typer.Option(
            "--judge",
            "-m",
            metavar="SPEC",
            help="Such as 'judge-pairs(url=http://localhost:8000/v1,model=qwen3)'.",
        ),
    ] = "judge-pairs",
    budget: Annotated[
        int | None, count_option("--budget", "Ask as many pairs as N requests suffice for.")
    ] = None,
    count: Annotated[
        int | None, count_option("--pairs", "Number of pairs to ask about.", short="-n")
    ] = None,
    share: Annotated[
        float | None,
        typer.Option("--share", metavar="S", help="Up to this share of each context's pairs."),
    ] = None,
    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--questions",
            metavar="FILE",
            help="Ask these pairs: a plan, or answers of people; repeatable.",
        ),
    ] = None,
    rounds: Annotated[
        int, count_option("--rounds", "Plan again so many times, from the answers.", max=10_000)
    ] = 10,
    output: OutputOption = None,
    columns: ColumnsOption = None,
    language: LanguageOption = None,
    strict: StrictAnswersOption = False,
    seed: Annotated[int, seed_option("Random seed; breaks ties.")] = SEED,
    json: JsonOption = False,
) -> None:
    """Ask a language model which of two replies is better, in both orders.

    If the orders disagree, the pair is a tie. The answers are what 'fit' takes. Without --budget,
    --pairs, --share or --questions, all pairs are asked about. Answers are cached: a killed run
    goes on where it was, and a second run asks nothing.
    """
    from rejoinder.verbs import pairs

    result = pairs.judge(
        candidates,
        judge,
        answers or (),
        budget=budget,
        count=count,
        share=share,
        questions=questions or (),
        rounds=rounds,
        output="-" if output is None else output,
        columns=parse_columns(columns),
        language=language,
        strict=strict,
        seed=seed,
        problems=stdout_problems(json, output, "answers"),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    from rejoinder.reporting.pairs_tables import judged_lines

    for line in judged_lines(result.judged, result.sent):
        say(line)


@app.command("fit")
def fit(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    output: OutputOption = None,
    by: Annotated[
        str, typer.Option("--by", metavar="METHOD", help="rate (counted) or bradley-terry.")
    ] = "bradley-terry",
    into: Annotated[
        str | None,
        typer.Option(
            "--into", metavar="ITEMS", help="Write these, with candidates as weighted references."
        ),
    ] = None,
    per_annotator: Annotated[
        bool, flag("--per-annotator", "Write a rating of each annotator, not one number.")
    ] = False,
    drop_annotator: DropAnnotatorOption = None,
    drop_unreliable: DropUnreliableOption = False,
    min_kappa: MinKappaOption = MIN_KAPPA,
    max_distractor: MaxDistractorOption = MAX_DISTRACTOR,
    distractor: DistractorOption = "distractor",
    columns: ColumnsOption = None,
    strict: StrictAnswersOption = False,
    json: JsonOption = False,
) -> None:
    """Turn answers into winning rates, as ratings or as weights of references.

    Annotators who hardly agree with the others, or who prefer a planted distractor, are listed, and
    dropped with --drop-unreliable.
    """
    from rejoinder.verbs import pairs

    result = pairs.fit(
        candidates,
        answers,
        by=by,
        into=into,
        per_annotator=per_annotator,
        drop_annotators=drop_annotator or (),
        drop_unreliable=drop_unreliable,
        min_kappa=min_kappa,
        max_distractor=max_distractor,
        distractor=distractor,
        output="-" if output is None else output,
        columns=parse_columns(columns),
        strict=strict,
        problems=stdout_problems(json, output, "items"),
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    _print_annotators(result)
    _print_fit(result, stderr=output is None or str(output) == "-")


@app.command("rank")
def rank(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="An annotator that is a language model, besides judge…; repeatable.",
        ),
    ] = None,
    drop_annotator: DropAnnotatorOption = None,
    resamples: ResamplesOption = 2000,
    seed: Annotated[int, seed_option()] = SEED,
    columns: ColumnsOption = None,
    strict: StrictAnswersOption = False,
    json: JsonOption = False,
) -> None:
    """Rank the systems by pairwise answers of people and language models together.

    Each annotator has a reliability, estimated with the ranking: answers at random count nothing.
    Ranks and rates have 95 % intervals, from contexts drawn with replacement; systems that share a
    letter can't be told apart. With ratings, the verdicts are compared with those of 'compare'.
    """
    from rejoinder.reporting import pairs_tables as tables
    from rejoinder.verbs import pairs

    result = pairs.rank(
        candidates,
        answers,
        models=model or (),
        drop_annotators=drop_annotator or (),
        resamples=resamples,
        columns=parse_columns(columns),
        strict=strict,
        seed=seed,
        monitor=TerminalMonitor(),
    )
    if json:
        print_json(result)
        return
    show(tables.ranking_table(result.ranking))
    show(tables.reliability_table(result.ranking))
    say(tables.ranking_line(result.ranking))
    if (rated := result.by_ratings) is not None:
        say(
            f"the ratings of the candidates say the same of {rated.alike:,} of {rated.pairs:,}"
            f" pairs of systems, and the opposite of {rated.opposite:,}"
        )


@app.command("curve")
def curve(
    candidates: CandidatesArgument,
    answers: AnswersArgument,
    draws: Annotated[
        int,
        count_option("--draws", "Random draws of each share.", max=10_000),
    ] = 20,
    seed: Annotated[int, seed_option()] = SEED,
    svg: SvgOption = None,
    columns: ColumnsOption = None,
    strict: StrictAnswersOption = False,
    json: JsonOption = False,
) -> None:
    """Measure how many pairs are enough: agreement over the share of judged pairs.

    Winning rates from some of an annotator's answers, compared with those from all of them (within
    annotator) and from all answers of another annotator (between annotators).
    """
    from rejoinder.files.paths import check_output
    from rejoinder.reporting.pairs_tables import curve_table
    from rejoinder.verbs import pairs

    check_output(svg, [candidates, *answers])
    result = pairs.curve(
        candidates,
        answers,
        draws=draws,
        seed=seed,
        columns=parse_columns(columns),
        strict=strict,
        problems=svg_problems(svg),
        monitor=TerminalMonitor(),
    )
    if svg is not None:
        draw(svg, result.plot())
    if json:
        print_json(result)
    else:
        show(curve_table(result.curve))


@app.command("simulate")
def simulate(
    output: Annotated[Path, output_folder("Folder of the files.")],
    contexts: Annotated[int, count_option("--contexts", "Number of contexts.", max=10_000)] = 10,
    references: Annotated[
        int, count_option("--references", "Of each context.", min=3, max=1000)
    ] = 100,
    tests: Annotated[int, count_option("--tests", "Further replies to each.", max=1000)] = 20,
    judges: Annotated[int, count_option("--judges", "Number of annotators.", max=100)] = 2,
    seed: Annotated[int, seed_option()] = SEED,
    json: JsonOption = False,
) -> None:
    """Simulate contexts whose replies have a known quality, and annotators who compare them.

    Writes candidates.jsonl, answers.jsonl (all pairs, by every annotator) and tests.jsonl (further
    replies with their quality as rating). Annotators agree with each other and with themselves as
    those of Sugiyama et al. 2019.
    """
    from rejoinder.verbs import pairs

    result = pairs.simulate(
        output, contexts=contexts, references=references, tests=tests, judges=judges, seed=seed
    )
    if json:
        print_json(result)
    else:
        counts = (f"{count:,} {what}" for what, count in result.to_dict().items())
        say(f"{', '.join(counts)} in {output}")


def _print_annotators(result: PairsFitResult) -> None:
    from rejoinder.reporting.annotator_tables import agreement_line, annotators_table

    if result.before.annotators:
        show(annotators_table(result.before, result.unreliable), stderr=True)
    answers = result.comparisons
    say(agreement_line(result.before, len(answers)))
    for count, what in ((answers.repeated, "repeat"), (answers.contradicting, "contradict")):
        if count:
            say(f"{count:,} answers {what} an earlier one of their annotator: they share one vote")
    if result.after is not None:
        say(f"without those dropped: {agreement_line(result.after, result.kept)}")


def _print_fit(result: PairsFitResult, *, stderr: bool) -> None:
    from rejoinder.meta_evaluation.join import abbreviated
    from rejoinder.reporting.pairs_tables import systems_table

    scores, items = result.scores, result.candidates
    show(systems_table(items, scores), stderr=stderr)
    if missing := int((scores.component < 0).sum()):
        say(f"{missing:,} of {len(items):,} candidates have no score: they were never compared")
    if scores.disconnected:
        say(
            f"{len(scores.disconnected):,} contexts fall into parts that no comparison connects;"
            f" scores are comparable within a part only: {abbreviated(scores.disconnected)}"
        )
    if scores.prior_bounded and scores.method == "bradley-terry":
        say(
            f"{scores.prior_bounded:,} candidates always won, or lost, against a part of the"
            " others: only the prior keeps their strengths finite"
        )
    if scores.circular_triads:
        say(
            f"{scores.circular_triads:,} of {scores.triads:,} triads are circular: each reply is"
            " preferred to the next"
        )
    if (attached := result.attached) is not None:
        say(
            f"{attached.items:,} items with {attached.references:,} weighted references,"
            f" instead of the {attached.replaced:,} that they had"
        )
        if attached.without:
            say(f"{attached.without:,} items have none: no candidate of their context has a score")
