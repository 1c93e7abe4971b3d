"""Contexts that are to be replied to, as token ids.

Test sets ask for a reply after every turn of a dialogue, so that most contexts are the beginning of
another one. Such contexts share one piece of a dialogue, and each turn of it is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch

from rejoinder.learn.dialogue.batches import DialogueBatch, collate
from rejoinder.learn.dialogue.dialogues import Dialogues, Ints, Piece
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.vocabulary import Vocabulary


@dataclass(frozen=True)
class Contexts:
    """Contexts, each with the piece of a dialogue that begins with it."""

    dialogues: Dialogues
    pieces: Ints
    """[n] the piece of each context."""
    positions: Ints
    """[n] the number of turns of each context."""
    groups: Ints
    """[n] contexts of one group follow each other in a dialogue, so that they share turns."""

    @classmethod
    def of(
        cls,
        contexts: Sequence[Sequence[str]],
        vocabulary: Vocabulary,
        settings: DialogueDataSettings,
    ) -> Contexts:
        """Encode contexts; a network reads the last ``context_turns`` turns of each."""
        cut = [tuple(context[-settings.context_turns :]) for context in contexts]
        numbers: dict[tuple[str, ...], int] = {}
        pieces: list[Piece] = []
        longer: tuple[str, ...] = ()
        # in this order a context follows the ones that it is the beginning of
        for turns in sorted(set(cut), reverse=True):
            if longer[: len(turns)] != turns:
                pieces.append(Piece(list(turns), len(turns)))
                longer = turns
            numbers[turns] = len(pieces) - 1
        follows = [a[-1:] == b[-2:-1] for a, b in pairwise(cut)]
        return cls(
            Dialogues.of(pieces, vocabulary, settings.max_turn_tokens),
            np.array([numbers[turns] for turns in cut], np.int64),
            np.array([len(turns) for turns in cut], np.int64),
            np.cumsum([True, *(not follow for follow in follows)])[: len(cut)],
        )

    def __len__(self) -> int:
        return len(self.pieces)

    def take(self, numbers: Sequence[int]) -> Contexts:
        """Return some of the contexts, in this order."""
        chosen = np.array(numbers, np.int64)
        return replace(
            self,
            pieces=self.pieces[chosen],
            positions=self.positions[chosen],
            groups=self.groups[chosen],
        )

    def batches(self, size: int) -> list[Ints]:
        """Return the numbers of the contexts of each batch: contexts of one dialogue side by side,
        and dialogues of similar length."""
        tokens = np.zeros(int(self.groups.max(initial=0)) + 1, np.int64)
        np.maximum.at(tokens, self.groups, self.dialogues.tokens[self.pieces])
        order = np.lexsort((self.pieces, self.groups, tokens[self.groups]))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def batch(self, numbers: Ints) -> DialogueBatch:
        """Return a batch of contexts, in this order."""
        pieces, dialogues = np.unique(self.pieces[numbers], return_inverse=True)
        return collate(self.dialogues, pieces)._replace(
            dialogues=torch.from_numpy(dialogues),
            positions=torch.from_numpy(self.positions[numbers]),
        )
