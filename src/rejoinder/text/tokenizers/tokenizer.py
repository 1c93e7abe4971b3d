"""The interface of tokenizers."""

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
    """Concatenated token ids: text i is ``ids[starts[i]:starts[i + 1]]``."""

    ids: Codes
    starts: Ints
    words: list[str]
    """The token of each id."""


@dataclass(frozen=True)
class Tokenizer(ABC):
    """Splits texts into tokens, a batch at a time; its fields are its parameters.

    It takes batches because the overhead of a call of a regular expression or a native library is
    larger than the work on one short reply.
    """

    max_word_length: ClassVar[int | None] = None
    """For a tokenizer that splits at spaces: a longer run of characters of a script without spaces
    is not a word (see :mod:`rejoinder.text.scripts`)."""

    @abstractmethod
    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tokens of each text, in order."""

    @abstractmethod
    def signature(self) -> str:
        """Return the name and all that determines the tokens: dictionary, model digest, version."""

    def encode(self, texts: Sequence[str]) -> Encoded:
        """Return the token ids of all texts, for the compiled kernels."""
        words = self.tokenize(texts)
        if len(words) != len(texts):
            raise ValueError(
                f"{self.signature()} gave {len(words)} lists of tokens for {len(texts)} texts"
            )
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        ids = np.fromiter(map(numbers.__getitem__, chain.from_iterable(words)), np.int32)
        return Encoded(ids, starts_of(map(len, words)), list(numbers))


@dataclass(frozen=True)
class SpanTokenizer(Tokenizer):
    """A tokenizer whose tokens are substrings of the text, returned by begin and end.

    So a compiled kernel can find and number them without creating a string for each.
    """

    @abstractmethod
    def spans(self, codes: Codes, starts: Ints) -> tuple[Ints, Ints, Ints]:
        """Return begin and end of every token in the code points, and the tokens per text."""

    def prepare(self, texts: Sequence[str]) -> Sequence[str]:
        """Normalise texts before they are split; by default unchanged."""
        return texts

    def tokenize(self, texts: Sequence[str]) -> list[list[str]]:
        joined, _, begins, ends, starts = self._split(texts)
        tokens = [joined[b:e] for b, e in zip(begins.tolist(), ends.tolist(), strict=True)]
        return [tokens[b:e] for b, e in pairwise(starts.tolist())]

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
    """Return [n + 1] where each sequence begins when sequences are concatenated, and the end.

    >>> starts_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    counts = np.fromiter(lengths, np.int64)
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
