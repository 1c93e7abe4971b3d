"""Trained dialogue systems: training and decoding against the same networks in plain loops.

Rows: (1) an epoch of hred over joined dialogues of similar length, against random batches of single
pairs, each with its whole context; both give the same loss before training (1e-5). (2) greedy
replies to many contexts in batches against one context after the other; both give the same replies.
DailyDialog, preset small, one thread; processor time, so that other work on the machine does not
count.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from rejoinder.learn.batches import make_rng
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.dialogue.batches import DialogueBatch, DialogueBatches, collate
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.decoding import Decoding, decode
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece
from rejoinder.learn.dialogue.make_network import make_network
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork, training_loss
from rejoinder.learn.dialogue.settings import read_system_settings
from rejoinder.learn.dialogue.vocabulary import train_vocabulary
from rejoinder.learn.inference import initialised
from table import show

DATA = Path(os.environ.get("REJOINDER_DATA") or Path(__file__).parents[2] / "shared" / "data")
DIALOGUES = 600
PAIRS = 64
"""Pairs in a plain batch."""
CONTEXTS = 6740
ALONE = 300
"""Contexts that are decoded one by one; the time is scaled up."""


def read(name: str, count: int) -> list[list[str]]:
    with open(DATA / "dailydialog" / name, encoding="utf-8") as lines:
        turns = [[turn.strip() for turn in line.split("__eou__")] for line in islice(lines, count)]
    return [[turn for turn in dialogue if turn] for dialogue in turns]


def plain_batches(dialogues: Dialogues, rng: np.random.Generator) -> list[DialogueBatch]:
    order = rng.permutation(len(dialogues))
    return [collate(dialogues, order[k : k + PAIRS]) for k in range(0, len(order), PAIRS)]


def epoch(network: Model, batches: list[DialogueBatch]) -> float:
    """Return the processor seconds of one epoch."""
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    network.train()
    began = time.process_time()
    for batch in batches:
        loss, count = training_loss(network, batch)
        optimizer.zero_grad()
        (loss / count).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
    return time.process_time() - began


def total_loss(network: Model, batches: list[DialogueBatch]) -> float:
    network.eval()
    with torch.no_grad():
        return sum(training_loss(network, batch)[0].item() for batch in batches)


def main() -> None:
    torch.set_num_threads(1)
    settings = read_system_settings("hred", "small")
    turns = settings.data.context_turns
    dialogues = [d[: turns + 1] for d in read("validation.txt", DIALOGUES) if len(d) > 1]
    vocabulary = train_vocabulary((turn for d in dialogues for turn in d), settings.vocabulary)
    longest = settings.data.max_turn_tokens
    joined = Dialogues.of([Piece(d, 1) for d in dialogues], vocabulary, longest)
    pairs = [Piece(d[: k + 1], k) for d in dialogues for k in range(1, len(d))]
    single = Dialogues.of(pairs, vocabulary, longest)
    source = DialogueBatches.of(joined, settings.data.batch_size)
    ours = [source.batch(0, 0, step) for step in range(source.steps(0, 0))]
    plain = plain_batches(single, make_rng(1))

    def fresh() -> Model:
        return initialised(0, lambda: make_network(settings, len(vocabulary)))

    network = fresh()
    losses = total_loss(network, ours), total_loss(network, plain)
    if abs(losses[0] / losses[1] - 1) > 1e-5:
        sys.exit(f"the losses differ: {losses}")
    own = min(epoch(fresh(), ours) for _ in range(2))
    other = min(epoch(fresh(), plain) for _ in range(2))

    for _ in range(3):  # so that replies have ends
        epoch(network, ours)
    assert isinstance(network, GenerativeNetwork)
    network.eval()
    test = [d[:k] for d in read("test.txt", 1000) for k in range(1, len(d))][:CONTEXTS]
    encoded = Contexts.of(test, vocabulary, settings.data)
    rngs = [make_rng(number) for number in range(len(test))]
    how, never = Decoding(method="greedy"), vocabulary.never_generated
    began = time.process_time()
    together = decode(network, encoded, 1, how, rngs, never)
    batched = time.process_time() - began
    some = np.linspace(0, len(test) - 1, ALONE).astype(int).tolist()
    parts = [encoded.take([i]) for i in some]
    began = time.process_time()
    alone = [decode(network, part, 1, how, rngs[:1], never)[0] for part in parts]
    one_by_one = (time.process_time() - began) * len(test) / ALONE
    if alone != [together[i] for i in some]:
        sys.exit("the replies differ")
    show(
        [
            {
                "name": "hred, one epoch over joined dialogues / random batches of pairs",
                "ours_seconds": own,
                "peer_seconds": other,
                "ratio": other / own,
                "required": 2,
            },
            {
                "name": f"hred, greedy replies to {len(test):,} contexts / one by one"
                f" (measured on {ALONE}, scaled)",
                "ours_seconds": batched,
                "peer_seconds": one_by_one,
                "ratio": one_by_one / batched,
                "required": 10,
            },
        ]
    )


if __name__ == "__main__":
    main()
