"""Does a reply fit its context? No reference is read (RUBER § 3.2).

    s_U = sigmoid(MLP([q; qᵀ M r; r]))

with q and r the vectors of query and reply, and a hidden layer with tanh. Trained without a
label: the true reply must score higher than a reply from elsewhere, by a margin Δ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.networks.panel import Member

TYPICAL = 0.1
"""Cosine of how a reply and what it answers are written, about."""


class Quadratic(nn.Module):
    """The feature qᵀ M r. M starts as the identity, so that it begins as a scalar product,
    scaled as products of vectors with independent entries of variance 1 need it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(width) / width**0.5)

    def forward(self, query: Tensor, reply: Tensor) -> Tensor:
        """[n, width] and [m, width] → [m, 1], where m is n or a multiple of it; or the other way
        round. The fewer are multiplied by M."""
        if len(query) <= len(reply):
            return (repeated(query @ self.matrix, reply) * reply).sum(1, keepdim=True)
        return (repeated(reply @ self.matrix.T, query) * query).sum(1, keepdim=True)


class Perceptron(nn.Module):
    """Features → one score before the sigmoid: a hidden layer with tanh."""

    def __init__(self, features: int, wide: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, wide)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(wide, 1)

    def forward(self, *parts: Tensor) -> Tensor:
        """[m, …] features side by side → [m]; the rows of a part may be fewer, as ``repeated`` has
        it.

        Parts are not put together: then what is the same for all replies of a context is
        multiplied once, and no gradient is made for what was not learnt.
        """
        most = max(parts, key=len)
        weights = torch.split(self.hidden.weight, [part.shape[1] for part in parts], dim=1)
        hidden: Tensor = self.hidden.bias
        for part, weight in zip(parts, weights, strict=True):
            hidden = hidden + repeated(nn.functional.linear(part, weight), most)
        scores: Tensor = self.output(self.dropout(torch.tanh(hidden)))
        return scores.squeeze(1)


def repeated(contexts: Tensor, replies: Tensor) -> Tensor:
    """A row of the contexts for each reply, of which each context has the same number."""
    times = len(replies) // max(1, len(contexts))
    return contexts if times == 1 else contexts.repeat_interleave(times, dim=0)


