"""GloVe (Pennington, Socher and Manning 2014): word vectors from co-occurrence counts.

X[i, j] is how often word j occurs within the window of word i, each time with weight 1/distance.
w, w̃, b and b̃ minimise

    J = Σ f(X[i, j]) · (w[i]·w̃[j] + b[i] + b̃[j] - log X[i, j])²,   f(x) = min(1, (x / x_max)^alpha)

over all X[i, j] > 0, by AdaGrad; the result is w + w̃. Initial values, step size and accumulated
squares are those of the authors' program.

The same seed gives the same bits whatever the number of threads. Words are assigned to blocks;
entries of two blocks are trained by one thread while no other thread uses either block (as in
Gemulla et al. 2011), and the order depends only on the texts and the seed.

Why not a library (all tried with Python 3.11): gensim has no GloVe. glove-python does not compile,
glove-python-binary has no package for it, and both update vectors from several threads without
locks, so that two runs differ. glovpy clones the authors' C program with git when it is first
imported, and fails offline. mittens works, but on a dense matrix of all words by all words (8 bytes
per entry, several times: 1.5 GB for 4,766 words, so 100,000 words are out of reach), and seeds its
random numbers anew from the system for each matrix, so that no seed repeats a run. On 515,402
tokens (450,407 counts, 100 dimensions, one thread) it takes .4 s of processor time per epoch and
has J = 72,232 after 25 epochs and 27,544 after 100; this module takes .9 s for all 25 epochs and
has J = 26,488.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from rejoinder.errors import DataError
from rejoinder.progress import Progress

Floats = NDArray[np.float32]
Numbers = NDArray[np.int32]

FEW_BLOCKS, MANY_BLOCKS = 16, 64
"""Half as many threads can work at a time; but they wait for each other between rounds, so that
few counts are assigned to few blocks."""
MANY = 4_000_000
"""Number of counts from which on there are many blocks."""


@dataclass(frozen=True)
class Counts:
    """The upper triangle of the symmetric X: ``rows <= columns``, sorted by both."""

    rows: Numbers
    columns: Numbers
    values: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Glove:
    """Hyperparameters; the defaults are the authors', with ``x_max`` for millions of tokens."""

    dimensions: int = 100
    window: int = 10
    epochs: int = 25
    learning_rate: float = 0.05
    x_max: float = 10.0
    alpha: float = 0.75
    seed: int = 0

    def count(self, ids: Numbers, starts: NDArray[np.int64], threads: int = 1) -> Counts:
        """Count co-occurrences, within texts only."""
        from rejoinder.kernels.glove import count_neighbours

        def part(number: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            return count_neighbours(ids, starts, self.window, number, threads)

        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(part, range(threads)))
        keys = np.concatenate([keys for keys, _ in parts])
        order = np.argsort(keys)
        keys = keys[order]
        values = np.concatenate([values for _, values in parts])[order]
        return Counts((keys >> 32).astype(np.int32), keys.astype(np.int32), values)

    def train(
        self,
        counts: Counts,
        vocabulary: int,
        threads: int = 1,
        on_progress: Progress | None = None,
    ) -> GloveResult:
        """Train vectors on counts."""
        rng = np.random.default_rng(self.seed)
        state = _State.new(vocabulary, self.dimensions, rng)
        entries = self._entries(counts, rng)
        losses = []
        with ThreadPoolExecutor(threads) as pool:
            for epoch in range(self.epochs):
                rounds = [entries.rounds[i] for i in rng.permutation(len(entries.rounds))]
                if threads == 1:  # no need to wait between rounds
                    rounds = [list(chain(*rounds))]
                terms = [
                    _run(pool, threads, groups, entries, state, self.learning_rate)
                    for groups in rounds
                ]
                # summed in the same order, whichever thread computed them
                losses.append(float(sum(loss for _, loss in sorted(chain(*terms)))))
                if on_progress is not None:
                    on_progress(epoch + 1, self.epochs)
        if not np.isfinite(state.values).all():
            raise DataError("the vectors diverged: choose a smaller learning_rate")
        return GloveResult(state.values, losses)

    def loss(self, counts: Counts, result: GloveResult) -> float:
        """Return J as published."""
        from rejoinder.kernels.glove import objective

        weights, logs = self._targets(counts)
        return objective(counts.rows, counts.columns, weights, logs, result.parameters)

    def _targets(self, counts: Counts) -> tuple[Floats, Floats]:
        weights = np.minimum(1.0, (counts.values / self.x_max) ** self.alpha)
        return weights.astype(np.float32), np.log(counts.values).astype(np.float32)

    def _entries(self, counts: Counts, rng: np.random.Generator) -> _Entries:
        """Return all entries, grouped by their two blocks, in random order within a group."""
        weights, logs = self._targets(counts)
        blocks = MANY_BLOCKS if len(counts.rows) >= MANY else FEW_BLOCKS
        mixed = rng.permutation(len(counts.rows))
        places = np.sort([counts.rows[mixed] % blocks, counts.columns[mixed] % blocks], axis=0)
        groups = (places[0] * blocks + places[1]).astype(np.int16)
        order = mixed[np.argsort(groups, kind="stable")]
        sizes = np.bincount(groups, minlength=blocks**2)
        return _Entries(
            counts.rows[order],
            counts.columns[order],
            weights[order],
            logs[order],
            np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
            tournament(blocks),
        )


