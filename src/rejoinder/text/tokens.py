"""Texts as arrays of integers: what the compiled kernels read.

A :class:`TextTable` holds the distinct texts of a batch. Each is tokenized once per
tokenizer, whatever number of items, references and metrics share it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.scripts import unsplit
from rejoinder.text.tokenizers.tokenizer import Encoded, Ints, Tokenizer, starts_of

T = TypeVar("T")


class Unsplittable(str):
    """The reason why a tokenizer can make nothing of a text; tells how to choose another."""


@dataclass(frozen=True)
class Tokens(Encoded):
    """Token numbers of all texts, and which texts came out wrong."""

    problems: dict[int, Unsplittable] = field(default_factory=dict)
    """Texts that the tokenizer could not split, with the reason."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
        made = tokenizer.encode(texts)
        return cls(made.ids, made.starts, made.words, _problems(tokenizer, texts, made))

    @property
    def vocabulary(self) -> int:
        """Token numbers are below this."""
        return len(self.words)

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)


@dataclass(frozen=True)
class Characters(Tokens):
    """Code points as tokens: they are their own numbers and need no list of words."""

    @property
    def vocabulary(self) -> int:
        return 0x110000


def _problems(tokenizer: Tokenizer, texts: Sequence[str], made: Encoded) -> dict[int, Unsplittable]:
    """A tokenizer that swallows a text, or that leaves a sentence in one piece, would give
    scores that look like scores and mean nothing; such texts are named instead."""
    name, longest = tokenizer.signature(), tokenizer.longest_word
    problems = {
        number: Unsplittable(f"the tokenizer {name} turned the text into nothing")
        for number in np.flatnonzero(np.diff(made.starts) == 0).tolist()
        if texts[number].strip()
    }
    if longest is None:
        return problems
    foreign = [(i, word) for i, word in enumerate(made.words) if not word.isascii()]
    too_long = [i for i, word in foreign if unsplit([word], longest)]
    places = np.flatnonzero(np.isin(made.ids, too_long)) if too_long else np.zeros(0, np.int64)
    for number in np.unique(np.searchsorted(made.starts, places, side="right") - 1).tolist():
        ids = made.ids[made.starts[number] : made.starts[number + 1]]
        if script := unsplit([made.words[i] for i in ids.tolist()], longest):
            problems[number] = Unsplittable(
                f"the tokenizer {name} does not split {script.name} text; use {script.advice}"
            )
    return problems


@dataclass
class TextTable:
    """Distinct texts, and their tokens by tokenizer."""

    texts: list[str]
    _tokens: dict[tuple[Tokenizer, bool], Tokens] = field(default_factory=dict)
    _characters: dict[bool, Characters] = field(default_factory=dict)
    _others: dict[Hashable, object] = field(default_factory=dict)

    @cached_property
    def letters(self) -> Ints:
        """How long each text is."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Which texts are nothing but white space."""
        return np.array([not text or text.isspace() for text in self.texts], dtype=bool)

    def tokens(self, tokenizer: Tokenizer, lower: bool = False) -> Tokens:
        key = tokenizer, lower
        if key not in self._tokens:
            self._tokens[key] = Tokens.of(tokenizer, self._cased(lower))
        return self._tokens[key]

    def characters(self, lower: bool = False) -> Characters:
        """Code points without white space, as chrF reads them."""
        if lower not in self._characters:
            squeezed = ["".join(text.split()) for text in self._cased(lower)]
            ids = np.frombuffer("".join(squeezed).encode("utf-32-le", "surrogatepass"), np.int32)
            self._characters[lower] = Characters(ids, starts_of(map(len, squeezed)), [])
        return self._characters[lower]

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What somebody else makes of all texts, such as vectors; made once for each key."""
        if key not in self._others:
            self._others[key] = make()
        return cast(T, self._others[key])

    def _cased(self, lower: bool) -> list[str]:
        return [text.lower() for text in self.texts] if lower else self.texts
