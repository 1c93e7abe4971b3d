"""Ratings of retrieved references, from -1 to 1, by the NN-rater or the unreferenced scorer.

The rater compares a retrieved reply, and the turns that it answered, with a reply that is known to
be good: a reference of the item. If an item has several, the mean over the first few counts. If it
has none, or if the evaluator has no rater, the unreferenced scorer rates how well the reply fits
the context.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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
RatingQuery = tuple[Turns, str | None, Turns, str]
"""A context, a good reply to it or None, the turns that the rated reply answers, and that reply."""


def rate_references(
    evaluator: Evaluator, items: Sequence[Item], retrieved: Sequence[Sequence[RetrievedReference]]
) -> list[list[Reference]]:
    """Return the retrieved references of each item with their ratings.

    Equal queries are rated once: systems that are compared share contexts and references.
    """
    answered = _answered_turns(evaluator, retrieved)
    keys = []
    queries: dict[Hashable, list[list[RatingQuery]]] = {}
    for item, some in zip(items, retrieved, strict=True):
        context = tuple(item.context)
        good = tuple(good_references(item)) if evaluator.rater is not None else ()
        key = context, good, tuple(each.row for each in some)
        if key not in queries:
            queries[key] = _rating_queries(context, good, some, answered)
        keys.append(key)
    ratings = _ratings(
        evaluator, dict.fromkeys(chain.from_iterable(chain.from_iterable(queries.values())))
    )
    means = {
        key: [_mean([ratings[query] for query in some]) for some in of_key]
        for key, of_key in queries.items()
    }
    return [
        [each.reference(rating) for each, rating in zip(some, means[key], strict=True)]
        for some, key in zip(retrieved, keys, strict=True)
    ]


def rate_replies(evaluator: Evaluator, items: Sequence[Item]) -> list[float]:
    """Rate the responses of items against their own good references, by the rater."""
    queries_of_items: list[list[RatingQuery]] = []
    for item in items:
        context = tuple(item.context)
        queries_of_items.append(
            [(context, good, (), item.response) for good in good_references(item)]
        )
    ratings = _ratings(evaluator, dict.fromkeys(chain.from_iterable(queries_of_items)))
    return [_mean([ratings[query] for query in queries]) for queries in queries_of_items]


def _rating_queries(
    context: Turns,
    good_replies: Sequence[str],
    retrieved: Sequence[RetrievedReference],
    answered: dict[int, Turns],
) -> list[list[RatingQuery]]:
    """Return for each retrieved reference the queries whose ratings are averaged."""
    if not good_replies:
        return [[(context, None, (), each.text)] for each in retrieved]
    # the parrot's reply answers no turn of the pool
    turns = [() if each.row is None else answered[each.row] for each in retrieved]
    return [
        [(context, good, before, each.text) for good in good_replies]
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


def _ratings(evaluator: Evaluator, queries: Iterable[RatingQuery]) -> dict[RatingQuery, float]:
    """Rate with the rater where there is a good reply, with the unreferenced scorer elsewhere."""
    compared: list[RatingQuery] = []
    scored: list[RatingQuery] = []
    for query in queries:
        (scored if query[1] is None else compared).append(query)
    rated: dict[RatingQuery, float] = {}
    if compared and evaluator.rater is not None:
        contexts, good, turns, texts = zip(*compared, strict=True)
        ratings = evaluator.rate(contexts, [str(text) for text in good], turns, texts)
        rated |= zip(compared, ratings.tolist(), strict=True)
    if scored:
        contexts, _, _, texts = zip(*scored, strict=True)
        scores = 2 * evaluator.score(contexts, texts) - 1
        rated |= zip(scored, scores.tolist(), strict=True)
    return rated
