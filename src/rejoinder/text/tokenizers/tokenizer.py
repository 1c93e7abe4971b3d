"""What every tokenizer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Encoded:
    """Tokens as numbers, end to end: text i is ``ids[starts[i]:starts[i + 1]]``."""

    ids: Codes
    starts: Ints
    words: list[str]
    """The tokens behind the numbers: ``words[id]``."""


@dataclass(frozen=True)
class Tokenizer(ABC):
    """Splits texts into tokens, a batch at a time; its fields are its parameters.

    Whole batches go in because the per-call overhead of a regular expression or of a native
    library is larger than the work on one short reply.
    """

    longest_word: ClassVar[int | None] = None
    """For a tokenizer that finds words only between spaces: a longer run of a script that is
    written without spaces cannot be a word (see :mod:`rejoinder.text.scripts`)."""

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each text, in order."""

    @abstractmethod
    def signature(self) -> str:
        """Name and whatever else decides the tokens: dictionary, model digest, version."""

    def encode(self, texts: Sequence[str]) -> Encoded:
        """The tokens of each text as numbers, for the compiled kernels."""
        words = self.tokenize(texts)
        if len(words) != len(texts):
            raise ValueError(
                f"{self.signature()} gave {len(words)} lists of tokens for {len(texts)} texts"
            )
        number: defaultdict[str, int] = defaultdict(count().__next__)
        ids = np.fromiter(map(number.__getitem__, chain.from_iterable(words)), np.int32)
        return Encoded(ids, starts_of(map(len, words)), list(number))


@dataclass(frozen=True)
class SpanTokenizer(Tokenizer):
    """A tokenizer whose tokens are pieces of the text: it only says where they begin and end.

    So a compiled kernel can find and number them without making a string of each.
    """

    @abstractmethod
    def spans(self, codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """Begin and end of every token in the code points of all texts, and tokens a text."""

    def prepare(self, texts: Sequence[str]) -> Sequence[str]:
        """What happens to texts before they are split; by default nothing."""
        return texts

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        joined, _, begins, ends, starts = self._split(texts)
        pieces = [joined[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
        return [pieces[b:e] for b, e in pairwise(starts.tolist())]

    def encode(self, texts: Sequence[str]) -> Encoded:
        from rejoinder.kernels.tokens import number_tokens

        joined, codes, begins, ends, starts = self._split(texts)
        ids, firsts = number_tokens(codes, begins, ends)
        bounds = zip(begins[firsts].tolist(), ends[firsts].tolist(), strict=True)
        return Encoded(ids, starts, [joined[b:e] for b, e in bounds])

    def _split(self, texts: Sequence[str]) -> tuple[str, Codes, Ints, Ints, Ints]:
        prepared = self.prepare(texts)
        joined = "".join(prepared)
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.int32)
        begins, ends, counts = self.spans(codes, starts_of(map(len, prepared)))
        return joined, codes, begins, ends, starts_of(counts)


def starts_of(lengths: Iterable[int]) -> Ints:
    """Where each of several pieces begins when they are laid end to end, and where all end."""
    listed = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(listed)])
