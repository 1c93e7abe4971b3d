"""A small training task with dropout, batches of different sizes and validation. As a program, it
trains in a folder until it is killed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from rejoinder.learn.batches import LengthBatches, make_rng
from rejoinder.learn.checkpoint import write_checkpoint
from rejoinder.learn.settings import TrainingSettings
from rejoinder.learn.training import TrainingResult, train

Rows = tuple[Tensor, Tensor]


class Net(nn.Module):
    def __init__(self, dropout: float = 0.2) -> None:
        super().__init__()
        rng = torch.Generator().manual_seed(1)
        with torch.random.fork_rng():
            self.layers = nn.Sequential(
                nn.Linear(6, 16), nn.Tanh(), nn.Dropout(dropout), nn.Linear(16, 3)
            )
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=rng) * 0.3)

    def forward(self, inputs: Tensor) -> Tensor:
        found: Tensor = self.layers(inputs)
        return found


class Points:
    """Points to classify by their position; each has a length, as a text has."""

    def __init__(self, count: int = 97, *, start: int = 0, tokens: int = 60) -> None:
        rng = make_rng(7, start)
        self.inputs = torch.from_numpy(rng.normal(size=(count, 6))).float()
        self.labels = (self.inputs[:, 0] > 0).long() + (self.inputs[:, 1] > 0.5).long()
        self.plan = LengthBatches(rng.integers(2, 12, count), tokens)

    def steps(self, seed: int, epoch: int) -> int:
        return len(self.plan.shuffled(seed, epoch))

    def batch(self, seed: int, epoch: int, step: int) -> Rows:
        rows = torch.from_numpy(np.asarray(self.plan.shuffled(seed, epoch)[step]))
        return self.inputs[rows], self.labels[rows]


def loss(model: nn.Module, batch: Rows) -> tuple[Tensor, float]:
    inputs, labels = batch
    return nn.functional.cross_entropy(model(inputs), labels, reduction="sum"), len(labels)


SETTINGS = TrainingSettings(
    steps=60, learning_rate=0.02, warmup_ratio=0.1, validate_every=7, save_every_seconds=0.0, seed=3
)


def learn(
    folder: Path, settings: TrainingSettings = SETTINGS, **more: object
) -> tuple[Net, TrainingResult]:
    model = Net()
    validation = Points(40, start=1)
    trained = train(
        model,
        loss,
        Points(),
        settings,
        folder,
        validation=validation,
        **more,  # type: ignore[arg-type]
    )
    return model, trained


if __name__ == "__main__":
    folder, result = Path(sys.argv[1]), Path(sys.argv[2])
    model, trained = learn(folder)
    metadata = {"resumed_at": trained.resumed_at, "history": trained.history}
    write_checkpoint(result, model.state_dict(), metadata)
