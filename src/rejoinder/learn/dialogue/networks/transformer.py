"""``transformer``: a decoder that reads the dialogue as one text, each token after all before it.

    x ← x + attention(norm(x))
    x ← x + W_3 (silu(W_1 norm(x)) · W_2 norm(x))
    p = softmax(E norm(x))

Vaswani et al. (2017), "Attention is all you need", as language models of today have it: norms
before the layers (RMSNorm, Zhang and Sennrich 2019), rotary positions (Su et al. 2021), gated
feed-forward layers (SwiGLU, Shazeer 2020). Turns end with END; the loss counts replies only. It is
trained on the same dialogues as the other networks, without any pretraining.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, scaled_dot_product_attention, silu

from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, Losses, State
from rejoinder.learn.dialogue.networks.recurrent import TokenEmbedding
from rejoinder.learn.dialogue.vocabulary import END, PAD, START

ROTARY_BASE = 10_000.0


class Layer(nn.Module):
    """Causal self-attention and a gated feed-forward layer."""

    def __init__(self, size: int, heads: int, feedforward: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feedforward_norm = nn.RMSNorm(size), nn.RMSNorm(size)
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.output = nn.Linear(size, size, bias=False)
        self.gate = nn.Linear(size, 2 * feedforward, bias=False)
        self.down = nn.Linear(feedforward, size, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, rotation: tuple[Tensor, Tensor], past: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """[n, tokens, size] → the same; and keys and values [n, 2, heads, all tokens, head].

        ``past`` has keys and values of earlier tokens, ``mask`` which tokens may be read; without
        it, each token reads those up to itself.
        """
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.qkv(self.attention_norm(x)).chunk(3, dim=-1)
        )
        query, key = _rotate(query, rotation), _rotate(key, rotation)
        memory = torch.stack([key, value], dim=1)
        if past is not None:
            memory = torch.cat([past, memory], dim=3)
        read = scaled_dot_product_attention(
            query, memory[:, 0], memory[:, 1], attn_mask=mask, is_causal=mask is None
        )
        x = x + self.dropout(self.output(read.transpose(1, 2).flatten(2)))
        gate, up = self.gate(self.feedforward_norm(x)).chunk(2, dim=-1)
        return x + self.dropout(self.down(silu(gate) * up)), memory


class Transformer(GenerativeNetwork):
    """A small transformer decoder."""

    def __init__(
        self,
        vocab_size: int,
        hidden_size: int,
        num_layers: int,
        num_heads: int,
        feedforward_size: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "hidden_size": hidden_size, "num_layers": num_layers,
            "num_heads": num_heads, "feedforward_size": feedforward_size, "dropout": dropout,
        }  # fmt: skip
        self.head_size = hidden_size // num_heads
        self.embedding = TokenEmbedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(
            Layer(hidden_size, num_heads, feedforward_size, dropout) for _ in range(num_layers)
        )
        self.norm = nn.RMSNorm(hidden_size)
        self.dropout = nn.Dropout(dropout)

    def losses(self, batch: DialogueBatch) -> Losses:
        sequences, is_reply = _sequences(batch)
        inputs, targets = sequences[:, :-1], sequences[:, 1:]
        positions = torch.arange(inputs.shape[1], device=inputs.device).expand_as(inputs)
        states, _ = self._layers(inputs, positions, None, None)
        counted = is_reply[:, 1:]
        logits = linear(self.norm(states[counted]), self.embedding.weight)
        nll = cross_entropy(logits, targets[counted], reduction="sum")
        return Losses(nll, float(counted.sum()), float(len(batch.dialogues)))

    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        """Read each dialogue once; of its context, a reply reads all but the last token."""
        sequences, _ = _sequences(batch)
        positions = torch.arange(sequences.shape[1], device=sequences.device)
        _, memory = self._layers(sequences, positions.expand_as(sequences), None, None)
        ends = (sequences == END).cumsum(1)  # turns that end before or at each token
        real = ends[batch.dialogues] < batch.positions[:, None]
        longest = max(1, int(real.sum(1).max()))
        return memory[..., :longest, :][batch.dialogues], real[:, :longest]

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        memory, real = state
        # the context ends with END: that is what comes before the first token of a reply
        tokens = torch.where(tokens == START, END, tokens)
        positions = real.sum(1, keepdim=True)
        real = torch.cat([real, torch.ones_like(real[:, :1])], dim=1)
        states, memory = self._layers(tokens[:, None], positions, memory, real[:, None, None])
        logits = linear(self.norm(states[:, 0]), self.embedding.weight)
        return logits, (memory, real)

    def _layers(
        self, tokens: Tensor, positions: Tensor, memory: Tensor | None, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the states [n, tokens, size] and the memory [n, layers, 2, heads, all, head]."""
        x = self.dropout(self.embedding(tokens))
        rotation = _rotation(positions, self.head_size)
        memories = []
        for number, layer in enumerate(self.layers):
            past = None if memory is None else memory[:, number]
            x, own = layer(x, rotation, past, mask)
            memories.append(own)
        return x, torch.stack(memories, dim=1)


def _rotation(positions: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """[n, tokens] → cosines and sines [n, 1, tokens, size / 2]."""
    powers = torch.arange(0, size, 2, device=positions.device) / size
    angles = positions[:, None, :, None] * ROTARY_BASE**-powers
    return angles.cos(), angles.sin()


def _rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


def _sequences(batch: DialogueBatch) -> tuple[Tensor, Tensor]:
    """[b, longest] all tokens of each dialogue, and which of them are of replies; padded with
    PAD."""
    real = batch.turns != PAD
    counted = torch.zeros(len(batch.turns), dtype=torch.bool, device=batch.turns.device)
    places = batch.places
    inside = batch.positions < places.shape[1]
    rows = places[batch.dialogues[inside], batch.positions[inside]]
    counted[rows[rows >= 0]] = True
    per_turn = torch.cat([real.sum(1), real.new_zeros(1, dtype=torch.long)])
    lengths = per_turn[places].sum(1)  # place -1 is the appended 0
    longest = int(lengths.max())
    columns = torch.arange(longest, device=places.device)
    filled = columns < lengths[:, None]
    sequences = torch.full((len(places), longest), PAD, device=places.device)
    sequences[filled] = batch.turns[real]
    is_reply = torch.zeros_like(filled)
    is_reply[filled] = counted[:, None].expand_as(real)[real]
    return sequences, is_reply
