"""The one training loop: everything that Rejoinder trains, it trains here.

The same seed on the same machine gives the same weights, bit for bit, also if the run was killed
in between, however often and wherever: batches and dropout depend on the seed and the position
alone, and a checkpoint holds the rest. Two processes make the same steps as one that
accumulates two batches. On a GPU, sums may come out in another order: there, runs are equal up
to rounding only.
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
from rejoinder.learn.batches import Source, generator
from rejoinder.learn.folder import only_run
from rejoinder.learn.interrupt import Interruption
from rejoinder.learn.optimizer import make_optimizer, set_rate, trainable
from rejoinder.learn.progress import Clock, Progress
from rejoinder.learn.settings import Training
from rejoinder.learn.state import (
    STATE,
    State,
    best_path,
    load_best,
    load_state,
    save_best,
    save_state,
)
from rejoinder.learn.team import Team, open_team

Batch = TypeVar("Batch")
Loss = Callable[[nn.Module, Batch], tuple[Tensor, float]]
"""The loss of a batch as a sum, and what it is to be divided by (rows, tokens): then batches of
different sizes make one true mean, over accumulated steps, processes and validation alike."""

VALIDATION = (0, 2**32 - 1)
"""Seed and epoch of all validation: runs with different seeds are measured alike."""
SAVING_SHARE = 0.05
"""Saving takes no more of the time than this, however large the model is."""


class Diverged(UsageError):
    """The loss is no number any more; the weights before that are kept."""


@dataclass(frozen=True)
class Outcome:
    """How a run went. The model has the best weights, or the last ones without validation."""

    steps: int
    best_step: int | None
    best_loss: float | None
    first_loss: float | None
    """Validation loss before the first step."""
    history: list[dict[str, Any]]
    """One entry a validation: step, epoch, mean training loss since the one before, rate, loss."""
    out_of_patience: bool
    resumed_at: int | None
    """The step with which this process went on, if it did."""
    seconds: float
    """Of all processes that worked on the run, one after the other."""


def train(
    model: nn.Module,
    loss: Loss[Batch],
    batches: Source[Batch],
    settings: Training,
    folder: Path,
    *,
    validation: Source[Batch] | None = None,
    identity: Mapping[str, Any] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    team: Team | None = None,
) -> Outcome:
    """Train a model in place, in a ``folder`` that keeps what a later call needs to go on.

    ``identity`` (JSON) is whatever else decides the weights: digests of the material, the model
    that was started from. (First weights that are drawn should be drawn from the seed.) A state
    of another run in the folder is not gone on from, but written over. Who calls removes the
    folder once the result is safe.

    SIGINT, SIGTERM and SIGHUP end the run after the step under way, with a checkpoint.
    """
    with contextlib.ExitStack() as stack:
        team = team or stack.enter_context(open_team())
        if team.first:
            stack.enter_context(only_run(folder))
        stack.enter_context(_own_chance(team.device))
        stack.enter_context(_moved(model, team.device))
        loop = _Loop(model, loss, batches, settings, folder, validation, identity, team)
        loop.tell = on_progress if team.first else None
        with Interruption() as stop:
            finished = loop.run(stop)
        if not finished or stop.number is not None:
            stop.deliver()
        return loop.outcome()


class _Loop(Generic[Batch]):
    def __init__(
        self,
        model: nn.Module,
        loss: Loss[Batch],
        batches: Source[Batch],
        settings: Training,
        folder: Path,
        validation: Source[Batch] | None,
        identity: Mapping[str, Any] | None,
        team: Team,
    ) -> None:
        self.model, self.loss, self.batches, self.validation = model, loss, batches, validation
        self.settings, self.folder, self.team = settings, folder, team
        self.tell: Callable[[Progress], None] | None = None
        self.group = settings.accumulate * team.size
        """Batches a step, of all processes together."""
        an_epoch = math.ceil(batches.steps(settings.seed, 0) / self.group)
        if not an_epoch:
            raise DataError("there is nothing to train on")
        self.total = settings.steps or max(1, round((settings.epochs or 0) * an_epoch))
        self.every = settings.validate_every or an_epoch
        self.name = self._name(identity)
        self.weights = list(trainable(model).values())
        if not self.weights:
            raise ValueError("the model has no weights to train")
        self.optimizer = make_optimizer(model, settings)
        found = load_state(folder, self.name, model, self.optimizer)
        self.resumed_at = found.step if found else None
        self.state = found or State()
        team.same(model.state_dict().values())
        team.wait()  # nobody writes before everybody has read
        self.clock = Clock(self.state.step, self.total)
        self.saved, self.cost = time.monotonic(), 0.0

    def _name(self, identity: Mapping[str, Any] | None) -> str:
        """A name for the run: the same whenever the same weights would come out."""
        shapes = {name: list(tensor.shape) for name, tensor in self.model.state_dict().items()}
        all_that_counts = [self.settings.plain(), self.group, shapes, dict(identity or {})]
        text = json.dumps(all_that_counts, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def run(self, stop: Interruption) -> bool:
        """To the end, or to an interruption: then False."""
        state = self.state
        while True:
            if self._validation_is_due() and not self._validate(stop):
                self._save()
                return False
            if state.step >= self.total or self._out_of_patience():
                break
            if not self._step(stop):
                self._save()
                return False
            pause = self.settings.save_every
            if pause:  # 0 means after every step
                pause = max(pause, self.cost / SAVING_SHARE)
            if time.monotonic() - self.saved >= pause:
                self._save()
        self._save()
        self.team.wait()  # the best weights are on the disk
        if state.best_step is not None:
            load_best(self.folder, state, self.model)
        return True

    def outcome(self) -> Outcome:
        state = self.state
        return Outcome(
            steps=state.step,
            best_step=state.best_step,
            best_loss=state.best_loss,
            first_loss=state.first_loss,
            history=state.history,
            out_of_patience=self._out_of_patience(),
            resumed_at=self.resumed_at,
            seconds=state.seconds,
        )

    def _step(self, stop: Interruption) -> bool:
        """Update the weights once; False if somebody wants to stop after it."""
        state, seed = self.state, self.settings.seed
        rate = self.settings.rate_at(state.step, self.total)
        left = self.batches.steps(seed, state.epoch) - state.used
        taken = min(self.group, left)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        sums = torch.zeros(3, dtype=torch.float64)  # loss, count, who wants to stop
        with _memory_explained():
            for number in range(self.team.rank, taken, self.team.size):
                place = (seed, state.epoch, state.used + number)
                value, count = self._loss_of(self.batches, *place)
                value.backward()  # type: ignore[no-untyped-call]
                sums += torch.tensor([value.item(), count, 0.0], dtype=torch.float64)
        sums[2] = stop.number is not None
        total, count, stopping = self.team.add_up(sums).tolist()
        self._check(total, "loss", rate)
        self.team.add_gradients(self.weights)
        with torch.no_grad():
            for weight in self.weights:
                if weight.grad is not None:
                    weight.grad /= max(count, 1e-30)
        clip = self.settings.clip or math.inf
        self._check(nn.utils.clip_grad_norm_(self.weights, clip).item(), "gradient", rate)
        set_rate(self.optimizer, rate)
        self.optimizer.step()
        state.step, state.used = state.step + 1, state.used + taken
        if taken == left:
            state.epoch, state.used = state.epoch + 1, 0
        state.loss, state.count = state.loss + total, state.count + count
        self.clock.add(total / max(count, 1e-30))
        self._report(rate, new_validation=False)
        return not stopping

    def _loss_of(
        self, source: Source[Batch], seed: int, epoch: int, number: int
    ) -> tuple[Tensor, float]:
        """Of one batch, with a chance of its own, whichever process it is that computes it."""
        batch = move(source.batch(seed, epoch, number), self.team.device)
        _set_chance(int(generator(seed, epoch, number, 1).integers(2**63)), self.team.device)
        return self.loss(self.model, batch)

    def _validation_is_due(self) -> bool:
        step = self.state.step
        return (
            self.validation is not None
            and self.state.validated != step
            and (step % self.every == 0 or step >= self.total)
        )

    def _validate(self, stop: Interruption) -> bool:
        """Measure, and keep the best; False, and nothing is changed, on an interruption."""
        assert self.validation is not None
        number = self.validation.steps(*VALIDATION)
        # a row a batch, so that the sum is the same however many processes share the work
        sums = torch.zeros((number + 1, 2), dtype=torch.float64)
        self.model.eval()
        with torch.no_grad(), _memory_explained():
            for k in range(self.team.rank, number, self.team.size):
                if stop.number is not None:
                    break
                value, count = self._loss_of(self.validation, *VALIDATION, k)
                sums[k] = torch.tensor([value.item(), count], dtype=torch.float64)
        sums[number, 0] = stop.number is not None
        sums = self.team.add_up(sums)
        if sums[number, 0]:
            return False
        total, count = sums[:number].sum(dim=0).tolist()
        state, settings = self.state, self.settings
        rate = settings.rate_at(min(state.step, self.total - 1), self.total)
        self._check(total, "validation loss", rate)
        mean = total / max(count, 1e-30)
        if state.step == 0:
            state.first_loss = mean
        entry = {
            "step": state.step,
            "epoch": state.epoch,
            "loss": state.loss / state.count if state.count else None,
            "rate": rate,
            "validation": mean,
        }
        state.history.append(entry)
        state.loss = state.count = 0.0
        state.validated = state.step
        state.stale += 1
        if state.best_loss is None or mean < state.best_loss:
            state.best_step, state.best_loss, state.stale = state.step, mean, 0
            if self.team.first:
                save_best(self.folder, state, self.name, self.model)
        self._report(rate, new_validation=True)
        return True

    def _out_of_patience(self) -> bool:
        return self.settings.patience is not None and self.state.stale >= self.settings.patience

    def _check(self, value: float, what: str, rate: float) -> None:
        """A number that is none ends the run before it reaches the weights."""
        if math.isfinite(value):
            return
        state = self.state
        kept = "No weights have been saved yet"
        if state.best_step is not None:
            where = best_path(self.folder, state)
            kept = f"The best weights so far, of step {state.best_step}, are in {where}"
        elif (self.folder / STATE).exists():
            kept = f"The weights that were saved last are in {self.folder / STATE}"
        raise Diverged(
            f"the {what} is {value} at step {state.step + 1} of {self.total} (learning rate"
            f" {rate:.2g}): training has gone astray; try a lower rate. {kept}"
        )

    def _save(self) -> None:
        began = time.monotonic()
        self.state.seconds += began - self.saved
        if self.team.first:
            save_state(self.folder, self.state, self.name, self.model, self.optimizer)
        self.saved = time.monotonic()
        self.state.seconds += self.saved - began
        self.cost = self.saved - began

    def _report(self, rate: float, *, new_validation: bool) -> None:
        if self.tell is None:
            return
        state = self.state
        self.tell(
            Progress(
                step=state.step,
                total=self.total,
                epoch=state.epoch,
                loss=self.clock.loss,
                validation=state.history[-1]["validation"] if state.history else None,
                best=state.best_loss,
                new_validation=new_validation,
                rate=rate,
                speed=self.clock.speed(state.step),
                left=self.clock.left(state.step),
            )
        )


def move(batch: Any, device: torch.device) -> Any:
    """A batch on a device: a tensor, a tuple or dictionary of such, or what knows ``to``."""
    if hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: move(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(move(part, device) for part in batch)
    return batch


def _set_chance(number: int, device: torch.device) -> None:
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(number)


@contextlib.contextmanager
def _memory_explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, torch.cuda.OutOfMemoryError) or "not enough memory" in str(error):
            raise ResourceError("out of memory in training; take smaller batches") from None
        raise


@contextlib.contextmanager
def _own_chance(device: torch.device) -> Iterator[None]:
    """Leave the program's own random numbers as they were."""
    devices = [device.index or 0] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


@contextlib.contextmanager
def _moved(model: nn.Module, device: torch.device) -> Iterator[None]:
    """The model on the device of the run; afterwards where it was, ready for use."""
    home = next((tensor.device for tensor in model.state_dict().values()), device)
    model.to(device)
    try:
        yield
    finally:
        model.to(home).eval()
