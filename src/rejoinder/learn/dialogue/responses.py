"""The responses that a dual encoder chooses from: each different text once, with its vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece
from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.system_folder import RESPONSE_VECTORS, RESPONSES
from rejoinder.learn.dialogue.vocabulary import Vocabulary
from rejoinder.learn.inference import NO_TOKEN_LIMIT

Vectors = NDArray[np.float32]
ROWS = 256


def write_responses(
    folder: Path,
    network: DualEncoder,
    responses: Sequence[str],
    vocabulary: Vocabulary,
    settings: DialogueDataSettings,
) -> None:
    """Write the different responses and their vectors into the folder of a system."""
    import pyarrow as pa

    texts = [text for text in dict.fromkeys(responses) if text.strip()]
    table = pa.table({"response": pa.array(texts, pa.large_string())})
    with (
        pa.OSFile(str(folder / RESPONSES), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    np.save(folder / RESPONSE_VECTORS, encode_responses(network, texts, vocabulary, settings))


def encode_responses(
    network: DualEncoder,
    texts: Sequence[str],
    vocabulary: Vocabulary,
    settings: DialogueDataSettings,
    on_progress: Callable[[int, int], None] | None = None,
) -> Vectors:
    """[n, hidden_size] the vectors of responses, divided by the length of the longest one, so that
    none is longer than 1."""
    turns = Dialogues.of([Piece([text], 1) for text in texts], vocabulary, settings.max_turn_tokens)
    vectors = np.zeros((len(texts), network.config["hidden_size"]), np.float32)
    done = 0
    with torch.inference_mode():
        for rows in LengthBatches(turns.tokens, NO_TOKEN_LIMIT, ROWS).in_order:
            vectors[rows] = network.encode_replies(turns.turns.batch(rows)).numpy()
            done += len(rows)
            if on_progress:
                on_progress(done, len(texts))
    longest = float(np.linalg.norm(vectors, axis=1).max(initial=0.0))
    return (vectors / max(1e-30, longest)).astype(np.float32)


def encode_contexts(network: DualEncoder, contexts: Contexts) -> Vectors:
    """[n, hidden_size] the vectors of contexts, of length 1."""
    vectors = np.zeros((len(contexts), network.config["hidden_size"]), np.float32)
    with torch.inference_mode():
        for rows in contexts.batches(ROWS):
            vectors[rows] = network.encode_contexts(contexts.batch(rows)).numpy()
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalised: Vectors = (vectors / np.maximum(lengths, 1e-30)).astype(np.float32)
    return normalised
