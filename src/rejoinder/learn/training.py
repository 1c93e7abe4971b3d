"""The training loop that all networks of Rejoinder share.

The same seed on the same machine gives the same weights, bit for bit, even if the run was killed
and resumed any number of times: batches and dropout depend on the seed and the position only, and
a checkpoint contains the rest. Two processes make the same steps as one that accumulates two
batches. On a GPU, the order of sums may vary: there, runs are equal up to rounding.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.files.output import only_run
from rejoinder.learn.batches import BatchSource, make_rng
from rejoinder.learn.distributed import ProcessGroup, open_process_group
from rejoinder.learn.interrupt import DeferredSignals
from rejoinder.learn.optimizer import make_optimizer, set_learning_rate, trainable_parameters
from rejoinder.learn.progress import SpeedMeter, TrainingProgress
from rejoinder.learn.settings import TrainingSettings
from rejoinder.learn.state import (
    STATE,
    TrainingState,
    best_path,
    load_best,
    load_state,
    save_best,
    save_state,
)

Batch = TypeVar("Batch")
Loss = Callable[[nn.Module, Batch], tuple[Tensor, float]]
"""Returns the summed loss of a batch and its divisor (rows or tokens), so that batches of different
sizes give one exact mean over accumulated batches, processes and validation."""

VALIDATION = (0, 2**32 - 1)
"""Seed and epoch of validation batches: the same for all runs, whatever their seed."""
SAVING_SHARE = 0.05
"""Largest share of the time that is spent on saving checkpoints."""


class Diverged(UsageError):
    """The loss is NaN or infinite; the last good weights are kept."""


@dataclass(frozen=True)
class TrainingResult:
    """Result of a run. The model has the best weights, or the last ones without validation."""

    steps: int
    best_step: int | None
    best_loss: float | None
    first_loss: float | None
    """Validation loss before the first step."""
    history: list[dict[str, Any]]
    """One entry per validation: step, epoch, mean training loss since the previous one,
    learning_rate, validation_loss."""
    stopped_early: bool
    resumed_at: int | None
    """The step from which this process resumed, if it did."""
    seconds: float
    """Total time, including the time before interruptions."""


def train(
    model: nn.Module,
    loss: Loss[Batch],
    batches: BatchSource[Batch],
    settings: TrainingSettings,
    folder: Path,
    *,
    validation: BatchSource[Batch] | None = None,
    identity: Mapping[str, Any] | None = None,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    group: ProcessGroup | None = None,
) -> TrainingResult:
    """Train a model in place; ``folder`` keeps the checkpoints from which a later call resumes.

    ``identity`` (JSON) has everything else that determines the weights: digests of the training
    data, the pretrained model. (Random initial weights should be drawn from the seed.) A
    checkpoint of another run in the folder is not resumed but overwritten. The caller removes the
    folder once the result is saved.

    SIGINT, SIGTERM and SIGHUP end the run after the current step, with a checkpoint.
    """
    with contextlib.ExitStack() as stack:
        group = group or stack.enter_context(open_process_group())
        if group.is_main_process:
            stack.enter_context(only_run(folder))
        stack.enter_context(_forked_rng(group.device))
        stack.enter_context(_moved(model, group.device))
        loop = _Loop(model, loss, batches, settings, folder, validation, identity, group)
        loop.on_progress = on_progress if group.is_main_process else None
        with DeferredSignals() as signals:
            finished = loop.run(signals)
        if not finished or signals.number is not None:
            signals.deliver()
        return loop.result()


class _Loop(Generic[Batch]):
    def __init__(
        self,
        model: nn.Module,
        loss: Loss[Batch],
        batches: BatchSource[Batch],
        settings: TrainingSettings,
        folder: Path,
        validation: BatchSource[Batch] | None,
        identity: Mapping[str, Any] | None,
        group: ProcessGroup,
    ) -> None:
        self.model, self.loss, self.batches, self.validation = model, loss, batches, validation
        self.settings, self.folder, self.group = settings, folder, group
        self.on_progress: Callable[[TrainingProgress], None] | None = None
        self.batches_per_step = settings.gradient_accumulation_steps * group.world_size
        """Over all processes."""
        steps_per_epoch = math.ceil(batches.steps(settings.seed, 0) / self.batches_per_step)
        if not steps_per_epoch:
            raise DataError("there is nothing to train on: the training data have no batch")
        self.total_steps = settings.steps or max(1, round((settings.epochs or 0) * steps_per_epoch))
        self.validate_every = settings.validate_every or steps_per_epoch
        self.name = self._name(identity)
        self.parameters = list(trainable_parameters(model).values())
        if not self.parameters:
            raise ValueError("the model has no weights to train")
        self.optimizer = make_optimizer(model, settings)
        saved = load_state(folder, self.name, model, self.optimizer)
        self.resumed_at = saved.step if saved else None
        self.state = saved or TrainingState()
        group.broadcast(model.state_dict().values())
        group.barrier()  # no process writes before all have read
        self.speed = SpeedMeter(self.state.step, self.total_steps)
        self.saved_at, self.saving_seconds = time.monotonic(), 0.0

    def _name(self, identity: Mapping[str, Any] | None) -> str:
        """Return a name for the run: the same for all runs that would give the same weights."""
        shapes = {name: list(tensor.shape) for name, tensor in self.model.state_dict().items()}
        settings = self.settings.to_dict()
        decisive = [settings, self.batches_per_step, shapes, dict(identity or {})]
        text = json.dumps(decisive, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def run(self, signals: DeferredSignals) -> bool:
        """Train to the end, or until a signal: then return False."""
        state = self.state
        while True:
            if self._validation_is_due() and not self._validate(signals):
                self._save()
                return False
            if state.step >= self.total_steps or self._stopped_early():
                break
            if not self._step(signals):
                self._save()
                return False
            interval = self.settings.save_every_seconds
            if interval:  # 0 means after every step
                interval = max(interval, self.saving_seconds / SAVING_SHARE)
            if time.monotonic() - self.saved_at >= interval:
                self._save()
        self._save()
        self.group.barrier()  # the best weights are on the disk
        if state.best_step is not None:
            load_best(self.folder, state, self.model)
        return True

    def result(self) -> TrainingResult:
        state = self.state
        return TrainingResult(
            steps=state.step,
            best_step=state.best_step,
            best_loss=state.best_loss,
            first_loss=state.first_loss,
            history=state.history,
            stopped_early=self._stopped_early(),
            resumed_at=self.resumed_at,
            seconds=state.seconds,
        )

    def _step(self, signals: DeferredSignals) -> bool:
        """Update the weights once; return False if a signal has arrived."""
        state, seed = self.state, self.settings.seed
        learning_rate = self.settings.learning_rate_at(state.step, self.total_steps)
        left = self.batches.steps(seed, state.epoch) - state.batches_used
        taken = min(self.batches_per_step, left)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        sums = torch.zeros(3, dtype=torch.float64)  # loss, count, processes with a signal
        with _explain_memory():
            for number in range(self.group.rank, taken, self.group.world_size):
                position = (seed, state.epoch, state.batches_used + number)
                value, count = self._loss_of(self.batches, *position)
                value.backward()  # type: ignore[no-untyped-call]
                sums += torch.tensor([value.item(), count, 0.0], dtype=torch.float64)
        sums[2] = signals.number is not None
        total, count, stopping = self.group.all_reduce(sums).tolist()
        self._check_finite(total, "loss", learning_rate)
        self.group.all_reduce_gradients(self.parameters)
        with torch.no_grad():
            for parameter in self.parameters:
                if parameter.grad is not None:
                    parameter.grad /= max(count, 1e-30)
        max_norm = self.settings.max_grad_norm or math.inf
        norm = nn.utils.clip_grad_norm_(self.parameters, max_norm).item()
        self._check_finite(norm, "gradient", learning_rate)
        set_learning_rate(self.optimizer, learning_rate)
        self.optimizer.step()
        state.step, state.batches_used = state.step + 1, state.batches_used + taken
        if taken == left:
            state.epoch, state.batches_used = state.epoch + 1, 0
        state.loss_sum, state.loss_count = state.loss_sum + total, state.loss_count + count
        self.speed.add(total / max(count, 1e-30))
        self._report(learning_rate, is_validation=False)
        return not stopping

    def _loss_of(
        self, source: BatchSource[Batch], seed: int, epoch: int, number: int
    ) -> tuple[Tensor, float]:
        """Return the loss of one batch; its dropout is the same whichever process computes it."""
        batch = move(source.batch(seed, epoch, number), self.group.device)
        _seed_torch(int(make_rng(seed, epoch, number, 1).integers(2**63)), self.group.device)
        return self.loss(self.model, batch)

    def _validation_is_due(self) -> bool:
        step = self.state.step
        return (
            self.validation is not None
            and self.state.validated_step != step
            and (step % self.validate_every == 0 or step >= self.total_steps)
        )

    def _validate(self, signals: DeferredSignals) -> bool:
        """Measure the validation loss and keep the best weights; return False, without any change,
        if a signal has arrived."""
        assert self.validation is not None
        number = self.validation.steps(*VALIDATION)
        # one row per batch, so that the sum does not depend on the number of processes
        sums = torch.zeros((number + 1, 2), dtype=torch.float64)
        self.model.eval()
        with torch.no_grad(), _explain_memory():
            for k in range(self.group.rank, number, self.group.world_size):
                if signals.number is not None:
                    break
                value, count = self._loss_of(self.validation, *VALIDATION, k)
                sums[k] = torch.tensor([value.item(), count], dtype=torch.float64)
        sums[number, 0] = signals.number is not None
        sums = self.group.all_reduce(sums)
        if sums[number, 0]:
            return False
        total, count = sums[:number].sum(dim=0).tolist()
        state = self.state
        last_step = min(state.step, self.total_steps - 1)
        learning_rate = self.settings.learning_rate_at(last_step, self.total_steps)
        self._check_finite(total, "validation loss", learning_rate)
        mean = total / max(count, 1e-30)
        if state.step == 0:
            state.first_loss = mean
        entry = {
            "step": state.step,
            "epoch": state.epoch,
            "loss": state.loss_sum / state.loss_count if state.loss_count else None,
            "learning_rate": learning_rate,
            "validation_loss": mean,
        }
        state.history.append(entry)
        state.loss_sum = state.loss_count = 0.0
        state.validated_step = state.step
        state.stale_validations += 1
        if state.best_loss is None or mean < state.best_loss:
            state.best_step, state.best_loss, state.stale_validations = state.step, mean, 0
            if self.group.is_main_process:
                save_best(self.folder, state, self.name, self.model)
        self._report(learning_rate, is_validation=True)
        return True

    def _stopped_early(self) -> bool:
        patience = self.settings.patience
        return patience is not None and self.state.stale_validations >= patience

    def _check_finite(self, value: float, what: str, learning_rate: float) -> None:
        """Raise Diverged for NaN and infinity, before they reach the weights."""
        if math.isfinite(value):
            return
        state = self.state
        kept = "No weights have been saved yet"
        if state.best_step is not None:
            path = best_path(self.folder, state)
            kept = f"The best weights so far, of step {state.best_step}, are in {path}"
        elif (self.folder / STATE).exists():
            kept = f"The last saved weights are in {self.folder / STATE}"
        raise Diverged(
            f"training diverged: the {what} is {value} at step {state.step + 1} of"
            f" {self.total_steps} (learning rate {learning_rate:.2g}); try a lower learning_rate."
            f" {kept}"
        )

    def _save(self) -> None:
        began = time.monotonic()
        self.state.seconds += began - self.saved_at
        if self.group.is_main_process:
            save_state(self.folder, self.state, self.name, self.model, self.optimizer)
        self.saved_at = time.monotonic()
        self.state.seconds += self.saved_at - began
        self.saving_seconds = self.saved_at - began

    def _report(self, learning_rate: float, *, is_validation: bool) -> None:
        if self.on_progress is None:
            return
        state = self.state
        self.on_progress(
            TrainingProgress(
                step=state.step,
                total_steps=self.total_steps,
                epoch=state.epoch,
                loss=self.speed.loss,
                validation_loss=state.history[-1]["validation_loss"] if state.history else None,
                best_loss=state.best_loss,
                is_validation=is_validation,
                learning_rate=learning_rate,
                steps_per_second=self.speed.steps_per_second(state.step),
                seconds_left=self.speed.seconds_left(state.step),
            )
        )


def move(batch: Any, device: torch.device) -> Any:
    """Move a batch to a device: a tensor, a tuple or dictionary of tensors, or an object with
    ``to``."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: move(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(move(part, device) for part in batch)
    return batch


def _seed_torch(number: int, device: torch.device) -> None:
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(number)


@contextlib.contextmanager
def _explain_memory() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.cuda.OutOfMemoryError) or "not enough memory" in str(error):
            message = "out of memory in training: choose a smaller batch size"
            raise ResourceError(message) from None
        raise


@contextlib.contextmanager
def _forked_rng(device: torch.device) -> Iterator[None]:
    """Restore torch's random generators afterwards."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@contextlib.contextmanager
def _moved(model: nn.Module, device: torch.device) -> Iterator[None]:
    """Move the model to the device of the run; afterwards back, in evaluation mode."""
    home = next((tensor.device for tensor in model.state_dict().values()), device)
    model.to(device)
    try:
        yield
    finally:
        model.to(home).eval()
