"""Dialogues as token ids: turn after turn, so that networks read each turn once.

Pairs of one dialogue repeat each other: the response of one is the utterance of the next. They are
joined again, so that a turn with three replies after it is not read three times. A long dialogue
is divided into pieces, each with the turns before it that its first reply is read with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.learn.dialogue.vocabulary import END, PAD, Vocabulary
from rejoinder.learn.inputs.ragged import RaggedIds
from rejoinder.learn.training_data import Pairs
from rejoinder.text.distinct import number_distinct
from rejoinder.text.tokenizers.tokenizer import starts_of
from rejoinder.wording import option

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Piece:
    """Consecutive turns of a dialogue; the turns from number ``first_reply`` on are replies."""

    turns: list[str]
    first_reply: int


@dataclass(frozen=True)
class Dialogues:
    """Encoded pieces of dialogues. Each turn ends with END."""

    turns: RaggedIds
    """The turns of all pieces, one after the other."""
    starts: Ints
    """[pieces + 1] the first turn of each piece."""
    first_replies: Ints
    """[pieces] turns of the piece before its first reply; at least one."""
    cut: int
    """Turns that were cut at their end."""

    @classmethod
    def of(cls, pieces: Sequence[Piece], vocabulary: Vocabulary, max_turn_tokens: int) -> Dialogues:
        numbers = number_distinct(turn for piece in pieces for turn in piece.turns)
        encoded = vocabulary.encode(list(numbers))
        rows = [[*ids[:max_turn_tokens], END] for ids in encoded]
        order = [numbers[turn] for piece in pieces for turn in piece.turns]
        return cls(
            RaggedIds.of([rows[number] for number in order], PAD),
            starts_of(len(piece.turns) for piece in pieces),
            np.array([piece.first_reply for piece in pieces], np.int64),
            sum(len(encoded[number]) > max_turn_tokens for number in order),
        )

    def __len__(self) -> int:
        return len(self.first_replies)

    @cached_property
    def longest_turns(self) -> Ints:
        """[pieces] tokens of the longest turn."""
        return np.maximum.reduceat(self.turns.lengths, self.starts[:-1])

    @cached_property
    def tokens(self) -> Ints:
        """[pieces] tokens of all turns."""
        return np.diff(self.turns.starts[self.starts])

    @property
    def replies(self) -> int:
        """Number of replies in all pieces."""
        return int((np.diff(self.starts) - self.first_replies).sum())


def pieces_of(pairs: Pairs, context_turns: int) -> list[Piece]:
    """Join pairs to dialogues, and divide these into pieces.

    Pairs are joined where a pair follows another one of the same dialogue and its utterance is the
    response of that one. A piece has at most twice ``context_turns`` turns; its first reply has at
    most ``context_turns`` turns before it.
    """
    pieces: list[Piece] = []
    turns: list[str] = []
    first = 0
    dialogue = -1
    contexts = pairs.contexts(context_turns)
    rows = zip(contexts, pairs.responses, pairs.dialogues.tolist(), strict=True)
    for context, response, number in rows:
        follows = number == dialogue and bool(turns) and context[-1] == turns[-1]
        if not follows or len(turns) == 2 * context_turns:
            if turns:
                pieces.append(Piece(turns, first))
            turns, first = list(context), len(context)
        turns.append(response)
        dialogue = number
    if turns:
        pieces.append(Piece(turns, first))
    return pieces


def check_turns(pieces: Sequence[Piece], network: str) -> None:
    """Raise DataError if no reply has more than one turn before it, which a hierarchical network
    is made for."""
    if all(len(piece.turns) <= 2 for piece in pieces):
        raise DataError(
            f"no pair has more than one turn before its response, and {network} reads several:"
            f" make the pairs again with 'corpus' and {option('context', 6)}, or train seq2seq"
        )
