"""The training loop: same as a plain loop, and resumed runs give the same weights."""

from __future__ import annotations

import dataclasses
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from learn.toy import SETTINGS, Net, Points, Rows, learn, loss
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.learn import checkpoint, optimizer, training
from rejoinder.learn import state as states
from rejoinder.learn.batches import BatchSource
from rejoinder.learn.checkpoint import read_checkpoint
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.settings import TrainingSettings
from rejoinder.learn.training import Diverged, train

TOY = Path(__file__).with_name("toy.py")
Weights = dict[str, Tensor]


def equal(one: Weights, other: Weights) -> bool:
    """Return whether all bits are equal."""
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def close(one: Weights, other: Weights) -> bool:
    return all(torch.allclose(one[k], other[k], rtol=0, atol=2e-6) for k in one)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """Return the weights of an uninterrupted run."""
    model, result = learn(tmp_path_factory.mktemp("whole"))
    assert result.resumed_at is None
    return dict(model.state_dict())


def test_weights_equal_those_of_a_plain_loop(tmp_path: Path) -> None:
    """The other loop uses the schedule and optimizer of torch."""
    source, steps, rate, warm = Points(), 40, 0.02, 8
    ours, settings = (
        Net(0.0),
        TrainingSettings(
            steps=steps, learning_rate=rate, warmup_ratio=0.2, weight_decay=0.1, seed=5
        ),
    )
    train(ours, loss, source, settings, tmp_path)
    theirs = Net(0.0).train()
    optimizer = torch.optim.AdamW(
        [
            {"params": [p for p in theirs.parameters() if p.ndim == 2], "weight_decay": 0.1},
            {"params": [p for p in theirs.parameters() if p.ndim == 1], "weight_decay": 0.0},
        ],
        lr=rate,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: (s + 1) / warm if s < warm else (steps - s) / (steps - warm)
    )
    order = [(e, k) for e in range(9) for k in range(source.steps(5, e))][:steps]
    assert order[-1][0] >= 2, "more than two epochs"
    for epoch, number in order:
        inputs, labels = source.batch(5, epoch, number)
        optimizer.zero_grad()
        nn.functional.cross_entropy(theirs(inputs), labels).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    assert close(dict(ours.state_dict()), dict(theirs.state_dict()))
    before, after = (loss(net.eval(), (source.inputs, source.labels)) for net in (Net(), ours))
    assert after[0] < 0.5 * before[0]


