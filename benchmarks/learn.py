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
from rejoinder.learn.forms import make_form
from rejoinder.learn.forms.base import Form
from rejoinder.learn.judging import NO_LIMIT, drawn_from
from rejoinder.learn.material import Material
from torch import Tensor

from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.networks import cross
from rejoinder.learn.networks.gru import SentenceGru
from rejoinder.learn.rater import Questions, rating_loss
from rejoinder.learn.scorer import Candidates, loss_of
from rejoinder.learn.settings import RaterSettings, ScorerSettings, Training
from rejoinder.learn.training import train
from table import show

HERE = Path(__file__).resolve().parent

PAIRS = 1100
ENCODED = 132
"""Pairs for the encoder, of which a step takes seconds."""
ROUNDS = 2


def material(pairs: int) -> Material:
    """Return pairs, spread over the corpus."""
    data = Path(os.environ.get("REJOINDER_DATA") or HERE.parent.parent / "shared" / "data")
    with gzip.open(data / "self-dialogue" / "dialogues.jsonl.gz", "rt") as stream:
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
    return Material.of(pa.Table.from_pylist(rows[:pairs]))


def padded(self: SentenceGru, ids: Tensor) -> Tensor:
    """Pad all rows to the longest."""
    _, last = self.gru(self.embedding(ids))
    return torch.cat([last[0], last[1]], dim=1)


def anywhere(plan: LengthBatches) -> LengthBatches:
    """The same number of rows a batch, whatever their length."""
    return LengthBatches(np.ones_like(plan.lengths), NO_LIMIT, plan.most)


def seconds(make: Callable[[], Model], loss: Any, source: Any) -> float:
    """Of the processor, for one epoch of the one loop."""
    model = drawn_from(0, make)
    with tempfile.TemporaryDirectory() as work:
        settings = Training(epochs=1, rate=1e-4, save_every=1e9)
        began = time.process_time()
        train(model, loss, source, settings, Path(work))
        return time.process_time() - began


def compare(
    name: str, make: Callable[[], Model], loss: Any, source: Any, peer: Any, limit: int | None = 2
) -> Any:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(seconds(make, loss, source))
        packed, at_once = SentenceGru.forward, cross.AT_ONCE
        SentenceGru.forward, cross.AT_ONCE = padded, NO_LIMIT  # type: ignore[method-assign]
        try:
            theirs.append(seconds(make, loss, peer))
        finally:
            SentenceGru.forward, cross.AT_ONCE = packed, at_once  # type: ignore[method-assign]
    return {
        "name": f"{name}: padded random batches",
        "ours_seconds": min(ours),
        "peer_seconds": min(theirs),
        "ratio": min(theirs) / min(ours),
        "required": limit,
    }


def scorer_row(name: str, form: Form, some: Material, limit: int | None = 2, **sizes: Any) -> Any:
    settings = ScorerSettings(training=Training(steps=1), turns=1, wide=256, **sizes)
    source = Candidates.of(some.training, form, settings)
    peer = Candidates.of(some.training, form, settings)
    object.__setattr__(peer, "plan", anywhere(source.plan))
    return compare(name, lambda: form.scorer(settings), loss_of(settings), source, peer, limit)


def rater_row(name: str, form: Form, some: Material, **sizes: Any) -> Any:
    """Treat neighbouring pairs as replies to one utterance: quality does not matter here."""
    settings = RaterSettings(training=Training(steps=1), wide=256, **sizes)
    groups = np.split(np.arange(len(some.training) // 2 * 2), len(some.training) // 2)
    source = Questions.of(some.training, groups, form, settings)
    peer = Questions.of(some.training, groups, form, settings)
    peer.plan = anywhere(source.plan)
    return compare(name, lambda: form.rater(settings), rating_loss, source, peer)


def rows() -> Any:
    torch.set_num_threads(1)
    many, few = material(PAIRS), material(ENCODED)
    with tempfile.TemporaryDirectory() as work:
        sizes = {"pieces": 4000, "embedding": 256, "hidden": 256}
        form = make_form("gru", sizes, many, Path(work))
        yield scorer_row("unreferenced scorer, Bi-GRU, one epoch", form, many, batch=512)
        yield rater_row("NN-rater, Bi-GRU, one epoch", form, many, batch=512)
        form = make_form("encoder", {}, few, Path(work))
        # two batches only: more would take minutes, and sorting has little to sort
        yield scorer_row("unreferenced scorer, MiniLM fine-tuned", form, few, None, batch=64)


if __name__ == "__main__":
    show(rows())
