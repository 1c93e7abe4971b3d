"""``pairs``: which pairs of replies to ask people about, and scores from their answers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.files.paths import check_output, reason
from rejoinder.items import Item, item_from
from rejoinder.meta_evaluation.annotators import (
    DISTRACTOR,
    AnnotatorAgreement,
    UnreliableAnnotator,
)
from rejoinder.meta_evaluation.ranking import ALPHA, compare_people
from rejoinder.pairwise.agreement_curve import AgreementPoint, agreement_curve
from rejoinder.pairwise.annotators import comparison_agreement, unreliable_annotators
from rejoinder.pairwise.answers import Comparisons
from rejoinder.pairwise.candidate_scores import METHODS, CandidateScores, score_candidates
from rejoinder.pairwise.output_records import (
    AttachmentReport,
    attach_references,
    question_records,
    rated_candidates,
)
from rejoinder.pairwise.plan import Question, assign_questions, plan_questions
from rejoinder.pairwise.system_ranking import RESAMPLES, SystemRanking, rank_systems
from rejoinder.spec import did_you_mean
from rejoinder.verbs.annotators import check_annotators, check_distractor, limit_problems
from rejoinder.verbs.arguments import (
    MAX_DISTRACTOR,
    MIN_KAPPA,
    SEED,
    as_names,
    as_paths,
    check_resampling,
)
from rejoinder.verbs.items import Items
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.pairs_inputs import read_candidates, read_comparisons, stdin_twice
from rejoinder.verbs.pairs_judge import judge as judge
from rejoinder.verbs.results import (
    FrameColumns,
    Result,
    Svg,
    TableResult,
    records_to_columns,
    to_plain,
)
from rejoinder.verbs.source import naming
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.files.paths import AnyPath
    from rejoinder.pairwise.candidate_scores import ScoringMethod


@dataclass(frozen=True)
class PairsPlanResult(TableResult):
    """The questions to ask. The frame has a row per question."""

    questions: list[dict[str, Any]]
    pairs: int
    contexts: int
    answers: int
    per_context: dict[str, int]

    def columns(self) -> FrameColumns:
        return records_to_columns(self.questions)

    def to_dict(self) -> dict[str, Any]:
        return {
            "pairs": self.pairs,
            "questions": len(self.questions),
            "contexts": self.contexts,
            "answers": self.answers,
            "per_context": self.per_context,
        }


@dataclass(frozen=True)
class PairsFitResult(TableResult):
    """Winning rates of the candidates. The frame has a row per item that was written."""

    items: Items
    """The candidates with ratings, or the items of ``into`` with weighted references."""
    candidates: list[Item]
    scores: CandidateScores
    comparisons: Comparisons
    """The answers of all annotators."""
    before: AnnotatorAgreement
    unreliable: list[UnreliableAnnotator]
    kept: int
    """Answers that were used."""
    after: AnnotatorAgreement | None
    """None if no annotator was dropped."""
    attached: AttachmentReport | None = field(default=None)

    def columns(self) -> FrameColumns:
        return self.items.columns()

    def to_dict(self) -> dict[str, Any]:
        scores = self.scores
        return {
            "by": scores.method,
            "contexts": scores.contexts,
            "scored": int((scores.component >= 0).sum()),
            "unscored": int((scores.component < 0).sum()),
            "disconnected": scores.disconnected,
            "prior_bounded": scores.prior_bounded,
            "circular_triads": scores.circular_triads,
            "triads": scores.triads,
            "answers": len(self.comparisons),
            "repeated": self.comparisons.repeated,
            "contradicting": self.comparisons.contradicting,
            "before": to_plain(self.before),
            "unreliable": to_plain(self.unreliable),
            "after": None if self.after is None else {"answers": self.kept, **to_plain(self.after)},
            "into": self._attached(),
        }

    def _attached(self) -> dict[str, Any] | None:
        if self.attached is None:
            return None
        return {**asdict(self.attached), "unscored": len(self.attached.unscored)}


@dataclass(frozen=True)
class PairsCurveResult(TableResult):
    """Agreement over the share of judged pairs. The frame has a row per share."""

    curve: list[AgreementPoint]

    def columns(self) -> FrameColumns:
        return records_to_columns(to_plain(self.curve))

    def to_dict(self) -> dict[str, Any]:
        return {"curve": to_plain(self.curve)}

    def plot(self) -> Svg:
        """Draw the curve."""
        from rejoinder.reporting.pairs_tables import curve_chart
        from rejoinder.reporting.plots.line_chart import line_chart_svg

        return Svg(line_chart_svg(curve_chart(self.curve)))


@dataclass(frozen=True)
class ByRatings:
    """What the ratings of the same replies say about the systems, as in :func:`compare`."""

    groups: dict[str, str]
    """Letters of the systems, the best first."""
    pairs: int
    """Pairs of systems that both rankings test."""
    alike: int
    """Of them, those with the same verdict: which is better, or that they can't be told apart."""
    opposite: int
    """Those in which both see a difference, but not the same one."""


