"""How good is a reply that was found for an item? The NN-rater, or the unreferenced scorer.

The rater compares what was found, and what it was an answer to, with a reply that is known to be
good: a reference that the item came with. Where an item has several, the mean over the first few
counts; where it has none, or where the evaluator has no rater, the unreferenced scorer says how
well the reply fits the context, from -1 (not at all) to 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from rejoinder.items import Item, Reference
from rejoinder.retrieve.references import DIGITS, Found

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator

MOST_KNOWN = 4
"""Good replies that one is compared with."""

NO_RATER = "the evaluator has no rater: its logs were not enough to train one"

Turns = tuple[str, ...]
Question = tuple[Turns, str | None, Turns, str]
"""A context, a good reply to it if one is known, and other turns with the reply to be rated."""


def rated(
    evaluator: Evaluator, items: Sequence[Item], found: Sequence[Sequence[Found]]
) -> list[list[Reference]]:
    """What was found as references, each with its rating. Equal questions are asked once: systems
    that are compared share contexts and references."""
    answered_to = _answered_to(evaluator, found)
    asked = [
        _questions(evaluator, item, some, answered_to)
        for item, some in zip(items, found, strict=True)
    ]
    ratings = _ratings(evaluator, dict.fromkeys(chain.from_iterable(chain.from_iterable(asked))))
    return [
        [
            each.reference(_mean([ratings[question] for question in questions]))
            for each, questions in zip(some, of_item, strict=True)
        ]
        for some, of_item in zip(found, asked, strict=True)
    ]


def rate_replies(evaluator: Evaluator, items: Sequence[Item]) -> list[float]:
    """How the rater rates the replies that are to be judged, given the items' own references."""
    asked: list[list[Question]] = []
    for item in items:
        context = tuple(item.context)
        asked.append([(context, good, (), item.response) for good in known_good(item)])
    ratings = _ratings(evaluator, dict.fromkeys(chain.from_iterable(asked)))
    return [_mean([ratings[question] for question in questions]) for questions in asked]


def _questions(
    evaluator: Evaluator, item: Item, found: Sequence[Found], answered_to: dict[int, Turns]
) -> list[list[Question]]:
    """For each reply that was found, the questions whose answers are averaged."""
    context = tuple(item.context)
    known = known_good(item) if evaluator.rater is not None else []
    if not known:
        return [[(context, None, (), each.text)] for each in found]
    # what a parrot says was said to nobody
    turns = [() if each.row is None else answered_to[each.row] for each in found]
    return [
        [(context, good, before, each.text) for good in known]
        for each, before in zip(found, turns, strict=True)
    ]


def _mean(ratings: list[float]) -> float:
    return round(min(1.0, max(-1.0, sum(ratings) / len(ratings))), DIGITS)


def known_good(item: Item) -> list[str]:
    """The references that an item came with, unless they were found in a pool or are known to be
    bad: the first few distinct ones."""
    texts = (
        reference.text
        for reference in item.references
        if not reference.looked_for
        and (reference.weight is None or reference.weight > 0)
        and reference.text.strip()
    )
    return list(dict.fromkeys(texts))[:MOST_KNOWN]


def _answered_to(evaluator: Evaluator, found: Iterable[Sequence[Found]]) -> dict[int, Turns]:
    """For rows of the pool, the turns that their response answered."""
    rows = sorted({each.row for some in found for each in some if each.row is not None})
    if evaluator.rater is None:
        return dict.fromkeys(rows, ())
    pool = evaluator.pool
    turns = zip(pool.contexts(rows), pool.utterances(rows), strict=True)
    return {row: (*before, utterance) for row, (before, utterance) in zip(rows, turns, strict=True)}


def _ratings(evaluator: Evaluator, questions: Iterable[Question]) -> dict[Question, float]:
    """The rater answers where a good reply is known, the unreferenced scorer elsewhere."""
    compared: list[Question] = []
    scored: list[Question] = []
    for question in questions:
        (scored if question[1] is None else compared).append(question)
    found: dict[Question, float] = {}
    if compared and evaluator.rater is not None:
        contexts, good, turns, texts = zip(*compared, strict=True)
        ratings = evaluator.rater.rate(contexts, [str(text) for text in good], turns, texts)
        found |= zip(compared, ratings.tolist(), strict=True)
    if scored:
        contexts, _, _, texts = zip(*scored, strict=True)
        scores = 2 * evaluator.scorer.score(contexts, texts) - 1
        found |= zip(scored, scores.tolist(), strict=True)
    return found
