"""Where a run stands: all that is needed to go on as if nothing had happened.

Chance is not among it: every batch and every dropout is drawn from the seed and the position
alone, so there is no generator whose state could be lost.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import nn
from torch.optim import Optimizer

from rejoinder.errors import DataError
from rejoinder.learn.checkpoint import describe, fill, read, write
from rejoinder.learn.optimizer import memory_of, restore_memory

STATE = "state.safetensors"


@dataclass
class State:
    """The position of a run and its figures so far; JSON."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    used: int = 0
    """Batches of this epoch that are behind us."""
    validated: int = -1
    """The step that was validated last."""
    best_step: int | None = None
    best_loss: float | None = None
    first_loss: float | None = None
    """Of the validation before the first step."""
    loss: float = 0.0
    count: float = 0.0
    """Sum of the training loss since the last validation, and of what it is the mean over."""
    stale: int = 0
    """Validations since the best one."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """One entry a validation."""
    seconds: float = 0.0
    """Time spent, also before kills."""


def save_state(
    folder: Path, state: State, run: str, model: nn.Module, optimizer: Optimizer
) -> None:
    tensors = {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
    memory = memory_of(optimizer, model)
    tensors |= {f"optimizer/{name}": tensor for name, tensor in memory.items()}
    known = {**describe(model), "run": run, "state": asdict(state)}
    write(folder / STATE, tensors, known)
    for path in folder.glob("best-*.safetensors"):
        if path != best_path(folder, state):
            path.unlink(missing_ok=True)


def load_state(folder: Path, run: str, model: nn.Module, optimizer: Optimizer) -> State | None:
    """The state of this very run, put into model and optimizer; None if there is none."""
    path = folder / STATE
    if not path.exists():
        return None
    try:
        tensors, known = read(path)
        if known.get("run") != run:
            return None
        parts: dict[str, dict[str, Any]] = {"model": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        fill(model, parts["model"], path)
        restore_memory(optimizer, model, parts["optimizer"])
        return State(**known["state"])
    except (KeyError, TypeError) as error:
        raise DataError(
            f"is no state of a run ({error!r}); remove it to start over", path=str(path)
        ) from None


def best_path(folder: Path, state: State) -> Path:
    """The best weights bear their step: a state finds those it knows of, also if a kill came
    between better weights and the state that would have known of them."""
    return folder / f"best-{state.best_step}.safetensors"


def save_best(folder: Path, state: State, run: str, model: nn.Module) -> None:
    known = {**describe(model), "run": run, "step": state.best_step, "loss": state.best_loss}
    write(best_path(folder, state), model.state_dict(), known)


def load_best(folder: Path, state: State, model: nn.Module) -> None:
    path = best_path(folder, state)
    tensors, _ = read(path)
    fill(model, tensors, path)
