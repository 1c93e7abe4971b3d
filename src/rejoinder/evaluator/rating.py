"""Ratings of retrieved references, from -1 to 1, by the NN-rater or the unreferenced scorer.

The rater compares a retrieved reply, and the turns that it answered, with a reply that is known to
be good: a reference of the item. If an item has several, the mean over the first few counts. If it
has none, or if the evaluator has no rater, the unreferenced scorer rates how well the reply fits
the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from rejoinder.items import Item, Reference
from rejoinder.retrieve.retrieved_references import DIGITS, RetrievedReference

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

MAX_GOOD_REFERENCES = 4
"""Number of good references that a reply is compared with."""

NO_RATER = "the evaluator has no rater: its logs were too small to train one"

Turns = tuple[str, ...]
Question = tuple[Turns, str | None, Turns, str]
"""A context, a good reply to it or None, the turns that the rated reply answers, and that reply."""


def rate_references(
    evaluator: Evaluator, items: Sequence[Item], retrieved: Sequence[Sequence[RetrievedReference]]
) -> list[list[Reference]]:
    """Return the retrieved references of each item with their ratings.

    Equal questions are computed once: systems that are compared share contexts and references.
    """
    answered = _answered_turns(evaluator, retrieved)
    questions_of_items = [
        _questions(evaluator, item, some, answered)
        for item, some in zip(items, retrieved, strict=True)
    ]
    ratings = _ratings(
        evaluator, dict.fromkeys(chain.from_iterable(chain.from_iterable(questions_of_items)))
    )
    return [
        [
            each.reference(_mean([ratings[question] for question in questions]))
            for each, questions in zip(some, of_item, strict=True)
        ]
        for some, of_item in zip(retrieved, questions_of_items, strict=True)
    ]


def rate_replies(evaluator: Evaluator, items: Sequence[Item]) -> list[float]:
    """Rate the responses of items against their own good references, by the rater."""
    questions_of_items: list[list[Question]] = []
    for item in items:
        context = tuple(item.context)
        questions_of_items.append(
            [(context, good, (), item.response) for good in good_references(item)]
        )
    ratings = _ratings(evaluator, dict.fromkeys(chain.from_iterable(questions_of_items)))
    return [
        _mean([ratings[question] for question in questions]) for questions in questions_of_items
    ]


def _questions(
    evaluator: Evaluator,
    item: Item,
    retrieved: Sequence[RetrievedReference],
    answered: dict[int, Turns],
) -> list[list[Question]]:
    """Return for each retrieved reference the questions whose answers are averaged."""
    context = tuple(item.context)
    good_ones = good_references(item) if evaluator.rater is not None else []
    if not good_ones:
        return [[(context, None, (), each.text)] for each in retrieved]
    # the parrot's reply answers no turn of the pool
    turns = [() if each.row is None else answered[each.row] for each in retrieved]
    return [
        [(context, good, before, each.text) for good in good_ones]
        for each, before in zip(retrieved, turns, strict=True)
    ]


def _mean(ratings: list[float]) -> float:
    return round(min(1.0, max(-1.0, sum(ratings) / len(ratings))), DIGITS)


def good_references(item: Item) -> list[str]:
    """Return the first few distinct references of an item that were not retrieved and have no
    weight of 0 or less."""
    texts = (
        reference.text
        for reference in item.references
        if not reference.is_retrieved
        and (reference.weight is None or reference.weight > 0)
        and reference.text.strip()
    )
    return list(dict.fromkeys(texts))[:MAX_GOOD_REFERENCES]


def _answered_turns(
    evaluator: Evaluator, retrieved: Iterable[Sequence[RetrievedReference]]
) -> dict[int, Turns]:
    """Return for rows of the pool the turns that their response answered."""
    rows = sorted({each.row for some in retrieved for each in some if each.row is not None})
    if evaluator.rater is None:
        return dict.fromkeys(rows, ())
    pool = evaluator.pool
    turns = zip(pool.contexts(rows), pool.utterances(rows), strict=True)
    return {row: (*before, utterance) for row, (before, utterance) in zip(rows, turns, strict=True)}


def _ratings(evaluator: Evaluator, questions: Iterable[Question]) -> dict[Question, float]:
    """Rate with the rater where there is a good reply, with the unreferenced scorer elsewhere."""
    compared: list[Question] = []
    scored: list[Question] = []
    for question in questions:
        (scored if question[1] is None else compared).append(question)
    answers: dict[Question, float] = {}
    if compared and evaluator.rater is not None:
        contexts, good, turns, texts = zip(*compared, strict=True)
        ratings = evaluator.rate(contexts, [str(text) for text in good], turns, texts)
        answers |= zip(compared, ratings.tolist(), strict=True)
    if scored:
        contexts, _, _, texts = zip(*scored, strict=True)
        scores = 2 * evaluator.score(contexts, texts) - 1
        answers |= zip(scored, scores.tolist(), strict=True)
    return answers
