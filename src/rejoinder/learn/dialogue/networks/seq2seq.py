"""``seq2seq``: an LSTM reads the joined context, another one writes the reply, with attention.

    e_1 … e_n = BiLSTM(context)
    s_t       = LSTM(y_{t-1}, s_{t-1}),   s_0 = tanh(W [→e_n; ←e_1])
    a_t       = attention(s_t, e_1 … e_n)
    p(y_t)    = softmax(E tanh(V [s_t; a_t]) + b)

Sutskever et al. (2014), "Sequence to sequence learning with neural networks"; Bahdanau et al.
(2015), "Neural machine translation by jointly learning to align and translate"; Vinyals and Le
(2015), "A neural conversational model", for dialogue. Attention is that of Luong et al. (2015), see
:class:`~rejoinder.learn.dialogue.networks.recurrent.Decoder`.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import pad_packed_sequence

from rejoinder.learn.dialogue.batches import DialogueBatch, joined_contexts
from rejoinder.learn.dialogue.networks.network import State
from rejoinder.learn.dialogue.networks.recurrent import (
    AttentionNetwork,
    Decoder,
    InitialState,
    TokenEmbedding,
    TokenEncoder,
)
from rejoinder.learn.dialogue.vocabulary import PAD


class Seq2Seq(AttentionNetwork):
    """Sequence to sequence with attention over the tokens of the context."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        encoder_size: int,
        decoder_size: int,
        dropout: float,
        word_dropout: float,
        max_context_tokens: int,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size,
            "encoder_size": encoder_size, "decoder_size": decoder_size, "dropout": dropout,
            "word_dropout": word_dropout, "max_context_tokens": max_context_tokens,
        }  # fmt: skip
        self.max_context_tokens = max_context_tokens
        self.embedding = TokenEmbedding(vocab_size, embedding_size)
        self.encoder = TokenEncoder(self.embedding, encoder_size, dropout)
        size = self.encoder.output_size
        self.initial = InitialState(size, decoder_size)
        self.decoder = Decoder(
            self.embedding,
            decoder_size,
            memory_size=size,
            dropout=dropout,
            word_dropout=word_dropout,
        )

    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        assert self.decoder.attention is not None
        contexts = joined_contexts(batch, self.max_context_tokens)
        packed, last = self.encoder(contexts)
        states, _ = pad_packed_sequence(packed, batch_first=True)
        return (*self.initial(last), *self.decoder.attention.project(states), contexts != PAD)
