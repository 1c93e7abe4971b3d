"""The guard against contamination: test contexts that were seen while the evaluator was made.

A reply to something that the logs have is compared with the very reply that people gave, and the
scorer may know it by heart: numbers on such contexts say nothing about others. On what was held
out, ranges and figures were measured, and the networks at their best were chosen. So pairs with
these utterances are never used as references, and whoever scores is told how many contexts there
are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.items import Item

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator
    from rejoinder.retrieve.base import Mask
    from rejoinder.retrieve.pool import Pool


@dataclass(frozen=True)
class Seen:
    """What an evaluator has of a test set."""

    rows: Mask
    """Pairs of the pool whose utterance is a last turn of the test set."""
    turns: dict[str, str]
    """Last turns that were learnt from or held out: "exact" (word for word) or "near"."""


def look_for(pool: Pool, last_turns: Iterable[str], held_out: Sequence[str] = ()) -> Seen:
    """Look through the pool once; then, among what was found there and what was held out, for each
    turn."""
    from rejoinder.logs.contamination import Fingerprint
    from rejoinder.retrieve.leaks import find_leaks

    turns = list(dict.fromkeys(last_turns))
    mask, _ = find_leaks(pool, turns)
    rows = mask.nonzero()[0]
    known = [*(pool.utterances(rows) if rows.size else []), *held_out]
    kinds = Fingerprint.of(known).find(turns) if known else []
    return Seen(mask, {turn: kind for turn, kind in zip(turns, kinds, strict=False) if kind})


@dataclass(frozen=True)
class Guarded:
    """How many contexts of a test set an evaluator has seen."""

    contexts: int
    exact: int
    near: int

    @property
    def seen(self) -> int:
        return self.exact + self.near

    def __str__(self) -> str:
        if not self.seen:
            return f"none of {self.contexts:,} contexts was seen"
        verb = "was" if self.seen == 1 else "were"
        return (
            f"{self.seen:,} of {self.contexts:,} contexts {verb} seen"
            f" ({self.exact:,} word for word, {self.near:,} nearly)"
        )


@dataclass
class EvaluatedSet:
    """The contexts of a test set, which evaluators must not use their knowledge of."""

    turns: dict[str, int] = field(default_factory=dict)
    """For each last turn the number of contexts that end with it."""
    contexts: int = 0
    _seen: dict[str, Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Iterable[Item]) -> EvaluatedSet:
        found = cls()
        groups: set[int] = set()
        for item in items:
            if item.context and (group := hash((item.group, item.context[-1]))) not in groups:
                groups.add(group)
                found.turns[item.context[-1]] = found.turns.get(item.context[-1], 0) + 1
        found.contexts = len(groups)
        return found

    def seen(self, evaluator: Evaluator) -> Seen:
        """Looked for once, whatever the number of metrics and batches."""
        if str(evaluator) not in self._seen:
            self._seen[str(evaluator)] = evaluator.seen(self.turns)
        return self._seen[str(evaluator)]

    def leaks(self, evaluator: Evaluator) -> Mask:
        return self.seen(evaluator).rows

    def guarded(self, evaluator: Evaluator) -> Guarded:
        kinds = self.seen(evaluator).turns
        counts = {"exact": 0, "near": 0}
        for turn, kind in kinds.items():
            counts[kind] += self.turns[turn]
        return Guarded(self.contexts, counts["exact"], counts["near"])
