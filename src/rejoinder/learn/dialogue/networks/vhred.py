"""``vhred``: HRED with a latent variable for each turn.

    p(z_n | turns before n)  = N(μ(c), Σ(c))          the prior, from the context state c
    q(z_n | turns up to n)   = N(μ(c, u_n), Σ(c, u_n)) the posterior, which has read the reply
    s_t                      = LSTM([y_{t-1}; c; z_n], s_{t-1})

Trained by the evidence lower bound, ln p(y) ≥ E_q[ln p(y | z)] - KL(q ‖ p), with an annealed weight
of the KL term and word dropout (Bowman et al. 2016). Serban et al. (2017), "A hierarchical latent
variable encoder-decoder model for generating dialogues". The decoder reads context and latent
variable with every token, as there; the bag-of-words loss, which that paper does not have, is an
option that keeps the variable in use.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.networks.latent import LatentNetwork
from rejoinder.learn.dialogue.networks.network import State
from rejoinder.learn.dialogue.networks.recurrent import Decoder, InitialState


class Vhred(LatentNetwork):
    """Latent variable hierarchical recurrent encoder-decoder."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        size = config["context_size"] + config["latent_size"]
        self.initial = InitialState(size, config["decoder_size"])
        self.decoder = Decoder(
            self.embedding,
            config["decoder_size"],
            extra_size=size,
            dropout=config["dropout"],
            word_dropout=config["word_dropout"],
        )

    def decode(self, replies: Tensor, context: Tensor, latent: Tensor) -> tuple[Tensor, float]:
        known = torch.cat([context, latent], dim=-1)
        return self.decoder.nll(replies, self.initial(known), extra=known)

    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        known = torch.cat(self.read_latent(batch, noise), dim=-1)
        return (*self.initial(known), known)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, cell, known = state
        logits, hidden, cell = self.decoder.step(tokens, hidden, cell, extra=known)
        return logits, (hidden, cell, known)
