"""The optimizer, and its memory as tensors with names, so that it can be written without pickle."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from rejoinder.learn.settings import Training


def make_optimizer(model: nn.Module, settings: Training) -> Optimizer:
    """Adam or AdamW over what is not frozen; decay pulls at matrices only."""
    named = trainable(model)
    if settings.optimizer == "adam":
        return torch.optim.Adam(named.values(), lr=settings.rate)
    matrices = [weight for weight in named.values() if weight.ndim > 1]
    others = [weight for weight in named.values() if weight.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": settings.decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.rate)


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


def set_rate(optimizer: Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate


def memory_of(optimizer: Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """What the optimizer remembers: ``layer.weight/exp_avg`` and so on."""
    return {
        f"{name}/{key}": value
        for name, weight in trainable(model).items()
        for key, value in optimizer.state.get(weight, {}).items()
    }


def restore_memory(optimizer: Optimizer, model: nn.Module, memory: Mapping[str, Tensor]) -> None:
    """The inverse of ``memory_of``, for a fresh optimizer of the same model."""
    named = trainable(model)
    for key, value in memory.items():
        name, _, part = key.rpartition("/")
        weight = named[name]
        # a count of steps lies on the CPU, wherever the weights are
        place = weight.device if value.ndim else value.device
        optimizer.state[weight][part] = value.to(place)