class GruScorer(Model):
    """RUBER's network."""

    def __init__(
        self, pieces: int, embedding: int, hidden: int, wide: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "pieces": pieces, "embedding": embedding, "hidden": hidden, "wide": wide,
            "dropout": dropout,
        }  # fmt: skip
        self.read = SentenceGru(pieces, embedding, hidden)
        self.quadratic = Quadratic(self.read.width)
        self.judge = Perceptron(2 * self.read.width + 1, wide, dropout)

    def forward(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Piece numbers → [replies] scores before the sigmoid."""
        query, reply = repeated(self.read(contexts), replies), self.read(replies)
        features = torch.cat([query, self.quadratic(query, reply), reply], dim=1)
        scores: Tensor = self.judge(features)
        return scores


class Compared(NamedTuple):
    """What vectors tell of m replies to n contexts."""

    reply: Tensor
    """[m, dimensions]"""
    views: list[tuple[Tensor, Tensor, Tensor]]
    """The view itself, [n, dimensions], and its products with the reply and differences from it,
    [m, dimensions]"""
    asking: Tensor | None
    """[m, …] as ``who_asks`` has it"""
    alike: Tensor | None
    """[m, views] as ``written_alike`` has it"""


class VectorScorer(Member):
    """The cheap form: frozen sentence vectors of several views of the context (its last turn and
    the one before it, or its last two turns …) and of the reply.

    A hidden layer can't multiply, so products and differences stand beside the vectors, and
    each view has a quadratic feature. Vectors have length 1, and their entries are about
    1/√d: they are brought to the size that layers expect.

    Behind a vector may stand whether the text ``asks`` something (see ``who_asks``).

    Behind that may stand how the texts are written (``spelling`` places): of that, only what
    reply and view share is read, and it also goes straight to the outcome.
    """

    def __init__(
        self,
        dimensions: int,
        views: int,
        wide: int,
        dropout: float = 0.0,
        spelling: int = 0,
        asks: bool = False,
        sentence: int | None = None,
    ) -> None:
        """``sentence`` is how many of the dimensions tell what a text is about, if not all."""
        super().__init__()
        self.config: dict[str, Any] = {
            "dimensions": dimensions, "views": views, "wide": wide, "dropout": dropout,
            "spelling": spelling, "asks": asks, "sentence": sentence,
        }  # fmt: skip
        self.dimensions = dimensions
        self.sentence = dimensions if sentence is None else sentence
        self.scale = dimensions**0.5
        self.quadratic = nn.ModuleList(Quadratic(dimensions) for _ in range(views))
        shared = views if spelling else 0
        signed = signed_features(dimensions) if asks else 0
        features = (3 * views + 1) * dimensions + views + signed + shared
        self.judge = Perceptron(features, wide, dropout)
        self.glance = nn.Linear(shared, 1, bias=False) if shared else None
        if self.glance is not None:
            nn.init.zeros_(self.glance.weight)  # few steps can't undo what chance has set

    def compared(self, contexts: Tensor, replies: Tensor) -> Compared:
        """[n, views, dimensions] and [m, dimensions], where m is n or a multiple of it."""
        size = self.dimensions
        reply = replies[:, :size] * self.scale
        views = []
        for view in contexts[..., :size].unbind(dim=1):
            query = view * self.scale
            beside = repeated(query, reply)
            views.append((query, beside * reply, (beside - reply).abs()))
        asking = alike = None
        if self.config["asks"]:
            size += 1
            asking = who_asks(
                repeated(contexts[:, 0, :size], replies), replies[:, :size], self.scale
            )
        if self.glance is not None:
            alike = written_alike(repeated(contexts[..., size:], replies), replies[:, size:])
        return Compared(reply, views, asking, alike)

    def judged(self, compared: Compared) -> Tensor:
        """[m] scores before the sigmoid."""
        scores: Tensor = self.judge(*self.features(compared))
        if self.glance is None:
            return scores
        glance: Tensor = self.glance(compared.alike).squeeze(1)
        return scores + glance

    def closeness(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """[m] what is known without learning: how near the view is that is nearest. A turn that
        is not there has no direction, and is neither near nor far; with none at all it is 0."""
        views = contexts[..., : self.sentence]
        there = repeated(views.any(dim=2), replies)
        near = torch.einsum("nvd,nd->nv", repeated(views, replies), replies[:, : self.sentence])
        best = near.masked_fill(~there, -torch.inf).amax(dim=1)
        return best.masked_fill(~there.any(dim=1), 0.0)

    def features(self, compared: Compared) -> list[Tensor]:
        """What the hidden layer reads: parts of [m, …], or [n, …] for all replies of a context."""
        parts = [compared.reply]
        for view, quadratic in zip(compared.views, self.quadratic, strict=True):
            parts += [*view, quadratic(view[0], compared.reply)]
        return parts + [part for part in (compared.asking, compared.alike) if part is not None]


def who_asks(turns: Tensor, replies: Tensor, scale: float) -> Tensor:
    """[n, d + 1] twice, vectors with 1 or -1 behind them → [n, …] what turn and reply tell in view
    of which of them asks something.

    A question wants an answer, and what a sentence is about hardly tells that it is one: so
    vectors are read with the sign of the turn, or of the reply.
    """
    turn, reply = turns[:, :-1] * scale, replies[:, :-1] * scale
    asked, asks = turns[:, -1:], replies[:, -1:]
    return torch.cat([asked, asks, asked * reply, asked * turn * reply, asks * turn], dim=1)


def signed_features(dimensions: int) -> int:
    """How many ``who_asks`` gives."""
    return 3 * dimensions + 2


def written_alike(others: Tensor, reply: Tensor) -> Tensor:
    """[n, k, places] and [n, places] → [n, k] how much each of the others is written like the
    reply; what is typical has about the size of 1."""
    return torch.einsum("nkp,np->nk", others, reply) / TYPICAL


def margin_loss(good: Tensor, bad: Tensor, margin: float) -> Tensor:
    """[n, k] max(0, Δ - s(q, r) + s(q, r⁻)), of scores after the sigmoid (equation 3).

    >>> margin_loss(torch.tensor([[0.9], [0.4]]), torch.tensor([[0.2, 0.6], [0.3, 0.0]]), 0.5)
    tensor([[0.0000, 0.2000],
            [0.4000, 0.1000]])
    """
    return (margin - good + bad).clamp(min=0)


def logistic_loss(good: Tensor, bad: Tensor) -> Tensor:
    """[n], [n, k] → [n] -log σ(s(q, r)) - mean log σ(-s(q, r⁻)), of scores before the sigmoid.

    >>> logistic_loss(torch.tensor([0.0, 3.0]), torch.tensor([[0.0, 0.0], [-3.0, 0.0]]))
    tensor([1.3863, 0.4195])
    """
    softplus = nn.functional.softplus
    return softplus(-good) + softplus(bad).mean(dim=1)
