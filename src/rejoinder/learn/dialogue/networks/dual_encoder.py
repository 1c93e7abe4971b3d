"""``dual-encoder``: two LSTMs read context and reply; a bilinear form says how well they fit.

    c = LSTM(context), r = LSTM'(reply), last states
    p(reply | context) = softmax over candidates of cᵀ M r

Lowe et al. (2015), "The Ubuntu Dialogue Corpus". The candidates of training are the true reply and
the replies to the other contexts of the batch; equal replies are not held against each other. As
in Gupta et al. (2019, § 3.4), it replies with the best of all responses that it was trained on.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.dialogue.batches import DialogueBatch, joined_contexts
from rejoinder.learn.dialogue.networks.lstm import run_lstm
from rejoinder.learn.dialogue.networks.network import lengths_of
from rejoinder.learn.dialogue.networks.recurrent import TokenEmbedding, pack


class DualEncoder(Model):
    """Vectors of contexts and replies, whose dot products say how well they fit."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        dropout: float,
        max_context_tokens: int,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size, "hidden_size": hidden_size,
            "dropout": dropout, "max_context_tokens": max_context_tokens,
        }  # fmt: skip
        self.max_context_tokens = max_context_tokens
        self.embedding = TokenEmbedding(vocab_size, embedding_size)
        self.context = nn.LSTM(embedding_size, hidden_size, batch_first=True)
        self.reply = nn.LSTM(embedding_size, hidden_size, batch_first=True)
        self.matrix = nn.Linear(hidden_size, hidden_size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def encode_contexts(self, batch: DialogueBatch) -> Tensor:
        """[n, hidden_size] the vectors Mᵀ c of the contexts of a batch."""
        contexts = joined_contexts(batch, self.max_context_tokens)
        vectors: Tensor = self.matrix(self._read(self.context, contexts))
        return vectors

    def encode_replies(self, replies: Tensor) -> Tensor:
        """[n, length] ids → [n, hidden_size] the vectors r."""
        return self._read(self.reply, replies)

    def _read(self, lstm: nn.LSTM, ids: Tensor) -> Tensor:
        packed = pack(ids, lengths_of(ids))
        embedded = self.dropout(self.embedding(packed.data))
        _, last = run_lstm(lstm, packed._replace(data=embedded))
        vectors: Tensor = self.dropout(last[0])
        return vectors


def ranking_loss(model: nn.Module, batch: DialogueBatch) -> tuple[Tensor, float]:
    """Return the cross entropy of the true replies among those of the batch, and their number."""
    assert isinstance(model, DualEncoder)
    replies = batch.replies
    scores = model.encode_contexts(batch) @ model.encode_replies(replies).T
    equal = (replies[:, None] == replies[None]).all(dim=-1)
    own = torch.eye(len(replies), dtype=torch.bool, device=scores.device)
    scores = scores.masked_fill(equal & ~own, -torch.inf)
    target = torch.arange(len(replies), device=scores.device)
    return nn.functional.cross_entropy(scores, target, reduction="sum"), float(len(replies))
