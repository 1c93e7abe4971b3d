"""Texts as arrays of integers: what the compiled kernels read.

A :class:`TextTable` holds the distinct texts of a batch. Each is tokenized once per
tokenizer, whatever number of items, references and metrics share it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from rejoinder.text.scripts import unsplit
from rejoinder.text.tokenizers.base import Tokenizer

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Tokens:
    """Token numbers of all texts, end to end: text i is ``ids[starts[i]:starts[i + 1]]``."""

    ids: NDArray[np.int32]
    starts: Ints
    vocabulary: int
    problems: dict[int, str] = field(default_factory=dict)
    """Texts that the tokenizer could not split, with the reason."""
    words: list[str] = field(default_factory=list)
    """The tokens behind the numbers, where a tokenizer made them: ``words[id]``."""

    @property
    def lengths(self) -> Ints:
        return np.diff(self.starts)


@dataclass
class TextTable:
    """Distinct texts, and their tokens by tokenizer."""

    texts: list[str]
    _tokens: dict[tuple[Tokenizer, bool], Tokens] = field(default_factory=dict)
    _characters: dict[bool, Tokens] = field(default_factory=dict)

    def tokens(self, tokenizer: Tokenizer, lower: bool = False) -> Tokens:
        key = tokenizer, lower
        if key not in self._tokens:
            self._tokens[key] = _tokens_of(self._cased(lower), tokenizer)
        return self._tokens[key]

    def characters(self, lower: bool = False) -> Tokens:
        """Code points without white space, as chrF reads them."""
        if lower not in self._characters:
            squeezed = ["".join(text.split()) for text in self._cased(lower)]
            ids = np.frombuffer("".join(squeezed).encode("utf-32-le", "surrogatepass"), np.int32)
            self._characters[lower] = Tokens(ids, _starts(map(len, squeezed)), 0x110000)
        return self._characters[lower]

    def _cased(self, lower: bool) -> list[str]:
        return [text.lower() for text in self.texts] if lower else self.texts


def split(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[list[list[str]], dict[int, str]]:
    """The tokens of each text, and which texts came out wrong.

    A tokenizer that swallows a text, or that leaves a sentence in one piece, would give
    scores that look like scores and mean nothing; such texts are named instead.
    """
    words, longest = tokenizer.tokenize(texts), tokenizer.longest_word
    problems = {}
    for number, (text, tokens) in enumerate(zip(texts, words, strict=True)):
        if not tokens and text.strip():
            problems[number] = f"the tokenizer {tokenizer.signature()} turned the text into nothing"
        elif longest and not text.isascii() and (script := unsplit(tokens, longest)):
            problems[number] = (
                f"the tokenizer {tokenizer.signature()} does not split {script.name} text;"
                f" use {script.advice}"
            )
    return words, problems


def _tokens_of(texts: list[str], tokenizer: Tokenizer) -> Tokens:
    words, problems = split(tokenizer, texts)
    number: defaultdict[str, int] = defaultdict(count().__next__)
    ids = np.fromiter(map(number.__getitem__, chain.from_iterable(words)), np.int32)
    return Tokens(ids, _starts(map(len, words)), len(number), problems, list(number))


def _starts(lengths: Iterable[int]) -> Ints:
    listed = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(listed)])
