"""Latent Gaussian variables: distributions, their KL divergence, and the bag-of-words loss."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, Losses
from rejoinder.learn.dialogue.networks.recurrent import (
    ContextEncoder,
    TokenEmbedding,
    TokenEncoder,
)
from rejoinder.learn.dialogue.vocabulary import FIRST

MAX_LOG_VARIANCE = 10.0
"""Log variances are limited to ± this, so that no exponential overflows."""


class Gaussian(NamedTuple):
    """A normal distribution with a diagonal covariance matrix, for each row."""

    mean: Tensor
    log_variance: Tensor

    def at(self, noise: Tensor | None) -> Tensor:
        """Return mean + deviation · noise (Kingma and Welling 2014); the mean without noise."""
        if noise is None:
            return self.mean
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def sample(self) -> Tensor:
        return self.at(torch.randn_like(self.mean))

    def kl(self, prior: Gaussian) -> Tensor:
        """[n] KL(self ‖ prior) = ½ Σ [ln σ_p² - ln σ_q² + (σ_q² + (μ_q - μ_p)²) / σ_p² - 1]."""
        difference = prior.log_variance - self.log_variance
        squared = (self.log_variance - prior.log_variance).exp()
        squared = squared + (self.mean - prior.mean) ** 2 / prior.log_variance.exp()
        return 0.5 * (difference + squared - 1).sum(dim=-1)


class GaussianLayer(nn.Module):
    """A perceptron with one hidden layer (tanh) that gives mean and log variance."""

    def __init__(self, input_size: int, hidden_size: int, latent_size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(input_size, hidden_size)
        self.output = nn.Linear(hidden_size, 2 * latent_size)

    def forward(self, *parts: Tensor) -> Gaussian:
        outputs = self.output(self.hidden(torch.cat(parts, dim=-1)).tanh())
        mean, log_variance = outputs.chunk(2, dim=-1)
        limit = MAX_LOG_VARIANCE
        return Gaussian(mean, limit * torch.tanh(log_variance / limit))


class BagOfWords(nn.Module):
    """The bag-of-words loss (Zhao et al. 2017, § 3.3): all words of the reply are predicted from
    the latent variable and the context at once, so that the variable can't be ignored."""

    def __init__(self, input_size: int, hidden_size: int, vocab_size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(input_size, hidden_size)
        self.output = nn.Linear(hidden_size, vocab_size)

    def forward(self, replies: Tensor, *parts: Tensor) -> Tensor:
        """Return the sum of -ln p(word) over the words of the replies; special tokens are none."""
        logits = self.output(self.hidden(torch.cat(parts, dim=-1)).tanh())
        chosen = logits.log_softmax(dim=-1).gather(1, replies)
        loss: Tensor = -(chosen * (replies >= FIRST)).sum()
        return loss


class LatentNetwork(GenerativeNetwork):
    """The base of ``vhred`` and ``cvae``: encoders, prior and posterior of a latent variable."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        utterance_size: int,
        context_size: int,
        decoder_size: int,
        dropout: float,
        word_dropout: float,
        latent_size: int,
        bag_of_words: bool,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size,
            "utterance_size": utterance_size, "context_size": context_size,
            "decoder_size": decoder_size, "dropout": dropout, "word_dropout": word_dropout,
            "latent_size": latent_size, "bag_of_words": bag_of_words,
        }  # fmt: skip
        self.latent_size = latent_size
        self.embedding = TokenEmbedding(vocab_size, embedding_size)
        self.utterance = TokenEncoder(self.embedding, utterance_size, dropout)
        size = self.utterance.output_size
        self.context = ContextEncoder(size, context_size)
        self.prior = GaussianLayer(context_size, context_size, latent_size)
        self.posterior = GaussianLayer(context_size + size, context_size, latent_size)
        self.bag = (
            BagOfWords(context_size + latent_size, decoder_size, vocab_size)
            if bag_of_words
            else None
        )
        self.dropout = nn.Dropout(dropout)

    def losses(self, batch: DialogueBatch) -> Losses:
        utterances = self.utterance.encode(batch.turns)
        context, _, _ = self.context(self.dropout(utterances), batch)
        replies = batch.replies
        written = utterances[batch.places[batch.dialogues, batch.positions]]
        posterior = self.posterior(context, written)
        latent = posterior.sample()
        nll, tokens = self.decode(replies, context, latent)
        kl = posterior.kl(self.prior(context)).sum()
        bag = None if self.bag is None else self.bag(replies, context, latent)
        return Losses(nll, tokens, float(len(replies)), kl, bag)

    def read_latent(self, batch: DialogueBatch, noise: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the context [n, size] and a latent variable of its prior [n, latent_size]."""
        context, _, _ = self.context(self.utterance.encode(batch.turns), batch)
        return context, self.prior(context).at(noise)

    @abstractmethod
    def decode(self, replies: Tensor, context: Tensor, latent: Tensor) -> tuple[Tensor, float]:
        """Return the negative log-likelihood of the replies, and their tokens."""
