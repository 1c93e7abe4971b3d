"""An evaluator in memory, for use again and again: in a notebook, or inside a training loop."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import DataError, UsageError
from rejoinder.evaluator.folder import Evaluator as Opened
from rejoinder.evaluator.folder import open_evaluator
from rejoinder.evaluator.manifest import Manifest
from rejoinder.evaluator.seen import EvaluatedSet
from rejoinder.inputs.items import as_items, made
from rejoinder.items import Item, Reference, item_from
from rejoinder.metrics.request import Requests, requests
from rejoinder.verbs.results import Items, Results
from rejoinder.verbs.scoring import scored

if TYPE_CHECKING:
    from rejoinder.inputs.items import Given
    from rejoinder.retrieve.base import Mask
    from rejoinder.retrieve.known import Known

References = Sequence[str | Mapping[str, Any] | Reference]
RESAMPLES = 100
"""A step of a training asks for scores; its intervals may be rough."""


class Evaluator:
    """What was learned from logs. Its pool and its networks are loaded when they are first asked
    for, and stay in memory."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._asked: dict[tuple[tuple[str, ...], str | None], Requests] = {}

    @classmethod
    def load(cls, folder: str | Path) -> Evaluator:
        """The evaluator that :func:`rejoinder.fit` or 'rejoinder fit' wrote."""
        return cls(open_evaluator(folder))

    @property
    def path(self) -> Path:
        return self._opened.path

    @property
    def manifest(self) -> Manifest:
        """What it was made of and with, and what it is worth."""
        return self._opened.manifest

    def __str__(self) -> str:
        return str(self._opened)

    def __repr__(self) -> str:
        return repr(self._opened)

    def score(
        self,
        contexts: Sequence[str | Sequence[str]],
        replies: Sequence[str],
        references: Sequence[str | References | None] | None = None,
        metrics: str | Sequence[str] = ("ruber",),
        *,
        language: str | None = None,
    ) -> Results:
        """Score replies to contexts: ``evaluator.score(contexts, replies)["ruber"].values``.

        A context is a list of turns, oldest first, or one text, a turn a line. ``references`` has,
        for each reply, good replies that are known, if there are any. What the pool has of these
        very contexts is left out, so contexts of the logs may be scored, too.
        """
        items = list(_items(contexts, replies, references))
        if not items:
            raise DataError("there are no replies")
        specs = (metrics,) if isinstance(metrics, str) else tuple(metrics)
        asked = self._requests(specs, language)
        return scored(
            items,
            specs,
            asked.item_metrics,
            resamples=RESAMPLES,
            seed=0,
            examined=_Examined.by(self, items),
        )

    def expand(self, items: Given, k: int | None = None) -> Items:
        """The items with references from the pool, each with a weight from -1 to 1: ``k`` of them,
        or as many as the evaluator was made for."""
        found, kind = as_items(items)
        listed = list(found)
        return Items(self._opened.expansion(listed, k, self._leaks(listed)).items, kind)

    def _requests(self, specs: tuple[str, ...], language: str | None) -> Requests:
        if (specs, language) not in self._asked:
            asked = requests(specs, language, str(self.path))
            if asked.sets:
                raise UsageError(
                    f"{asked.sets[0].label} judges sets of replies; use rejoinder.diversity"
                )
            self._asked[specs, language] = asked
        return self._asked[specs, language]

    @cached_property
    def _known(self) -> Known:
        from rejoinder.retrieve.known import Known

        return Known(self._opened.pool)

    def _leaks(self, items: Sequence[Item]) -> Mask:
        return self._known.leaks({item.context[-1] for item in items if item.context})


class _Examined(EvaluatedSet):
    """The contexts of one call; what the pool has of them is looked up."""

    _asked: Evaluator
    _mask: Mask

    @classmethod
    def by(cls, evaluator: Evaluator, items: Sequence[Item]) -> EvaluatedSet:
        found = cls()
        found._asked, found._mask = evaluator, evaluator._leaks(items)
        found.turns = {item.context[-1]: 1 for item in items if item.context}
        return found

    def leaks(self, evaluator: Opened) -> Mask:
        # a spec may name another evaluator
        return self._mask if evaluator is self._asked._opened else super().leaks(evaluator)


def _items(
    contexts: Sequence[str | Sequence[str]],
    replies: Sequence[str],
    references: Sequence[str | References | None] | None,
) -> list[Item]:
    for name, given in (("contexts", contexts), ("replies", replies), ("references", references)):
        if isinstance(given, str):
            raise UsageError(f"{name}: expected a list, one for each reply; got one text")
    given_references = [None] * len(replies) if references is None else references
    if not len(contexts) == len(replies) == len(given_references):
        counts = f"{len(contexts)} contexts, {len(replies)} replies"
        more = "" if references is None else f", {len(references)} references"
        raise UsageError(f"expected one context for each reply; got {counts}{more}")
    return [
        made(f"reply {number}", item_from, _record(number, context, reply, good))
        for number, (context, reply, good) in enumerate(
            zip(contexts, replies, given_references, strict=True)
        )
    ]


def _record(
    number: int, context: str | Sequence[str], reply: str, good: str | References | None
) -> dict[str, Any]:
    one = isinstance(context, str) or not isinstance(context, Iterable)
    known: References = [] if good is None else [good] if isinstance(good, str) else good
    return {
        "id": str(number),
        "context": context if one else list(context),
        "response": reply,
        "references": [
            msgspec.structs.asdict(each) if isinstance(each, Reference) else each for each in known
        ],
    }
