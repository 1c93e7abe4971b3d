"""Let a judge answer which of two replies is better: plan, ask, plan again.

A few pairs are planned, the judge is asked about them in both orders, and its answers decide which
pairs are planned next, until the number of pairs is reached. Nothing is random but the seeded plan,
and answers come from a cache, so the same command asks the same questions again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rejoinder.items import Item
from rejoinder.judges.comparing import Comparison, Pair
from rejoinder.judges.pair_judge import PairJudge
from rejoinder.judges.rating import usable_references
from rejoinder.llm.asking import Telling
from rejoinder.pairwise.answers import Answer, collect_answers
from rejoinder.pairwise.plan import plan_questions, unjudged_pairs
from rejoinder.progress import part_of

DIGITS = 6
"""Decimal places of probabilities in files."""
BUDGET = "budget"
"""With this begins the reason of what the budget did not suffice for."""

Line = tuple[str, int, Answer]
"""An answer, with its file and line."""


@dataclass
class Judged:
    """What a judge answered."""

    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Numbers of the candidates."""
    comparisons: list[Comparison] = field(default_factory=list)
    rounds: int = 0

    @property
    def answers(self) -> int:
        return sum(each.winner is not None for each in self.comparisons)

    @property
    def ties(self) -> int:
        return sum(each.winner == "tie" for each in self.comparisons)

    @property
    def same(self) -> int:
        """Ties of replies that are the same, about which nothing was asked."""
        return sum(each.winner == "tie" and each.orders is None for each in self.comparisons)

    @property
    def disagreements(self) -> int:
        """Pairs of which the orders disagree."""
        return sum(each.disagrees for each in self.comparisons)

    @property
    def first(self) -> int:
        """Pairs of which the reply that stood first was preferred in both orders."""
        return sum(each.orders == ("a", "b") for each in self.comparisons)

    @property
    def second(self) -> int:
        """Pairs of which the reply that stood second was preferred in both orders."""
        return sum(each.orders == ("b", "a") for each in self.comparisons)

    @property
    def failed(self) -> list[tuple[int, int]]:
        """Pairs without an answer."""
        both = zip(self.pairs, self.comparisons, strict=True)
        return [pair for pair, each in both if each.winner is None]

    @property
    def unanswered(self) -> dict[str, int]:
        """Pairs without an answer, by reason."""
        return dict(Counter(each.kind for each in self.comparisons if each.winner is None))


def judge_planned(
    candidates: Sequence[Item],
    before: Sequence[Line],
    judge: PairJudge,
    *,
    count: int | None,
    share: float | None,
    rounds: int,
    seed: int,
    strict: bool = False,
    telling: Telling,
    on_plan: Callable[[int, int], None] = lambda pairs, rounds: None,
) -> Judged:
    """Ask a judge about the most informative pairs.

    ``count`` pairs are asked about, or as many as bring each context to this ``share`` of its
    pairs, in so many ``rounds``; all pairs of all contexts take one. ``before`` are answers that
    there are already. ``on_plan`` hears how many pairs and rounds there will be.
    """
    judged = Judged()
    comparisons = collect_answers(candidates, before, strict=strict)
    contests = list(comparisons.contests())
    open_pairs = sum(unjudged_pairs(contest, 1.0) for contest in contests)
    if share is not None:
        total = sum(unjudged_pairs(contest, share) for contest in contests)
    else:
        total = min(count or 0, open_pairs)
    if total == open_pairs:
        rounds = 1  # whatever the answers are, all pairs are asked about
    on_plan(total, rounds)
    for number in range(1, rounds + 1):
        done = len(judged.pairs)
        planned = plan_questions(
            comparisons,
            count=-(-total * number // rounds) - done if share is None else None,
            share=None if share is None else share * number / rounds,
            seed=seed + number,
            left_out=judged.failed,
        )
        pairs = [(min(each.a, each.b), max(each.a, each.b)) for each in planned]
        if not pairs:
            continue
        _ask(candidates, pairs, judge, judged, _part(telling, judged, judge, total))
        comparisons = collect_answers(candidates, [*before, *_lines(candidates, judged, judge)])
        if any(reason.startswith(BUDGET) for reason in judged.unanswered):
            break
    return judged


def judge_pairs(
    candidates: Sequence[Item],
    pairs: Sequence[tuple[int, int]],
    judge: PairJudge,
    telling: Telling,
) -> Judged:
    """Ask a judge about these pairs of candidates."""
    judged = Judged()
    _ask(candidates, pairs, judge, judged, telling)
    return judged


def answer_records(
    candidates: Sequence[Item], judged: Judged, judge: PairJudge
) -> Iterator[dict[str, Any]]:
    """Yield the answers as :mod:`rejoinder.pairwise.answers` reads them, with how they came
    about."""
    name, signature = str(judge), judge.signature()
    for (i, j), each in zip(judged.pairs, judged.comparisons, strict=True):
        if each.winner is None:
            continue
        a, b = candidates[i], candidates[j]
        record: dict[str, Any] = {}
        if a.context_id is not None:
            record["context_id"] = a.context_id
        record |= {"a": a.id, "b": b.id, "winner": each.winner, "annotator": name}
        if each.preference is not None:
            record["preference"] = round(each.preference, DIGITS)
        if each.orders is not None:
            record["orders"] = list(each.orders)
        if each.mass is not None:
            record["mass"] = round(each.mass, DIGITS)
        record["judging"] = {"answers": each.answers, **each.cost.to_dict()}
        yield record | {"signature": signature}


def _ask(
    candidates: Sequence[Item],
    pairs: Sequence[tuple[int, int]],
    judge: PairJudge,
    judged: Judged,
    telling: Telling,
) -> None:
    asked = []
    for i, j in pairs:
        a, b = candidates[i], candidates[j]
        references = usable_references(a) or usable_references(b)
        asked.append(Pair(a.context, a.response, b.response, references))
    judged.comparisons += judge.comparer.compare(asked, telling)
    judged.pairs += pairs
    judged.rounds += 1


def _lines(candidates: Sequence[Item], judged: Judged, judge: PairJudge) -> Iterator[Line]:
    """Yield the answers of the judge as if they had been read from a file."""
    name = str(judge)
    for number, ((i, j), each) in enumerate(zip(judged.pairs, judged.comparisons, strict=True), 1):
        if each.winner is not None:
            a, b = candidates[i].id, candidates[j].id
            yield name, number, Answer(a, b, each.winner, annotator=name)


def _part(telling: Telling, judged: Judged, judge: PairJudge, total: int) -> Telling:
    """Return the same listeners for one round: the cost is told before the first."""
    each = judge.comparer.requests_per_pair
    progress = part_of(telling.progress, each * len(judged.pairs), each * total)
    if judged.rounds:
        return Telling(note=telling.note, progress=progress)
    return replace(telling, progress=progress)
