"""The interface of networks that generate replies."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.dialogue.batches import DialogueBatch
from rejoinder.learn.dialogue.vocabulary import PAD

State: TypeAlias = tuple[Tensor, ...]
"""What a network remembers between two words: tensors with a row for each reply."""


class Losses(NamedTuple):
    """Losses of a batch, each a sum over its replies, in nats."""

    nll: Tensor
    """Negative log-likelihood of the tokens."""
    tokens: float
    replies: float
    kl: Tensor | None = None
    """KL divergence of posterior from prior (networks with a latent variable)."""
    bag_of_words: Tensor | None = None


class GenerativeNetwork(Model):
    """A network that gives each next token a probability, after a context and earlier tokens."""

    latent_size: int = 0
    """Dimensions of the latent variable; 0: it has none."""

    @abstractmethod
    def losses(self, batch: DialogueBatch) -> Losses:
        """Return the losses of all replies of a batch."""

    @abstractmethod
    def read(self, batch: DialogueBatch, noise: Tensor | None = None) -> State:
        """Read the contexts of a batch; ``noise`` [n, latent_size] draws the latent variable from
        its prior (its mean without noise)."""

    @abstractmethod
    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        """[n] last tokens → [n, vocabulary] logits of the next ones, and the new state."""


def training_loss(model: torch.nn.Module, batch: DialogueBatch) -> tuple[Tensor, float]:
    """Return what training minimises: the negative evidence lower bound, with an annealed KL term,
    plus the bag-of-words loss while training; and the number of tokens."""
    assert isinstance(model, GenerativeNetwork)
    losses = model.losses(batch)
    total = losses.nll
    if losses.kl is not None:
        total = total + batch.kl_weight * losses.kl
    if losses.bag_of_words is not None and model.training:
        total = total + losses.bag_of_words
    return total, losses.tokens


def lengths_of(ids: Tensor) -> Tensor:
    """[n, length] → [n] tokens that are not padding; at least one."""
    return (ids != PAD).sum(1).clamp(min=1)


def select(state: State, rows: Tensor) -> State:
    """Return the state of some rows, in this order; a row may be repeated."""
    return tuple(tensor.index_select(0, rows) for tensor in state)