class Joined:
    """Joins two batches of another source."""

    def __init__(self, source: BatchSource[Rows]) -> None:
        self.source = source

    def steps(self, seed: int, epoch: int) -> int:
        return -(-self.source.steps(seed, epoch) // 2)

    def batch(self, seed: int, epoch: int, step: int) -> Rows:
        numbers = range(2 * step, min(2 * step + 2, self.source.steps(seed, epoch)))
        some = [self.source.batch(seed, epoch, number) for number in numbers]
        return torch.cat([i for i, _ in some]), torch.cat([t for _, t in some])


def test_accumulated_batches_are_one_large_batch(tmp_path: Path) -> None:
    """Also for batches of different sizes, and for an odd number of them."""
    source, large, small = Points(103), Net(0.0), Net(0.0)
    assert source.steps(0, 0) % 2
    assert len({len(source.batch(0, 0, k)[1]) for k in range(source.steps(0, 0))}) > 3
    settings = TrainingSettings(epochs=3, learning_rate=0.02)
    made = train(large, loss, Joined(source), settings, tmp_path / "large")
    accumulating = dataclasses.replace(settings, gradient_accumulation_steps=2)
    assert train(small, loss, source, accumulating, tmp_path / "small").steps == made.steps
    assert close(dict(large.state_dict()), dict(small.state_dict()))


class Crash(Exception):
    pass


def crashing(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Raise an error at one of the moments when a kill could do harm: before and after files are
    replaced, and during an update."""
    moment = 0

    def guarded(function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            nonlocal moment
            moment += 1
            if moment == at:
                raise Crash
            result = function(*args, **kwargs)
            moment += 1
            if moment == at:
                raise Crash
            return result

        return call

    monkeypatch.setattr(training, "save_best", guarded(states.save_best))
    monkeypatch.setattr(states, "write_checkpoint", guarded(checkpoint.write_checkpoint))
    monkeypatch.setattr(training, "set_learning_rate", guarded(optimizer.set_learning_rate))
    monkeypatch.setattr(os, "replace", guarded(os.replace))


def test_a_run_killed_at_any_moment_gives_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)  # only slow here
    settings = dataclasses.replace(SETTINGS, steps=4, validate_every=2)
    whole, result = learn(tmp_path / "whole", settings)
    crashes = 0
    for at in range(1, 200):
        folder = tmp_path / str(at)
        with monkeypatch.context() as patch:
            crashing(patch, at)
            try:
                learn(folder, settings)
                break
            except Crash:
                crashes += 1
        model, again = learn(folder, settings)
        assert equal(dict(model.state_dict()), dict(whole.state_dict())), f"moment {at}"
        assert again.history == result.history
        assert [path.name for path in folder.iterdir() if "part" in path.name] == []
        if crashes > 20:
            assert again.resumed_at
    assert crashes > 30


def kill_when(folder: Path, result: Path, steps: int, kind: signal.Signals) -> int:
    """Start the toy as a process, and send a signal when its state has reached a step."""
    process = subprocess.Popen(
        [sys.executable, str(TOY), str(folder), str(result)], cwd=TOY.parent, stderr=-3
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if (path := folder / states.STATE).exists() and read_checkpoint(path)[1]["state"][
            "step"
        ] >= steps:
            break
        time.sleep(0.005)
    process.send_signal(kind)
    process.wait(timeout=60)
    return process.returncode


def test_a_killed_process_resumes_to_the_same_weights(tmp_path: Path, whole_run: Weights) -> None:
    folder, result = tmp_path / "work", tmp_path / "result"
    assert kill_when(folder, result, 5, signal.SIGKILL) == -signal.SIGKILL
    assert kill_when(folder, result, 20, signal.SIGKILL) == -signal.SIGKILL
    assert not result.exists()
    done = subprocess.run([sys.executable, str(TOY), str(folder), str(result)], check=True)
    assert done.returncode == 0
    weights, metadata = read_checkpoint(result)
    assert metadata["resumed_at"] >= 20
    assert equal(weights, whole_run)


@pytest.mark.parametrize(
    ("kind", "step", "validated"),
    [(signal.SIGINT, 13, False), (signal.SIGTERM, 14, True), (signal.SIGTERM, 60, True)],
)
def test_a_signal_is_delivered_after_the_run_is_saved(
    tmp_path: Path, whole_run: Weights, kind: signal.Signals, step: int, validated: bool
) -> None:
    settings = dataclasses.replace(SETTINGS, save_every_seconds=1e9)
    caught: list[int] = []

    def handler(number: int, frame: object) -> None:
        caught.append(number)
        raise SystemExit(128 + number)

    def interrupt(progress: TrainingProgress) -> None:
        if (progress.step, progress.is_validation) == (step, validated) and not caught:
            os.kill(os.getpid(), kind)
            time.sleep(0.01)
            assert not caught, "not during a step"

    before = signal.signal(kind, handler)
    try:
        with pytest.raises(SystemExit) as stopped:
            learn(tmp_path, settings, on_progress=interrupt)
        assert signal.getsignal(kind) is handler
    finally:
        signal.signal(kind, before)
    assert caught == [kind]
    assert stopped.value.code == 128 + kind
    model, result = learn(tmp_path, settings)
    assert result.resumed_at in (step, step + 1)
    assert equal(dict(model.state_dict()), whole_run)


def test_a_second_signal_is_delivered_at_once(tmp_path: Path) -> None:
    def interrupt(progress: TrainingProgress) -> None:
        if progress.step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("still here")

    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path, on_progress=interrupt)


class Moves(nn.Module):
    """One number, which every step of Adam increases by about the learning rate."""

    def __init__(self) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.zeros(1))


class Ticks:
    """Batches that consist of their number."""

    def steps(self, seed: int, epoch: int) -> int:
        return 10**6

    def batch(self, seed: int, epoch: int, step: int) -> tuple[int, bool]:
        return step, (seed, epoch) == training.VALIDATION


class Once(Ticks):
    def steps(self, seed: int, epoch: int) -> int:
        return 1


def pull(model: nn.Module, batch: tuple[int, bool]) -> tuple[Tensor, float]:
    """Training increases the number without end; validation is best at 5."""
    assert isinstance(model, Moves)
    return ((model.at - 5.0) ** 2 if batch[1] else -model.at).sum(), 1.0


UP = TrainingSettings(
    steps=12,
    learning_rate=1.0,
    warmup_ratio=0.0,
    lr_schedule="constant",
    max_grad_norm=None,
    weight_decay=0.0,
)


def test_the_best_weights_are_kept_and_training_stops_early(tmp_path: Path) -> None:
    settings = dataclasses.replace(UP, validate_every=1)
    model = Moves()
    result = train(model, pull, Ticks(), settings, tmp_path / "a", validation=Once())
    # at step k the number is k: losses 25, 16, … 0 at step 5, 1, 4, …
    assert [round(entry["validation_loss"], 2) for entry in result.history[:7]] == [
        25, 16, 9, 4, 1, 0, 1,
    ]  # fmt: skip
    assert (result.steps, result.best_step, result.stopped_early) == (12, 5, False)
    assert result.first_loss == 25
    assert model.at.item() == pytest.approx(5, abs=1e-3)
    patient = dataclasses.replace(settings, patience=3)
    result = train(Moves(), pull, Ticks(), patient, tmp_path / "b", validation=Once())
    assert (result.steps, result.best_step, result.stopped_early) == (8, 5, True)
    # training loss since the last validation: of the one step, at the number before it
    assert result.history[3]["loss"] == pytest.approx(-2, abs=1e-3)


def test_without_validation_the_last_weights_are_kept(tmp_path: Path) -> None:
    model = Moves()
    result = train(model, pull, Ticks(), UP, tmp_path)
    assert (result.best_step, result.best_loss, result.history) == (None, None, [])
    assert model.at.item() == pytest.approx(12, abs=1e-3)


def breaking(at: int, how: str) -> Callable[[nn.Module, tuple[int, bool]], tuple[Tensor, float]]:
    def broken(model: nn.Module, batch: tuple[int, bool]) -> tuple[Tensor, float]:
        value, count = pull(model, batch)
        assert isinstance(model, Moves)
        if not batch[1] and batch[0] == at:
            # the root of 0 is 0, but its slope is infinite
            value = value * math.nan if how == "loss" else value + torch.sqrt(model.at * 0.0).sum()
        return value, count

    return broken


@pytest.mark.parametrize("how", ["loss", "gradient"])
def test_a_diverging_run_stops_and_names_the_best_weights(tmp_path: Path, how: str) -> None:
    settings = dataclasses.replace(UP, validate_every=2)
    with pytest.raises(Diverged) as failure:
        train(Moves(), breaking(8, how), Ticks(), settings, tmp_path, validation=Once())
    message = str(failure.value)
    assert f"the {how} is nan at step 9 of 12" in message
    # validated at 0, 2, 4, 6, 8; 4 and 6 are equally near to 5, up to rounding
    path = Path(message.partition("are in ")[2])
    weights, metadata = read_checkpoint(path)
    assert metadata["step"] in (4, 6)
    assert weights["at"].item() == pytest.approx(metadata["step"], abs=1e-3)


def test_a_full_disk_keeps_the_last_state(tmp_path: Path, whole_run: Weights) -> None:
    """The size of files is limited by the operating system."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up(progress: TrainingProgress) -> None:
        if progress.step == 10:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    try:
        with pytest.raises(
            ResourceError, match=r"state\.safetensors: cannot be written: .*is kept"
        ):
            learn(tmp_path, on_progress=fill_up)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read_checkpoint(tmp_path / states.STATE)[1]["state"]["step"] == 9
    assert not list(tmp_path.glob(".*"))
    model, result = learn(tmp_path)
    assert result.resumed_at == 9
    assert equal(dict(model.state_dict()), whole_run)


def test_only_the_same_run_is_resumed(tmp_path: Path) -> None:
    learn(tmp_path, identity={"data": 1})
    assert learn(tmp_path, identity={"data": 1})[1].resumed_at == 60
    assert learn(tmp_path, identity={"data": 2})[1].resumed_at is None
    other = dataclasses.replace(SETTINGS, learning_rate=0.01)
    assert learn(tmp_path, other, identity={"data": 2})[1].resumed_at is None
    patient = dataclasses.replace(other, save_every_seconds=30.0)
    assert learn(tmp_path, patient, identity={"data": 2})[1].resumed_at == 60


def test_a_damaged_state_is_a_data_error(tmp_path: Path) -> None:
    learn(tmp_path)
    path = tmp_path / states.STATE
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged"):
        learn(tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def second(progress: TrainingProgress) -> None:
        learn(tmp_path)

    with pytest.raises(ResourceError, match="another run"):
        learn(tmp_path, on_progress=second)


def test_global_state_of_the_program_is_restored(tmp_path: Path, whole_run: Weights) -> None:
    torch.manual_seed(11)
    before = (
        torch.get_rng_state(),
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    )
    model, _ = learn(tmp_path, dataclasses.replace(SETTINGS, seed=4))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert before[1:] == (
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    )
    assert not model.training
    assert not equal(dict(model.state_dict()), whole_run)


def test_progress_reports_loss_speed_and_time_left(tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    _, result = learn(tmp_path, on_progress=reports.append)
    assert [p.step for p in reports if not p.is_validation] == list(range(1, 61))
    assert [p.step for p in reports if p.is_validation] == [*range(0, 57, 7), 60]
    assert [p.validation_loss for p in reports if p.is_validation] == [
        entry["validation_loss"] for entry in result.history
    ]
    middle, last = reports[30], reports[-1]
    assert middle.steps_per_second and middle.seconds_left is not None
    expected = (60 - middle.step) / middle.steps_per_second
    assert middle.seconds_left == pytest.approx(expected, rel=0.01)
    assert last.seconds_left == 0
    assert reports[1].loss is not None and last.loss is not None
    assert last.loss < reports[1].loss
    assert last.best_loss == result.best_loss
    # 6 of 60 steps of warm-up, then down to 1/54 of the learning rate
    assert reports[1].learning_rate == pytest.approx(0.02 / 6)
    assert next(p.learning_rate for p in reports if p.step == 60) == pytest.approx(0.02 / 54)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({}, "either steps or epochs"),
        ({"steps": 1, "epochs": 1.0}, "either steps or epochs"),
        ({"steps": 0}, "above 0"),
        ({"steps": 1, "learning_rate": 0.0}, "learning_rate"),
        ({"steps": 1, "learning_rate": math.nan}, "finite"),
        ({"steps": 1, "learning_rate": 1e31}, "learning_rate"),
        ({"steps": 1, "warmup_ratio": 1.5}, "warmup_ratio"),
        ({"steps": 1, "optimizer": "adamx"}, "unknown optimizer"),
        ({"steps": 1, "lr_schedule": "cosine"}, "unknown lr_schedule"),
    ],
)
def test_wrong_settings_are_usage_errors(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        TrainingSettings(**wrong)  # type: ignore[arg-type]


@pytest.fixture
def together() -> Iterator[Callable[[Path], list[int]]]:
    """Return a function that trains with two processes over the loopback device."""

    def start(folder: Path) -> list[int]:
        processes = []
        for rank in range(2):
            more = {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank)}
            more |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
            processes.append(
                subprocess.Popen(
                    [sys.executable, str(TOY), str(folder), str(folder / f"result-{rank}")],
                    env={**os.environ, **more},
                )
            )
        return [process.wait(timeout=120) for process in processes]

    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    yield start


def test_two_processes_equal_one_that_accumulates_two_batches(
    tmp_path: Path, together: Callable[[Path], list[int]]
) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    assert together(folder) == [0, 0]
    one, result = learn(
        tmp_path / "one", dataclasses.replace(SETTINGS, gradient_accumulation_steps=2)
    )
    for rank in range(2):
        weights, metadata = read_checkpoint(folder / f"result-{rank}")
        assert close(weights, dict(one.state_dict()))
        steps = [entry["step"] for entry in metadata["history"]]
        assert steps == [entry["step"] for entry in result.history]
    # a state of two processes is one of the same run
    assert (
        learn(folder, dataclasses.replace(SETTINGS, gradient_accumulation_steps=2))[1].resumed_at
        == 60
    )
