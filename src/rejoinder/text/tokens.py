"""Texts as arrays of token ids, the input of the compiled kernels.

A :class:`TextTable` holds the distinct texts of a batch. Each is tokenized once per tokenizer,
however many items, references and metrics use it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.scripts import unsplit_script
from rejoinder.text.tokenizers.tokenizer import Encoded, Ints, Tokenizer, starts_of

T = TypeVar("T")


class Unsplittable(str):
    """The reason why a tokenizer can't split a text, and which tokenizer can."""


@dataclass(frozen=True)
class Tokens(Encoded):
    """Token ids of several texts, and the texts that the tokenizer failed on."""

    problems: dict[int, Unsplittable] = field(default_factory=dict)
    """Reasons by the index of the text."""

    @classmethod
    def of(cls, tokenizer: Tokenizer, texts: Sequence[str]) -> Tokens:
        """Tokenize texts."""
        encoded = tokenizer.encode(texts)
        problems = _problems(tokenizer, texts, encoded)
        return cls(encoded.ids, encoded.starts, encoded.words, problems)

    @property
    def vocabulary_size(self) -> int:
        """Token ids are below this."""
        return len(self.words)

    @property
    def lengths(self) -> Ints:
        """[n] number of tokens of each text."""
        return np.diff(self.starts)


@dataclass(frozen=True)
class Characters(Tokens):
    """Code points as tokens, which are their own ids."""

    @property
    def vocabulary_size(self) -> int:
        return 0x110000


def _problems(
    tokenizer: Tokenizer, texts: Sequence[str], encoded: Encoded
) -> dict[int, Unsplittable]:
    """Return the texts that have no tokens, or one long token for a sentence, with the reasons.

    Their scores would be meaningless, so they are reported as unscored instead.
    """
    name, max_length = tokenizer.signature(), tokenizer.max_word_length
    problems = {
        number: Unsplittable(f"the tokenizer {name} finds no token in the text")
        for number in np.flatnonzero(np.diff(encoded.starts) == 0).tolist()
        if texts[number].strip()
    }
    if max_length is None:
        return problems
    foreign = [(i, word) for i, word in enumerate(encoded.words) if not word.isascii()]
    too_long = [i for i, word in foreign if unsplit_script([word], max_length)]
    places = np.flatnonzero(np.isin(encoded.ids, too_long)) if too_long else np.zeros(0, np.int64)
    for number in np.unique(np.searchsorted(encoded.starts, places, side="right") - 1).tolist():
        ids = encoded.ids[encoded.starts[number] : encoded.starts[number + 1]]
        if script := unsplit_script([encoded.words[i] for i in ids.tolist()], max_length):
            problems[number] = Unsplittable(
                f"the tokenizer {name} does not split {script.name} text; use {script.advice}"
            )
    return problems


@dataclass
class TextTable:
    """Distinct texts, with their tokens by tokenizer."""

    texts: list[str]
    _tokens: dict[tuple[Tokenizer, bool], Tokens] = field(default_factory=dict)
    _characters: dict[bool, Characters] = field(default_factory=dict)
    _values: dict[Hashable, object] = field(default_factory=dict)

    @cached_property
    def lengths(self) -> Ints:
        """[n] number of characters of each text."""
        return np.fromiter(map(len, self.texts), np.int64, len(self.texts))

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """[n] whether a text is empty or white space."""
        return np.array([not text or text.isspace() for text in self.texts], dtype=bool)

    def tokens(self, tokenizer: Tokenizer, lower: bool = False) -> Tokens:
        """Return the tokens of all texts, in lower case if ``lower`` is set."""
        key = tokenizer, lower
        if key not in self._tokens:
            self._tokens[key] = Tokens.of(tokenizer, self._cased(lower))
        return self._tokens[key]

    def characters(self, lower: bool = False) -> Characters:
        """Return the code points of all texts without white space, as in chrF."""
        if lower not in self._characters:
            without_spaces = ["".join(text.split()) for text in self._cased(lower)]
            ids = np.frombuffer(
                "".join(without_spaces).encode("utf-32-le", "surrogatepass"), np.int32
            )
            self._characters[lower] = Characters(ids, starts_of(map(len, without_spaces)), [])
        return self._characters[lower]

    def cached(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return a value for all texts, such as their vectors; computed once for each key."""
        if key not in self._values:
            self._values[key] = compute()
        return cast(T, self._values[key])

    def _cased(self, lower: bool) -> list[str]:
        return [text.lower() for text in self.texts] if lower else self.texts
