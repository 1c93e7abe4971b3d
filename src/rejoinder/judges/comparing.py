"""Compare two replies by a rubric, asked in both orders.

Models favour what stands first, or last (Wang et al. 2024, Large Language Models are not Fair
Evaluators). So each pair is asked about twice, with either reply as the first. If both answers
prefer the same reply, it is the better one; otherwise the pair is a tie, and counted as one in
which the orders disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rejoinder.judges.asking import JudgeSettings
from rejoinder.judges.choices import SCHEMA, Choice, read_choice
from rejoinder.judges.rating import mean_of, notes_of, question
from rejoinder.judges.rubric import AGAIN, QUESTION, WITH_REFERENCES, Rubric
from rejoinder.llm.asking import Telling
from rejoinder.llm.chat import Message
from rejoinder.llm.questions import Cost, Outcome, Query, Questioner, Server
from rejoinder.llm.texts import delimited, references_text

Winner = Literal["a", "b", "tie"]

LENGTH = 24
"""Tokens of an answer."""
NO_CONTEXT = "no context"


@dataclass(frozen=True)
class Pair:
    """Two replies to one context."""

    context: Sequence[str]
    a: str
    b: str
    references: Sequence[str] = ()


@dataclass(frozen=True)
class Comparison:
    """What a judge says of two replies."""

    winner: Winner | None
    """None if an order has no answer that could be read."""
    orders: tuple[Winner, Winner] | None
    """What was preferred when a stood first, and when b did; None if nothing was asked, because
    the replies are the same."""
    preference: float | None
    """Probability that a is better, the mean of both orders; a tie counts half."""
    answers: int
    mass: float | None
    """Share of the probability that the answers 1, 2 and tie had, on average; None without
    probabilities."""
    cost: Cost
    kind: str = ""
    reason: str = ""
    """Why there is no winner."""

    @property
    def disagrees(self) -> bool:
        """Whether another reply was preferred in the other order."""
        return self.orders is not None and self.orders[0] != self.orders[1]


class Comparer:
    """One judge with one rubric for comparisons."""

    def __init__(self, asking: JudgeSettings, rubric: Rubric) -> None:
        self._asking, self.rubric = asking, rubric
        self._questioner = Questioner(
            asking, asking.name, length=LENGTH, forms=asking.forms(SCHEMA)
        )
        self.cut = self.lost = 0

    @property
    def server(self) -> Server:
        """What the answers say about the model."""
        return self._questioner.server

    @property
    def requests_per_pair(self) -> int:
        """Requests for one pair, if all answers can be read."""
        return 2 * self._asking.n

    def compare(self, pairs: Sequence[Pair], telling: Telling) -> list[Comparison]:
        """Compare the replies of each pair."""
        asked = [number for number, pair in enumerate(pairs) if self._reason(pair) is None]
        n = self._asking.n
        questions = [
            self._messages(pairs[number], swapped) for number in asked for swapped in (False, True)
        ]
        again = self.rubric.fill(AGAIN, {})
        queries = [Query(messages, again, draw) for messages in questions for draw in range(n)]
        outcomes = self._questioner.ask(queries, read_choice, telling)
        found: dict[int, Comparison] = {}
        for place, number in enumerate(asked):
            own = outcomes[place * 2 * n : (place + 1) * 2 * n]
            found[number] = self._comparison(own[:n], own[n:])
        return [found.get(n) or _not_asked(self._reason(pair)) for n, pair in enumerate(pairs)]

    def notes(self) -> list[str]:
        """Return what readers of the answers should know."""
        return notes_of(self.server, self._asking.window, cut=self.cut, lost=self.lost)

    def _reason(self, pair: Pair) -> str | None:
        """Return why a pair is not asked about: empty if its replies are the same."""
        if self.rubric.needs_context and not any(map(str.strip, pair.context)):
            return NO_CONTEXT
        return "" if pair.a.strip() == pair.b.strip() else None

    def _messages(self, pair: Pair, swapped: bool) -> tuple[Message, ...]:
        rubric = self.rubric
        first, second = (pair.b, pair.a) if swapped else (pair.a, pair.b)
        shown = bool(self._asking.references) and rubric.takes_references and pair.references
        texts = {
            "reply_1": delimited(first, "reply_1", rubric.delimiters),
            "reply_2": delimited(second, "reply_2", rubric.delimiters),
            "references": references_text(pair.references, rubric.delimiters) if shown else "",
        }
        section = WITH_REFERENCES if shown else QUESTION
        messages, cut = question(self._asking, rubric, section, pair.context, texts)
        self.cut += cut and not swapped
        return messages

    def _comparison(
        self, straight: Sequence[Outcome[Choice]], swapped: Sequence[Outcome[Choice]]
    ) -> Comparison:
        cost = Cost.total(each.cost for each in (*straight, *swapped))
        a_first = [each.read for each in straight if each.read is not None]
        b_first = [each.read for each in swapped if each.read is not None]
        for choices, outcomes in ((a_first, straight), (b_first, swapped)):
            if not choices:
                first = outcomes[0]
                return Comparison(None, None, None, 0, None, cost, first.kind, first.reason)
        answers = len(a_first) + len(b_first)
        self.lost += len(straight) + len(swapped) - answers
        orders = _preferred(a_first, "a", "b"), _preferred(b_first, "b", "a")
        of_a = [choice.first + choice.tie / 2 for choice in a_first]
        of_a_second = [choice.second + choice.tie / 2 for choice in b_first]
        masses = [choice.mass for choice in (*a_first, *b_first) if choice.mass is not None]
        return Comparison(
            orders[0] if orders[0] == orders[1] else "tie",
            orders,
            (mean_of(of_a) + mean_of(of_a_second)) / 2,
            answers,
            mean_of(masses) if masses else None,
            cost,
        )


def _preferred(choices: Sequence[Choice], first: Winner, second: Winner) -> Winner:
    """Return the most probable answer of one order; of equal ones, a tie."""
    probable: dict[Winner, float] = {
        first: mean_of([choice.first for choice in choices]),
        second: mean_of([choice.second for choice in choices]),
        "tie": mean_of([choice.tie for choice in choices]),
    }
    best = [name for name, value in probable.items() if value == max(probable.values())]
    return best[0] if len(best) == 1 else "tie"


def _not_asked(reason: str | None) -> Comparison:
    if not reason:
        return Comparison("tie", None, 0.5, 0, None, Cost())
    return Comparison(None, None, None, 0, None, Cost(), reason, reason)
