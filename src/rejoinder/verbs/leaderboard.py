"""``leaderboard``: how metrics compare on every judged set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output, expand_user
from rejoinder.leaderboards.board import (
    APART,
    Board,
    EvaluatorOnSet,
    MetricFacts,
    MetricOnSet,
    SetBoard,
    Standing,
)
from rejoinder.leaderboards.board_file import BoardFile, JudgedSet, MetricNote, read_board
from rejoinder.leaderboards.columns import RatedSet
from rejoinder.leaderboards.ranking import (
    Place,
    SetColumns,
    SetRanking,
    correlations_of,
    rank_on_set,
    rank_over_sets,
)
from rejoinder.meta_evaluation.ranking import higher_is_better, metric_class
from rejoinder.metrics.costs import MetricCost, read_costs
from rejoinder.trust.cost import Cost, cost_of
from rejoinder.verbs.arguments import RESAMPLES, SEED, as_paths, check_resampling
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult, records_to_columns, to_plain
from rejoinder.verbs.scores import evaluators_in, open_scores
from rejoinder.verbs.source import open_items

if TYPE_CHECKING:
    from rejoinder.evaluator import Evaluator
    from rejoinder.evaluator.contamination import ContaminationReport
    from rejoinder.files.paths import AnyPath

CALIBRATED = "calibrated("


@dataclass(frozen=True)
class LeaderboardResult(TableResult):
    """Metrics on judged sets. The frame has a row per metric and set."""

    board: Board
    notes: Sequence[str] = ()

    def columns(self) -> FrameColumns:
        return records_to_columns(
            [
                {
                    "set": each.name,
                    "metric": row.metric,
                    "standing": row.standing,
                    "first_rank": row.ranks and row.ranks[0],
                    "last_rank": row.ranks and row.ranks[1],
                    "spearman": row.spearman.value,
                    "low": row.spearman.low,
                    "high": row.spearman.high,
                    "scored": row.scored,
                    "coverage": row.coverage,
                }
                for each in self.board.sets
                for row in each.metrics
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = to_plain(self.board)
        return {**plain, "notes": list(self.notes)}

    @property
    def html(self) -> bytes:
        """The page that is written with ``output``."""
        from rejoinder.reporting.leaderboard.page import render

        return render(self.board)


@keep_notes
def leaderboard(
    file: AnyPath,
    *,
    folder: AnyPath | None = None,
    evaluators: AnyPath | Sequence[AnyPath] = (),
    output: AnyPath | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    monitor: Monitor = SILENT,
) -> LeaderboardResult:
    """Compare metrics on every judged set: agreement with people, ranks, costs, contamination.

    ``file`` is TOML and lists the sets with the files of their items, scores and costs, and what is
    known of metrics; its paths are relative to ``folder``, by default the folder of the file. Only
    metrics that scored every rated reply of a set are ranked there. Those that were fitted to
    ratings of the set, or whose settings were chosen on it, are ranked apart; sets on which
    settings of metrics were chosen do not count for the mean over sets. Of the ``evaluators``,
    contexts of the sets in their training data are counted. ``output`` is a page (HTML).
    """
    check_resampling(resamples, seed)
    path = os.fspath(file)
    board_file = read_board(path)
    root = Path(path).parent if folder is None else expand_user(folder)
    folders = as_paths(evaluators)
    named = [name for each in board_file.sets for name in (each.items, *each.scores, *each.costs)]
    check_output(output, [path, *(root / name for name in named), *folders])
    opened = _open_evaluators(folders)
    collected = [_collect(each, root, board_file, opened, monitor) for each in board_file.sets]
    metrics = list(dict.fromkeys(name for each in collected for name in each.rated.scores))
    _check_calibrated(board_file, metrics, path)
    for note in board_file.metrics:
        if note.name not in metrics:
            monitor.warn(f"{path}: no file of scores has the metric '{note.name}'")
    sets: list[SetBoard] = []
    rankings: list[SetRanking] = []
    for each in collected:
        made, ranking = _set_board(each, board_file, resamples, seed + len(sets))
        sets.append(made)
        rankings.append(ranking)
    untouched = [number for number, each in enumerate(sets) if not each.chosen_on]
    overall = rank_over_sets([rankings[number] for number in untouched])
    board = Board(
        board_file.title,
        sets,
        [_facts(name, board_file.note(name), collected, opened) for name in metrics],
        overall,
        [sets[number].name for number in untouched],
        [row for each in collected for row in each.contamination()],
    )
    if not overall:
        monitor.note("no metric is ranked on every set, so there is no mean over sets")
    result = LeaderboardResult(board)
    if output is not None:
        with open_output(output) as stream:
            stream.write(result.html)
    return result


@dataclass
class _Collected:
    """One set with all that its files say."""

    judged: JudgedSet
    rated: RatedSet
    costs: dict[str, MetricCost]
    reports: dict[str, ContaminationReport]
    """By evaluator."""

    def contamination(self) -> list[EvaluatorOnSet]:
        return [
            EvaluatorOnSet(
                name, self.judged.name, each.contexts, each.exact, each.near, each.copied_replies
            )
            for name, each in self.reports.items()
        ]

    def seen_contexts(self, metric: str) -> int | None:
        """Return the largest number of contexts that an evaluator of the metric has seen."""
        used = _digests(self.rated.signatures[metric])
        counts = [
            report.seen for name, report in self.reports.items() if name.partition("@")[2] in used
        ]
        return max(counts, default=None)


def _collect(
    judged: JudgedSet,
    root: Path,
    board: BoardFile,
    evaluators: Sequence[Evaluator],
    monitor: Monitor,
) -> _Collected:
    """Read items, scores and costs of one set."""
    with open_items(str(root / judged.items), monitor=monitor) as source:
        rated = RatedSet.of(list(source.read()), judged.without)
        if not rated.rated:
            raise DataError("no reply has a rating; a judged set needs some")
        systems = {item.system for item in rated.items}
        if unknown := [name for name in judged.without if name not in systems]:
            raise DataError(f"no reply is of the system '{unknown[0]}' that is to be left out")
    for name in judged.scores:
        path = str(root / name)
        rated.add(open_scores(path).lines, path)
    for name in rated.set_metrics:
        monitor.note(f"{judged.name}: {name} scores no single replies: left out")
    costs: dict[str, MetricCost] = {}
    for name in judged.costs:
        costs |= read_costs(root / name)
    return _Collected(judged, rated, costs, _contamination(rated, evaluators))


def _contamination(
    rated: RatedSet, evaluators: Sequence[Evaluator]
) -> dict[str, ContaminationReport]:
    if not evaluators:
        return {}
    from rejoinder.evaluator.contamination import TestSet

    test_set = TestSet.of(rated.rated)
    return {str(evaluator): test_set.report(evaluator) for evaluator in evaluators}


def _open_evaluators(folders: Sequence[str]) -> list[Evaluator]:
    if not folders:
        return []
    from rejoinder.evaluator import open_evaluator

    return [open_evaluator(folder) for folder in folders]


def _check_calibrated(board: BoardFile, metrics: Iterable[str], path: str) -> None:
    """Refuse calibrated metrics of which nobody says to whose ratings they were fitted."""
    for name in metrics:
        if CALIBRATED in name and board.note(name).fitted_to is None:
            raise DataError(
                f"'{name}' was fitted to ratings: add [[metrics]] with its name and fitted_to, the"
                " sets whose ratings it was fitted to ([] if none of these)",
                path=path,
            )


def _set_board(
    collected: _Collected, board: BoardFile, resamples: int, seed: int
) -> tuple[SetBoard, SetRanking]:
    """Return the figures on one set, and the ranking of those that are ranked."""
    rated, judged = collected.rated, collected.judged
    columns = SetColumns(
        rated.human,
        rated.contexts,
        {name: _sign(board.note(name)) * values for name, values in rated.scores.items()},
    )
    figures = correlations_of(columns, resamples, seed)
    replies = len(rated.rated)
    apart = {
        name: _apart(board.note(name), judged.name)
        for name, figure in figures.items()
        if figure.n == replies
    }
    rankings = {
        kind: rank_on_set(columns, [n for n in apart if apart[n] == kind], resamples, seed)
        for kind in (None, *APART)
    }
    rows = []
    for name, figure in figures.items():
        standing: Standing = "incomplete"
        place: Place | None = None
        if name in apart:
            kind = apart[name]
            place = next((p for p in rankings[kind].places if p.metric == name), None)
            standing = "undefined" if place is None else kind or "ranked"
        rows.append(
            MetricOnSet(
                name,
                figure.n,
                figure.n / replies,
                figure.spearman,
                figure.pearson,
                figure.kendall,
                standing,
                place.ranks if place else None,
                collected.seen_contexts(name),
            )
        )
    order = ("ranked", *APART, "incomplete", "undefined")
    rows.sort(key=lambda row: (order.index(row.standing), -(row.spearman.value or 0), row.metric))
    made = SetBoard(
        judged.name,
        judged.title,
        judged.chosen_on,
        replies,
        len(set(columns.contexts.tolist())),
        len(rated.systems),
        rows,
    )
    return made, rankings[None]


def _apart(note: MetricNote, name: str) -> Standing | None:
    """Return why a metric is ranked apart on a set; None if it is not."""
    if name in (note.fitted_to or ()):
        return "fitted"
    return "chosen" if name in note.chosen_on else None


def _is_better_if_higher(note: MetricNote) -> bool:
    return higher_is_better(note.name) and not note.lower_is_better


def _sign(note: MetricNote) -> float:
    return 1.0 if _is_better_if_higher(note) else -1.0


def _facts(
    metric: str, note: MetricNote, sets: Sequence[_Collected], evaluators: Sequence[Evaluator]
) -> MetricFacts:
    """Return what is known of a metric, from its class, its evaluator and the file."""
    cls = metric_class(metric)
    cost = _cost(metric, sets)
    signatures = dict.fromkeys(
        each.rated.signatures[metric] for each in sets if metric in each.rated.signatures
    )
    used = {digest for signature in signatures for digest in _digests(signature)}
    needs = {*getattr(cls, "needs", ()), *(["evaluator"] if used else [])}
    made_of = [_trained_on(each) for each in evaluators if each.digest in used]
    return MetricFacts(
        metric,
        note.about or getattr(cls, "summary", ""),
        note.needs or ", ".join(sorted(needs)),
        note.trained_on or "; ".join(made_of),
        _is_better_if_higher(note),
        list(note.fitted_to or ()),
        list(note.chosen_on),
        note.seconds if cost is None else cost.seconds,
        cost.requests if cost else None,
        cost.tokens if cost else None,
        [each for each in signatures if each],
    )


def _cost(metric: str, sets: Sequence[_Collected]) -> Cost | None:
    """Return what a metric cost over all sets for which that is known."""
    measured = [each.costs[metric] for each in sets if metric in each.costs]
    total = sum(measured, MetricCost(0, 0.0))
    return cost_of(total, None) if total.replies else None


def _trained_on(evaluator: Evaluator) -> str:
    """Return the logs that an evaluator was fitted to."""
    data: Mapping[str, Any] = evaluator.manifest.data
    files = ", ".join(Path(name).name for name in data.get("files", {}))
    pairs = data.get("counts", {}).get("train_taken")
    count = f"{pairs:,} pairs of " if isinstance(pairs, int) else ""
    return f"{count}{files}" if files else ""


def _digests(signature: str) -> set[str]:
    """Return the digests of the evaluators in a signature."""
    return {name.partition("@")[2] for name in evaluators_in(signature)}
