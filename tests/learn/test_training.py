"""The training loop: it learns as a plain loop would, and a kill changes nothing."""

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
from rejoinder.learn import state as states
from rejoinder.learn import training
from rejoinder.learn.batches import BatchSource
from rejoinder.learn.checkpoint import read
from rejoinder.learn.progress import Progress
from rejoinder.learn.settings import TrainingSettings
from rejoinder.learn.training import Diverged, train

TOY = Path(__file__).with_name("toy.py")
Weights = dict[str, Tensor]


def equal(one: Weights, other: Weights) -> bool:
    """To the last bit."""
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def close(one: Weights, other: Weights) -> bool:
    return all(torch.allclose(one[k], other[k], rtol=0, atol=2e-6) for k in one)


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Weights:
    """The weights of the toy's run, without any interruption."""
    model, outcome = learn(tmp_path_factory.mktemp("whole"))
    assert outcome.resumed_at is None
    return dict(model.state_dict())


def test_it_learns_what_a_plain_loop_learns(tmp_path: Path) -> None:
    """Another loop, written with what torch has for it."""
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
    """Two batches of another source as one."""

    def __init__(self, source: BatchSource[Rows]) -> None:
        self.source = source

    def steps(self, seed: int, epoch: int) -> int:
        return -(-self.source.steps(seed, epoch) // 2)

    def batch(self, seed: int, epoch: int, step: int) -> Rows:
        numbers = range(2 * step, min(2 * step + 2, self.source.steps(seed, epoch)))
        some = [self.source.batch(seed, epoch, number) for number in numbers]
        return torch.cat([i for i, _ in some]), torch.cat([t for _, t in some])


def test_accumulated_batches_are_one_large_batch(tmp_path: Path) -> None:
    """Also where the two are of different sizes, and where an epoch has an odd number of them."""
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
    """Fail at one of the moments when a kill could hurt: before and after files are replaced,
    and in the middle of an update."""
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

    monkeypatch.setattr(training, "save_best", guarded(training.save_best))
    monkeypatch.setattr(states, "write", guarded(states.write))
    monkeypatch.setattr(training, "set_learning_rate", guarded(training.set_learning_rate))
    monkeypatch.setattr(os, "replace", guarded(os.replace))


def test_a_kill_at_any_moment_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)  # only slow here
    settings = dataclasses.replace(SETTINGS, steps=4, validate_every=2)
    whole, outcome = learn(tmp_path / "whole", settings)
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
        assert again.history == outcome.history
        assert [path.name for path in folder.iterdir() if "part" in path.name] == []
        if crashes > 20:
            assert again.resumed_at
    assert crashes > 30


def kill_when(folder: Path, result: Path, steps: int, kind: signal.Signals) -> int:
    """Start the toy as a process of its own, and end it once its state is at some step."""
    process = subprocess.Popen(
        [sys.executable, str(TOY), str(folder), str(result)], cwd=TOY.parent, stderr=-3
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if (path := folder / states.STATE).exists() and read(path)[1]["state"]["step"] >= steps:
            break
        time.sleep(0.005)
    process.send_signal(kind)
    process.wait(timeout=60)
    return process.returncode


def test_a_killed_process_goes_on_to_the_same_weights(tmp_path: Path, whole_run: Weights) -> None:
    folder, result = tmp_path / "work", tmp_path / "result"
    assert kill_when(folder, result, 5, signal.SIGKILL) == -signal.SIGKILL
    assert kill_when(folder, result, 20, signal.SIGKILL) == -signal.SIGKILL
    assert not result.exists()
    done = subprocess.run([sys.executable, str(TOY), str(folder), str(result)], check=True)
    assert done.returncode == 0
    weights, known = read(result)
    assert known["resumed_at"] >= 20
    assert equal(weights, whole_run)


@pytest.mark.parametrize(
    ("kind", "step", "validated"),
    [(signal.SIGINT, 13, False), (signal.SIGTERM, 14, True), (signal.SIGTERM, 60, True)],
)
def test_an_interrupted_run_saves_and_hands_the_signal_on(
    tmp_path: Path, whole_run: Weights, kind: signal.Signals, step: int, validated: bool
) -> None:
    settings = dataclasses.replace(SETTINGS, save_every_seconds=1e9)
    caught: list[int] = []

    def handler(number: int, frame: object) -> None:
        caught.append(number)
        raise SystemExit(128 + number)

    def interrupt(progress: Progress) -> None:
        if (progress.step, progress.new_validation) == (step, validated) and not caught:
            os.kill(os.getpid(), kind)
            time.sleep(0.01)
            assert not caught, "not in the middle of a step"

    before = signal.signal(kind, handler)
    try:
        with pytest.raises(SystemExit) as stopped:
            learn(tmp_path, settings, on_progress=interrupt)
        assert signal.getsignal(kind) is handler
    finally:
        signal.signal(kind, before)
    assert caught == [kind]
    assert stopped.value.code == 128 + kind
    model, outcome = learn(tmp_path, settings)
    assert outcome.resumed_at in (step, step + 1)
    assert equal(dict(model.state_dict()), whole_run)


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.step == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("still here")

    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path, on_progress=interrupt)


