"""GloVe (Pennington, Socher and Manning 2014): word vectors from counts of words near each other.

X[i, j] is how often word j stands within the window of word i, each time with weight 1/distance.
Learnt are w, w̃, b and b̃ such that

    J = Σ f(X[i, j]) · (w[i]·w̃[j] + b[i] + b̃[j] - log X[i, j])²,   f(x) = min(1, (x / x_max)^alpha)

over all X[i, j] > 0 is small, by AdaGrad; the result is w + w̃. Start, step and accumulated squares
are those of the authors' program.

The same seed gives the same bits whatever the number of threads. Words are dealt into blocks;
entries of two blocks are trained by one thread while no other thread touches either (as in Gemulla
et al. 2011), and the order of all that depends on the texts and the seed only.
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
"""Half as many threads have work at a time; but between rounds they wait for each other, so that
few counts are dealt into few blocks."""
MANY = 4_000_000
"""Counts that are worth many blocks."""


@dataclass(frozen=True)
class Counts:
    """The upper triangle of X, which is symmetric: ``rows <= columns``, in this order."""

    rows: Numbers
    columns: Numbers
    values: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Glove:
    """The settings; the defaults are the authors', with ``x_max`` for millions of tokens."""

    dimensions: int = 100
    window: int = 10
    epochs: int = 25
    rate: float = 0.05
    x_max: float = 10.0
    alpha: float = 0.75
    seed: int = 0

    def count(self, ids: Numbers, starts: NDArray[np.int64], threads: int = 1) -> Counts:
        """Count neighbours, within texts only."""
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
        """Learn vectors from counts."""
        rng = np.random.default_rng(self.seed)
        state = _State.new(vocabulary, self.dimensions, rng)
        entries = self._entries(counts, rng)
        losses = []
        with ThreadPoolExecutor(threads) as pool:
            for epoch in range(self.epochs):
                rounds = [entries.rounds[i] for i in rng.permutation(len(entries.rounds))]
                if threads == 1:  # nobody to wait for between rounds
                    rounds = [list(chain(*rounds))]
                terms = [_run(pool, threads, games, entries, state, self.rate) for games in rounds]
                # in the same order, whoever computed them
                losses.append(float(sum(loss for _, loss in sorted(chain(*terms)))))
                if on_progress is not None:
                    on_progress(epoch + 1, self.epochs)
        if not np.isfinite(state.values).all():
            raise DataError("the vectors diverged: choose a smaller rate")
        return GloveResult(state.values, losses)

    def loss(self, counts: Counts, result: GloveResult) -> float:
        """J, as published."""
        from rejoinder.kernels.glove import objective

        weights, logs = self._targets(counts)
        return objective(counts.rows, counts.columns, weights, logs, result.parameters)

    def _targets(self, counts: Counts) -> tuple[Floats, Floats]:
        weights = np.minimum(1.0, (counts.values / self.x_max) ** self.alpha)
        return weights.astype(np.float32), np.log(counts.values).astype(np.float32)

    def _entries(self, counts: Counts, rng: np.random.Generator) -> _Entries:
        """All entries, those of the same two blocks together, in random order among each other."""
        weights, logs = self._targets(counts)
        blocks = MANY_BLOCKS if len(counts.rows) >= MANY else FEW_BLOCKS
        mixed = rng.permutation(len(counts.rows))
        places = np.sort([counts.rows[mixed] % blocks, counts.columns[mixed] % blocks], axis=0)
        games = (places[0] * blocks + places[1]).astype(np.int16)
        order = mixed[np.argsort(games, kind="stable")]
        sizes = np.bincount(games, minlength=blocks**2)
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
    """What was learnt: [words, 2, dimensions + 1], w and w̃, each with its bias at the end."""

    parameters: Floats
    losses: list[float] = field(default_factory=list)
    """J after each epoch, each term taken just before its entry was trained."""

    @property
    def vectors(self) -> Floats:
        """w + w̃, as the paper has it."""
        return self.parameters[:, 0, :-1] + self.parameters[:, 1, :-1]


@dataclass(frozen=True)
class _Entries:
    rows: Numbers
    columns: Numbers
    weights: Floats
    logs: Floats
    bounds: NDArray[np.int64]
    """The entries of a game are those from ``bounds[game]`` to the next."""
    rounds: list[list[int]]
    """Games of which no two touch the same block."""


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
    """Rounds in which all blocks meet all others once, each in one game a round; and a round in
    which each meets itself. The game of a <= b is the number a * players + b."""
    rounds = [[a * players + a for a in range(players)]]
    circle = list(range(1, players))
    for _ in range(players - 1):
        ring = [0, *circle]
        games = [sorted((ring[i], ring[-1 - i])) for i in range(players // 2)]
        rounds.append([a * players + b for a, b in games])
        circle = circle[1:] + circle[:1]
    return rounds


def _run(
    pool: ThreadPoolExecutor,
    threads: int,
    games: list[int],
    entries: _Entries,
    state: _State,
    rate: float,
) -> list[tuple[int, float]]:
    """Train the entries of one round; who does what changes nothing, only how long it takes."""
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
            rate,
        )

    shares = _shares(games, entries.bounds, threads)
    return list(zip(chain(*shares), chain(*pool.map(work, shares)), strict=True))


def _shares(games: list[int], bounds: NDArray[np.int64], threads: int) -> list[list[int]]:
    """Games dealt to threads, the largest first, each to who has least."""
    if threads == 1:
        return [games]
    sizes = {game: int(bounds[game + 1] - bounds[game]) for game in games}
    shares: list[list[int]] = [[] for _ in range(threads)]
    loads = [0] * threads
    for game in sorted(games, key=lambda g: -sizes[g]):
        least = loads.index(min(loads))
        shares[least].append(game)
        loads[least] += sizes[game]
    return [share for share in shares if share]
