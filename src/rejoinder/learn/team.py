"""The processes that train together: one, or as many as ``torchrun`` has started.

Each has the whole model and takes its share of the batches of a step; gradients are summed over
all. The sum is made here and not by DistributedDataParallel: that averages over processes, where
batches of different sizes need one mean over all their rows, and needs every process to have a
batch, where the last step of an epoch has as many as are left. So the number of processes does
not change what is learnt.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rejoinder.learn.processes import team_size


@dataclass(frozen=True)
class Team:
    """This process among its like. Only the first one writes files and reports."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def add_up(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, on the device where the tensor was."""
        if self.size == 1:
            return tensor
        import torch.distributed as dist

        shared = tensor.to(self.device)
        dist.all_reduce(shared)
        return shared.to(tensor.device)

    def add_gradients(self, weights: Iterable[nn.Parameter]) -> None:
        """Sum the gradients of all; what no process has a gradient for stays without one."""
        if self.size == 1:
            return
        listed = list(weights)
        used = [float(weight.grad is not None) for weight in listed]
        parts = [torch.tensor(used, device=self.device)]
        parts += [
            (torch.zeros_like(weight) if weight.grad is None else weight.grad).reshape(-1)
            for weight in listed
        ]
        summed = self.add_up(torch.cat(parts))
        marks, *gradients = torch.split(summed, [len(part) for part in parts])
        for weight, mark, gradient in zip(listed, marks.tolist(), gradients, strict=True):
            weight.grad = gradient.reshape(weight.shape) if mark else None

    def same(self, tensors: Iterable[Tensor]) -> None:
        """Give everybody what the first process has."""
        if self.size > 1:
            import torch.distributed as dist

            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def wait(self) -> None:
        """Until all have come here."""
        self.add_up(torch.zeros(1))


@contextlib.contextmanager
def open_team() -> Iterator[Team]:
    """This process alone, or with those that ``torchrun`` has started; on GPUs if there are."""
    size = team_size()
    rank = int(os.environ.get("RANK", "0")) if size > 1 else 0
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) if size > 1 else 0)
    if size == 1:
        yield Team(0, 1, device)
        return
    import torch.distributed as dist

    ours = not dist.is_initialized()
    if ours:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(rank, size, device)
    finally:
        if ours:
            dist.destroy_process_group()
