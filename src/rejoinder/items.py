"""The types of the file formats: a reply to be evaluated, its references, ratings and scores.

They are described in docs/formats.md. An item holds everything about its reply, weights inside
the references, so that a verb needs nothing but its input file.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rejoinder.wording import option

UNNAMED = "(unnamed)"
TURN_END = "\x1f"
"""Joins the turns of a context to its key; texts do not contain it."""

RETRIEVED, PARROT = "retrieved", "parrot"
"""Sources of references that were not written for the context: retrieved from a pool, or a copy
of the context's last turn."""
PLAIN, HARMLESS = "plain", "harmless"
"""Systems of a test set of attacks on a judge: a reply without an attack, and with a harmless
sentence added."""
WRITTEN = "llm"
"""With this begins the source of a reference that a language model wrote: llm:NAME."""


Ratings = dict[str, float] | list[float] | float | None
"""By annotator, a list of unidentified annotators, or one averaged number."""

MAX_RATING = 1e15
"""The average of larger ratings would lose whole steps of a scale."""

_HALF = "The text has a lone surrogate (half of a character), which can't be written as UTF-8"

MAX_SCORE = 1e100
"""Sums and squares of scores must stay finite."""


def mean_rating(ratings: Ratings) -> float | None:
    """Return the mean of human ratings, None if there is none."""
    match ratings:
        case None:
            return None
        case dict() as by_annotator:
            return _mean(by_annotator.values())
        case list() as unidentified:
            return _mean(unidentified)
        case number:
            return float(number)


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else None


