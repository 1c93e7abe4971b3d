"""Small trained dialogue systems, each trained when it is first used, once per process."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from fitting.toy import Row, row, write
from rejoinder.learn.dialogue.settings import read_system_settings
from rejoinder.learn.dialogue.train_system import prepare_training, train_system

QUICK = ("vocabulary.size=120", "training.epochs=2", "data.max_turn_tokens=12")
THINGS = ("tea", "coffee", "rain", "snow", "cats", "dogs", "bread", "soup")


def small_talk(count: int = 40) -> list[Row]:
    """Return the pairs of dialogues of four turns about one thing each."""
    rows = []
    for number in range(count):
        thing, other = THINGS[number % 8], THINGS[(number // 8 + number + 1) % 8]
        turns = [
            f"do you like {thing} ?",
            f"yes , i like {thing} a lot .",
            f"and what about {other} ?",
            f"i do not like {other} , case {number} .",
        ]
        for place in range(1, len(turns)):
            context, utterance = turns[: place - 1], turns[place - 1]
            rows.append(row(f"d{number}", context, utterance, turns[place], f"d{number}/{place}"))
    return rows


@cache
def pairs_file() -> Path:
    path = Path(tempfile.mkdtemp(prefix="rejoinder-trained-")) / "pairs.parquet"
    write(path, small_talk())
    return path


def train_in(folder: Path, name: str, overrides: Sequence[str] = QUICK, seed: int = 0) -> Path:
    """Train a network on small talk."""
    settings = read_system_settings(name, "tiny", overrides=overrides, seed=seed)
    train_system(prepare_training(pairs_file(), folder, settings, lambda what: None))
    return folder


@cache
def trained_system(name: str) -> Path:
    """Return the folder of a trained network; do not change it."""
    return train_in(pairs_file().with_name(name), name)
