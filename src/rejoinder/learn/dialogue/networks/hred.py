"""``hred``: one LSTM reads each turn, another one the turns, a third one writes the reply.

    u_i     = BiLSTM(turn i), last states
    c_i     = LSTM(u_i, c_{i-1})
    s_t     = LSTM(y_{t-1}, s_{t-1}),   s_0 = tanh(W c_n)
    a_t     = attention(s_t, c_1 … c_n)
    p(y_t)  = softmax(E tanh(V [s_t; a_t]) + b)

Serban et al. (2016), "Building end-to-end dialogue systems using generative hierarchical neural
network models". Attention over the states of the context encoder as in Gupta et al. (2019, § 3.4).
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.networks.network import State
from rejoinder.learn.dialogue.networks.recurrent import (
    AttentionNetwork,
    ContextEncoder,
    Decoder,
    InitialState,
    TokenEmbedding,
    TokenEncoder,
)


class Hred(AttentionNetwork):
    """Hierarchical recurrent encoder-decoder."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        utterance_size: int,
        context_size: int,
        decoder_size: int,
        dropout: float,
        word_dropout: float,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size,
            "utterance_size": utterance_size, "context_size": context_size,
            "decoder_size": decoder_size, "dropout": dropout, "word_dropout": word_dropout,
        }  # fmt: skip
        self.embedding = TokenEmbedding(vocab_size, embedding_size)
        self.utterance = TokenEncoder(self.embedding, utterance_size, dropout)
        self.context = ContextEncoder(self.utterance.output_size, context_size)
        self.initial = InitialState(context_size, decoder_size)
        self.decoder = Decoder(
            self.embedding,
            decoder_size,
            memory_size=context_size,
            dropout=dropout,
            word_dropout=word_dropout,
        )

    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        assert self.decoder.attention is not None
        utterances = self.utterance.encode(batch.turns)
        context, memory, before = self.context(self.decoder.dropout(utterances), batch)
        keys, values = self.decoder.attention.project(memory)
        chosen = batch.dialogues
        return (*self.initial(context), keys[chosen], values[chosen], before)
