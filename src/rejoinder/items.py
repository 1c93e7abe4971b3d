"""The vocabulary: a reply to be judged, its references, what people said of it, its scores.

These types are the file formats (docs/formats.md). Everything about a reply travels in its
item, weights inside the references, so that a step needs nothing but its input file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

UNNAMED = "(unnamed)"
TURN_END = "\x1f"
"""Between the turns of a context that serves as its own name; no text has it inside."""


RETRIEVED, PARROT = "retrieved", "parrot"
"""Sources of references that nobody wrote for the context: found for it, or its own last turn."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A reply that is known, or thought, to fit the context."""

    text: str
    weight: float | None = None
    """How good it is, from -1 to 1; a reference without a weight counts fully, as 1."""
    source: str | None = None
    score: float | None = None
    """How similar what it answered is to the context, if it was retrieved."""

    @property
    def looked_for(self) -> bool:
        """Whether it was found for the context, instead of having come with the item."""
        return self.source in (RETRIEVED, PARROT)


Ratings = dict[str, float] | list[float] | float | None
"""By identified annotators, by unidentified ones, or already averaged."""

LARGEST_RATING = 1e15
"""Beyond it, the average of ratings loses whole steps of any scale."""

LARGEST_SCORE = 1e100
"""Sums and squares of scores must stay numbers."""


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply of one system to one context."""

    id: str
    response: str
    context: list[str] = []
    system: str = UNNAMED
    references: list[Reference] = []
    ratings: Ratings = None
    context_id: str | None = None

    @property
    def group(self) -> str:
        """What the item's context is called: replies to one context share it. A reply whose
        context is not given stands alone."""
        if self.context_id is not None:
            return self.context_id
        return TURN_END.join(self.context) if self.context else f"(context of {self.id})"

    def rating(self) -> float | None:
        """The average human rating, or None where nobody rated."""
        match self.ratings:
            case None:
                return None
            case dict() as by_annotator:
                return _mean(by_annotator.values())
            case list() as anonymous:
                return _mean(anonymous)
            case number:
                return float(number)


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else None


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """One metric's word on one item, or on a set of replies (``level`` context or system).

    Missing is not zero: ``value`` is None and ``unscored`` says why.
    """

    id: str
    metric: str
    value: float | None
    signature: str = ""
    parts: dict[str, float] | None = None
    unscored: str | None = None
    level: Literal["item", "context", "system"] = "item"
    system: str | None = None
    coverage: dict[str, float] | None = None
    """How well an evaluator's pool covers the item's context: ``nearest``, ``agreement``."""


def score_from(record: dict[str, Any]) -> Score:
    """Convert a decoded JSON object to a score that can be reckoned with."""
    score = msgspec.convert(record, Score)
    if score.value is not None and not -LARGEST_SCORE <= score.value <= LARGEST_SCORE:
        raise msgspec.ValidationError(
            f"Expected a number from -{LARGEST_SCORE:g} to {LARGEST_SCORE:g},"
            f" got {score.value:g} - at `$.value`"
        )
    return score


def item_from(record: dict[str, Any]) -> Item:
    """Convert a decoded JSON object, in our field names or in DSTC10's, to an item."""
    if "dialogue_id" in record and "id" not in record:
        record = _from_dstc10(record)
    references = record.get("references")
    if isinstance(references, list):
        record["references"] = [{"text": r} if isinstance(r, str) else r for r in references]
    elif isinstance(references, str):
        raise msgspec.ValidationError("Expected a list, got one string - at `$.references`")
    for key in ("id", "context_id"):
        if type(record.get(key)) is int:  # true and false are no names
            record[key] = str(record[key])
    if isinstance(record.get("context"), str):
        record["context"] = record["context"].split("\n")
    if record.get("system", "") is None:
        del record["system"]
    return checked(msgspec.convert(record, Item))


def checked(item: Item) -> Item:
    """The item, if its numbers make sense."""
    for number, reference in enumerate(item.references):
        if reference.weight is not None and not -1 <= reference.weight <= 1:
            raise msgspec.ValidationError(
                f"Expected a weight from -1 to 1, got {reference.weight:g}"
                f" - at `$.references[{number}].weight`"
            )
    ratings = item.ratings.values() if isinstance(item.ratings, dict) else item.ratings
    for rating in [ratings] if isinstance(ratings, (int, float)) else ratings or ():
        if not -LARGEST_RATING <= rating <= LARGEST_RATING:
            raise msgspec.ValidationError(
                f"Expected numbers from -{LARGEST_RATING:g} to {LARGEST_RATING:g},"
                f" got {rating:g} - at `$.ratings`"
            )
    return item


def _from_dstc10(record: dict[str, Any]) -> dict[str, Any]:
    """DSTC10 track 5 names: dialogue_id, model, reference, annotations."""
    out = dict(record)
    if type(out["dialogue_id"]) not in (int, str):
        raise msgspec.ValidationError("Expected `str | int` - at `$.dialogue_id`")
    dialogue = str(out.pop("dialogue_id"))
    if (model := out.pop("model", None)) is not None:
        out.setdefault("system", model)
    out["id"] = f"{dialogue}:{model}" if model is not None else dialogue
    out.setdefault("context_id", dialogue)
    reference = out.pop("reference", None)
    if reference is not None and "references" not in out:
        out["references"] = [reference] if isinstance(reference, str) else reference
    annotations = out.pop("annotations", None)
    if "ratings" not in out and isinstance(annotations, dict):
        out["ratings"] = _one_quality(annotations)
    return out


def _one_quality(annotations: dict[str, Any]) -> Any:
    """DSTC10 rates several qualities; the overall one is what a single number stands for."""
    if len(annotations) == 1:
        return next(iter(annotations.values()))
    for name, ratings in annotations.items():
        if name.lower() == "overall":
            return ratings
    return None