class Reference(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A reply that fits the context, or is thought to."""

    text: str
    weight: float | None = None
    """Quality from -1 to 1; a reference without a weight counts as 1."""
    source: str | None = None
    score: float | None = None
    """Of a retrieved reference: similarity of the utterance that it answered to the context."""
    ratings: Ratings = None
    """Human ratings of the reference itself, which may be compared with its weight."""

    @property
    def is_retrieved(self) -> bool:
        """Whether ``expand`` or an evaluator added it, in contrast to the references of the test
        set."""
        return self.source in (RETRIEVED, PARROT) or self.is_by_model

    @property
    def is_by_model(self) -> bool:
        """Whether a language model wrote it."""
        return self.source is not None and self.source.partition(":")[0] == WRITTEN

    def rating(self) -> float | None:
        """Return the mean human rating, None if there is none."""
        return mean_rating(self.ratings)


class Item(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply of one system to one context."""

    id: str
    response: str
    context: list[str] = []
    system: str = UNNAMED
    references: list[Reference] = []
    ratings: Ratings = None
    context_id: str | None = None
    dialogue_id: str | None = None
    turn: int | None = None
    """Number of the reply among the turns of its dialogue, which orders the replies."""
    dialogue_ratings: Ratings = None
    """Human ratings of the whole dialogue, the same on all of its items that have any."""
    inclusion_probability: float | None = None
    """With which probability the reply was chosen to be rated, if it was chosen at random."""

    @property
    def group(self) -> str:
        """Key of the item's context: replies to the same context share it. A reply without a
        context is a group of its own."""
        if self.context_id is not None:
            return self.context_id
        return TURN_END.join(self.context) if self.context else f"(context of {self.id})"

    def rating(self) -> float | None:
        """Return the mean human rating, None if there is none."""
        return mean_rating(self.ratings)

    @property
    def is_rated(self) -> bool:
        """Whether it has a human rating; an empty list or object of ratings has none."""
        return self.rating() is not None


class Score(msgspec.Struct, frozen=True, omit_defaults=True):
    """The score of one metric for an item, or for a set of replies (``level`` context or system).

    An item that can't be scored has ``value`` None and the reason in ``unscored``; it is not 0.
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
    """How well an evaluator's pool covers the context: ``nearest``, ``agreement``."""
    interval: tuple[float, float] | None = None
    """Of a calibrated score: where people's rating of this reply is expected."""
    judging: dict[str, float] | None = None
    """How a language model judged: number of ``answers``, their ``spread``, and what they cost:
    ``requests``, ``tokens``, ``seconds``."""


def score_from(record: dict[str, Any]) -> Score:
    """Convert a decoded JSON object to a score; its value must be in a sane range."""
    score = msgspec.convert(record, Score)
    if score.value is not None and not -MAX_SCORE <= score.value <= MAX_SCORE:
        raise msgspec.ValidationError(
            f"Expected a number from -{MAX_SCORE:g} to {MAX_SCORE:g},"
            f" got {score.value:g} - at `$.value`"
        )
    return score


def item_from(record: dict[str, Any]) -> Item:
    """Convert a decoded JSON object, in our field names or in DSTC10's, to an item.

    References may be one text, the context one text (a turn a line) or chat messages with ``role``
    and ``content``, ratings may be numbers in text.
    """
    if "dialogue_id" in record and "id" not in record:
        record = _from_dstc10(record) if record.get("turn") is None else _named_by_turn(record)
    references = record.get("references")
    if isinstance(references, str):
        references = [references]
    if isinstance(references, list):
        record["references"] = [_reference(each) for each in references]
    for key in ("id", "context_id", "dialogue_id"):
        if type(record.get(key)) is int:  # true and false are no names
            record[key] = str(record[key])
    context = record.get("context")
    if isinstance(context, str):
        record["context"] = context.split("\n")
    elif isinstance(context, list) and any(isinstance(turn, dict) for turn in context):
        record["context"] = _turns(context)
    for key in ("ratings", "dialogue_ratings"):
        if key in record:
            record[key] = _numbers(record[key])
    if "inclusion_probability" in record:
        record["inclusion_probability"] = _number(record["inclusion_probability"])
    if record.get("system", "") is None:
        del record["system"]
    return checked(msgspec.convert(record, Item))


def _reference(value: Any) -> Any:
    """Return a reference, which may be plain text, as an object with numbers as ratings."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict) and "ratings" in value:
        ratings = _numbers(value["ratings"])
        # a struct of a frame has all annotators, also where none of them rated
        return {**value, "ratings": None if ratings == {} else ratings}
    return value


class ItemReader:
    """Convert records to items, and give those without an id one that is made of their content.

    Such an id does not depend on the order of the records, so that scores still belong to their
    items after a table was sorted. Repeated records get ``-2``, ``-3``, … in their order.
    """

    def __init__(self, *, of_table: bool = False) -> None:
        self._counts: Counter[str] = Counter()
        self._of_table = of_table
        self.repeated = 0
        """Records without an id that repeat an earlier one; of a table, also those with an id and
        a context, because each of its rows may be one rating."""

    def item(self, record: dict[str, Any]) -> Item:
        """Convert a record as :func:`item_from` does; its id may be missing."""
        of_content = self._of_table and record.get("id") == ""
        if not of_content and ("id" in record or "dialogue_id" in record):
            item = item_from(record)
            if self._of_table and item.context:
                self._count(content_id(item))
            return item
        item = item_from({**record, "id": ""})
        name = content_id(item)
        count = self._count(name)
        return msgspec.structs.replace(item, id=name if count == 1 else f"{name}-{count}")

    def _count(self, name: str) -> int:
        self._counts[name] += 1
        self.repeated += self._counts[name] > 1
        return self._counts[name]


def content_id(item: Item) -> str:
    """Return a hash of an item's context, dialogue, system and reply, in 12 hexadecimal digits.

    Without a context, the references tell items with the same reply apart.
    """
    prompt = item.context or [reference.text for reference in item.references]
    group = item.dialogue_id if item.context_id is None else item.context_id
    content = json.dumps([prompt, group, item.system, item.response])
    return hashlib.blake2b(content.encode(), digest_size=6).hexdigest()


def _turns(messages: list[Any]) -> list[Any]:
    """Return the texts of chat messages; instructions to the model are no turns."""
    turns = []
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            turns.append(message)
            continue
        if message.get("role") in ("system", "developer", "tool"):
            continue
        content = message.get("content")
        if isinstance(content, list):  # parts: texts, pictures
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            content = " ".join(part for part in parts if isinstance(part, str))
        if not isinstance(content, str):
            raise msgspec.ValidationError(
                "Expected text, or a message with role and content"
                f" - at `$.context[{number}].content`"
            )
        turns.append(content)
    return turns


def _numbers(ratings: Any) -> Any:
    """Return ratings in which numbers that are written as text are numbers."""
    if isinstance(ratings, dict):
        return {name: _number(rating) for name, rating in ratings.items()}
    if isinstance(ratings, list):
        return [_number(rating) for rating in ratings]
    return _number(ratings)


def _number(rating: Any) -> Any:
    if isinstance(rating, str) and re.fullmatch(r"[+-]?\d+(\.\d*)?", rating.strip()):
        return float(rating)
    return rating


def checked(item: Item) -> Item:
    """Return the item after checking its texts, and the ranges of its weights and ratings."""
    texts = [item.id, item.response, item.system, *item.context]
    texts += [name for name in (item.context_id, item.dialogue_id) if name is not None]
    for number, reference in enumerate(item.references):
        texts.append(reference.text)
        if reference.source is not None:
            texts.append(reference.source)
        if reference.weight is not None and not -1 <= reference.weight <= 1:
            raise msgspec.ValidationError(
                f"Expected a weight from -1 to 1, got {reference.weight:g}"
                f" - at `$.references[{number}].weight`"
            )
        if reference.ratings is not None:
            _check_ratings(reference.ratings, f"$.references[{number}].ratings", texts)
    if item.ratings is not None:
        _check_ratings(item.ratings, "$.ratings", texts)
    if item.dialogue_ratings is not None:
        _check_ratings(item.dialogue_ratings, "$.dialogue_ratings", texts)
    chance = item.inclusion_probability
    if chance is not None and not 0 < chance <= 1:
        raise msgspec.ValidationError(
            f"Expected a probability above 0 and up to 1, got {chance:g}"
            " - at `$.inclusion_probability`"
        )
    try:
        "".join(texts).encode()
    except (TypeError, UnicodeEncodeError):
        raise msgspec.ValidationError(_wrong_text(item)) from None
    return item


def _wrong_text(item: Item) -> str:
    """Return which text of an item is none, or can't be written as UTF-8."""
    names = ("id", "response", "system", "context_id", "dialogue_id")
    places: dict[str, Any] = {
        **{name: getattr(item, name) for name in names},
        **{f"context[{n}]": turn for n, turn in enumerate(item.context)},
        **{f"references[{n}].text": each.text for n, each in enumerate(item.references)},
        **{f"references[{n}].source": each.source for n, each in enumerate(item.references)},
    }
    for place, text in places.items():
        if text is not None and not isinstance(text, str):
            return f"Expected `str` - at `$.{place}`"
        if text is not None and re.search("[\ud800-\udfff]", text):
            return f"{_HALF} - at `$.{place}`"
    return f"{_HALF} - at `$.ratings`"


def _check_ratings(
    ratings: dict[str, float] | list[float] | float, where: str, texts: list[str]
) -> None:
    """Raise an error for a rating outside of the range; add the names of annotators to texts."""
    if isinstance(ratings, dict):
        texts += ratings
    several = ratings.values() if isinstance(ratings, dict) else ratings
    for rating in several if isinstance(several, Iterable) else [several]:
        if not -MAX_RATING <= rating <= MAX_RATING:
            raise msgspec.ValidationError(
                f"Expected numbers from -{MAX_RATING:g} to {MAX_RATING:g},"
                f" got {rating:g} - at `{where}`"
            )


def _named_by_turn(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a turn of a dialogue with an id made of dialogue, turn and system."""
    names = [record["dialogue_id"], record["turn"], record.get("system")]
    return {**record, "id": ":".join(str(name) for name in names if name is not None)}


def _from_dstc10(record: dict[str, Any]) -> dict[str, Any]:
    """Rename the fields of DSTC10 track 5: dialogue_id, model, reference, annotations."""
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
    if "ratings" not in out and annotations is not None:
        if not isinstance(annotations, dict):
            raise msgspec.ValidationError(
                'Expected ratings by quality, such as {"overall": [3, 4]}; to read other ratings,'
                f" add {option('columns', {'ratings': 'annotations'})} - at `$.annotations`"
            )
        out["ratings"] = _one_quality(annotations)
    return out


def _one_quality(annotations: dict[str, Any]) -> Any:
    """Return the overall quality of the several that DSTC10 rates, or the only one."""
    if len(annotations) == 1:
        return next(iter(annotations.values()))
    for name, ratings in annotations.items():
        if name.lower() == "overall":
            return ratings
    return None
