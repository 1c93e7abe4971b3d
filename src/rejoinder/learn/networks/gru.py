"""Sentence encoder: the last states of a bidirectional GRU (RUBER § 3.2, υBLEU § 4.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

PAD = 0
"""Padding id; no subword has it."""


class SentenceGru(nn.Module):
    """Embedding and one Bi-GRU layer, shared by all texts that a network reads."""

    def __init__(self, vocab_size: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_size, padding_idx=PAD)
        self.gru = nn.GRU(embedding_size, hidden_size, batch_first=True, bidirectional=True)
        self.output_size = 2 * hidden_size

    def forward(self, ids: Tensor) -> Tensor:
        """[n, length] subword ids, padded with PAD → [n, 2 · hidden_size].

        Rows are packed, so that padding does not change the vector.
        """
        lengths = (ids != PAD).sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(
            self.embedding(ids), lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.gru(packed)
        return torch.cat([last[0], last[1]], dim=1)
