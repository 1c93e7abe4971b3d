"""Networks of the unreferenced scorer: does a reply fit its context (RUBER § 3.2)?

    s_U = sigmoid(MLP([q; qᵀ M r; r]))

where q and r are the vectors of query and reply, and the MLP has one hidden layer with tanh.
Trained without labels: the true reply must score higher than another reply, by a margin Δ.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks.ensemble import EnsembleMember
from rejoinder.learn.networks.gru import SentenceGru

TYPICAL_OVERLAP = 0.1
"""Typical cosine of the character n-grams of a turn and its reply."""


class Bilinear(nn.Module):
    """The feature qᵀ M r. M starts as the identity, so that the feature starts as a dot product,
    scaled for vectors with independent entries of variance 1."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(size) / size**0.5)

    def forward(self, query: Tensor, reply: Tensor) -> Tensor:
        """[n, size] and [m, size] → [m, 1], where m is n or a multiple of it; or the reverse. The
        smaller side is multiplied by M."""
        if len(query) <= len(reply):
            return (repeat_rows(query @ self.matrix, reply) * reply).sum(1, keepdim=True)
        return (repeat_rows(reply @ self.matrix.T, query) * query).sum(1, keepdim=True)


class Perceptron(nn.Module):
    """Features → logits, with one hidden layer with tanh."""

    def __init__(self, features: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden_size, 1)

    def forward(self, *parts: Tensor) -> Tensor:
        """[m, …] parts of the features → [m]; a part may have fewer rows, as in ``repeat_rows``.

        Parts are not concatenated: a part that all replies to a context share is multiplied once,
        and no gradient is computed for inputs.
        """
        longest = max(parts, key=len)
        weights = torch.split(self.hidden.weight, [part.shape[1] for part in parts], dim=1)
        hidden: Tensor = self.hidden.bias
        for part, weight in zip(parts, weights, strict=True):
            hidden = hidden + repeat_rows(nn.functional.linear(part, weight), longest)
        logits: Tensor = self.output(self.dropout(torch.tanh(hidden)))
        return logits.squeeze(1)


def repeat_rows(contexts: Tensor, replies: Tensor) -> Tensor:
    """Repeat each context for its replies; all contexts have the same number of replies."""
    times = len(replies) // max(1, len(contexts))
    return contexts if times == 1 else contexts.repeat_interleave(times, dim=0)


