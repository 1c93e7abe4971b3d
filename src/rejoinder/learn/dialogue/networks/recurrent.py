"""Parts that the recurrent networks share: encoders of turns and contexts, and the decoder."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from rejoinder.learn.dialogue.batches import DialogueBatch, decoder_inputs
from rejoinder.learn.dialogue.networks.lstm import run_lstm, run_one_token
from rejoinder.learn.dialogue.networks.network import (
    GenerativeNetwork,
    Losses,
    State,
    lengths_of,
)
from rejoinder.learn.dialogue.vocabulary import PAD, UNKNOWN


class TokenEmbedding(nn.Embedding):
    """Vectors of tokens, which are also the weights of an output layer: small there, and scaled to
    a deviation of 1 where they are read (Vaswani et al. 2017, § 3.4)."""

    def __init__(self, vocab_size: int, size: int) -> None:
        super().__init__(vocab_size, size, padding_idx=PAD)
        nn.init.normal_(self.weight, std=size**-0.5)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, ids: Tensor) -> Tensor:
        vectors: Tensor = super().forward(ids) * self.embedding_dim**0.5
        return vectors


def pack(rows: Tensor, lengths: Tensor) -> PackedSequence:
    """[n, length, …] → the rows without their padding."""
    return pack_padded_sequence(rows, lengths.cpu(), batch_first=True, enforce_sorted=False)


class TokenEncoder(nn.Module):
    """A bidirectional LSTM over the tokens of texts."""

    def __init__(self, embedding: TokenEmbedding, hidden_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.dropout = embedding, nn.Dropout(dropout)
        size = embedding.embedding_dim
        self.lstm = nn.LSTM(size, hidden_size, batch_first=True, bidirectional=True)
        self.output_size = 2 * hidden_size

    def forward(self, ids: Tensor) -> tuple[PackedSequence, Tensor]:
        """[n, length] ids → states of all tokens, packed, and the last states of both directions
        [n, 2 · size]. Padding is never read."""
        packed = pack(ids, lengths_of(ids))
        embedded = self.dropout(self.embedding(packed.data))
        states, last = run_lstm(self.lstm, packed._replace(data=embedded))
        return states, torch.cat([last[0], last[1]], dim=1)

    def encode(self, ids: Tensor) -> Tensor:
        """[n, length] → [n, 2 · size] the last states. Equal texts are read once, unless dropout
        makes them differ."""
        if self.training:
            _, vectors = self(ids)
            return cast(Tensor, vectors)
        different, rows = torch.unique(ids, dim=0, return_inverse=True)
        _, vectors = self(different)
        return cast(Tensor, vectors[rows])


class ContextEncoder(nn.Module):
    """An LSTM over the vectors of turns; its state after a turn is that of the context up to it."""

    def __init__(self, utterance_size: int, context_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(utterance_size, context_size, batch_first=True)

    def forward(self, utterances: Tensor, batch: DialogueBatch) -> tuple[Tensor, Tensor, Tensor]:
        """[m, size] vectors of the turns → the state of each reply's context [n, size], the states
        after all turns of each dialogue [b, turns, size], and which of them are before the reply
        [n, turns]."""
        places = batch.places
        turns = utterances[places.clamp(min=0)] * (places >= 0).unsqueeze(-1)
        states, _ = self.lstm(turns)
        before = torch.arange(places.shape[1], device=places.device) < batch.positions[:, None]
        return states[batch.dialogues, batch.positions - 1], states, before


class Attention(nn.Module):
    """Scaled dot-product attention of decoder states over a memory that is projected once."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, query_size)
        self.key = nn.Linear(memory_size, query_size)
        self.value = nn.Linear(memory_size, query_size)

    def project(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[n, places, memory_size] → keys and values [n, places, query_size]."""
        return self.key(memory), self.value(memory)

    def forward(self, states: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """[n, tokens, query_size] → [n, tokens, query_size]; ``mask`` [n, places] says which
        places may be read."""
        return scaled_dot_product_attention(
            self.query(states), keys, values, attn_mask=mask.unsqueeze(1)
        )


class Decoder(nn.Module):
    """An LSTM that predicts a reply token by token.

    The states of all tokens are computed first, and attention is added between state and output
    (Luong et al. 2015, "Effective approaches to attention-based neural machine translation"), so
    that training needs no loop over tokens. Output weights are those of the embedding (Press and
    Wolf 2017), which makes the output layer smaller; logits are computed for tokens only, never
    for padding.
    """

    def __init__(
        self,
        embedding: TokenEmbedding,
        hidden_size: int,
        *,
        extra_size: int = 0,
        memory_size: int = 0,
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        """``extra_size`` is that of a vector which is read with every token (a latent variable)."""
        super().__init__()
        size = embedding.embedding_dim
        self.embedding = embedding
        self.lstm = nn.LSTM(size + extra_size, hidden_size, batch_first=True)
        self.attention = Attention(hidden_size, memory_size) if memory_size else None
        self.projection = nn.Linear(hidden_size * (2 if memory_size else 1), size)
        self.bias = nn.Parameter(torch.zeros(embedding.num_embeddings))
        self.dropout, self.word_dropout = nn.Dropout(dropout), word_dropout

    def nll(
        self,
        replies: Tensor,
        first_state: tuple[Tensor, Tensor],
        *,
        extra: Tensor | None = None,
        memory: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, float]:
        """Return the negative log-likelihood of the replies [n, length], and their tokens.

        ``memory`` is keys, values and mask of the attention.
        """
        lengths = lengths_of(replies)
        inputs = pack(self._drop_words(decoder_inputs(replies)), lengths)
        embedded = self.embedding(inputs.data)
        if extra is not None:
            rows = torch.arange(len(replies), device=replies.device)[:, None].expand_as(replies)
            embedded = torch.cat([embedded, extra[pack(rows, lengths).data]], dim=-1)
        outputs, _ = run_lstm(self.lstm, inputs._replace(data=self.dropout(embedded)), first_state)
        if self.attention is not None and memory is not None:
            states, _ = pad_packed_sequence(outputs, batch_first=True)
            read = pack(self.attention(states, *memory), lengths)
            outputs = outputs._replace(data=torch.cat([outputs.data, read.data], dim=-1))
        targets = pack(replies, lengths).data
        logits = self._logits(outputs.data)
        return cross_entropy(logits, targets, reduction="sum"), float(len(targets))

    def step(
        self,
        tokens: Tensor,
        hidden: Tensor,
        cell: Tensor,
        *,
        extra: Tensor | None = None,
        memory: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """[n] tokens and the last state [n, size] → logits of the next token, and the new state."""
        embedded = self.embedding(tokens)
        if extra is not None:
            embedded = torch.cat([embedded, extra], dim=-1)
        hidden, cell = run_one_token(self.lstm, embedded, (hidden, cell))
        states = hidden
        if self.attention is not None and memory is not None:
            read = self.attention(hidden.unsqueeze(1), *memory).squeeze(1)
            states = torch.cat([hidden, read], dim=-1)
        return self._logits(states), hidden, cell

    def _logits(self, states: Tensor) -> Tensor:
        projected = self.dropout(torch.tanh(self.projection(states)))
        return nn.functional.linear(projected, self.embedding.weight, self.bias)

    def _drop_words(self, tokens: Tensor) -> Tensor:
        if not self.training or not self.word_dropout:
            return tokens
        dropped = torch.rand(tokens.shape, device=tokens.device) < self.word_dropout
        dropped[:, 0] = False
        return torch.where(dropped & (tokens != PAD), UNKNOWN, tokens)


class InitialState(nn.Module):
    """The first state of a decoder, from what was read."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(input_size, 2 * hidden_size)

    def forward(self, *parts: Tensor) -> tuple[Tensor, Tensor]:
        hidden, cell = self.linear(torch.cat(parts, dim=-1)).tanh().chunk(2, dim=-1)
        return hidden.contiguous(), cell.contiguous()


class AttentionNetwork(GenerativeNetwork):
    """A network whose decoder attends to what was read; subclasses write :meth:`read`.

    The state is hidden and cell state of the decoder, then keys, values and mask of the attention.
    """

    decoder: Decoder

    def losses(self, batch: DialogueBatch) -> Losses:
        hidden, cell, keys, values, mask = self.read(batch)
        replies = batch.replies
        nll, tokens = self.decoder.nll(replies, (hidden, cell), memory=(keys, values, mask))
        return Losses(nll, tokens, float(len(replies)))

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, cell, keys, values, mask = state
        memory = (keys, values, mask)
        logits, hidden, cell = self.decoder.step(tokens, hidden, cell, memory=memory)
        return logits, (hidden, cell, *memory)
