"""Batches of dialogues, and the views of them that networks read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rejoinder.learn.batches import LengthBatches, PlannedBatches
from rejoinder.learn.dialogue.dialogues import Dialogues, Ints
from rejoinder.learn.dialogue.vocabulary import PAD, START
from rejoinder.learn.inference import NO_TOKEN_LIMIT
from rejoinder.learn.training import VALIDATION


class DialogueBatch(NamedTuple):
    """Some dialogues of b in all, with m turns and n replies."""

    turns: Tensor
    """[m, longest] token ids of all turns, in order, each with END, padded with PAD."""
    places: Tensor
    """[b, most turns] the row in ``turns`` of each turn of a dialogue; -1 after its last turn."""
    dialogues: Tensor
    """[n] the dialogue of each reply."""
    positions: Tensor
    """[n] the number of turns before each reply."""
    kl_weight: Tensor
    """[] weight of the KL divergence at this point of the training."""

    def to(self, device: torch.device) -> DialogueBatch:
        return DialogueBatch(*(tensor.to(device) for tensor in self))

    @property
    def replies(self) -> Tensor:
        """[n, longest] token ids of the replies."""
        rows = self.turns[self.places[self.dialogues, self.positions]]
        return rows[:, : max(1, int((rows != PAD).sum(1).max()))]


def collate(dialogues: Dialogues, rows: Ints, kl_weight: float = 1.0) -> DialogueBatch:
    """Return a batch of dialogues."""
    starts = dialogues.starts[rows]
    sizes = dialogues.starts[rows + 1] - starts
    columns = np.arange(int(sizes.max()))
    filled = columns < sizes[:, None]
    places = np.full(filled.shape, -1, np.int64)
    places[filled] = np.arange(int(sizes.sum()))
    number, position = np.nonzero(filled & (columns >= dialogues.first_replies[rows][:, None]))
    turns = (starts[:, None] + columns)[filled]
    return DialogueBatch(
        dialogues.turns.batch(turns),
        torch.from_numpy(places),
        torch.from_numpy(number),
        torch.from_numpy(position),
        torch.tensor(kl_weight),
    )


@dataclass(frozen=True)
class DialogueBatches(PlannedBatches):
    """Batches of whole dialogues whose longest turns are of similar length.

    The weight of the KL divergence depends on the position in the run only: it rises from 0 to 1
    during ``kl_annealing_epochs`` (Bowman et al. 2016), and is 1 in validation.
    """

    data: Dialogues
    plan: LengthBatches
    fixed: bool
    kl_annealing_epochs: float = 0.0

    @classmethod
    def of(
        cls,
        data: Dialogues,
        batch_size: int,
        *,
        fixed: bool = False,
        kl_annealing_epochs: float = 0.0,
    ) -> DialogueBatches:
        plan = LengthBatches(data.longest_turns, NO_TOKEN_LIMIT, batch_size)
        return cls(data, plan, fixed, kl_annealing_epochs)

    def batch(self, seed: int, epoch: int, step: int) -> DialogueBatch:
        batches = self.batches(seed, epoch)
        return collate(self.data, batches[step], self._kl_weight(epoch, step / len(batches)))

    def _kl_weight(self, epoch: int, part: float) -> float:
        if self.fixed or epoch == VALIDATION[1] or not self.kl_annealing_epochs:
            return 1.0
        return min(1.0, (epoch + part) / self.kl_annealing_epochs)


def joined_contexts(batch: DialogueBatch, max_tokens: int) -> Tensor:
    """[n, longest] the last tokens of the turns before each reply, joined; padded with PAD.

    The turns of a dialogue follow each other in ``turns``, so that a context is a stretch of all
    tokens of the batch.
    """
    flat = batch.turns[batch.turns != PAD]
    ends_of_turns = (batch.turns != PAD).sum(1).cumsum(0)
    last = batch.places[batch.dialogues, batch.positions - 1]
    ends = ends_of_turns[last]
    first = batch.places[batch.dialogues, 0]
    starts = torch.where(first > 0, ends_of_turns[(first - 1).clamp(min=0)], 0)
    starts = torch.maximum(starts, ends - max_tokens)
    columns = torch.arange(int((ends - starts).max()), device=flat.device)
    places = starts[:, None] + columns
    filled = places < ends[:, None]
    return torch.where(filled, flat[places.clamp(max=len(flat) - 1)], PAD)


def decoder_inputs(replies: Tensor) -> Tensor:
    """[n, longest] what the decoder reads to predict each token: START, then the reply."""
    start = torch.full((len(replies), 1), START, device=replies.device)
    return torch.cat([start, replies[:, :-1]], dim=1)
