"""GloVe: its counts, its loss and its optimum, each against what the paper defines."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.encode.static.train.glove import Counts, Glove, GloveResult, tournament


def as_numbers(texts: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    ids = np.array([number for text in texts for number in text], np.int32)
    return ids, np.cumsum([0, *map(len, texts)]).astype(np.int64)


def plain_counts(texts: list[list[int]], window: int) -> dict[tuple[int, int], float]:
    """X[i, j]: every position, both sides, 1/distance."""
    counts: dict[tuple[int, int], float] = defaultdict(float)
    for text in texts:
        for here, word in enumerate(text):
            for there, neighbour in enumerate(text):
                if 0 < abs(here - there) <= window:
                    counts[word, neighbour] += 1 / abs(here - there)
    return counts


def dense(counts: Counts, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    matrix[counts.rows, counts.columns] = counts.values
    matrix[counts.columns, counts.rows] = counts.values
    return matrix


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=8),
    st.integers(1, 6),
    st.integers(1, 3),
)
def test_counts_equal_the_definition(texts: list[list[int]], window: int, threads: int) -> None:
    counts = Glove(window=window).count(*as_numbers(texts), threads)
    expected = plain_counts(texts, window)
    found = {
        pair: value
        for i, j, value in zip(counts.rows, counts.columns, counts.values, strict=True)
        for pair in {(int(i), int(j)), (int(j), int(i))}
    }
    assert found == pytest.approx(expected)
    assert (counts.rows <= counts.columns).all()


def test_counts_by_hand() -> None:
    """a b a: a–b at distance 1 twice; a–a at distance 2, seen from both of its places."""
    counts = Glove(window=2).count(*as_numbers([[0, 1, 0]]))
    assert counts.rows.tolist() == [0, 0] and counts.columns.tolist() == [0, 1]
    assert counts.values.tolist() == [1.0, 2.0]


def test_hash_table_grows_with_the_pairs() -> None:
    """More pairs than the table of counts begins with."""
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 2000, (300, 60)).tolist()
    expected = plain_counts(texts, 4)
    assert len(expected) > 2**16
    counts = Glove(window=4).count(*as_numbers(texts), 2)
    for i, j, value in zip(
        counts.rows[::97], counts.columns[::97], counts.values[::97], strict=True
    ):
        assert value == pytest.approx(expected[int(i), int(j)])
    assert len(expected) == 2 * len(counts.rows) - (counts.rows == counts.columns).sum()


def random_counts(size: int, seed: int = 0) -> Counts:
    rng = np.random.default_rng(seed)
    rows, columns = np.triu_indices(size)
    kept = rng.random(rows.size) < 0.6
    values = np.exp(rng.normal(1, 2, kept.sum()))
    return Counts(rows[kept].astype(np.int32), columns[kept].astype(np.int32), values)


def published_loss(counts: Counts, parameters: np.ndarray, x_max: float, alpha: float) -> float:
    """Equation 8 of the paper, over all pairs i, j with X[i, j] > 0."""
    matrix = dense(counts, len(parameters))
    total = 0.0
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            x = matrix[i, j]
            if x > 0:
                f = (x / x_max) ** alpha if x < x_max else 1.0
                fit = parameters[i, 0, :-1].astype(float) @ parameters[j, 1, :-1].astype(float)
                fit += float(parameters[i, 0, -1]) + float(parameters[j, 1, -1])
                total += f * (fit - np.log(x)) ** 2
    return total


def test_loss_is_the_published_objective() -> None:
    counts = random_counts(17)
    rng = np.random.default_rng(1)
    parameters = rng.normal(size=(17, 2, 6)).astype(np.float32)
    glove = Glove(dimensions=5, x_max=20, alpha=0.6)
    expected = published_loss(counts, parameters, 20, 0.6)
    assert glove.loss(counts, GloveResult(parameters)) == pytest.approx(expected, rel=1e-6)


def test_step_equals_the_authors_program() -> None:
    """Two words that were neighbours once: w, w̃, b, b̃ after one epoch, step by step.

    diff = w·w̃ + b + b̃ - log x, g = rate · f(x) · diff; w -= g w̃ / √G, G += (g w̃)², G from 1.
    """
    glove = Glove(dimensions=3, epochs=1, x_max=8, learning_rate=0.1)
    counts = Counts(np.array([0], np.int32), np.array([1], np.int32), np.array([4.0]))
    untrained = (
        Glove(dimensions=3, epochs=0, x_max=8, learning_rate=0.1).train(counts, 2).parameters
    )
    expected = untrained.astype(float)
    loss = 0.0
    for i, j in ((0, 1), (1, 0)):  # the two entries share no parameter
        w, c = expected[i, 0].copy(), expected[j, 1].copy()
        diff = w[:3] @ c[:3] + w[3] + c[3] - np.log(4.0)
        loss += 0.5**0.75 * diff**2
        g = 0.1 * 0.5**0.75 * diff
        expected[i, 0] -= g * np.append(c[:3], 1.0)
        expected[j, 1] -= g * np.append(w[:3], 1.0)
    result = glove.train(counts, 2)
    np.testing.assert_allclose(result.parameters, expected, atol=1e-6)
    assert result.losses == pytest.approx([loss], rel=1e-5)
    np.testing.assert_allclose(result.vectors, expected[:, 0, :3] + expected[:, 1, :3], atol=1e-6)


def test_known_optimum_is_reached() -> None:
    """log X = u·v + a + b with 4 dimensions can be met exactly: the loss tends to 0."""
    rng = np.random.default_rng(3)
    # symmetric, of rank 4 beside the biases
    u, a = rng.normal(size=(40, 4)) * 0.6, rng.normal(size=40)
    logs = u @ u.T + a[:, None] + a[None, :]
    rows, columns = np.triu_indices(40)
    counts = Counts(rows.astype(np.int32), columns.astype(np.int32), np.exp(logs[rows, columns]))
    glove = Glove(dimensions=4, epochs=800, learning_rate=0.2, x_max=10)
    result = glove.train(counts, 40)
    start, end = result.losses[0], glove.loss(counts, result)
    assert end < 1e-4 * start
    # and it reproduces the matrix itself
    fit = np.einsum("ik,jk->ij", result.parameters[:, 0, :-1], result.parameters[:, 1, :-1])
    fit += result.parameters[:, 0, -1][:, None] + result.parameters[:, 1, -1][None, :]
    assert np.abs(fit - logs).max() < 0.2
    # one dimension is too few for it
    poor = Glove(dimensions=1, epochs=800, learning_rate=0.2, x_max=10)
    assert poor.loss(counts, poor.train(counts, 40)) > 30 * end


def test_loss_decreases() -> None:
    counts = random_counts(60, seed=5)
    glove = Glove(dimensions=8, epochs=30)
    result = glove.train(counts, 60)
    assert all(b < a for a, b in zip(result.losses, result.losses[1:], strict=False))
    assert glove.loss(counts, result) < result.losses[-1]


@pytest.mark.parametrize("size", [3, 300])
def test_one_seed_gives_the_same_bits_on_any_number_of_threads(size: int) -> None:
    counts = random_counts(size, seed=7)
    glove = Glove(dimensions=10, epochs=4, seed=11)
    one = glove.train(counts, size)
    for threads in (1, 2, 5):
        again = glove.train(counts, size, threads)
        assert again.parameters.tobytes() == one.parameters.tobytes()
        assert again.losses == one.losses
    other = Glove(dimensions=10, epochs=4, seed=12).train(counts, size)
    assert other.parameters.tobytes() != one.parameters.tobytes()


@pytest.mark.parametrize("players", [2, 16, 64])
def test_no_two_groups_of_a_round_share_a_block(players: int) -> None:
    """What makes threads safe: and over all rounds every two blocks meet once."""
    met = []
    for games in tournament(players):
        blocks = [block for game in games for block in {game // players, game % players}]
        assert len(blocks) == len(set(blocks))
        met += games
    assert sorted(met) == [a * players + b for a in range(players) for b in range(a, players)]
