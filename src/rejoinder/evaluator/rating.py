"""Ratings of retrieved references, from -1 to 1, by the NN-rater or the unreferenced scorer.

The rater compares a retrieved reply, and the turns that it answered, with a reply that is known to
be good: a reference of the item. If an item has several, the mean over the first few counts. If it
has none, or if the evaluator has no rater, the unreferenced scorer rates how well the reply fits
the context.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from rejoinder.evaluator.rating_cache import RatingKey, Ratings, Turns, cached_ratings
from rejoinder.items import Item, Reference
from rejoinder.retrieve.retrieved_references import DIGITS, RetrievedReference

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

MAX_GOOD_REFERENCES = 4
"""Number of good references that a reply is compared with."""

NO_RATER = "the evaluator has no rater: its logs were too small to train one"

RatingQuery = tuple[Turns, str, Turns, str]
"""A context, a good reply to it, the turns that the rated reply answers, and that reply."""


def rate_references(
    evaluator: Evaluator, items: Sequence[Item], retrieved: Sequence[Sequence[RetrievedReference]]
) -> list[list[Reference]]:
    """Return the retrieved references of each item with their ratings.

    Items with the same context, good references and retrieved references are rated once: systems
    that are compared share them. Ratings are kept in the cache.
    """
    keys: list[RatingKey] = []
    retrieved_of: dict[RatingKey, Sequence[RetrievedReference]] = {}
    for item, some in zip(items, retrieved, strict=True):
        good = tuple(good_references(item)) if evaluator.rater is not None else ()
        key = tuple(item.context), good, tuple([each.key for each in some])
        retrieved_of[key] = some
        keys.append(key)

    def rate(missing: Sequence[RatingKey]) -> Ratings:
        compared = {key: retrieved_of[key] for key in missing if key[1]}
        scored = {key: retrieved_of[key] for key in missing if not key[1]}
        return _compared_with_good(evaluator, compared) | _scored_for_context(evaluator, scored)

    ratings = cached_ratings(evaluator, keys, rate)
    return [
        [each.reference(rating) for each, rating in zip(some, ratings[key], strict=True)]
        for some, key in zip(retrieved, keys, strict=True)
    ]


def _compared_with_good(
    evaluator: Evaluator, retrieved_of: Mapping[RatingKey, Sequence[RetrievedReference]]
) -> Ratings:
    """Rate retrieved references against the good references of their items, by the rater."""
    answered = _answered_turns(evaluator, retrieved_of.values())
    queries = {
        key: _rating_queries(key[0], key[1], some, answered) for key, some in retrieved_of.items()
    }
    ratings = _ratings(evaluator, chain.from_iterable(chain.from_iterable(queries.values())))
    return {
        key: [_mean([ratings[query] for query in some]) for some in of_key]
        for key, of_key in queries.items()
    }


def _scored_for_context(
    evaluator: Evaluator, retrieved_of: Mapping[RatingKey, Sequence[RetrievedReference]]
) -> Ratings:
    """Rate how well retrieved references fit the context, by the unreferenced scorer."""
    if not any(retrieved_of.values()):
        return {key: [] for key in retrieved_of}
    contexts = [key[0] for key, some in retrieved_of.items() for _ in some]
    texts = [each.text for some in retrieved_of.values() for each in some]
    ratings = iter((2 * evaluator.score(contexts, texts) - 1).tolist())
    return {
        key: [_rounded(rating) for rating in islice(ratings, len(some))]
        for key, some in retrieved_of.items()
    }


def rate_replies(evaluator: Evaluator, items: Sequence[Item]) -> list[float]:
    """Rate the responses of items against their own good references, by the rater."""
    queries_of_items: list[list[RatingQuery]] = []
    for item in items:
        context = tuple(item.context)
        queries_of_items.append(
            [(context, good, (), item.response) for good in good_references(item)]
        )
    ratings = _ratings(evaluator, chain.from_iterable(queries_of_items))
    return [_mean([ratings[query] for query in queries]) for queries in queries_of_items]


def _rating_queries(
    context: Turns,
    good_replies: Sequence[str],
    retrieved: Sequence[RetrievedReference],
    answered: dict[int, Turns],
) -> list[list[RatingQuery]]:
    """Return for each retrieved reference the queries whose ratings are averaged."""
    # the parrot's reply, and one of a language model, answer no turn of the pool
    turns = [() if each.row is None else answered[each.row] for each in retrieved]
    return [
        [(context, good, before, each.text) for good in good_replies]
        for each, before in zip(retrieved, turns, strict=True)
    ]


def _mean(ratings: list[float]) -> float:
    return _rounded(sum(ratings) / len(ratings))


def _rounded(rating: float) -> float:
    return round(min(1.0, max(-1.0, rating)), DIGITS)


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
    pool = evaluator.pool
    turns = zip(pool.contexts(rows), pool.utterances(rows), strict=True)
    return {row: (*before, utterance) for row, (before, utterance) in zip(rows, turns, strict=True)}


def _ratings(evaluator: Evaluator, queries: Iterable[RatingQuery]) -> dict[RatingQuery, float]:
    """Rate with the rater; equal queries once."""
    different = list(dict.fromkeys(queries))
    if not different:
        return {}
    contexts, good, turns, texts = zip(*different, strict=True)
    ratings = evaluator.rate(contexts, good, turns, texts)
    return dict(zip(different, ratings.tolist(), strict=True))
