"""Ensembles: several networks of one kind, trained in parallel from different initial weights.

The score of one network depends on its initial weights. The mean over a few varies less between
seeds, and costs less than training as many networks one by one: features without weights are
computed once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from rejoinder.errors import DataError
from rejoinder.learn.checkpoint import Model, build_model, describe
from rejoinder.learn.settings import MAX_ENSEMBLE_SIZE
from rejoinder.learn.training import Loss

Batch = TypeVar("Batch")


class EnsembleMember(Model):
    """A network in two steps, of which an ensemble computes the first one once."""

    extract_features: ClassVar[Callable[..., Any]]
    """Computes features without weights from texts: the same for all members."""
    predict: ClassVar[Callable[..., Any]]
    """Computes this network's output from the features."""

    def forward(self, *texts: Tensor) -> Any:
        return self.predict(self.extract_features(*texts))


class Ensemble(Model):
    """The mean output of its members, which are of one kind and size."""

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        self.config: dict[str, Any] = {"members": [describe(member) for member in members]}
        self.members = nn.ModuleList(members)

    @classmethod
    def build(cls, config: Mapping[str, Any]) -> Self:
        members = config.get("members")
        if not isinstance(members, list) or not 1 <= len(members) <= MAX_ENSEMBLE_SIZE:
            raise DataError(f"an ensemble has a list of 1 to {MAX_ENSEMBLE_SIZE} members")
        if not all(isinstance(member, dict) and member == members[0] for member in members):
            raise DataError("the members of an ensemble must be of one kind and size")
        if members[0].get("kind") == cls.kind():
            raise DataError("an ensemble cannot be a member of an ensemble")
        return cls([build_model(member) for member in members])

    def forward(self, *texts: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Return the mean output of the members: logits, or a tuple of them."""
        first = self.members[0]
        if isinstance(first, EnsembleMember):
            features = first.extract_features(*texts)
            outputs = [member.predict(features) for member in self.members]  # type: ignore[operator]
        else:
            outputs = [member(*texts) for member in self.members]
        if isinstance(outputs[0], tuple):
            return tuple(torch.stack(parts).mean(dim=0) for parts in zip(*outputs, strict=True))
        return torch.stack(outputs).mean(dim=0)


def make_ensemble(size: int, make: Callable[[], Model]) -> Model:
    """Return one network, or an ensemble of several."""
    return make() if size == 1 else Ensemble([make() for _ in range(size)])


def members_of(model: nn.Module) -> list[nn.Module]:
    """Return the members of an ensemble; another network is its own only member."""
    return list(model.members) if isinstance(model, Ensemble) else [model]


def separate_losses(loss: Loss[Batch]) -> Loss[Batch]:
    """Return the mean loss of the members, each by itself: none relies on the output of the others.

    Members share the limit of the gradient norm, and the step whose weights are kept.
    """

    def mean_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        losses, counts = zip(*(loss(member, batch) for member in members_of(model)), strict=True)
        return torch.stack(losses).mean(), counts[0]

    return mean_loss
