"""Pairs of a pool that a test set has: neither references nor replies may come from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rejoinder.logs.contamination import Fingerprint
from rejoinder.progress import Progress
from rejoinder.retrieve.base import Mask

if TYPE_CHECKING:
    from rejoinder.retrieve.pool import Pool


def find_leaks(
    pool: Pool, last_turns: Iterable[str], on_progress: Progress | None = None
) -> tuple[Mask, dict[str, int]]:
    """The rows whose utterance is one of these turns, word for word or nearly, and how many rows
    of each kind there are."""
    fingerprint = Fingerprint.of(last_turns)
    mask = np.zeros(pool.size, np.bool_)
    counts: Counter[str] = Counter(exact=0, near=0)
    done = 0
    for batch in pool.batches(["utterance"]):
        for i, kind in enumerate(fingerprint.find(batch.column(0).to_pylist())):
            if kind is not None:
                mask[done + i] = True
                counts[kind] += 1
        done += batch.num_rows
        if on_progress:
            on_progress(done, pool.size)
    return mask, dict(counts)
