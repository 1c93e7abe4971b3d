"""Contamination: which contexts and replies of a test set were in an evaluator's logs.

If a test context is in the logs, its reply is compared with the very reply that people gave there,
and the scorer may have memorised it: scores on such contexts do not generalise. Held-out
utterances count as well: ranges and validation figures were measured on them, and checkpoints
chosen. So pairs with these utterances are never used as references, and a report says how many
contexts are concerned.

Replies that occur in the logs word for word are counted, too. Short ones ("yes, please") occur
anywhere; many long ones mean that a system retrieves or memorised replies of the same logs, or that
the evaluator was fitted to the logs of the very bot that it scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from rejoinder.items import Item

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator
    from rejoinder.retrieve.pool import Pool
    from rejoinder.retrieve.retriever import Mask


@dataclass(frozen=True)
class Contamination:
    """The contexts of a test set that an evaluator has seen."""

    rows: Mask
    """Rows of the pool whose utterance is the last turn of a test context."""
    turns: dict[str, str]
    """Last turns that are in the pool or held out: "exact" (word for word) or "near"."""


def find_contamination(
    pool: Pool, last_turns: Iterable[str], held_out: Sequence[str] = ()
) -> Contamination:
    """Look for the last turns of a test set in the pool and among held-out utterances."""
    from rejoinder.retrieve.leaks import match_texts

    matches = match_texts(pool, last_turns, also=held_out)
    return Contamination(matches.rows, matches.texts)


def find_copied_replies(
    pool: Pool, replies: Iterable[str], held_out: Sequence[str] = ()
) -> set[str]:
    """Return the replies that are responses of the pool, or held-out utterances, word for word.

    Only letters and digits are compared, without case.
    """
    from rejoinder.logs.contamination import normalise
    from rejoinder.retrieve.retriever import RESPONSE

    texts = list(dict.fromkeys(replies))
    plain = normalise(texts)
    wanted = set(plain) - {""}
    copied = wanted.intersection(normalise(held_out))
    for batch in pool.batches([RESPONSE]):
        copied.update(wanted.intersection(normalise(batch.column(0).to_pylist())))
    return {text for text, key in zip(texts, plain, strict=True) if key in copied}


@dataclass(frozen=True)
class ContaminationReport:
    """The numbers of contexts and replies of a test set that an evaluator has seen."""

    contexts: int
    exact: int
    near: int
    replies: int = 0
    copied_replies: int = 0
    """Replies that occur in the logs word for word."""
    copied_by_system: dict[str, int] = field(default_factory=dict)
    """The same for each system that has any."""

    @property
    def seen(self) -> int:
        """Number of contexts that were seen, exactly or nearly."""
        return self.exact + self.near

    def __str__(self) -> str:
        if not self.seen:
            return f"none of {self.contexts:,} contexts was seen"
        verb = "was" if self.seen == 1 else "were"
        return (
            f"{self.seen:,} of {self.contexts:,} contexts {verb} seen"
            f" ({self.exact:,} word for word, {self.near:,} nearly)"
        )

    def describe_replies(self) -> str | None:
        """Return a sentence about copied replies; None if there are none."""
        if not self.copied_replies:
            return None
        verb = "occurs" if self.copied_replies == 1 else "occur"
        systems = ""
        if len(self.copied_by_system) > 1:
            most = sorted(self.copied_by_system.items(), key=lambda pair: (-pair[1], pair[0]))
            systems = f" ({', '.join(f'{name}: {count:,}' for name, count in most[:5])}"
            systems += ", …)" if len(most) > 5 else ")"
        return (
            f"{self.copied_replies:,} of {self.replies:,} replies {verb} word for word in the"
            f" evaluator's logs{systems}"
        )


@dataclass
class TestSet:
    """The contexts and replies of a test set: evaluators must not use what they know of them."""

    __test__: ClassVar[bool] = False
    """Not a test class of pytest."""

    turns: dict[str, int] = field(default_factory=dict)
    """For each last turn the number of contexts that end with it."""
    contexts: int = 0
    replies: dict[str, dict[str, int]] = field(default_factory=dict)
    """For each reply the number of items by system."""
    _contamination: dict[str, Contamination] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[Item]) -> TestSet:
        test_set = cls()
        groups: set[int] = set()
        for item in items:
            if item.context and (group := hash((item.group, item.context[-1]))) not in groups:
                groups.add(group)
                test_set.turns[item.context[-1]] = test_set.turns.get(item.context[-1], 0) + 1
            by_system = test_set.replies.setdefault(item.response, {})
            by_system[item.system] = by_system.get(item.system, 0) + 1
        test_set.contexts = len(groups)
        return test_set

    def contamination(self, evaluator: Evaluator) -> Contamination:
        """Return which contexts the evaluator has seen; computed once per evaluator."""
        if str(evaluator) not in self._contamination:
            self._contamination[str(evaluator)] = evaluator.contamination(self.turns)
        return self._contamination[str(evaluator)]

    def leaks(self, evaluator: Evaluator) -> Mask:
        """Return the rows of the evaluator's pool that must not be used for this test set."""
        return self.contamination(evaluator).rows

    def report(self, evaluator: Evaluator) -> ContaminationReport:
        """Count the contexts and replies that the evaluator has seen."""
        counts = {"exact": 0, "near": 0}
        for turn, kind in self.contamination(evaluator).turns.items():
            counts[kind] += self.turns[turn]
        by_system: dict[str, int] = {}
        for reply in find_copied_replies(evaluator.pool, self.replies, evaluator.held_out):
            for system, count in self.replies[reply].items():
                by_system[system] = by_system.get(system, 0) + count
        return ContaminationReport(
            contexts=self.contexts,
            exact=counts["exact"],
            near=counts["near"],
            replies=sum(sum(by_system.values()) for by_system in self.replies.values()),
            copied_replies=sum(by_system.values()),
            copied_by_system=dict(sorted(by_system.items())),
        )
