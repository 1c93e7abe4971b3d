"""Cleaning posts: named filters in one order, each of which can be switched off.

The changing filters come first and rewrite the text; the removing ones look at what is left.
A post is cleaned by itself, whatever stands beside it, so batches can be cleaned in any process
and any order. Removing something can bring something new together (a phone number, where user
names stood between its parts), so a changed text goes round again until nothing changes:
cleaning what is clean changes nothing.
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
from rejoinder.logs.filters.bots import CLIENTS, by_bots
from rejoinder.logs.filters.characters import UNSPACED, table
from rejoinder.logs.filters.columns import buffers, differ, put, strings
from rejoinder.logs.filters.speech import classifier, labelled_otherwise, sounds_otherwise
from rejoinder.logs.schema import CLEANED
from rejoinder.spec import did_you_mean
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

ROUNDS = 10  # entities nested without end would go round for ever
SHORTEST = {"zh": 3}
"""Of translated DailyDialog turns, as many Chinese ones have fewer than 3 characters (0.5 %) as
English ones fewer than 5 (0.3 %); 5 would remove every 20th: 好的。 and 为什么？ say something."""

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
    shortest: int = 5
    """Characters that a post must have."""
    script_share: float = 0.6
    """Share of its letters that must be of the language's own script."""
    letters: int = 3
    """How often a character may follow itself."""
    words: int = 2
    """How often a word or phrase may follow itself."""
    clients: tuple[str, ...] = CLIENTS
    """Expressions for the clients of bots."""
    classifier: bool = True
    """Whether the language filter asks the classifier, or the label alone."""

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
        for name in ("shortest", "letters", "words"):
            least = 0 if name == "shortest" else 1
            if getattr(self, name) < least:
                problems.append(f"{name}={getattr(self, name)} is below {least}")
        if not 0 <= self.script_share <= 1:
            problems.append(f"script_share={self.script_share:g} is no share between 0 and 1")
        for pattern in self.clients:
            try:
                pc.match_substring_regex(pa.array(["client"]), pattern)
            except pa.ArrowInvalid:
                problems.append(f"clients: '{pattern}' is no regular expression (RE2)")
        if problems:
            raise UsageError(*problems)

    @classmethod
    def for_language(
        cls, code: str, *, off: Collection[str] = (), on: Collection[str] = (), **parameters: Any
    ) -> Cleaning:
        """The defaults of a language, some filters switched ``off`` and others ``on``."""
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
        settings = {"shortest": SHORTEST.get(plain, 5), **parameters}
        return cls(language=plain, filters=chosen, **settings)

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Posts (``schema.POSTS``) to cleaned posts (``schema.CLEANED``), row by row.

        A rejected record is no post: it stays as it is, neither changed nor removed.
        """
        given = batch.column("text").cast(pa.string()).fill_null("")
        posts = batch.column("reject").is_null().to_numpy(zero_copy_only=False)
        if posts.all():
            text, changed, removed = self._clean(batch, given)
        else:
            where = pa.array(posts)
            cleaned, bits, names = self._clean(batch.filter(where), given.filter(where))
            text = put(given, posts, cleaned)
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
        for _ in range(ROUNDS):
            part = text if going.all() else text.filter(pa.array(going))
            part, bits = self._change(part)
            if not bits.any():
                break
            text = put(text, going, part)
            changed[going] |= bits
            going[going] = bits != 0
        return text, changed, self._remove(batch, text)

    def _change(self, text: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
        """All changing filters once: the texts, and for each row a bit for each filter."""
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
            found = differ(before, after)
            if found.any():
                text = put(text, where, after)
                changed[where] |= found.astype(np.int64) << self.filters.index(name)
                if name == "entities":  # what it brings to light the others must see
                    flags = kernel.scan(*buffers(text))
        steps = {name: bit for name, bit in _STEPS.items() if name in self.filters}
        if steps:
            codes, starts = kernel.decode(*buffers(text))
            ends, done = kernel.tidy(
                codes,
                starts,
                table(self.language),
                sum(steps.values()),
                letters=self.letters,
                words=self.words,
                unspaced=self.language in UNSPACED,
            )
            if done.any():
                text = strings(*kernel.encode(codes, starts, ends))
                for name, bit in steps.items():
                    changed |= ((done & bit) != 0).astype(np.int64) << self.filters.index(name)
        return text, changed

    def _remove(self, batch: pa.RecordBatch, text: pa.Array) -> pa.Array:
        """For each row the first filter that removes it, or null."""
        removed = np.full(len(text), -1, np.int8)

        def remove(name: str, where: NDArray[np.bool_]) -> None:
            removed[where & (removed < 0)] = FILTERS.index(name)

        if "bot-client" in self.filters:
            remove("bot-client", by_bots(batch.column("client").cast(pa.string()), self.clients))
        if "language" in self.filters:
            labels = batch.column("label").cast(pa.string())
            remove("language", labelled_otherwise(labels, self.language))
            if self.classifier:
                classifier()
                left = removed < 0
                other = np.zeros(len(text), np.bool_)
                other[left] = sounds_otherwise(
                    text.filter(pa.array(left)).to_pylist(), self.language
                )
                remove("language", other)
        if "short" in self.filters:
            lengths = pc.utf8_length(text).to_numpy(zero_copy_only=False)
            remove("short", lengths < self.shortest)
        if "script" in self.filters:
            letters, own = kernel.measure(*kernel.decode(*buffers(text)), table(self.language))
            remove("script", (letters == 0) | (own < self.script_share * letters))
        names = pa.array(FILTERS, pa.string())
        return names.take(pa.array(removed, mask=removed < 0))
