"""NN-rater: may R2, which was said to U2, answer U1, to which R1 is known to be a good reply?

Tsuta et al. (2020, § 4.2; 2023, § 4.2). A pair of pairs becomes two triplets, ⟨U1, R1, R2⟩ and
⟨U2, R2, R1⟩: never both utterances at once, because in training they are the same in every
positive example, and a network would look at nothing else. The network reads a triplet and gives
the probability that its third text answers the first.

One rating from two probabilities, which the papers leave open: their mean p, and then
``max(p, 1 - p)``, negative where p is below a half. That keeps the papers' range (ratings they
print lie between .5 and 1) and treats both triplets alike. ``soft`` ratings, ``2p - 1``, say
"undecided" with a weight near 0 instead; the paper's form can't.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.networks.scorers import Quadratic, signed_features, who_asks, written_alike

CLASSES = 2
"""No answer, answer."""
Two = tuple[Tensor, Tensor]


def rating(first: Tensor, second: Tensor, *, soft: bool = False) -> Tensor:
    """[n] from -1 to 1, from the two triplets' probabilities of being an answer.

    >>> rating(torch.tensor([0.9, 0.2]), torch.tensor([0.7, 0.4]))
    tensor([ 0.8000, -0.7000])
    """
    mean = (first + second) / 2
    if soft:
        return 2 * mean - 1
    return torch.where(mean >= 0.5, mean, mean - 1)


def feed_forward(inputs: int, wide: int, layers: int, dropout: float) -> nn.Sequential:
    """``layers`` linear layers with ReLU in between, down to two classes."""
    parts: list[nn.Module] = []
    for number in range(layers - 1):
        parts += [nn.Linear(inputs if number == 0 else wide, wide), nn.ReLU()]
        if dropout:
            parts.append(nn.Dropout(dropout))
    return nn.Sequential(*parts, nn.Linear(wide if layers > 1 else inputs, CLASSES))


class GruRater(Model):
    """The papers' network: shared embedding and Bi-GRU, five-layer feed-forward network."""

    def __init__(
        self,
        pieces: int,
        embedding: int,
        hidden: int,
        wide: int,
        layers: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "pieces": pieces, "embedding": embedding, "hidden": hidden, "wide": wide,
            "layers": layers, "dropout": dropout,
        }  # fmt: skip
        self.read = SentenceGru(pieces, embedding, hidden)
        self.judge = feed_forward(3 * self.read.width, wide, layers, dropout)

    def forward(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> Two:
        """Piece numbers of the four texts → [n, 2] scores of each triplet."""
        first, known, second, asked = (self.read(ids) for ids in (u1, r1, u2, r2))
        return (
            self.judge(torch.cat([first, known, asked], dim=1)),
            self.judge(torch.cat([second, asked, known], dim=1)),
        )


class VectorRater(Model):
    """The cheap form: frozen sentence vectors instead of the Bi-GRU.

    A layer can't compare the vectors that stand side by side, so it is given products and
    differences, and hardly anything else: what texts are about would be learnt by heart. How near
    the asked reply is to the utterance and to the known reply (a quadratic feature each, as in
    RUBER) also goes straight to the outcome, so that the network begins with what a cosine
    knows. See ``VectorScorer`` for views and sizes.
    """

    def __init__(
        self,
        dimensions: int,
        views: int,
        wide: int,
        layers: int,
        dropout: float = 0.0,
        spelling: int = 0,
        asks: bool = False,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "dimensions": dimensions, "views": views, "wide": wide, "layers": layers,
            "dropout": dropout, "spelling": spelling, "asks": asks,
        }  # fmt: skip
        self.dimensions = dimensions
        self.scale = dimensions**0.5
        self.dropout = nn.Dropout(dropout)
        signed = signed_features(dimensions) if asks else 0
        self.judge = feed_forward(2 * (views + 1) * dimensions + signed, wide, layers, dropout)
        self.near = nn.ModuleList(Quadratic(dimensions) for _ in range(views + 1))
        self.glance = nn.Linear((2 if spelling else 1) * (views + 1), CLASSES, bias=False)

    def forward(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> Two:
        """[n, views, dimensions] of the utterances, [n, dimensions] of the responses → [n, 2]
        scores of each triplet."""
        return self._judged(u1, r1, r2), self._judged(u2, r2, r1)

    def _judged(self, utterance: Tensor, known: Tensor, asked: Tensor) -> Tensor:
        size = self.dimensions
        both = torch.cat([utterance, known.unsqueeze(1)], dim=1)
        others, reply = both[..., :size] * self.scale, asked[:, :size] * self.scale
        beside = reply.unsqueeze(1)
        compared = torch.cat([others * beside, (others - beside).abs()], dim=2).flatten(1)
        if self.config["asks"]:
            size += 1
            signed = who_asks(utterance[:, 0, :size], asked[:, :size], self.scale)
            compared = torch.cat([compared, signed], dim=1)
        near = [
            compare(other, reply)
            for compare, other in zip(self.near, others.unbind(dim=1), strict=True)
        ]
        scores: Tensor = self.judge(self.dropout(compared))
        seen = torch.cat(near, dim=1) / self.scale
        if self.config["spelling"]:
            seen = torch.cat([seen, written_alike(both[..., size:], asked[:, size:])], dim=1)
        glance: Tensor = self.glance(seen)
        return scores + glance
