"""A small language to learn from: words on five topics, and utterances with several responses.

A response has words of its utterance's topic, so that a network can learn which responses fit, and
what answers one utterance answers the others of its topic.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from learn.tiny import WORDS
from rejoinder.learn.training_data import TrainingData

TOPICS = 5


def make_table(utterances: int = 60, responses: int = 2, seed: int = 5) -> pa.Table:
    """Each utterance has a dialogue and a topic of its own, and so many different responses."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(utterances):
        topic = number % TOPICS
        words = WORDS[4 * topic : 4 * topic + 4]
        said = " ".join([*rng.choice(words, rng.integers(3, 6)), f"n{number}"])
        rows += [
            {
                "dialogue_id": f"d{number}",
                "context": [" ".join(rng.choice(words, 2))] * int(rng.integers(0, 3)),
                "utterance": said,
                "response": " ".join([*rng.choice(words, rng.integers(2, 7)), f"r{k}"]),
                "utterance_id": f"u{number}",
                "split": "validation" if number % 4 == 3 else "train",
            }
            for k in range(responses)
        ]
    return pa.Table.from_pylist(rows)


def make_data(utterances: int = 60, responses: int = 2) -> TrainingData:
    return TrainingData.from_table(make_table(utterances, responses))
