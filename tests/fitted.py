"""A small evaluator, fitted when it is first used, once per process."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec
import numpy as np

from fitting.toy import Row, row, write
from rejoinder.evaluator import write_manifest

WORDS = ("the", "cat", "sat", "on", "a", "mat", "cats", ".", "猫", "I'm")
CHANGES = (
    "vectors.epochs=15",
    "vectors.dimensions=16",
    "retrieval.k=3",
    "rater.training.epochs=4",
    "unreferenced.training.epochs=4",
    "validation.max_contexts=6",
    "validation.ranges=[]",
)
RANGES = {
    "unreferenced": (0.1, 0.9),
    "rating": (-0.9, 0.9),
    "vbleu": (0.0, 0.8),
    "expanded(d=rouge-l)": (0.1, 0.7),
}
"""Set by hand: so few dialogues give no reliable ranges."""


def chatter(words: Sequence[str] = WORDS, count: int = 40) -> list[Row]:
    """Return dialogues of two or three turns; every other utterance has two replies. Each uses only
    a few words, so that there is something to learn."""
    rng = np.random.default_rng(3)

    def say(topic: Sequence[str]) -> str:
        return " ".join(rng.choice(topic, rng.integers(2, 6)).tolist())

    rows = []
    for number in range(count):
        start = 3 * number % len(words)
        topic = [*words, *words][start : start + 3]
        first, replies = say(topic), [say(topic) for _ in range(1 + number % 2)]
        rows += [row(f"d{number}", [], first, each, f"d{number}/0") for each in replies]
        rows.append(row(f"d{number}", [first], replies[-1], say(topic), f"d{number}/1"))
    return rows


@cache
def small_evaluator() -> Path:
    """Return the folder of an evaluator that was fitted to dialogues of a few words."""
    import torch

    from rejoinder.fitting.fit import fit
    from rejoinder.fitting.settings import read_settings

    torch.set_num_threads(1)  # more would compete with tests that run in parallel
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="rejoinder-test-"))
    folder = Path(_FOLDERS[-1].name)
    pairs = write(folder / "pairs.parquet", chatter())
    made = fit([str(pairs)], folder / "small", read_settings("tiny", "en", overrides=CHANGES))
    assert made is not None
    write_manifest(made.folder, msgspec.structs.replace(made.manifest, ranges=RANGES))
    return made.folder


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
"""Deleted when the process ends."""


@cache
def small_calibration() -> Path:
    """Return the folder of a calibration of two metrics without an evaluator."""
    from rejoinder.metrics.calibrated.folder import (
        Calibration,
        Input,
        Manifest,
        Numbers,
        write_calibration,
    )
    from rejoinder.metrics.calibrated.intervals import RatingScale
    from rejoinder.metrics.calibrated.models import Blend, Ranks
    from rejoinder.metrics.metric import make_metric

    inputs = [
        Input("rouge-l", make_metric("rouge-l").signature()),
        Input("wer", make_metric("wer").signature(), higher_is_better=False),
    ]
    ranks = [Ranks([0.0, 1.0], [0.0, 1.0]), Ranks([-1.0, 0.0], [0.0, 1.0])]
    model = Blend(ranks, [1.0, 0.5], 3.0)
    errors = [n / 40 for n in range(40)]
    manifest = Manifest(method="blend", metrics=inputs, scale=RatingScale(1, 5), coverage=0.9)
    _FOLDERS.append(tempfile.TemporaryDirectory(prefix="rejoinder-test-"))
    folder = Path(_FOLDERS[-1].name)
    write_calibration(
        folder, Calibration(manifest, Numbers(model, [model], errors, [0] * 40)), "A card.\n"
    )
    return folder
