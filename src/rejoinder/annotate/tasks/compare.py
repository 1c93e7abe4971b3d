"""``compare``: people say which of two replies to a context is better.

Which pair a person is asked next is planned from all answers so far, while others answer
(:mod:`rejoinder.pairwise.plan`): the pair that reduces the uncertainty of the winning rates most,
given that the pairs that others are looking at right now will be answered, and preferably one whose
replies this person has not judged more often than others. So far fewer answers are needed than for
all pairs (Sugiyama, Meguro & Higashinaka 2019, section 2.2).

The rules:

- A person goes through the contexts in turn; the next one is that of which they have had the
  fewest pairs. Nobody judges a pair twice. The sides are random.
- A context is finished when ``share`` of its pairs has been asked, or when the mean standard error
  of its winning rates is below ``max_error``. Pairs of two equal texts are never asked.
- A pair is judged by one person. A random ``repeated_share`` of the pairs, which depends on the
  seed only, is judged by ``answers_per_task`` people, and at least by two, so that agreement can be
  measured. As long as there are pairs of this sort that a person has not judged, every second
  question (on average) is one of them; they are also asked when a context is finished otherwise.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import Connection

from rejoinder.annotate.settings_file import Problem
from rejoinder.annotate.study import CompareSettings, Study, StudySettings
from rejoinder.annotate.tasks.kind import (
    Accepted,
    EarlierReplies,
    Export,
    Form,
    ImportedTask,
    Json,
    Kind,
    Known,
    NewTask,
    Refusal,
    Review,
    StoredAnswer,
)
from rejoinder.annotate.tasks.known import read_known
from rejoinder.annotate.tasks.pair_answers import (
    Pair,
    PairAnswers,
    contexts_of_person,
    key_of,
    open_pairs,
    pairs_of_person,
)
from rejoinder.errors import DataError
from rejoinder.items import Item, item_from
from rejoinder.meta_evaluation.annotators import (
    AnnotatorAgreement,
    AnnotatorLimits,
    UnreliableAnnotator,
)
from rejoinder.pairwise.annotators import comparison_agreement, unreliable_annotators
from rejoinder.pairwise.answers import (
    OUTCOMES,
    Answer,
    Comparisons,
    Floats,
    by_context,
    collect_answers,
)
from rejoinder.pairwise.bradley_terry import rate_errors
from rejoinder.pairwise.candidate_scores import score_candidates
from rejoinder.pairwise.output_records import rated_candidates
from rejoinder.pairwise.plan import judged_in_excess, next_pairs

if TYPE_CHECKING:
    from rejoinder.annotate.imports.record import ImportedAnswer

SIDES = ("left", "right")


@dataclass(frozen=True)
class Contest:
    """The replies to one context."""

    number: int
    items: list[Item]
    share: float

    @cached_property
    def pairs(self) -> int:
        """Number of pairs with two different texts."""
        texts: dict[str, int] = {}
        for item in self.items:
            texts[item.response] = texts.get(item.response, 0) + 1
        return _pairs(len(self.items)) - sum(map(_pairs, texts.values()))

    @property
    def limit(self) -> int:
        """Number of pairs that are asked at most."""
        return min(self.pairs, max(1, round(self.share * self.pairs)))

    def can_be_asked(self, pair: Pair) -> bool:
        return self.items[pair[0]].response != self.items[pair[1]].response


@dataclass(frozen=True)
class PairReview:
    """Agreement of the people who compared replies, and who would be left out."""

    agreement: AnnotatorAgreement
    unreliable: list[UnreliableAnnotator]


class Compare(Kind[CompareSettings]):
    """Comparisons of two replies."""

    name = "compare"
    template = "compare.html"
    planned = True

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._answers = PairAnswers()
        self._errors: dict[int, tuple[Floats, float]] = {}

    @classmethod
    def setting_problems(cls, options: CompareSettings, settings: StudySettings) -> list[Problem]:
        problems: list[Problem] = []
        if not options.question.strip():
            problems.append((("compare", "question"), "must not be empty"))
        if not 0 < options.share <= 1:
            problems.append((("compare", "share"), "must be above 0 and at most 1"))
        if not 0 <= options.max_error < 0.5:
            problems.append((("compare", "max_error"), "must be from 0 to below 0.5"))
        if not 0 <= options.repeated_share <= 1:
            problems.append((("compare", "repeated_share"), "must be from 0 to 1"))
        if settings.answers_per_task > 2 and not options.repeated_share:
            problems.append(
                (
                    ("answers_per_task",),
                    f"is {settings.answers_per_task}, but repeated_share is 0: no pair is judged by"
                    " several people",
                )
            )
        return problems

    def item_problems(self, items: Sequence[Item]) -> list[str]:
        if not any(contest.pairs for contest in contests_of(items, 1.0)):
            return [
                "no context has two different replies that could be compared; give replies to the"
                " same context the same context_id"
            ]
        return []

    @cached_property
    def contests(self) -> list[Contest]:
        """The contexts whose replies are compared."""
        return contests_of(self.study.items, self.options.share)

    @cached_property
    def _items(self) -> dict[str, Item]:
        return {item.id: item for item in self.study.items}

    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        return []

    # which pair is next

    def next_task(
        self, connection: Connection, person: int, rng: np.random.Generator
    ) -> NewTask | None:
        """Return the pair that a person is asked next; None if there is none left for them."""
        had = contexts_of_person(connection, person)
        order = rng.permutation(len(self.contests))
        for place in sorted(order, key=lambda each: had.get(self.contests[each].number, 0)):
            contest = self.contests[place]
            if (pair := self._next_pair(connection, contest, person, rng)) is not None:
                return self._task(contest, pair)
        return None

    def _task(self, contest: Contest, pair: Pair) -> NewTask:
        """Return the task that asks for a pair."""
        a, b = (contest.items[number].id for number in pair)
        key = key_of(contest.number, pair)
        wanted = self.repeated_answers if self.is_repeated(key) else 1
        return NewTask(key, contest.number, -1, {"a": a, "b": b}, wanted)

    @property
    def repeated_answers(self) -> int:
        """People who judge each of the repeated pairs."""
        return max(2, self.settings.answers_per_task)

    def is_repeated(self, key: str) -> bool:
        """Return whether a pair belongs to those that several people judge."""
        digest = hashlib.blake2b(f"{self.settings.seed}:{key}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") < self.options.repeated_share * 2**64

    def _next_pair(
        self, connection: Connection, contest: Contest, person: int, rng: np.random.Generator
    ) -> Pair | None:
        had = pairs_of_person(connection, person, contest.number)
        begun = open_pairs(connection, contest.number, self.repeated_answers)
        again = [
            each.pair
            for each in begun
            if each.is_repeated and each.taken < self.repeated_answers and each.pair not in had
        ]
        repeated = again[int(rng.integers(len(again)))] if again else None
        if repeated is not None and rng.random() < 0.5:
            return repeated
        pending = {each.pair for each in begun if each.taken > each.answers}
        return self._new_pair(connection, contest, person, pending, had, rng) or repeated

    def _new_pair(
        self,
        connection: Connection,
        contest: Contest,
        person: int,
        pending: set[Pair],
        had: set[Pair],
        rng: np.random.Generator,
    ) -> Pair | None:
        """Return the most informative pair that nobody has been asked; None if enough have."""
        answers = self._answers.of(connection, contest.number, len(contest.items))
        wins = answers.wins
        answered = np.triu(wins + wins.T > 0)
        asked = int(answered.sum()) + sum(not answered[pair] for pair in pending)
        if asked >= contest.limit or self._is_certain(contest, wins):
            return None
        if self.options.planned:
            # pairs of which one answer is missing have answers already: they are skipped anyway
            excess = judged_in_excess(wins, had, len(answers.people | {person}))
            planned = next_pairs(wins, rng, pending=sorted(pending), excess=excess)
            pairs: Iterator[Pair] = ((min(i, j), max(i, j)) for _, i, j in planned)
        else:
            free = ~answered & ~np.tri(len(wins), dtype=bool)
            pairs = ((int(i), int(j)) for i, j in rng.permutation(np.argwhere(free)))
        for pair in pairs:
            if pair not in had and pair not in pending and contest.can_be_asked(pair):
                return pair
        return None

    def _is_certain(self, contest: Contest, wins: Floats) -> bool:
        """Return whether the winning rates are known as exactly as the study wants."""
        if not self.options.max_error:
            return False
        known = self._errors.get(contest.number)
        if known is None or known[0] is not wins:
            known = wins, float(rate_errors(wins).mean())
            self._errors[contest.number] = known
        return known[1] < self.options.max_error

    def expected(self, connection: Connection) -> tuple[int, int]:
        """Return how many pairs are asked, and how many answers are wanted in all.

        The number of answers to repeated pairs is what their share leads to.
        """
        pairs = 0
        for contest in self.contests:
            limit = contest.limit
            if self.options.max_error:
                wins = self._answers.of(connection, contest.number, len(contest.items)).wins
                if self._is_certain(contest, wins):
                    limit = min(limit, int(np.count_nonzero(np.triu(wins + wins.T))))
            pairs += limit
        further = self.options.repeated_share * (self.repeated_answers - 1)
        return pairs, round(pairs * (1 + further))

    # what is shown and accepted

    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        return {"left": "a" if rng.random() < 0.5 else "b"}

    def page(self, content: Json, view: Json) -> Json:
        context, texts = self._texts(content)
        left = view["left"]
        return {
            "context": context,
            "left": texts[left],
            "right": texts["b" if left == "a" else "a"],
            "question": self.options.question,
            "ties": self.options.ties,
        }

    def _texts(self, content: Json) -> tuple[list[str], dict[str, str]]:
        """Return the context and the two replies of a task; tasks of the training round have them
        in their content."""
        if "replies" in content:
            return content["context"], dict(zip("ab", content["replies"], strict=True))
        a, b = self._items[content["a"]], self._items[content["b"]]
        return a.context or b.context, {"a": a.response, "b": b.response}

    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        winner = form.get("winner", "")
        if winner == "tie" and self.options.ties:
            return Accepted({"winner": "tie"})
        if winner in SIDES:
            return Accepted({"winner": _reply_at(winner, view)})
        return [Refusal("winner", "choose_one" if not winner else "not_on_scale")]

    def known_tasks(self, path: str) -> list[Known]:
        """Read lines such as ``{"context": [...], "replies": ["…", "…"], "expected": "a",
        "explanation": "…"}``: the better reply, ``a`` (the first), ``b`` or ``tie``, or a list of
        answers that are right.
        """
        known = []
        for line, record in read_known(path):
            right = record.expected if isinstance(record.expected, list) else [record.expected]
            allowed = set(OUTCOMES) - (set() if self.options.ties else {"tie"})
            if (
                len(record.replies) != 2
                or not right
                or not all(isinstance(each, str) and each in allowed for each in right)
            ):
                raise DataError(
                    "expected two 'replies', and in 'expected' the better one:"
                    f" {', '.join(sorted(allowed))}",
                    path=path,
                    line=line,
                )
            content = {"context": record.context, "replies": record.replies}
            known.append(Known(content, right, record.explanation))
        return known

    def is_expected(self, known: Json, value: Json) -> bool:
        return value["winner"] in known["expected"]

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        shown = {_reply_at(side, view): side for side in SIDES} | {"tie": "tie"}
        return {"winner": [shown[each] for each in known["expected"]]}

    def imported(
        self, answers: Sequence[ImportedAnswer], unread: Counter[str]
    ) -> list[ImportedTask]:
        """Match pairs by the ids of their two replies."""
        place = {
            item.id: (contest, number)
            for contest in self.contests
            for number, item in enumerate(contest.items)
        }
        made = []
        for answer in answers:
            winner = answer.values.get("winner")
            if answer.items is None or winner not in OUTCOMES:
                unread["answers that do not say which of two items is better"] += 1
                continue
            known = [place[item] for item in answer.items if item in place]
            if len(known) < 2 or known[0][0] is not known[1][0]:
                unread["answers about items that are not a pair of this study"] += 1
                continue
            contest, (i, j) = known[0][0], (known[0][1], known[1][1])
            pair = (min(i, j), max(i, j))
            if j < i and winner != "tie":  # the pair is asked in the order of the items
                winner = "b" if winner == "a" else "a"
            made.append(
                ImportedTask(
                    self._task(contest, pair),
                    {"left": "a"},
                    {"winner": winner},
                    answer.seconds,
                    answer.time,
                )
            )
        return made

    # what comes of it

    def comparisons(self, answers: Sequence[StoredAnswer]) -> Comparisons:
        """Return the answers as the functions of :mod:`rejoinder.pairwise` take them."""
        lines = (
            (self.settings.title, number, self._answer(answer))
            for number, answer in enumerate(answers, 1)
        )
        return collect_answers(self.study.items, lines)

    def _answer(self, answer: StoredAnswer) -> Answer:
        a, b = answer.content["a"], answer.content["b"]
        return Answer(a, b, answer.value["winner"], self._items[a].context_id, answer.person)

    def review(self, answers: Sequence[StoredAnswer], limits: AnnotatorLimits) -> Review | None:
        comparisons = self.comparisons(answers)
        unreliable = unreliable_annotators(
            comparisons, min_kappa=limits.min_kappa, max_distractor=limits.max_distractor
        )
        return PairReview(comparison_agreement(comparisons), unreliable)

    def rated_items(self, answers: Sequence[StoredAnswer]) -> list[Item]:
        """Return the items with their winning rates as ratings."""
        return [item_from(dict(record)) for record in self._rated(answers)]

    def _rated(self, answers: Sequence[StoredAnswer]) -> list[Json]:
        scores = score_candidates(self.comparisons(answers), "bradley-terry")
        return list(rated_candidates(self.study.items, scores))

    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return the answers as ``pairs fit`` reads them.

        The second file, ``items``, has the items with their winning rates as ratings, estimated by
        Bradley and Terry's model, which is the default of ``pairs fit``.
        """
        records: list[Json] = []
        for answer in answers:
            given = self._answer(answer)
            context = {} if given.context_id is None else {"context_id": given.context_id}
            records.append(
                {
                    **context,
                    "a": given.a,
                    "b": given.b,
                    "winner": given.winner,
                    "annotator": given.annotator,
                }
            )
        return Export("pair answers", records, {"items": self._rated(answers)})


def contests_of(items: Sequence[Item], share: float) -> list[Contest]:
    """Return the contexts with two or more different replies."""
    groups = by_context(items).values()
    contests = [
        Contest(number, [items[member] for member in members], share)
        for number, members in enumerate(groups)
        if len(members) > 1
    ]
    return [contest for contest in contests if contest.pairs]


def _pairs(count: int) -> int:
    return count * (count - 1) // 2


def _reply_at(side: str, view: Json) -> str:
    """Return which reply, a or b, is on a side."""
    return "a" if (side == "left") == (view["left"] == "a") else "b"
