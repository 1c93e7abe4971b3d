"""Ratings of retrieved references in the user's cache.

They depend only on the evaluator and on what was rated, so the next system that is scored with the
same contexts needs no network for them. A key has the digest of the evaluator, which covers all its
parts, and the version of this program: ratings of another version are computed again.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rejoinder.files.cache import key_of, open_cache
from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.evaluator.evaluator import Evaluator

KIND = "ratings"
NO_ROW = -1
"""Stands in a key for a reference that is in no row of the pool: the parrot's, or a model's."""

Turns = tuple[str, ...]
RatingKey = tuple[Turns, tuple[str, ...], tuple[int | str | None, ...]]
"""What decides the ratings of an item: its context, good references, and retrieved rows, or the
texts that a language model wrote."""
Ratings = dict[RatingKey, list[float]]


def cached_ratings(
    evaluator: Evaluator, keys: Sequence[RatingKey], rate: Callable[[list[RatingKey]], Ratings]
) -> Ratings:
    """Return the ratings of keys; those that are not in the cache by ``rate``."""
    cache = open_cache(KIND)
    hashes = {key: _hash(evaluator, key) for key in dict.fromkeys(keys)}
    stored = cache.get(list(hashes.values()))
    ratings = {
        key: array("d", stored[name]).tolist() for key, name in hashes.items() if name in stored
    }
    if missing := [key for key in hashes if key not in ratings]:
        new = rate(missing)
        cache.put((hashes[key], array("d", some).tobytes()) for key, some in new.items())
        ratings |= new
    return ratings


def _hash(evaluator: Evaluator, key: RatingKey) -> bytes:
    context, good, rows = key
    numbers = array("q", [row if isinstance(row, int) else NO_ROW for row in rows])
    texts = [row for row in rows if isinstance(row, str)]
    number = str(len(context))
    return key_of(__version__, evaluator.digest, number, *context, *good, numbers.tobytes(), *texts)
