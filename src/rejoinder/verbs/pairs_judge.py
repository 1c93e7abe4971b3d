"""``pairs judge``: a language model says which of two replies is better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.files.jsonl import JsonLines, write_jsonl_file
from rejoinder.files.paths import check_output
from rejoinder.llm.asking import Telling
from rejoinder.pairwise.answers import answer_lines, read_questions
from rejoinder.pairwise.judged import Judged, answer_records, judge_pairs, judge_planned
from rejoinder.registry import PAIR_JUDGES
from rejoinder.spec import Spec, parse
from rejoinder.verbs.arguments import SEED, as_paths
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.pairs_inputs import read_candidates, stdin_twice
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath
    from rejoinder.judges.pair_judge import PairJudge

ROUNDS = 10


@dataclass(frozen=True)
class PairsJudgeResult(TableResult):
    """The answers of a judge. The frame has a row per answer."""

    judge: str
    records: list[dict[str, Any]] = field(repr=False)
    judged: Judged = field(repr=False)
    sent: int
    """Requests that were sent; the other answers were in the cache."""

    def columns(self) -> FrameColumns:
        return records_to_columns(self.records)

    def to_dict(self) -> dict[str, Any]:
        judged = self.judged
        return {
            "judge": self.judge,
            "pairs": len(judged.pairs),
            "rounds": judged.rounds,
            "answers": judged.answers,
            "ties": judged.ties,
            "same": judged.same,
            "disagreements": judged.disagreements,
            "first": judged.first,
            "second": judged.second,
            "unanswered": judged.unanswered,
            "requests": sum(each.cost.requests for each in judged.comparisons),
            "tokens": sum(each.cost.tokens for each in judged.comparisons),
            "notes": list(self.notes),
        }


@keep_notes
def judge(
    candidates: AnyPath,
    judge: str | PairJudge,
    answers: AnyPath | Sequence[AnyPath] = (),
    *,
    budget: int | None = None,
    count: int | None = None,
    share: float | None = None,
    questions: AnyPath | Sequence[AnyPath] = (),
    rounds: int = ROUNDS,
    output: AnyPath | None = None,
    columns: Columns | None = None,
    language: str | None = None,
    strict: bool = False,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PairsJudgeResult:
    """Ask a language model which of two replies is better, in both orders.

    ``judge`` is a spec such as "judge-pairs(url=http://localhost:8000/v1,model=qwen3)". Asked about
    are the pairs that are most informative: as many as a ``budget`` of requests suffices for,
    ``count`` of them, a ``share`` of each context's pairs, or, without any of these, all. They are
    planned in ``rounds``, each from the answers so far and ``answers`` that there are already. With
    ``questions``, the pairs of these files are asked about instead: plans, or answers of people. If
    the orders disagree, the pair is a tie. The answers are what :func:`fit` takes. What a
    ``PairJudge`` may spend holds for each call.
    """
    paths, asked = as_paths(answers), as_paths(questions)
    problems = [*problems, *stdin_twice([candidates, *paths, *asked])]
    problems += _problems(budget, count, share, paths, asked, rounds)
    made, wrong = _made(judge, language, budget)
    if problems or made is None:
        raise UsageError(*problems, *wrong)
    if (missing := made.missing_model(made.name)) is not None:
        raise UsageError(f"{made.name} {missing}")
    each = made.comparer.requests_per_pair
    if budget is not None and budget < each:
        raise UsageError(f"{option('budget', budget)}: one pair takes {each} requests")
    check_output(output, [candidates, *paths, *asked])
    items = read_candidates(candidates, columns, monitor)
    pairs = read_questions(items, [JsonLines(path) for path in asked])
    before = list(answer_lines([JsonLines(path) for path in paths]))

    def announce(total: int, in_rounds: int) -> None:
        how = f", in {in_rounds:,} rounds" if in_rounds > 1 else ""
        monitor.message(f"{total:,} pairs in both orders: {total * each:,} requests{how}")

    with monitor.pieces("asking") as advance:
        telling = Telling(monitor.message, monitor.note, advance)
        if asked:
            announce(len(pairs), 1)
            judged = judge_pairs(items, pairs, made, telling)
        else:
            most = count if budget is None else budget // each
            judged = judge_planned(
                items,
                before,
                made,
                count=most,
                share=1.0 if most is None and share is None else share,
                rounds=rounds,
                seed=seed,
                strict=strict,
                telling=telling,
                on_plan=announce,
            )
    records = list(answer_records(items, judged, made))
    write_jsonl_file(output, records)
    for text in made.comparer.notes():
        monitor.note(f"{made.name}: {text}")
    if (warning := _warning(judged)) is not None:
        monitor.warn(f"{made.name}: {warning}")
    return PairsJudgeResult(str(made), records, judged, made.asker.spending.requests)


def _problems(
    budget: int | None,
    count: int | None,
    share: float | None,
    answers: Sequence[str],
    questions: Sequence[str],
    rounds: int,
) -> list[str]:
    problems = []
    sizes = {"budget": budget, "count": count, "share": share}
    given = [option(name) for name, value in sizes.items() if value is not None]
    if len(given) > 1:
        problems.append(f"how many pairs? Give one of {', '.join(given)}")
    if questions and (count is not None or share is not None or answers):
        problems.append(
            f"{option('questions')} names the pairs: leave out answers, {option('count')} and"
            f" {option('share')}"
        )
    if share is not None and not 0 <= share <= 1:
        problems.append(f"{option('share')} must be from 0 to 1, got {share:g}")
    for name, value in (("count", count), ("rounds", rounds)):
        if value is not None and value < 1:
            problems.append(f"{option(name)} must be at least 1, got {value}")
    return problems


def _made(
    judge: str | PairJudge, language: str | None, budget: int | None
) -> tuple[PairJudge | None, Sequence[str]]:
    """Return the judge with its language and budget, or what is wrong with its spec."""
    try:
        made: PairJudge = (
            judge
            if not isinstance(judge, str)
            else PAIR_JUDGES.make(_in_language(parse(judge), language))
        )
    except UsageError as error:
        return None, error.messages
    most = budget if made.most_requests is None else made.most_requests
    # a copy, as an object that has judged before counts what it spent and saw then
    return replace(made, most_requests=most), ()


def _in_language(spec: Spec, language: str | None) -> Spec:
    if language is None or "language" in dict(spec.params):
        return spec
    return Spec(spec.name, (*spec.params, ("language", language)))


def _warning(judged: Judged) -> str | None:
    """Return what is wrong with a judge that answers by position."""
    asked = judged.answers - judged.same
    if not asked or judged.disagreements * 2 <= asked:
        return None
    share = f"{judged.disagreements:,} of {asked:,} pairs"
    if judged.first == asked or judged.second == asked:
        which = "first" if judged.first else "second"
        return (
            f"the model preferred the reply that stood {which} in all {asked:,} pairs, in both"
            " orders: every answer is a tie, and says nothing about the replies"
        )
    return f"the orders disagree in {share}: these are ties, and say little about the replies"
