"""A text → one vector: the last states of a bidirectional GRU (RUBER § 3.2, υBLEU § 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

PAD = 0
"""The number that fills up short rows; no piece has it."""


class SentenceGru(nn.Module):
    """Embedding and one Bi-GRU layer, shared by all texts that a network reads."""

    def __init__(self, pieces: int, embedding: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(pieces, embedding, padding_idx=PAD)
        self.gru = nn.GRU(embedding, hidden, batch_first=True, bidirectional=True)
        self.width = 2 * hidden

    def forward(self, ids: Tensor) -> Tensor:
        """[n, length] piece numbers, filled up with PAD → [n, 2 · hidden].

        Rows are packed, so what stands behind a row's end does not reach its vector.
        """
        lengths = (ids != PAD).sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(
            self.embedding(ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        return torch.cat([last[0], last[1]], dim=1)