@dataclass(frozen=True)
class GloveResult:
    """The trained parameters."""

    parameters: Floats
    """[words, 2, dimensions + 1]: w and w̃, each with its bias at the end"""
    losses: list[float] = field(default_factory=list)
    """J of each epoch; each term is computed just before its entry is trained."""

    @property
    def vectors(self) -> Floats:
        """[words, dimensions] w + w̃, as in the paper."""
        return self.parameters[:, 0, :-1] + self.parameters[:, 1, :-1]


@dataclass(frozen=True)
class _Entries:
    rows: Numbers
    columns: Numbers
    weights: Floats
    logs: Floats
    bounds: NDArray[np.int64]
    """The entries of a group are those from ``bounds[group]`` to the next."""
    rounds: list[list[int]]
    """Groups that can be trained in parallel: no two of them use the same block."""


@dataclass(frozen=True)
class _State:
    """Parameters and, in the same shape, the accumulated squares of their gradients."""

    values: Floats
    squares: Floats

    @classmethod
    def new(cls, vocabulary: int, dimensions: int, rng: np.random.Generator) -> _State:
        shape = vocabulary, 2, dimensions + 1
        values = (rng.random(shape, np.float32) - np.float32(0.5)) / np.float32(dimensions)
        return cls(values, np.ones(shape, np.float32))


def tournament(players: int) -> list[list[int]]:
    """Return a round-robin tournament of blocks, and before it a round of each with itself.

    In a round, each block is in one group; the group of blocks a <= b is a * players + b.
    """
    rounds = [[a * players + a for a in range(players)]]
    circle = list(range(1, players))
    for _ in range(players - 1):
        ring = [0, *circle]
        groups = [sorted((ring[i], ring[-1 - i])) for i in range(players // 2)]
        rounds.append([a * players + b for a, b in groups])
        circle = circle[1:] + circle[:1]
    return rounds


def _run(
    pool: ThreadPoolExecutor,
    threads: int,
    groups: list[int],
    entries: _Entries,
    state: _State,
    learning_rate: float,
) -> list[tuple[int, float]]:
    """Train the groups of one round; the assignment to threads affects only the time it takes."""
    from rejoinder.kernels.glove import train_groups

    def work(numbers: list[int]) -> NDArray[np.float64]:
        return train_groups(
            np.array(numbers, np.int64),
            entries.bounds,
            entries.rows,
            entries.columns,
            entries.weights,
            entries.logs,
            state.values,
            state.squares,
            learning_rate,
        )

    shares = _shares(groups, entries.bounds, threads)
    return list(zip(chain(*shares), chain(*pool.map(work, shares)), strict=True))


def _shares(groups: list[int], bounds: NDArray[np.int64], threads: int) -> list[list[int]]:
    """Assign groups to threads: the largest first, each to the thread with the fewest entries."""
    if threads == 1:
        return [groups]
    sizes = {group: int(bounds[group + 1] - bounds[group]) for group in groups}
    shares: list[list[int]] = [[] for _ in range(threads)]
    loads = [0] * threads
    for group in sorted(groups, key=lambda g: -sizes[g]):
        least = loads.index(min(loads))
        shares[least].append(group)
        loads[least] += sizes[group]
    return [share for share in shares if share]
