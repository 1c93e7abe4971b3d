"""Tables and charts of ``rejoinder pairs``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from rejoinder.items import Item
from rejoinder.pairwise.agreement_curve import AgreementPoint
from rejoinder.pairwise.candidate_scores import CandidateScores
from rejoinder.pairwise.judged import Judged
from rejoinder.pairwise.system_ranking import SystemRanking
from rejoinder.reporting.plots.line_chart import Line, LineChart
from rejoinder.reporting.tables import number, plain_table

MAX_ROWS = 30
"""Systems that are printed."""


def systems_table(candidates: Sequence[Item], scores: CandidateScores) -> Table:
    """Return the mean winning rate of each system's candidates."""
    table = plain_table(
        "system",
        "candidates",
        "winning rate",
        "standard error",
        "votes per candidate",
        right=[1, 2, 3, 4],
        title="Winning rates (standard error: mean over candidates)",
    )
    numbers: dict[str, list[int]] = {}
    for place, item in enumerate(candidates):
        if scores.component[place] >= 0:
            numbers.setdefault(item.system, []).append(place)
    means = {system: float(scores.rate[own].mean()) for system, own in numbers.items()}
    for system in sorted(means, key=lambda name: -means[name])[:MAX_ROWS]:
        own = np.array(numbers[system])
        table.add_row(
            system,
            f"{own.size:,}",
            number(means[system], 3),
            number(float(scores.error[own].mean()), 3),
            f"{scores.votes[own].mean():.1f}",
        )
    return table


def ranking_table(ranking: SystemRanking) -> Table:
    """Return the systems by rank, with intervals."""
    people = any(each.rate_by_people is not None for each in ranking.systems)
    table = plain_table(
        "rank",
        "system",
        "ranks",
        "preferred",
        "95 %",
        *(["by people"] if people else []),
        "answers",
        "group",
        right=[0, 2, 3, 4, 5, *([6] if people else [])],
        title="Systems by pairwise answers (preferred: to another system, by the average person)",
    )
    for each in ranking.systems[:MAX_ROWS]:
        ranks = "" if each.rank_ci is None else f"{each.rank_ci[0]} to {each.rank_ci[1]}"
        ends = each.rate_ci
        between = "" if ends is None else f"{number(ends[0], 3)} to {number(ends[1], 3)}"
        table.add_row(
            str(each.rank),
            each.system,
            ranks,
            number(each.rate, 3),
            between,
            *([number(each.rate_by_people, 3)] if people else []),
            f"{each.answers:,.0f}",
            each.group,
        )
    return table


def reliability_table(ranking: SystemRanking) -> Table:
    """Return the reliability of each annotator, the highest first."""
    table = plain_table(
        "annotator",
        "answers",
        "reliability",
        "95 %",
        "agrees",
        right=[1, 2, 3, 4],
        title="Annotators (1: the average person; 0: at random; agrees: with the ranking)",
    )
    for each in ranking.judges[:MAX_ROWS]:
        ends = "" if each.ci is None else f"{number(each.ci[0], 2)} to {number(each.ci[1], 2)}"
        name = f"{each.name} (model)" if each.model else each.name
        table.add_row(
            name, f"{each.answers:,.0f}", number(each.reliability, 2), ends, f"{each.agrees:.0%}"
        )
    return table


def ranking_line(ranking: SystemRanking) -> str:
    """Return what the ranking is made of."""
    draws = f"; intervals from {ranking.resamples:,} draws of contexts" * bool(ranking.resamples)
    return (
        f"{ranking.answers:,.0f} answers of {len(ranking.judges):,} annotators about"
        f" {len(ranking.systems):,} systems in {ranking.contexts:,} contexts{draws}"
    )


def judged_lines(judged: Judged, sent: int) -> list[str]:
    """Return what a judge of pairs answered, in words."""
    pairs, requests = len(judged.pairs), sum(each.cost.requests for each in judged.comparisons)
    lines = [
        f"{pairs:,} pairs, {judged.answers:,} answers, of which {judged.ties:,} are ties;"
        f" {sent:,} requests sent, {max(requests - sent, 0):,} answers from the cache"
    ]
    if judged.disagreements:
        lines.append(
            f"the orders disagree in {judged.disagreements:,} pairs, which are ties: in"
            f" {judged.first:,} the reply that stood first was preferred both times, in"
            f" {judged.second:,} the second"
        )
    if judged.same:
        lines.append(f"{judged.same:,} pairs have the same reply twice: ties, not asked about")
    for kind, count in judged.unanswered.items():
        example = next(each.reason for each in judged.comparisons if each.kind == kind)
        such = "" if example == kind else f"; one is {example.removeprefix(kind).lstrip(': ')}"
        lines.append(f"{count:,} without an answer: {kind}{such}")
    return lines


def curve_table(curve: Sequence[AgreementPoint]) -> Table:
    """Return the agreement by share of answers (Figure 2 of Sugiyama et al. 2019)."""
    table = plain_table(
        "share",
        "pairs",
        "within annotator",
        "±",
        "between annotators",
        "±",
        right=range(6),
        title="Correlation of winning rates from a share with those from all answers",
    )
    for point in curve:
        table.add_row(
            f"{point.share:.0%}",
            f"{point.pairs:,.0f}",
            number(point.within, 3),
            number(point.within_std, 3),
            number(point.between, 3),
            number(point.between_std, 3),
        )
    return table


def curve_chart(curve: Sequence[AgreementPoint]) -> LineChart:
    """Return the agreement by share of answers as a chart."""
    shares = [point.share for point in curve]

    def line(label: str, mean: Sequence[float | None], spread: Sequence[float | None]) -> Line:
        ends = [
            (None, None) if m is None or s is None else (m - s, m + s)
            for m, s in zip(mean, spread, strict=True)
        ]
        return Line(label, shares, mean, [low for low, _ in ends], [high for _, high in ends])

    within = line("within annotator", [p.within for p in curve], [p.within_std for p in curve])
    between = line("between annotators", [p.between for p in curve], [p.between_std for p in curve])
    return LineChart(
        "Winning rates from a share of the answers",
        "share of each annotator's answers",
        "Pearson correlation with rates from all answers",
        [within, between],
        "± one standard deviation over draws",
        percent=True,
    )