class Moves(nn.Module):
    """One number that every step of Adam takes up by about the learning rate."""

    def __init__(self) -> None:
        super().__init__()
        self.at = nn.Parameter(torch.zeros(1))


class Ticks:
    """Batches that are only their number."""

    def steps(self, seed: int, epoch: int) -> int:
        return 10**6

    def batch(self, seed: int, epoch: int, step: int) -> tuple[int, bool]:
        return step, (seed, epoch) == training.VALIDATION


class Once(Ticks):
    def steps(self, seed: int, epoch: int) -> int:
        return 1


def pull(model: nn.Module, batch: tuple[int, bool]) -> tuple[Tensor, float]:
    """Training moves up for ever; validation likes 5."""
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


def test_the_best_weights_are_kept_and_patience_ends(tmp_path: Path) -> None:
    settings = dataclasses.replace(UP, validate_every=1)
    model = Moves()
    outcome = train(model, pull, Ticks(), settings, tmp_path / "a", validation=Once())
    # at step k the number is k: losses 25, 16, … 0 at step 5, 1, 4, …
    assert [round(entry["validation"], 2) for entry in outcome.history[:7]] == [
        25, 16, 9, 4, 1, 0, 1,
    ]  # fmt: skip
    assert (outcome.steps, outcome.best_step, outcome.stopped_early) == (12, 5, False)
    assert outcome.first_loss == 25
    assert model.at.item() == pytest.approx(5, abs=1e-3)
    patient = dataclasses.replace(settings, patience=3)
    outcome = train(Moves(), pull, Ticks(), patient, tmp_path / "b", validation=Once())
    assert (outcome.steps, outcome.best_step, outcome.stopped_early) == (8, 5, True)
    # training loss since the last validation: of the one step, at the number before it
    assert outcome.history[3]["loss"] == pytest.approx(-2, abs=1e-3)


def test_without_validation_the_last_weights_count(tmp_path: Path) -> None:
    model = Moves()
    outcome = train(model, pull, Ticks(), UP, tmp_path)
    assert (outcome.best_step, outcome.best_loss, outcome.history) == (None, None, [])
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
def test_a_loss_that_is_no_number_ends_the_run(tmp_path: Path, how: str) -> None:
    settings = dataclasses.replace(UP, validate_every=2)
    with pytest.raises(Diverged) as failure:
        train(Moves(), breaking(8, how), Ticks(), settings, tmp_path, validation=Once())
    message = str(failure.value)
    assert f"the {how} is nan at step 9 of 12" in message
    # validated at 0, 2, 4, 6, 8; 4 and 6 are equally near to 5, up to rounding
    path = Path(message.partition("are in ")[2])
    weights, known = read(path)
    assert known["step"] in (4, 6)
    assert weights["at"].item() == pytest.approx(known["step"], abs=1e-3)


