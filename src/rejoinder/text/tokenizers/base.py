"""What every tokenizer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


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
