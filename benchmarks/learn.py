"""Training on length-sorted batches compared with padded random batches.

Pairs of self-dialogue, the same batch size, the same network sizes, one epoch on each side; both
use ``rejoinder.learn.training``. The peer draws its batches at random and pads them to their
longest row. Rounds alternate and the fastest of each side counts, in seconds of processor time;
one thread, because small matrices do not gain from more.
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.inference import NO_TOKEN_LIMIT, initialised
from rejoinder.learn.inputs import make_input
from rejoinder.learn.inputs.input_encoder import InputEncoder
from rejoinder.learn.networks import cross_encoder
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.rater import RaterBatches, rater_loss
from rejoinder.learn.scorer import ScorerBatches, scorer_loss
from rejoinder.learn.settings import RaterSettings, ScorerSettings, TrainingSettings
from rejoinder.learn.training import train
from rejoinder.learn.training_data import TrainingData
from table import show

HERE = Path(__file__).resolve().parent

PAIRS = 1100
ENCODED = 132
"""Pairs for the encoder, of which a step takes seconds."""
ROUNDS = 2


def read_data(pairs: int) -> TrainingData:
    """Return pairs, spread over the corpus."""
    folder = Path(os.environ.get("REJOINDER_DATA") or HERE.parent.parent / "shared" / "data")
    with gzip.open(folder / "self-dialogue" / "dialogues.jsonl.gz", "rt") as stream:
        dialogues = [json.loads(line)["turns"] for line in stream]
    rows = []
    for number, turns in enumerate(dialogues[:: max(1, len(dialogues) * 8 // pairs)]):
        rows += [
            {
                "dialogue_id": f"d{number}",
                "context": turns[max(0, k - 2) : k - 1],
                "utterance": turns[k - 1],
                "response": turns[k],
                "split": "validation" if number % 100 == 0 else "train",
            }
            for k in range(1, min(9, len(turns)))
        ]
    return TrainingData.from_table(pa.Table.from_pylist(rows[:pairs]))


def padded(self: SentenceGru, ids: Tensor) -> Tensor:
    """Pad all rows to the longest."""
    _, last = self.gru(self.embedding(ids))
    return torch.cat([last[0], last[1]], dim=1)


def anywhere(plan: LengthBatches) -> LengthBatches:
    """Return batches with the same number of rows, whatever their length."""
    return LengthBatches(np.ones_like(plan.lengths), NO_TOKEN_LIMIT, plan.max_rows)


def seconds(make: Callable[[], Model], loss: Any, source: Any) -> float:
    """Return the processor time of one epoch."""
    model = initialised(0, make)
    with tempfile.TemporaryDirectory() as work:
        settings = TrainingSettings(epochs=1, learning_rate=1e-4, save_every_seconds=1e9)
        began = time.process_time()
        train(model, loss, source, settings, Path(work))
        return time.process_time() - began


def compare(
    name: str, make: Callable[[], Model], loss: Any, source: Any, peer: Any, limit: int | None = 2
) -> Any:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(make, loss, source))
        packed, limit_tokens = SentenceGru.forward, cross_encoder.MAX_BATCH_TOKENS
        SentenceGru.forward = padded  # type: ignore[method-assign]
        cross_encoder.MAX_BATCH_TOKENS = NO_TOKEN_LIMIT
        try:
            theirs.append(seconds(make, loss, peer))
        finally:
            SentenceGru.forward = packed  # type: ignore[method-assign]
            cross_encoder.MAX_BATCH_TOKENS = limit_tokens
    return {
        "name": f"{name}: padded random batches",
        "ours_seconds": min(ours),
        "peer_seconds": min(theirs),
        "ratio": min(theirs) / min(ours),
        "required": limit,
    }


def scorer_row(
    name: str, inputs: InputEncoder, some: TrainingData, limit: int | None = 2, **sizes: Any
) -> Any:
    settings = ScorerSettings(
        training=TrainingSettings(steps=1), context_turns=1, hidden_size=256, **sizes
    )
    source = ScorerBatches.of(some.training, inputs, settings)
    peer = ScorerBatches.of(some.training, inputs, settings)
    object.__setattr__(peer, "plan", anywhere(source.plan))
    return compare(
        name, lambda: inputs.make_scorer(settings), scorer_loss(settings), source, peer, limit
    )


def rater_row(name: str, inputs: InputEncoder, some: TrainingData, **sizes: Any) -> Any:
    """Treat neighbouring pairs as replies to one utterance: quality does not matter here."""
    settings = RaterSettings(training=TrainingSettings(steps=1), hidden_size=256, **sizes)
    groups = np.split(np.arange(len(some.training) // 2 * 2), len(some.training) // 2)
    source = RaterBatches.of(some.training, groups, inputs, settings)
    peer = RaterBatches.of(some.training, groups, inputs, settings)
    peer.plan = anywhere(source.plan)
    return compare(name, lambda: inputs.make_rater(settings), rater_loss, source, peer)


def rows() -> Any:
    torch.set_num_threads(1)
    many, few = read_data(PAIRS), read_data(ENCODED)
    with tempfile.TemporaryDirectory() as work:
        sizes = {"vocab_size": 4000, "embedding_size": 256, "hidden_size": 256}
        inputs = make_input("gru", sizes, many, Path(work))
        yield scorer_row("unreferenced scorer, Bi-GRU, one epoch", inputs, many, batch_size=512)
        yield rater_row("NN-rater, Bi-GRU, one epoch", inputs, many, batch_size=512)
        inputs = make_input("encoder", {}, few, Path(work))
        # two batches only: more would take minutes, and sorting has little to sort
        yield scorer_row("unreferenced scorer, MiniLM fine-tuned", inputs, few, None, batch_size=64)


if __name__ == "__main__":
    show(rows())
