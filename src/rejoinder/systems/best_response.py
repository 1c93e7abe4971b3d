"""Reply with the response whose vector fits the context best, of all responses, exactly.

Every response is compared by matrix products; the best ones are computed again in double precision
(:mod:`rejoinder.kernels.topk`), so that the replies do not depend on blocks or threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.files.checked import inside, read_array, read_table
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.responses import encode_contexts, encode_responses
from rejoinder.learn.dialogue.system_folder import RESPONSE_VECTORS, RESPONSES
from rejoinder.systems.system import Replies, Request

if TYPE_CHECKING:
    from rejoinder.kernels.topk import Best
    from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder
    from rejoinder.learn.dialogue.settings import DialogueDataSettings
    from rejoinder.learn.dialogue.vocabulary import Vocabulary

Vectors = NDArray[np.float32]
BLOCK = 8192
QUERIES = 1024


def best_responses(
    folder: Path,
    network: DualEncoder,
    vocabulary: Vocabulary,
    settings: DialogueDataSettings,
    contexts: Contexts,
    request: Request,
) -> list[Replies]:
    """Return the n best responses to each context."""
    texts, vectors = _responses(folder, network, vocabulary, settings, request)
    if not len(texts):
        return [Replies(reason="there is no response to choose from")] * len(contexts)
    best = search(encode_contexts(network, contexts), vectors, request.n)
    return [Replies(tuple(texts[row] for row in rows if row >= 0)) for rows in best.rows.tolist()]


def search(queries: Vectors, vectors: Vectors, n: int) -> Best:
    """Return the rows with the highest dot products; queries have length 1, vectors 1 at most."""
    from rejoinder.kernels.topk import NO_NUMBERS, Best, Threads, offer

    best = Best.empty(len(queries), n)
    with Threads() as threads:
        for first in range(0, len(vectors), BLOCK):
            block = np.ascontiguousarray(vectors[first : first + BLOCK])
            skip = np.zeros(len(block), np.bool_)
            for low in range(0, len(queries), QUERIES):
                some = queries[low : low + QUERIES]
                near, part = [some @ block.T], best.slice(low, low + QUERIES)
                offer(threads, part, near, [some], [block], first, skip, NO_NUMBERS)
    return best


def _responses(
    folder: Path,
    network: DualEncoder,
    vocabulary: Vocabulary,
    settings: DialogueDataSettings,
    request: Request,
) -> tuple[Sequence[str], Vectors]:
    """Return the responses of the pool, or those of training, with their vectors."""
    if request.pool is not None:
        rows = np.arange(request.pool.size)
        if request.leaks is not None:
            rows = rows[~request.leaks]
        texts = [text for text in dict.fromkeys(request.pool.responses(rows)) if text.strip()]
        made = encode_responses(network, texts, vocabulary, settings, request.on_progress)
        return texts, made
    table = read_table(inside(folder, RESPONSES), {"response": "large_string"})
    size = network.config["hidden_size"]
    path = inside(folder, RESPONSE_VECTORS)
    vectors = read_array(path, dtype="float32", shape=(None, size), finite=True)
    if len(vectors) != table.num_rows:
        raise DataError(
            f"has {len(vectors):,} vectors for {table.num_rows:,} responses", path=str(path)
        )
    return table.column("response").to_pylist(), vectors