@dataclass(frozen=True)
class PairsRankResult(TableResult):
    """Ranking of the systems by pairwise answers. The frame has a row per system."""

    ranking: SystemRanking
    by_ratings: ByRatings | None
    """None if no candidate has ratings."""
    notes: Sequence[str] = ()

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "system": each.system,
                    "rank": each.rank,
                    "rank_low": each.rank_ci and each.rank_ci[0],
                    "rank_high": each.rank_ci and each.rank_ci[1],
                    "rate": each.rate,
                    "rate_low": each.rate_ci and each.rate_ci[0],
                    "rate_high": each.rate_ci and each.rate_ci[1],
                    "answers": each.answers,
                    "group": each.group,
                }
                for each in self.ranking.systems
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        return {**to_plain(self.ranking), "by_ratings": to_plain(self.by_ratings)}


@dataclass(frozen=True)
class PairsSimulateResult(Result):
    """The numbers of records that were written to the folder."""

    folder: Path
    candidates: int
    answers: int
    tests: int

    def to_dict(self) -> dict[str, Any]:
        return {"candidates": self.candidates, "answers": self.answers, "tests": self.tests}


@keep_notes
def plan(
    candidates: AnyPath,
    answers: AnyPath | Sequence[AnyPath] = (),
    *,
    count: int | None = None,
    share: float | None = None,
    annotators: str | Sequence[str] = (),
    shared: float = 0.1,
    again: bool = False,
    texts: bool = False,
    output: AnyPath | None = None,
    columns: Columns | None = None,
    strict: bool = False,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PairsPlanResult:
    """Choose the pairs of replies that are most worth asking about next.

    Give the number of pairs (``count``) or the ``share`` of each context's pairs to have asked.
    The pairs are divided among ``annotators``, each of whom gets the ``shared`` part of them.
    ``again`` allows pairs that have answers; ``texts`` adds contexts and replies to the questions;
    ``columns`` says which columns of the candidates hold which field.
    """
    paths, names = as_paths(answers), as_names(annotators)
    problems = [*problems, *stdin_twice([candidates, *paths])]
    if (count is None) == (share is None):
        problems.append(f"how many pairs? Give either {option('count')} or {option('share')}")
    if again and share is not None:
        problems.append(
            f"{option('again', True)} needs {option('count')}: with {option('share')}, pairs that"
            " have answers count as asked"
        )
    for name, value in (("share", share), ("shared", shared)):
        if value is not None and not 0 <= value <= 1:
            problems.append(f"{option(name)} must be from 0 to 1, got {value:g}")
    problems += [
        f"{option('annotators', n)}: given twice" for n, k in Counter(names).items() if k > 1
    ]
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *paths])
    items = read_candidates(candidates, columns, monitor)
    comparisons = read_comparisons(items, paths, strict=strict, monitor=monitor)
    with monitor.pieces("planning") as advance:
        chosen = plan_questions(
            comparisons, count=count, share=share, seed=seed, again=again, on_progress=advance
        )
    assigned: list[tuple[Question, str | None]] = [(question, None) for question in chosen]
    if names:
        common = shared if len(names) > 1 else 0.0
        assigned = list(assign_questions(chosen, names, common, seed, comparisons))
    questions = list(question_records(items, assigned, texts=texts))
    write_jsonl_file(output, questions)
    return PairsPlanResult(
        questions,
        len(chosen),
        len(comparisons.contexts),
        len(comparisons),
        dict(Counter(question.context for question in chosen)),
    )


