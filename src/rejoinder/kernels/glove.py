"""GloVe: co-occurrence counts, and steps of AdaGrad."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import compiled, regrouped

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Numbers = NDArray[np.int32]
Ints = NDArray[np.int64]


@compiled
def _mixed(key):
    """Return the hash of a pair of words; its upper bits are well mixed."""
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


@compiled
def _grown(keys, values):
    size = 2 * keys.size
    new_keys = np.full(size, -1, np.int64)
    new_values = np.zeros(size, np.float64)
    for old in range(keys.size):
        if keys[old] >= 0:
            slot = np.int64(_mixed(keys[old]) & np.uint64(size - 1))
            while new_keys[slot] >= 0:
                slot = (slot + 1) & (size - 1)
            new_keys[slot], new_values[slot] = keys[old], values[old]
    return new_keys, new_values


@compiled
def _count(ids, starts, window, part, parts):
    keys = np.full(1 << 16, -1, np.int64)
    values = np.zeros(1 << 16, np.float64)
    used = 0
    for text in range(starts.size - 1):
        begin, end = starts[text], starts[text + 1]
        for i in range(begin, end):
            for distance in range(1, min(window, i - begin) + 1):
                a, b = ids[i], ids[i - distance]
                if a > b:
                    a, b = b, a
                key = (np.int64(a) << 32) | np.int64(b)
                mixed = _mixed(key)
                if np.int64((mixed >> np.uint64(40)) % np.uint64(parts)) != part:
                    continue
                slot = np.int64(mixed & np.uint64(keys.size - 1))
                while keys[slot] >= 0 and keys[slot] != key:
                    slot = (slot + 1) & (keys.size - 1)
                # a word next to itself is in its own window twice: on the left and on the right
                values[slot] += (2.0 if a == b else 1.0) / distance
                if keys[slot] < 0:
                    keys[slot] = key
                    used += 1
                    if 2 * used > keys.size:
                        keys, values = _grown(keys, values)
    filled = np.flatnonzero(keys >= 0)
    return keys[filled], values[filled]


@regrouped
def _step(i, j, weight, log, values, squares, learning_rate):
    """Train w[i] and w̃[j] on one entry; return its term of the loss before the step."""
    last = values.shape[2] - 1
    word, context = values[i, 0], values[j, 1]
    word_squares, context_squares = squares[i, 0], squares[j, 1]
    difference = word[last] + context[last] - log
    for k in range(last):
        difference += word[k] * context[k]
    loss = np.float64(weight) * difference * difference
    step = np.float32(learning_rate * weight * difference)
    for k in range(last):
        of_word, of_context = step * context[k], step * word[k]
        # a plain / would check for zeros, which prevents vectorisation
        word[k] -= np.true_divide(of_word, np.sqrt(word_squares[k]))
        context[k] -= np.true_divide(of_context, np.sqrt(context_squares[k]))
        word_squares[k] += of_word * of_word
        context_squares[k] += of_context * of_context
    word[last] -= step / np.sqrt(word_squares[last])
    context[last] -= step / np.sqrt(context_squares[last])
    word_squares[last] += step * step
    context_squares[last] += step * step
    return loss


@regrouped
def _train(groups, bounds, rows, columns, weights, logs, values, squares, learning_rate, losses):
    for number in range(groups.size):
        loss = 0.0
        for entry in range(bounds[groups[number]], bounds[groups[number] + 1]):
            i, j, weight, log = rows[entry], columns[entry], weights[entry], logs[entry]
            loss += _step(i, j, weight, log, values, squares, learning_rate)
            if i != j:
                loss += _step(j, i, weight, log, values, squares, learning_rate)
        losses[number] = loss


@compiled
def _objective(rows, columns, weights, logs, values):
    last = values.shape[2] - 1
    total = 0.0
    for entry in range(rows.size):
        i, j = rows[entry], columns[entry]
        for _ in range(1 if i == j else 2):
            fit = np.float64(values[i, 0, last]) + values[j, 1, last]
            for k in range(last):
                fit += np.float64(values[i, 0, k]) * values[j, 1, k]
            total += weights[entry] * (fit - logs[entry]) ** 2
            i, j = j, i
    return total


def count_neighbours(
    ids: Numbers, starts: Ints, window: int, part: int, parts: int
) -> tuple[Ints, Doubles]:
    """Count pairs of words within the window, each with the weight 1/distance.

    Returns the keys ``a << 32 | b`` with a <= b of the pairs in one of the parts, and their
    entries of the symmetric matrix. Every key belongs to one part, and each part sums in the order
    of the texts, so that the sums do not depend on the number of parts.
    """
    return _count(ids, starts, window, part, parts)


def train_groups(
    groups: Ints,
    bounds: Ints,
    rows: Numbers,
    columns: Numbers,
    weights: Floats,
    logs: Floats,
    values: Floats,
    squares: Floats,
    learning_rate: float,
) -> Doubles:
    """Train the entries of some groups one after the other; return the loss of each group."""
    losses = np.zeros(groups.size, np.float64)
    _train(groups, bounds, rows, columns, weights, logs, values, squares, learning_rate, losses)
    return losses


def objective(
    rows: Numbers, columns: Numbers, weights: Floats, logs: Floats, values: Floats
) -> float:
    """Return J, the sum over the whole symmetric matrix, from its upper triangle."""
    return float(_objective(rows, columns, weights, logs, values))
