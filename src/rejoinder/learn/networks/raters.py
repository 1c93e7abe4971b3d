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

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.networks.panel import Member
from rejoinder.learn.networks.scorers import (
    Quadratic,
    repeated,
    signed_features,
    who_asks,
    written_alike,
)

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
        """Piece numbers of the four texts → [m, 2] scores of each triplet."""
        first, known, second, asked = (repeated(self.read(ids), r2) for ids in (u1, r1, u2, r2))
        return (
            self.judge(torch.cat([first, known, asked], dim=1)),
            self.judge(torch.cat([second, asked, known], dim=1)),
        )


class Triplet(NamedTuple):
    """What vectors tell of an utterance, a known reply and the one that is asked about."""

    others: list[Tensor]
    """Views of the utterance, and the known reply: [n, dimensions] each"""
    asked: Tensor
    """[m, dimensions]; there may be fewer of these than of the others, too"""
    features: Tensor
    """[m, …] for the hidden layers"""
    alike: Tensor | None
    """[m, views + 1] as ``written_alike`` has it"""


class VectorRater(Member):
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

    def compared(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> tuple[Triplet, Triplet]:
        """[n, views, dimensions] of the first utterances, [n, dimensions] of their responses, and
        [m, …] of the second ones."""
        return self._triplet(u1, r1, r2), self._triplet(u2, r2, r1)

    def judged(self, compared: tuple[Triplet, Triplet]) -> Two:
        """[m, 2] scores of each triplet."""
        first, second = compared
        return self._answer(first), self._answer(second)

    def _triplet(self, utterance: Tensor, known: Tensor, asked: Tensor) -> Triplet:
        size = self.dimensions
        near = [text[:, :size] * self.scale for text in (*utterance.unbind(dim=1), known, asked)]
        most = max(known, asked, key=len)
        others = torch.stack([repeated(text, most) for text in near[:-1]], dim=1)
        beside = repeated(near[-1], most).unsqueeze(1)
        features = torch.cat([others * beside, (others - beside).abs()], dim=2).flatten(1)
        alike = None
        if self.config["asks"]:
            size += 1
            first, last = (repeated(text[:, :size], most) for text in (utterance[:, 0], asked))
            signed = who_asks(first, last, self.scale)
            features = torch.cat([features, signed], dim=1)
        if self.config["spelling"]:
            both = torch.cat([utterance, known.unsqueeze(1)], dim=1)[..., size:]
            alike = written_alike(repeated(both, most), repeated(asked[:, size:], most))
        return Triplet(near[:-1], near[-1], features, alike)

    def _answer(self, triplet: Triplet) -> Tensor:
        scores: Tensor = self.judge(self.dropout(triplet.features))
        pairs = zip(self.near, triplet.others, strict=True)
        near = [compare(other, triplet.asked) for compare, other in pairs]
        seen = torch.cat(near, dim=1) / self.scale
        if triplet.alike is not None:
            seen = torch.cat([seen, triplet.alike], dim=1)
        glance: Tensor = self.glance(seen)
        return scores + glance
