"""Small sets of comparisons for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rejoinder.items import Item
from rejoinder.pairwise.answers import Answer, Comparisons, collect_answers

Duel = tuple[str, str, str] | tuple[str, str, str, str | None]
"""a, b, winner, and perhaps who says so."""


def candidates(names: Iterable[str], context: str = "c", system: str = "s") -> list[Item]:
    return [Item(name, f"reply {name}", context_id=context, system=system) for name in names]


def compared(items: Sequence[Item], duels: Iterable[Duel], *, strict: bool = False) -> Comparisons:
    answers = (
        Answer(duel[0], duel[1], duel[2], annotator=duel[3] if len(duel) > 3 else None)  # type: ignore[arg-type]
        for duel in duels
    )
    numbered = (("answers.jsonl", line, answer) for line, answer in enumerate(answers, 1))
    return collect_answers(items, numbered, strict=strict)
