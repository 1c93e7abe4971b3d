"""Bootstrap counts for streams: a Poisson(1) count for every context and resample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled

# P(count <= k) · 2^32 for k = 0 … 9: from uniform 32-bit numbers to Poisson(1) counts
_CUMULATIVE = np.array(
    [round(4294967296 * 0.36787944117144233 * s) for s in (
        1.0, 2.0, 2.5, 2.6666666666666665, 2.7083333333333335, 2.716666666666667,
        2.7180555555555554, 2.7182539682539684, 2.71827876984127, 2.7182815255731922,
    )],
    dtype=np.int64,
)  # fmt: skip


@compiled
def _counts(keys, seed, first, cumulative, out):
    golden = np.uint64(0x9E3779B97F4A7C15)
    for i in range(keys.size):
        state = (keys[i] ^ seed) + golden * first
        for b in range(out.shape[1]):
            state += golden
            z = state
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            uniform = np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(32))
            k = 0
            while k < cumulative.size and uniform >= cumulative[k]:
                k += 1
            out[i, b] = k


def poisson_counts(
    keys: NDArray[np.uint64], n_resamples: int, seed: int, first: int = 0
) -> NDArray[np.float32]:
    """Return [keys, n_resamples] how often each context is drawn; equal keys give equal rows.

    When n contexts are drawn with replacement, the count of each is nearly Poisson(1) and
    independent of the others. So a bootstrap needs neither n nor all items in memory: counts are
    computed from a hash of the context (SplitMix64) while items stream by, and from resample
    ``first`` on without the earlier ones.
    """
    out = np.empty((keys.size, n_resamples), np.float32)
    _counts(keys, np.uint64(seed), np.uint64(first), _CUMULATIVE, out)
    return out
