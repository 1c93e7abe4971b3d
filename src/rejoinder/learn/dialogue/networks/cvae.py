"""``cvae``: a conditional variational autoencoder of replies.

    p(z | c)     = N(μ_p(c), Σ_p(c))         the prior network, c: state of the context encoder
    q(z | c, x)  = N(μ_q(c, x), Σ_q(c, x))   the recognition network, x: vector of the reply
    s_0          = tanh(W [z; c])            the decoder starts from both
    loss         = -E_q[ln p(x | z, c)] + w KL(q ‖ p) - E_q[ln p(x_bow | z, c)]

The last term is the bag-of-words loss: p(x_bow | z, c) = Π_t softmax(f(z, c))_{x_t}, the words of
the reply without their order. w rises from 0 to 1 (KL annealing, Bowman et al. 2016). Zhao et al.
(2017), "Learning discourse-level diversity for neural dialog models using conditional variational
autoencoders"; without the features for speakers and topics, which logs do not have, as Gupta et al.
(2019) use it.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.networks.latent import LatentNetwork
from rejoinder.learn.dialogue.networks.network import State
from rejoinder.learn.dialogue.networks.recurrent import Decoder, InitialState


class Cvae(LatentNetwork):
    """Conditional variational autoencoder."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        size = config["context_size"] + config["latent_size"]
        self.initial = InitialState(size, config["decoder_size"])
        self.decoder = Decoder(
            self.embedding,
            config["decoder_size"],
            dropout=config["dropout"],
            word_dropout=config["word_dropout"],
        )

    def decode(self, replies: Tensor, context: Tensor, latent: Tensor) -> tuple[Tensor, float]:
        return self.decoder.nll(replies, self.initial(latent, context))

    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        context, latent = self.read_latent(batch, noise)
        hidden, cell = self.initial(latent, context)
        return hidden, cell

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        logits, hidden, cell = self.decoder.step(tokens, *state)
        return logits, (hidden, cell)
