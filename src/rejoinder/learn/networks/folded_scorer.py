"""Inference of vector scorers for many replies to each context, e.g. a hundred retrieved ones.

Everything that a ``VectorScorer`` adds up in its hidden layer, except absolute differences, is
linear in the vector r of the reply. For a given context with the views q it can be computed as
one product with a matrix, instead of one for each view and further ones for questions:

    W r + Σ P (q∘r)  =  (W + Σ P diag(q)) r

The result differs from that of the networks themselves only in rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

import torch
from torch import Tensor, nn

from rejoinder.learn.networks.ensemble import members_of
from rejoinder.learn.networks.scorers import Bilinear, VectorScorer

MIN_REPLIES = 16
"""Replies to each context from which on making a matrix for it pays off."""


def bilinear_matrices(scorer: VectorScorer) -> Tensor:
    """[views, dimensions, dimensions] return the matrices M."""
    return torch.stack([cast(Bilinear, each).matrix for each in scorer.bilinear])


class FoldedScorer:
    """The mean of vector scorers of one size, with the weights of all of them side by side."""

    @torch.no_grad()
    def __init__(self, members: Sequence[VectorScorer]) -> None:
        self.first = first = members[0]
        hidden = [member.mlp.hidden for member in members]
        outputs = [member.mlp.output for member in members]
        self.bias = torch.cat([layer.bias for layer in hidden])
        self.output = torch.cat([layer.weight[0] for layer in outputs]) / len(members)
        self.output_bias = torch.stack([layer.bias for layer in outputs]).mean()
        # [views, dimensions, members · dimensions]
        matrices = torch.stack([bilinear_matrices(member) for member in members])
        self.matrices = matrices.permute(1, 2, 0, 3).flatten(2).contiguous()
        weights = torch.stack([layer.weight for layer in hidden])
        # [members, hidden_size, …] each
        split = torch.split(weights, first.part_sizes(), dim=2)
        parts = iter([part.contiguous() for part in split])
        self.reply = next(parts)
        views = [[next(parts) for _ in range(4)] for _ in first.bilinear]
        own, self.products, differences, nearness = zip(*views, strict=True)
        self.views = torch.cat(own, dim=2).flatten(0, 1)
        self.differences = torch.cat(differences, dim=2).flatten(0, 1)
        # [members · views, members · hidden_size]: a bilinear feature is one of its own member
        blocks: Tensor = torch.block_diag(*torch.cat(nearness, dim=2))  # type: ignore[no-untyped-call]
        self.nearness = blocks.T.contiguous()
        self.questions = [next(parts) for _ in range(5)] if first.config["question_feature"] else []
        shortcuts = [member.shortcut.weight[0] for member in members if member.shortcut]
        self.overlap: tuple[Tensor, Tensor] | None = None
        if shortcuts:
            self.overlap = next(parts).flatten(0, 1), torch.stack(shortcuts).mean(dim=0)

    @classmethod
    def of(cls, model: nn.Module) -> Self | None:
        """Return the vector scorers of a network or ensemble; None if it has others."""
        members = [member for member in members_of(model) if isinstance(member, VectorScorer)]
        return cls(members) if members else None

    def __call__(self, contexts: Tensor, replies: Tensor) -> Tensor:
        """[n, views, …] and [m, …] → [m] logits, where m is a multiple of n."""
        first, size, count = self.first, self.first.dimensions, len(contexts)
        queries = contexts[..., :size] * first.scale
        reply = (replies[:, :size] * first.scale).reshape(count, -1, size)
        differences = (queries.unsqueeze(1) - reply.unsqueeze(2)).abs_().flatten(2)
        hidden = differences @ self.differences.T
        hidden += (self.bias + queries.flatten(1) @ self.views.T).unsqueeze(1)
        terms = list(zip(self.products, queries.unbind(dim=1), strict=True))
        if self.questions:
            turn, said, with_reply, with_both, with_turn = self.questions
            last, sign = queries[:, 0], contexts[:, 0, size, None]
            terms += [(with_reply, sign), (with_both, sign * last)]
            hidden += (sign * turn.flatten()).unsqueeze(1)
            by_reply_sign = said.flatten() + last @ with_turn.flatten(0, 1).T
            hidden += replies[:, size].reshape(count, -1, 1) * by_reply_sign.unsqueeze(1)
        # qᵀ M r: [n, members · views, dimensions] times [n, dimensions, replies]
        turned = torch.bmm(queries.transpose(0, 1), self.matrices)
        turned = turned.reshape(len(self.matrices), count, -1, size).permute(1, 2, 0, 3)
        turned = turned.flatten(1, 2)
        hidden += (reply @ turned.transpose(1, 2)) @ self.nearness
        for number in range(count):
            matrix = self.reply.clone()
            for weights, factors in terms:
                matrix.addcmul_(weights, factors[number])
            hidden[number].addmm_(reply[number], matrix.flatten(0, 1).T)
        direct: Tensor | float = 0.0
        if self.overlap is not None:
            overlap = first.overlap(contexts, replies)
            weights, shortcut = self.overlap
            hidden += (overlap @ weights.T).reshape(hidden.shape)
            direct = overlap @ shortcut
        logits: Tensor = hidden.tanh_().flatten(0, 1) @ self.output + self.output_bias
        return logits + direct
