"""Several networks of one kind, which learn side by side from other first weights.

What one network says of a reply depends on the weights that it began with. The mean over a few is
steadier from seed to seed, and costs less than as many networks: what no weight has touched is made
once for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from rejoinder.learn.checkpoint import Model, built, describe
from rejoinder.learn.training import Loss

Batch = TypeVar("Batch")


class Member(Model):
    """A network that reads in two steps, of which a panel takes the first one once."""

    compared: ClassVar[Callable[..., Any]]
    """Texts → what can be told of them without weights: the same for all networks of a kind."""
    judged: ClassVar[Callable[..., Any]]
    """That → what this network says."""

    def forward(self, *texts: Tensor) -> Any:
        return self.judged(self.compared(*texts))


class Panel(Model):
    """The mean of what its members say, which are of one kind and size."""

    def __init__(self, members: Sequence[Model]) -> None:
        super().__init__()
        self.config: dict[str, Any] = {"members": [describe(member) for member in members]}
        self.members = nn.ModuleList(members)

    @classmethod
    def build(cls, config: Mapping[str, Any]) -> Self:
        return cls([built(member) for member in config["members"]])

    def forward(self, *texts: Tensor) -> Tensor | tuple[Tensor, ...]:
        """As a member has it: scores, or a tuple of them."""
        first = self.members[0]
        if isinstance(first, Member):
            compared = first.compared(*texts)
            said = [member.judged(compared) for member in self.members]  # type: ignore[operator]
        else:
            said = [member(*texts) for member in self.members]
        if isinstance(said[0], tuple):
            return tuple(torch.stack(parts).mean(dim=0) for parts in zip(*said, strict=True))
        return torch.stack(said).mean(dim=0)


def several(number: int, make: Callable[[], Model]) -> Model:
    """A network, or a panel of them."""
    return make() if number == 1 else Panel([make() for _ in range(number)])


def members_of(model: nn.Module) -> list[nn.Module]:
    """Those of a panel; any other network is alone."""
    return list(model.members) if isinstance(model, Panel) else [model]


def apart(loss: Loss[Batch]) -> Loss[Batch]:
    """The mean loss of the members: none leans on what the others say. They share the limit of the
    gradient, and the step whose weights are kept."""

    def mean(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        losses, counts = zip(*(loss(each, batch) for each in members_of(model)), strict=True)
        return torch.stack(losses).mean(), counts[0]

    return mean
