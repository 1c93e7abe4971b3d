"""The state of a training run: everything needed to resume it exactly.

There is no state of random generators in it: every batch and every dropout mask is drawn from the
seed and the position in the run.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from rejoinder.errors import DataError
from rejoinder.learn.checkpoint import describe, load_weights, read_checkpoint, write_checkpoint
from rejoinder.learn.optimizer import load_optimizer, optimizer_tensors

STATE = "state.safetensors"


@dataclass
class TrainingState:
    """The position of a run and its losses so far; JSON."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    batches_used: int = 0
    """Batches of the current epoch that have been used."""
    validated_step: int = -1
    """The step that was validated last."""
    best_step: int | None = None
    best_loss: float | None = None
    first_loss: float | None = None
    """Validation loss before the first step."""
    loss_sum: float = 0.0
    """Sum of the training loss since the last validation …"""
    loss_count: float = 0.0
    """… and the number of rows or tokens that it is divided by."""
    stale_validations: int = 0
    """Validations since the best one."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry per validation."""
    seconds: float = 0.0
    """Time spent, including before interruptions."""


def save_state(
    folder: Path, state: TrainingState, run: str, model: nn.Module, optimizer: Optimizer
) -> None:
    """Write the state; best weights of an earlier step are removed."""
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    named = optimizer_tensors(optimizer, model)
    tensors |= {f"optimizer/{name}": tensor for name, tensor in named.items()}
    metadata = {**describe(model), "run": run, "state": asdict(state)}
    write_checkpoint(folder / STATE, tensors, metadata)
    for path in folder.glob("best-*.safetensors"):
        if path != best_path(folder, state):
            path.unlink(missing_ok=True)


def load_state(
    folder: Path, run: str, model: nn.Module, optimizer: Optimizer
) -> TrainingState | None:
    """Load the state of this run into model and optimizer; return None if there is none."""
    path = folder / STATE
    if not path.exists():
        return None
    try:
        tensors, metadata = read_checkpoint(path)
        if metadata.get("run") != run:
            return None
        parts: dict[str, dict[str, Any]] = {"model": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        load_weights(model, parts["model"], path)
        load_optimizer(optimizer, model, parts["optimizer"])
        return TrainingState(**metadata["state"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"not a training state ({error!r}); remove it to start over", path=str(path)
        ) from None


def best_path(folder: Path, state: TrainingState) -> Path:
    """Return the file of the best weights.

    Its name holds the step, so that a state finds its own best weights even if a kill came
    between better weights and the state that records them.
    """
    return folder / f"best-{state.best_step}.safetensors"


def save_best(folder: Path, state: TrainingState, run: str, model: nn.Module) -> None:
    metadata = {**describe(model), "run": run, "step": state.best_step, "loss": state.best_loss}
    write_checkpoint(best_path(folder, state), model.state_dict(), metadata)


def load_best(folder: Path, state: TrainingState, model: nn.Module) -> None:
    path = best_path(folder, state)
    tensors, _ = read_checkpoint(path)
    load_weights(model, tensors, path)