def test_a_full_disk_leaves_the_last_state(tmp_path: Path, whole_run: Weights) -> None:
    """The system itself refuses to write more than some bytes."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_up(progress: Progress) -> None:
        if progress.step == 10:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))

    try:
        with pytest.raises(ResourceError, match=r"state\.safetensors: cannot be written: .*intact"):
            learn(tmp_path, on_progress=fill_up)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert read(tmp_path / states.STATE)[1]["state"]["step"] == 9
    assert not list(tmp_path.glob(".*"))
    model, outcome = learn(tmp_path)
    assert outcome.resumed_at == 9
    assert equal(dict(model.state_dict()), whole_run)


def test_only_the_same_run_is_gone_on_with(tmp_path: Path) -> None:
    learn(tmp_path, identity={"data": 1})
    assert learn(tmp_path, identity={"data": 1})[1].resumed_at == 60
    assert learn(tmp_path, identity={"data": 2})[1].resumed_at is None
    other = dataclasses.replace(SETTINGS, learning_rate=0.01)
    assert learn(tmp_path, other, identity={"data": 2})[1].resumed_at is None
    patient = dataclasses.replace(other, save_every_seconds=30.0)
    assert learn(tmp_path, patient, identity={"data": 2})[1].resumed_at == 60


def test_a_damaged_state_is_named(tmp_path: Path) -> None:
    learn(tmp_path)
    path = tmp_path / states.STATE
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="damaged"):
        learn(tmp_path)


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    def second(progress: Progress) -> None:
        learn(tmp_path)

    with pytest.raises(ResourceError, match="another run"):
        learn(tmp_path, on_progress=second)


def test_seeds_differ_and_the_program_is_left_as_it_was(tmp_path: Path, whole_run: Weights) -> None:
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


def test_progress_says_loss_speed_and_time_left(tmp_path: Path) -> None:
    told: list[Progress] = []
    _, outcome = learn(tmp_path, on_progress=told.append)
    assert [p.step for p in told if not p.new_validation] == list(range(1, 61))
    assert [p.step for p in told if p.new_validation] == [*range(0, 57, 7), 60]
    assert [p.validation for p in told if p.new_validation] == [
        entry["validation"] for entry in outcome.history
    ]
    middle, last = told[30], told[-1]
    assert middle.speed and middle.left is not None
    assert middle.left == pytest.approx((60 - middle.step) / middle.speed, rel=0.01)
    assert last.left == 0
    assert told[1].loss is not None and last.loss is not None
    assert last.loss < told[1].loss
    assert last.best == outcome.best_loss
    # 6 of 60 steps to rise, then down to 1/54 of the rate
    assert told[1].rate == pytest.approx(0.02 / 6)
    assert next(p.rate for p in told if p.step == 60) == pytest.approx(0.02 / 54)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({}, "either steps or epochs"),
        ({"steps": 1, "epochs": 1.0}, "either steps or epochs"),
        ({"steps": 0}, "above 0"),
        ({"steps": 1, "rate": 0.0}, "learning rate"),
        ({"steps": 1, "rate": math.nan}, "finite"),
        ({"steps": 1, "rate": 1e31}, "learning rate"),
        ({"steps": 1, "warmup": 1.5}, "warmup"),
        ({"steps": 1, "optimizer": "adamx"}, "unknown optimizer"),
        ({"steps": 1, "schedule": "cosine"}, "unknown schedule"),
    ],
)
def test_wrong_settings(wrong: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        TrainingSettings(**wrong)  # type: ignore[arg-type]


@pytest.fixture
def together() -> Iterator[Callable[[Path], list[int]]]:
    """Train with two processes that speak over the loopback device."""

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


def test_two_processes_learn_what_one_learns_with_twice_the_batches(
    tmp_path: Path, together: Callable[[Path], list[int]]
) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    assert together(folder) == [0, 0]
    one, outcome = learn(
        tmp_path / "one", dataclasses.replace(SETTINGS, gradient_accumulation_steps=2)
    )
    for rank in range(2):
        weights, known = read(folder / f"result-{rank}")
        assert close(weights, dict(one.state_dict()))
        steps = [entry["step"] for entry in known["history"]]
        assert steps == [entry["step"] for entry in outcome.history]
    # a state of two processes is one of the same run
    assert (
        learn(folder, dataclasses.replace(SETTINGS, gradient_accumulation_steps=2))[1].resumed_at
        == 60
    )
