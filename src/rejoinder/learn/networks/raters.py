"""Networks of the NN-rater: does R2, a response to U2, also fit U1, of which the response R1 is
known?

Tsuta et al. (2020, § 4.2; 2023, § 4.2). A pair of pairs gives two triplets, ⟨U1, R1, R2⟩ and
⟨U2, R2, R1⟩: never both utterances at once, because they are the same in every positive training
example, and a network would look at nothing else. The network reads a triplet and returns the
probability that its third text is a response to the first.

How two probabilities become one rating is left open in the papers; here it is their mean p, and
then ``max(p, 1 - p)``, negative where p is below a half. This keeps the range of the papers (they
print ratings between .5 and 1) and treats both triplets alike. ``soft`` ratings, ``2p - 1``, are
near 0 for undecided cases, which the form of the papers cannot express.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.ensemble import EnsembleMember
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.networks.scorers import (
    Bilinear,
    ngram_overlap,
    question_feature_sizes,
    question_features,
    repeat_rows,
)

CLASSES = 2
"""Not a response, a response."""
TwoTensors = tuple[Tensor, Tensor]


def rating(first: Tensor, second: Tensor, *, soft: bool = False) -> Tensor:
    """[n] return ratings from -1 to 1 from the probabilities of the two triplets.

    >>> rating(torch.tensor([0.9, 0.2]), torch.tensor([0.7, 0.4]))
    tensor([ 0.8000, -0.7000])
    """
    mean = (first + second) / 2
    if soft:
        return 2 * mean - 1
    return torch.where(mean >= 0.5, mean, mean - 1)


def feed_forward(inputs: int, hidden_size: int, num_layers: int, dropout: float) -> nn.Sequential:
    """Return linear layers with ReLU between them and two outputs."""
    parts: list[nn.Module] = []
    for number in range(num_layers - 1):
        parts += [nn.Linear(inputs if number == 0 else hidden_size, hidden_size), nn.ReLU()]
        if dropout:
            parts.append(nn.Dropout(dropout))
    return nn.Sequential(*parts, nn.Linear(hidden_size if num_layers > 1 else inputs, CLASSES))


class GruRater(Model):
    """The network of the papers: shared embedding and Bi-GRU, five-layer feed-forward network."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        mlp_size: int,
        num_layers: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size,
            "hidden_size": hidden_size, "mlp_size": mlp_size, "num_layers": num_layers,
            "dropout": dropout,
        }  # fmt: skip
        self.sentence = SentenceGru(vocab_size, embedding_size, hidden_size)
        self.mlp = feed_forward(3 * self.sentence.output_size, mlp_size, num_layers, dropout)

    def forward(self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor) -> TwoTensors:
        """Subword ids of the four texts → [m, 2] logits of each triplet."""
        v1, s1, v2, s2 = (repeat_rows(self.sentence(ids), r2) for ids in (u1, r1, u2, r2))
        return self.mlp(torch.cat([v1, s1, s2], dim=1)), self.mlp(torch.cat([v2, s2, s1], dim=1))


class TripletFeatures(NamedTuple):
    """Features of an utterance, its known response and the candidate."""

    known: list[Tensor]
    """Views of the utterance, and the known response: [n, dimensions] each"""
    candidate: Tensor
    """[m, dimensions]; it may also have fewer rows than the others"""
    mlp_inputs: Tensor
    """[m, …]"""
    overlap: Tensor | None
    """[m, views + 1] see ``ngram_overlap``"""


class VectorRater(EnsembleMember):
    """A rater over frozen sentence vectors instead of a Bi-GRU.

    A layer can't compare vectors that are concatenated, so it is given their products and absolute
    differences, and hardly anything else: topics would be memorised. The nearness of the candidate
    to the utterance and to the known response (a bilinear feature each, as in RUBER) is also added
    to the logits directly, so that the network starts as a cosine. See
    ``VectorScorer`` for views and scaling.
    """

    def __init__(
        self,
        dimensions: int,
        views: int,
        hidden_size: int,
        num_layers: int,
        dropout: float = 0.0,
        char_ngram_buckets: int = 0,
        question_feature: bool = False,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "dimensions": dimensions, "views": views, "hidden_size": hidden_size,
            "num_layers": num_layers, "dropout": dropout,
            "char_ngram_buckets": char_ngram_buckets, "question_feature": question_feature,
        }  # fmt: skip
        self.dimensions = dimensions
        self.scale = dimensions**0.5
        self.dropout = nn.Dropout(dropout)
        questions = sum(question_feature_sizes(dimensions)) if question_feature else 0
        inputs = 2 * (views + 1) * dimensions + questions
        self.mlp = feed_forward(inputs, hidden_size, num_layers, dropout)
        self.bilinear = nn.ModuleList(Bilinear(dimensions) for _ in range(views + 1))
        direct = (2 if char_ngram_buckets else 1) * (views + 1)
        self.shortcut = nn.Linear(direct, CLASSES, bias=False)

    def extract_features(
        self, u1: Tensor, r1: Tensor, u2: Tensor, r2: Tensor
    ) -> tuple[TripletFeatures, TripletFeatures]:
        """[n, views, dimensions] first utterances, [n, dimensions] their responses, and [m, …]
        second ones."""
        return self._triplet(u1, r1, r2), self._triplet(u2, r2, r1)

    def predict(self, features: tuple[TripletFeatures, TripletFeatures]) -> TwoTensors:
        """[m, 2] logits of each triplet."""
        first, second = features
        return self._logits(first), self._logits(second)

    def _triplet(self, utterance: Tensor, response: Tensor, candidate: Tensor) -> TripletFeatures:
        size = self.dimensions
        texts = (*utterance.unbind(dim=1), response, candidate)
        scaled = [text[:, :size] * self.scale for text in texts]
        longest = max(response, candidate, key=len)
        known = torch.stack([repeat_rows(text, longest) for text in scaled[:-1]], dim=1)
        repeated = repeat_rows(scaled[-1], longest).unsqueeze(1)
        inputs = torch.cat([known * repeated, (known - repeated).abs()], dim=2).flatten(1)
        overlap = None
        if self.config["question_feature"]:
            size += 1
            turn, reply = (
                repeat_rows(text[:, :size], longest) for text in (utterance[:, 0], candidate)
            )
            inputs = torch.cat([inputs, question_features(turn, reply, self.scale)], dim=1)
        if self.config["char_ngram_buckets"]:
            both = torch.cat([utterance, response.unsqueeze(1)], dim=1)[..., size:]
            overlap = ngram_overlap(
                repeat_rows(both, longest), repeat_rows(candidate[:, size:], longest)
            )
        return TripletFeatures(scaled[:-1], scaled[-1], inputs, overlap)

    def _logits(self, features: TripletFeatures) -> Tensor:
        logits: Tensor = self.mlp(self.dropout(features.mlp_inputs))
        pairs = zip(self.bilinear, features.known, strict=True)
        nearness = [bilinear(known, features.candidate) for bilinear, known in pairs]
        direct = torch.cat(nearness, dim=1) / self.scale
        if features.overlap is not None:
            direct = torch.cat([direct, features.overlap], dim=1)
        shortcut: Tensor = self.shortcut(direct)
        return logits + shortcut
