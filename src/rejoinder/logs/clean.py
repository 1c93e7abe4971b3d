"""Clean posts with named filters, each of which can be switched off.

Changing filters come first and rewrite the text; removing filters then decide by the rewritten
text. Each post is cleaned independently of the others, so batches can be cleaned in any process
and any order. A rewriting can create something new to rewrite (a phone number, if user names
separated its parts), so filters are repeated until the text does not change: cleaning is
idempotent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.kernels import cleaning as kernel
from rejoinder.logs.filters import rewrite
from rejoinder.logs.filters.bots import CLIENTS, posted_by_bots
from rejoinder.logs.filters.characters import UNSPACED, table
from rejoinder.logs.filters.columns import buffers, differ, put, strings
from rejoinder.logs.filters.language import classified_otherwise, labelled_otherwise
from rejoinder.logs.schema import CLEANED
from rejoinder.spec import did_you_mean
from rejoinder.text.identify import classifier
from rejoinder.text.languages import language as known_language

CHANGING = (
    "entities",
    "urls",
    "emails",
    "phones",
    "users",
    "hashtags",
    "emoji",
    "letters",
    "words",
    "spaces",
)
REMOVING = ("bot-client", "language", "short", "script")
FILTERS = CHANGING + REMOVING
"""All filters, in the order in which they are applied."""
OPTIONAL = frozenset(("hashtags",))
"""Filters that are off unless asked for: hashtags are often words of the sentence."""

MAX_ROUNDS = 10  # nested entities could go on for ever
MIN_CHARACTERS = {"zh": 3}
"""Of translated DailyDialog turns, about as many Chinese ones have fewer than 3 characters (0.5 %)
as English ones fewer than 5 (0.3 %); a limit of 5 would remove 5 % of them, such as 好的。"""

_EXPRESSIONS: dict[str, tuple[int, Callable[[pa.Array], pa.Array]]] = {
    "entities": (kernel.ENTITY, rewrite.entities),
    "urls": (kernel.URL, rewrite.urls),
    "emails": (kernel.EMAIL, rewrite.emails),
    "phones": (kernel.PHONE, rewrite.phones),
}
_STEPS = {
    "users": kernel.USERS,
    "hashtags": kernel.HASHTAGS,
    "emoji": kernel.EMOJIS,
    "letters": kernel.LETTERS,
    "words": kernel.WORDS,
    "spaces": kernel.SPACES,
}


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """Which filters clean the posts of a language, and how strictly."""

    language: str
    filters: tuple[str, ...] = tuple(name for name in FILTERS if name not in OPTIONAL)
    min_characters: int = 5
    """Minimum number of characters of a post."""
    script_share: float = 0.6
    """Minimum share of letters in a script of the language."""
    max_letter_run: int = 3
    """Longest run of one character that is kept."""
    max_word_run: int = 2
    """Longest run of one word or phrase that is kept."""
    clients: tuple[str, ...] = CLIENTS
    """Regular expressions for the clients of bots."""
    classifier: bool = True
    """Whether the language filter also uses the classifier, or only the label."""

    def __post_init__(self) -> None:
        known_language(self.language)
        problems = [
            f"unknown filter '{name}': {did_you_mean(name, FILTERS)}"
            for name in self.filters
            if name not in FILTERS
        ]
        ordered = tuple(name for name in FILTERS if name in self.filters)
        if not problems and self.filters != ordered:
            problems.append(f"filters come once each and in this order: {', '.join(ordered)}")
        for name in ("min_characters", "max_letter_run", "max_word_run"):
            least = 0 if name == "min_characters" else 1
            if getattr(self, name) < least:
                problems.append(f"{name}={getattr(self, name)} is below {least}")
        if not 0 <= self.script_share <= 1:
            problems.append(f"script_share={self.script_share:g} is not between 0 and 1")
        for pattern in self.clients:
            try:
                pc.match_substring_regex(pa.array(["client"]), pattern)
            except pa.ArrowInvalid:
                problems.append(f"clients: '{pattern}' is not a regular expression (RE2)")
        if problems:
            raise UsageError(*problems)

    @classmethod
    def for_language(
        cls, code: str, *, off: Collection[str] = (), on: Collection[str] = (), **parameters: Any
    ) -> Cleaning:
        """Return the defaults of a language, with filters switched ``off`` and ``on``."""
        plain = known_language(code).code
        own = [field.name for field in fields(cls) if field.name not in ("language", "filters")]
        problems = [
            f"unknown filter '{name}': {did_you_mean(name, FILTERS)}"
            for name in (*off, *on)
            if name not in FILTERS
        ]
        problems += [f"filter '{name}' is both on and off" for name in on if name in off]
        problems += [
            f"cleaning has no parameter '{name}': {did_you_mean(name, own)}"
            for name in parameters
            if name not in own
        ]
        if problems:
            raise UsageError(*problems)
        chosen = tuple(
            name for name in FILTERS if name not in off and (name in on or name not in OPTIONAL)
        )
        settings = {"min_characters": MIN_CHARACTERS.get(plain, 5), **parameters}
        return cls(language=plain, filters=chosen, **settings)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn posts (``schema.POSTS``) into cleaned posts (``schema.CLEANED``), row by row.

        A rejected record is neither changed nor removed.
        """
        texts = batch.column("text").cast(pa.string()).fill_null("")
        posts = batch.column("reject").is_null().to_numpy(zero_copy_only=False)
        if posts.all():
            text, changed, removed = self._clean(batch, texts)
        else:
            where = pa.array(posts)
            cleaned, bits, names = self._clean(batch.filter(where), texts.filter(where))
            text = put(texts, posts, cleaned)
            changed = np.zeros(len(batch), np.int64)
            changed[posts] = bits
            removed = put(pa.nulls(len(batch), pa.string()), posts, names)
        columns = [
            text if field.name == "text" else batch.column(field.name).cast(field.type)
            for field in CLEANED
            if field.name in batch.schema.names
        ]
        return pa.RecordBatch.from_arrays([*columns, removed, pa.array(changed)], schema=CLEANED)

    def _clean(
        self, batch: pa.RecordBatch, text: pa.Array
    ) -> tuple[pa.Array, NDArray[np.int64], pa.Array]:
        changed = np.zeros(len(text), np.int64)
        going = np.ones(len(text), np.bool_)
        for _ in range(MAX_ROUNDS):
            part = text if going.all() else text.filter(pa.array(going))
            part, bits = self._change(part)
            if not bits.any():
                break
            text = put(text, going, part)
            changed[going] |= bits
            going[going] = bits != 0
        return text, changed, self._remove(batch, text)

    def _change(self, text: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
        """Apply all changing filters once; return the texts and, for each row, a bit per filter."""
        changed = np.zeros(len(text), np.int64)
        flags = kernel.scan(*buffers(text))
        for name, (flag, rewritten) in _EXPRESSIONS.items():
            if name not in self.filters:
                continue
            where = (flags & flag) != 0
            if not where.any():
                continue
            before = text.filter(pa.array(where))
            after = rewritten(before)
            differs = differ(before, after)
            if differs.any():
                text = put(text, where, after)
                changed[where] |= differs.astype(np.int64) << self.filters.index(name)
                if name == "entities":  # the other filters must see the decoded text
                    flags = kernel.scan(*buffers(text))
        steps = {name: bit for name, bit in _STEPS.items() if name in self.filters}
        if steps:
            codes, starts = kernel.decode(*buffers(text))
            ends, done = kernel.tidy(
                codes,
                starts,
                table(self.language),
                sum(steps.values()),
                letters=self.max_letter_run,
                words=self.max_word_run,
                unspaced=self.language in UNSPACED,
            )
            if done.any():
                text = strings(*kernel.encode(codes, starts, ends))
                for name, bit in steps.items():
                    changed |= ((done & bit) != 0).astype(np.int64) << self.filters.index(name)
        return text, changed

    def _remove(self, batch: pa.RecordBatch, text: pa.Array) -> pa.Array:
        """Return the first filter that removes each row, or null."""
        removed = np.full(len(text), -1, np.int8)

        def remove(name: str, where: NDArray[np.bool_]) -> None:
            removed[where & (removed < 0)] = FILTERS.index(name)

        if "bot-client" in self.filters:
            remove(
                "bot-client", posted_by_bots(batch.column("client").cast(pa.string()), self.clients)
            )
        if "language" in self.filters:
            labels = batch.column("label").cast(pa.string())
            remove("language", labelled_otherwise(labels, self.language))
            if self.classifier:
                classifier()  # a missing package is reported even if no text is left
                left = removed < 0
                other = np.zeros(len(text), np.bool_)
                other[left] = classified_otherwise(
                    text.filter(pa.array(left)).to_pylist(), self.language
                )
                remove("language", other)
        if "short" in self.filters:
            lengths = pc.utf8_length(text).to_numpy(zero_copy_only=False)
            remove("short", lengths < self.min_characters)
        if "script" in self.filters:
            letters, own = kernel.measure(*kernel.decode(*buffers(text)), table(self.language))
            remove("script", (letters == 0) | (own < self.script_share * letters))
        names = pa.array(FILTERS, pa.string())
        return names.take(pa.array(removed, mask=removed < 0))