class GruScorer(Model):
    """RUBER's network."""

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        hidden_size: int,
        mlp_size: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "vocab_size": vocab_size, "embedding_size": embedding_size,
            "hidden_size": hidden_size, "mlp_size": mlp_size, "dropout": dropout,
        }  # fmt: skip
        self.sentence = SentenceGru(vocab_size, embedding_size, hidden_size)
        self.bilinear = Bilinear(self.sentence.output_size)
        self.mlp = Perceptron(2 * self.sentence.output_size + 1, mlp_size, dropout)

    def forward(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """Subword ids → [replies] logits."""
        query, reply = repeat_rows(self.sentence(contexts), replies), self.sentence(replies)
        features = torch.cat([query, self.bilinear(query, reply), reply], dim=1)
        logits: Tensor = self.mlp(features)
        return logits


class ScorerFeatures(NamedTuple):
    """Features of m replies to n contexts."""

    reply: Tensor
    """[m, dimensions]"""
    views: list[tuple[Tensor, Tensor, Tensor]]
    """For each view, its vector [n, dimensions], and its product with and absolute difference from
    the reply [m, dimensions]"""
    questions: Tensor | None
    """[m, …] see ``question_features``"""
    overlap: Tensor | None
    """[m, views] see ``ngram_overlap``"""


class VectorScorer(EnsembleMember):
    """A scorer over frozen sentence vectors of the reply and of several views of the context (its
    last turn and the one before it, or its last two turns …).

    A hidden layer can't multiply, so products and differences are added to the vectors, and each
    view has a bilinear feature. Vectors have length 1, and entries of about 1/√d: they are scaled
    to the size that layers expect.

    After the vector, an input may have whether the text is a question (``question_feature``), and
    after that hashed character n-grams (``char_ngram_buckets``): of these, only the overlap of
    reply and view is used, which is also added to the logit directly.
    """

    def __init__(
        self,
        dimensions: int,
        views: int,
        hidden_size: int,
        dropout: float = 0.0,
        char_ngram_buckets: int = 0,
        question_feature: bool = False,
        sentence_dimensions: int | None = None,
    ) -> None:
        """``sentence_dimensions`` of the vector are the sentence vector (default: all)."""
        super().__init__()
        self.config: dict[str, Any] = {
            "dimensions": dimensions, "views": views, "hidden_size": hidden_size,
            "dropout": dropout, "char_ngram_buckets": char_ngram_buckets,
            "question_feature": question_feature, "sentence_dimensions": sentence_dimensions,
        }  # fmt: skip
        self.dimensions = dimensions
        self.sentence_dimensions = (
            dimensions if sentence_dimensions is None else sentence_dimensions
        )
        self.scale = dimensions**0.5
        self.bilinear = nn.ModuleList(Bilinear(dimensions) for _ in range(views))
        self.mlp = Perceptron(sum(self.part_sizes()), hidden_size, dropout)
        self.shortcut = nn.Linear(views, 1, bias=False) if char_ngram_buckets else None
        if self.shortcut is not None:
            nn.init.zeros_(self.shortcut.weight)  # few steps could not undo random weights

    def part_sizes(self) -> list[int]:
        """Return the numbers of columns of ``mlp_inputs``; those of questions one by one."""
        size, views = self.dimensions, len(self.bilinear)
        questions = question_feature_sizes(size) if self.config["question_feature"] else []
        overlap = [views] if self.config["char_ngram_buckets"] else []
        return [size, *views * [size, size, size, 1], *questions, *overlap]

    def extract_features(self, contexts: Tensor, replies: Tensor) -> ScorerFeatures:
        """[n, views, dimensions] and [m, dimensions], where m is n or a multiple of it."""
        size = self.dimensions
        reply = replies[:, :size] * self.scale
        views = []
        for view in contexts[..., :size].unbind(dim=1):
            query = view * self.scale
            repeated = repeat_rows(query, reply)
            views.append((query, repeated * reply, (repeated - reply).abs()))
        questions = overlap = None
        if self.config["question_feature"]:
            size += 1
            questions = question_features(
                repeat_rows(contexts[:, 0, :size], replies), replies[:, :size], self.scale
            )
        if self.shortcut is not None:
            overlap = self.overlap(contexts, replies)
        return ScorerFeatures(reply, views, questions, overlap)

    def overlap(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """[m, views] see ``ngram_overlap``."""
        size = self.dimensions + bool(self.config["question_feature"])
        return ngram_overlap(repeat_rows(contexts[..., size:], replies), replies[:, size:])

    def predict(self, features: ScorerFeatures) -> Tensor:
        """[m] logits."""
        logits: Tensor = self.mlp(*self.mlp_inputs(features))
        if self.shortcut is None:
            return logits
        direct: Tensor = self.shortcut(features.overlap).squeeze(1)
        return logits + direct

    def max_cosine(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """[m] cosine of the reply and the nearest view. Missing turns (zero vectors) are left out;
        a context without turns has 0."""
        views = contexts[..., : self.sentence_dimensions]
        present = repeat_rows(views.any(dim=2), replies)
        cosines = torch.einsum(
            "nvd,nd->nv", repeat_rows(views, replies), replies[:, : self.sentence_dimensions]
        )
        best = cosines.masked_fill(~present, -torch.inf).amax(dim=1)
        return best.masked_fill(~present.any(dim=1), 0.0)

    def mlp_inputs(self, features: ScorerFeatures) -> list[Tensor]:
        """Return the inputs of the hidden layer: [m, …], or [n, …] for all replies to a context."""
        parts = [features.reply]
        for view, bilinear in zip(features.views, self.bilinear, strict=True):
            parts += [*view, bilinear(view[0], features.reply)]
        return parts + [part for part in (features.questions, features.overlap) if part is not None]


def question_features(turns: Tensor, replies: Tensor, scale: float) -> Tensor:
    """[n, d + 1] twice, vectors followed by 1 (question) or -1 → [n, …] features of turn and reply
    that depend on which of them is a question.

    A question wants an answer, and a sentence vector hardly tells questions apart: so vectors are
    multiplied by the sign of the turn, or of the reply.
    """
    turn, reply = turns[:, :-1] * scale, replies[:, :-1] * scale
    turn_sign, reply_sign = turns[:, -1:], replies[:, -1:]
    return torch.cat(
        [turn_sign, reply_sign, turn_sign * reply, turn_sign * turn * reply, reply_sign * turn],
        dim=1,
    )


def question_feature_sizes(dimensions: int) -> list[int]:
    """Return the numbers of columns that ``question_features`` concatenates."""
    return [1, 1, dimensions, dimensions, dimensions]


def ngram_overlap(texts: Tensor, reply: Tensor) -> Tensor:
    """[n, k, buckets] and [n, buckets] → [n, k] cosine of each text and the reply, scaled
    so that a typical overlap is 1."""
    return torch.einsum("nkp,np->nk", texts, reply) / TYPICAL_OVERLAP


def margin_loss(good: Tensor, bad: Tensor, margin: float) -> Tensor:
    """[n, k] max(0, Δ - s(q, r) + s(q, r⁻)), of scores after the sigmoid (equation 3).

    >>> margin_loss(torch.tensor([[0.9], [0.4]]), torch.tensor([[0.2, 0.6], [0.3, 0.0]]), 0.5)
    tensor([[0.0000, 0.2000],
            [0.4000, 0.1000]])
    """
    return (margin - good + bad).clamp(min=0)


def logistic_loss(good: Tensor, bad: Tensor) -> Tensor:
    """[n], [n, k] → [n] -log σ(s(q, r)) - mean log σ(-s(q, r⁻)), of logits.

    >>> logistic_loss(torch.tensor([0.0, 3.0]), torch.tensor([[0.0, 0.0], [-3.0, 0.0]]))
    tensor([1.3863, 0.4195])
    """
    softplus = nn.functional.softplus
    return softplus(-good) + softplus(bad).mean(dim=1)