@keep_notes
def fit(
    candidates: AnyPath,
    answers: AnyPath | Sequence[AnyPath],
    *,
    by: str = "bradley-terry",
    into: AnyPath | None = None,
    per_annotator: bool = False,
    drop_annotators: str | Sequence[str] = (),
    drop_unreliable: bool = False,
    min_kappa: float = MIN_KAPPA,
    max_distractor: float = MAX_DISTRACTOR,
    distractor: str = DISTRACTOR,
    output: AnyPath | None = None,
    columns: Columns | None = None,
    strict: bool = False,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PairsFitResult:
    """Turn answers into winning rates, as ratings of candidates or as weights of references.

    ``by`` is "rate" (counted) or "bradley-terry" (a model of strengths). With ``into``, the
    candidates become weighted references of these items. Annotators who hardly agree with the
    others, or who prefer a planted distractor, are listed, and left out with ``drop_unreliable``.
    """
    paths, names = as_paths(answers), as_names(drop_annotators)
    problems = [
        *problems,
        *stdin_twice([candidates, *paths, *([] if into is None else [into])]),
        *limit_problems(min_kappa, max_distractor),
    ]
    method = _method(by, problems)
    if into is not None and per_annotator:
        problems.append(
            f"{option('per_annotator', True)} gives candidates ratings, {option('into')} weights:"
            " choose one"
        )
    if problems:
        raise UsageError(*problems)
    check_output(output, [candidates, *paths, into])
    items = read_candidates(candidates, columns, monitor)
    check_distractor(distractor, (item.system for item in items))
    everybody = read_comparisons(items, paths, strict=strict, monitor=monitor)
    check_annotators(names, everybody.annotators)
    before = comparison_agreement(everybody, distractor)
    kept = everybody.without(names)
    unreliable = unreliable_annotators(
        kept, min_kappa=min_kappa, max_distractor=max_distractor, distractor=distractor
    )
    if drop_unreliable:
        kept = kept.without([each.name for each in unreliable])
    if not len(kept):
        raise DataError(
            "no answers are left after these annotators are dropped", path=os.fspath(paths[0])
        )
    after = comparison_agreement(kept, distractor) if len(kept) < len(everybody) else None
    with monitor.pieces("fitting") as advance:
        scores = score_candidates(kept, method, advance)
    attached = None
    if into is not None:
        attached = AttachmentReport()
        targets = ItemFile(into, on_note=monitor.note, hints=False)  # columns: of the candidates
        written: list[Any] = list(attach_references(read_items(targets), items, scores, attached))
        if attached.without == attached.items:
            raise DataError(
                "no item replies to a context of a scored candidate", path=os.fspath(into)
            )
    else:
        each = _per_annotator(kept, method, monitor) if per_annotator else None
        written = list(rated_candidates(items, scores, each))
    write_jsonl_file(output, written)
    written_items = [each if isinstance(each, Item) else item_from(each) for each in written]
    return PairsFitResult(
        Items(written_items),
        items,
        scores,
        everybody,
        before,
        unreliable,
        len(kept),
        after,
        attached,
    )


@keep_notes
def rank(
    candidates: AnyPath,
    answers: AnyPath | Sequence[AnyPath],
    *,
    models: str | Sequence[str] = (),
    drop_annotators: str | Sequence[str] = (),
    resamples: int = RESAMPLES,
    columns: Columns | None = None,
    strict: bool = False,
    seed: int = SEED,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PairsRankResult:
    """Rank the systems by pairwise answers of people and language models together.

    Each annotator has a reliability of their own, estimated with the strengths of the systems;
    that of the average person is 1. Annotators whose name begins with "judge", and ``models``, are
    language models. Intervals of ranks and rates come from contexts drawn with replacement. If
    candidates have ratings, the verdicts are compared with those of :func:`compare` by people.
    """
    paths, names, judges = as_paths(answers), as_names(drop_annotators), as_names(models)
    if problems := [*problems, *stdin_twice([candidates, *paths])]:
        raise UsageError(*problems)
    check_resampling(resamples, seed)
    items = read_candidates(candidates, columns, monitor)
    everybody = read_comparisons(items, paths, strict=strict, monitor=monitor)
    check_annotators([*names, *judges], everybody.annotators)
    kept = everybody.without(names)
    if not len(kept):
        raise DataError(
            "no answers are left after these annotators are dropped", path=os.fspath(paths[0])
        )
    with naming(os.fspath(paths[0])), monitor.pieces("drawing") as advance:
        ranking = rank_systems(
            kept, models=judges, resamples=resamples, seed=seed, on_progress=advance
        )
    for note in ranking.notes:
        monitor.note(note)
    return PairsRankResult(ranking, _by_ratings(items, ranking, seed), ranking.notes)


def _by_ratings(items: Sequence[Item], ranking: SystemRanking, seed: int) -> ByRatings | None:
    """Return how far verdicts from ratings are those from answers; None without ratings."""
    if not any(item.rating() is not None for item in items):
        return None
    try:
        rated = compare_people(items, seed=seed)[0][0]
    except DataError:  # one system has ratings, or none shares a context with another
        return None
    found = {(p.better, p.worse): (p.p_adjusted or 1.0) <= ALPHA for p in rated.pairs}
    alike = opposite = count = 0
    for pair in ranking.pairs:
        if pair.p_adjusted is None:
            continue
        same, other = found.get((pair.a, pair.b)), found.get((pair.b, pair.a))
        if same is None and other is None:
            continue
        count += 1
        differ = pair.p_adjusted <= ALPHA
        alike += differ == bool(same) and not other
        opposite += differ and bool(other)
    return ByRatings({row.system: row.group for row in rated.systems}, count, alike, opposite)


@keep_notes
def curve(
    candidates: AnyPath,
    answers: AnyPath | Sequence[AnyPath],
    *,
    draws: int = 20,
    seed: int = SEED,
    columns: Columns | None = None,
    strict: bool = False,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> PairsCurveResult:
    """Measure how many pairs are enough: agreement over the share of judged pairs.

    Winning rates from some of an annotator's answers are compared with those from all of them, and
    with those from all answers of another annotator.
    """
    paths = as_paths(answers)
    if problems := [*problems, *stdin_twice([candidates, *paths])]:
        raise UsageError(*problems)
    items = read_candidates(candidates, columns, monitor)
    comparisons = read_comparisons(items, paths, strict=strict, monitor=monitor)
    with naming(os.fspath(paths[0])), monitor.pieces("drawing") as advance:
        points = agreement_curve(comparisons, draws=draws, seed=seed, on_progress=advance)
    return PairsCurveResult(list(points))


def simulate(
    output: AnyPath,
    *,
    contexts: int = 10,
    references: int = 100,
    tests: int = 20,
    judges: int = 2,
    seed: int = SEED,
) -> PairsSimulateResult:
    """Simulate contexts whose replies have a known quality, and annotators who compare them.

    Writes candidates.jsonl, answers.jsonl (all pairs, by every annotator) and tests.jsonl (further
    replies with their quality as rating) to the folder ``output``. Annotators agree with each
    other and with themselves as those of Sugiyama et al. 2019.
    """
    import numpy as np

    from rejoinder.pairwise.simulate import Simulation

    folder = Path(output)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else "the name is not valid"
        raise UsageError(f"{folder}: cannot be made: {why}") from None
    simulation = Simulation.of(
        np.random.default_rng(seed),
        contexts=contexts,
        references=references,
        tests=tests,
        judges=judges,
    )
    write_jsonl_file(folder / "candidates.jsonl", simulation.candidates)
    write_jsonl_file(folder / "tests.jsonl", simulation.tests)
    write_jsonl_file(folder / "answers.jsonl", simulation.answers)
    return PairsSimulateResult(
        folder, len(simulation.candidates), len(simulation.answers), len(simulation.tests)
    )


def _method(name: str, problems: list[str]) -> ScoringMethod:
    for method in METHODS:
        if method == name:
            return method
    problems.append(f"{option('by', name)}: {did_you_mean(name, METHODS)}")
    return METHODS[0]


def _per_annotator(
    comparisons: Comparisons, method: ScoringMethod, monitor: Monitor
) -> dict[str, CandidateScores]:
    own = {n: comparisons.annotator == k for k, n in enumerate(comparisons.annotators)}
    with monitor.pieces("fitting annotators") as advance:
        return {
            name: score_candidates(comparisons.subset(mask), method, advance)
            for name, mask in own.items()
            if mask.any()
        }
