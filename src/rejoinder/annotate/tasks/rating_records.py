"""Export of ratings: items with ratings by annotator, references with ratings and weights.

Ratings of the study replace those that an item had before, which may be on another scale. The
weight of a rated reference is its mean rating, mapped linearly from the scale to [-1, 1]; what
``delta-bleu`` uses. A reference that nobody rated stays as it was. The weights that an evaluator
gave are in the study's own items, and can be compared with the ratings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from rejoinder.annotate.study import Dimension
from rejoinder.annotate.tasks.kind import Export, Json, StoredAnswer, item_record
from rejoinder.items import Item, mean_rating
from rejoinder.meta_evaluation.annotators import DISTRACTOR

ByDimension = dict[str, dict[str, float]]
"""Ratings by annotator, of each dimension."""


@dataclass(frozen=True)
class RatedReply:
    """A reply with all of its ratings."""

    answer: StoredAnswer
    """One of the answers about it, for the context."""
    reply: Json
    ratings: ByDimension = field(default_factory=dict)

    @property
    def is_reference(self) -> bool:
        return self.reply["reference"] is not None

    def item(self, dimension: str) -> Item:
        """Return the reply as an item of its own, whatever it is."""
        number = self.reply["reference"]
        return Item(
            self.reply["item"] if number is None else f"{self.reply['item']}:{number}",
            self.reply["text"],
            self.answer.content["context"],
            self.reply["system"],
            ratings=self.ratings[dimension],
            context_id=self.answer.content.get("context_id"),
        )


def rated_replies(answers: Sequence[StoredAnswer], dimension: str) -> list[Item]:
    """Return the rated replies as items: responses, references and distractors alike."""
    return [each.item(dimension) for each in _collect(answers)]


def _collect(answers: Sequence[StoredAnswer]) -> list[RatedReply]:
    """Gather the ratings of each reply."""
    found: dict[tuple[str, int | None], RatedReply] = {}
    for answer, reply, ratings in _each(answers):
        key = (reply["item"], reply["reference"])
        rated = found.setdefault(key, RatedReply(answer, reply))
        for name, rating in ratings.items():
            rated.ratings.setdefault(name, {})[answer.person] = float(rating)
    return list(found.values())


def _each(answers: Sequence[StoredAnswer]) -> Iterator[tuple[StoredAnswer, Json, dict[str, int]]]:
    """Yield each answer with a reply that it rates, and the ratings by dimension."""
    for answer in answers:
        for reply, ratings in zip(answer.content["replies"], answer.value["ratings"], strict=True):
            yield answer, reply, ratings


def export_ratings(
    items: Sequence[Item],
    answers: Sequence[StoredAnswer],
    dimension: Dimension,
    dimensions: Sequence[str],
) -> Export:
    """Return the items with ratings of ``dimension``; with several, all under ``dimensions``.

    Distractors become items of the system "distractor". If references were rated, the second file,
    ``rated``, has every rated reply as an item of its own, whose system is the source of the
    reference.
    """
    replies = _collect(answers)
    several = len(dimensions) > 1
    records = list(_items(items, replies, dimension, several))
    others: dict[str, list[Json]] = {}
    if any(each.is_reference for each in replies):
        others["rated"] = [_own_record(each, dimension.name, several) for each in replies]
    records += [
        _own_record(each, dimension.name, several)
        for each in replies
        if each.reply["system"] == DISTRACTOR and not each.is_reference
    ]
    return Export("items", records, others)


def _own_record(rated: RatedReply, dimension: str, several: bool) -> Json:
    record = item_record(rated.item(dimension))
    return record | ({"dimensions": rated.ratings} if several else {})


def _items(
    items: Sequence[Item],
    replies: Sequence[RatedReply],
    dimension: Dimension,
    several: bool,
) -> Iterator[Json]:
    """Yield the study's items with the ratings of their replies and references."""
    responses = {each.reply["item"]: each for each in replies if not each.is_reference}
    groups = {item.id: item.group for item in items}
    references = {
        # replies of several systems to a context share its references
        (groups[each.reply["item"]], each.reply["text"]): each
        for each in replies
        if each.is_reference
    }
    for item in items:
        rated = responses.get(item.id)
        ratings = rated.ratings[dimension.name] if rated else None
        record = item_record(msgspec.structs.replace(item, ratings=ratings))
        if rated and several:
            record["dimensions"] = rated.ratings
        for reference in record.get("references", []):
            if each := references.get((item.group, reference["text"])):
                by_annotator = each.ratings[dimension.name]
                reference["ratings"] = by_annotator
                reference["weight"] = weight_of(by_annotator, dimension.scale)
                if several:
                    reference["dimensions"] = each.ratings
        yield record


def weight_of(ratings: dict[str, float], scale: Sequence[int]) -> float:
    """Return the weight of a reference, from -1 (worst of the scale) to 1 (best).

    >>> weight_of({"ann": 4, "bob": 5}, [1, 2, 3, 4, 5])
    0.75
    """
    mean = mean_rating(ratings)
    assert mean is not None
    return 2 * (mean - scale[0]) / (scale[-1] - scale[0]) - 1
