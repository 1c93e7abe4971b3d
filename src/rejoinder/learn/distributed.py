"""The group of processes that train together: one, or as many as ``torchrun`` has started.

Each process has the whole model and computes its share of the batches of a step; gradients are
summed over all of them. DistributedDataParallel is not used: it averages over processes, where
batches of different sizes need one mean over all their rows, and it requires a batch for every
process, where the last step of an epoch may have fewer. So the number of processes does not
change the trained weights.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rejoinder.learn.processes import world_size


@dataclass(frozen=True)
class ProcessGroup:
    """Rank of this process in the distributed group, its device, and collective operations."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main_process(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Return the sum over all processes, on the device of the tensor."""
        if self.world_size == 1:
            return tensor
        import torch.distributed as dist

        shared = tensor.to(self.device)
        dist.all_reduce(shared)
        return shared.to(tensor.device)

    def all_reduce_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum gradients over processes; a parameter without a gradient anywhere keeps none."""
        if self.world_size == 1:
            return
        parameters = list(parameters)
        used = [float(parameter.grad is not None) for parameter in parameters]
        parts = [torch.tensor(used, device=self.device)]
        parts += [
            (torch.zeros_like(parameter) if parameter.grad is None else parameter.grad).reshape(-1)
            for parameter in parameters
        ]
        summed = self.all_reduce(torch.cat(parts))
        counts, *gradients = torch.split(summed, [len(part) for part in parts])
        for parameter, count, gradient in zip(parameters, counts.tolist(), gradients, strict=True):
            parameter.grad = gradient.reshape(parameter.shape) if count else None

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite the tensors of all processes with those of the main process."""
        if self.world_size > 1:
            import torch.distributed as dist

            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def barrier(self) -> None:
        """Wait until all processes have reached this call."""
        self.all_reduce(torch.zeros(1))


@contextlib.contextmanager
def open_process_group() -> Iterator[ProcessGroup]:
    """Yield the group of this process, on GPUs where there are any."""
    size = world_size()
    rank = int(os.environ.get("RANK", "0")) if size > 1 else 0
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) if size > 1 else 0)
    if size == 1:
        yield ProcessGroup(0, 1, device)
        return
    import torch.distributed as dist

    opened_here = not dist.is_initialized()
    if opened_here:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield ProcessGroup(rank, size, device)
    finally:
        if opened_here:
            dist.destroy_process_group()
