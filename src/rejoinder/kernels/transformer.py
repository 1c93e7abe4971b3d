"""Operations of a transformer between its matrix products, each in one pass over the numbers.

Loops are written so that the compiler vectorises them: along the dimensions of a head or a row,
with unsigned indices (signed ones might count from the end) and with polynomials for functions.
``exp`` and ``erf`` are accurate to about one unit in the last place of float32.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rejoinder.kernels.compiled import regrouped

Floats = NDArray[np.float32]

_F = np.float32
_ZERO, _HALF, _ONE, _FOUR = _F(0), _F(0.5), _F(1), _F(4)
_NEVER = _F(-1e30)

# erf(z) = z P(z²) / Q(z²) for |z| ≤ 4, the minimax fit that Eigen uses
_P0, _P1, _P2, _P3, _P4, _P5, _P6 = (
    _F(-2.72614225801306e-10),
    _F(2.77068142495902e-08),
    _F(-2.10102402082508e-06),
    _F(-5.69250639462346e-05),
    _F(-7.34990630326855e-04),
    _F(-2.95459980854025e-03),
    _F(-1.60960333262415e-02),
)
_Q0, _Q1, _Q2, _Q3, _Q4 = (
    _F(-1.45660718464996e-05),
    _F(-2.13374055278905e-04),
    _F(-1.68282697438203e-03),
    _F(-7.37332916720468e-03),
    _F(-1.42647390514189e-02),
)
_ROOT_HALF = _F(0.7071067811865476)

# exp(x) = 2ⁿ exp(r), |r| ≤ ln 2 / 2, as in Cephes; ln 2 in two parts
_LOWEST, _LOG2_E = _F(-87), _F(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = _F(0.693359375), _F(-2.12194440e-4)
_E0, _E1, _E2, _E3, _E4, _E5 = (
    _F(1.9875691500e-4),
    _F(1.3981999507e-3),
    _F(8.3334519073e-3),
    _F(4.1665795894e-2),
    _F(1.6666665459e-1),
    _F(5.0000001201e-1),
)
_EXPONENT = _F(1.5 * 2**23 + 127)
"""Added to an integer, it leaves that integer, as the exponent of a float, in the last bits."""

_1, _2, _3, _4 = (np.uint64(number) for number in (1, 2, 3, 4))


@regrouped
def gelu(rows: Floats, bias: Floats) -> None:
    """Add the bias of the column to each number and replace it by x Φ(x)."""
    for i in range(rows.shape[0]):
        row = rows[i]
        for j in range(row.size):
            x = row[j] + bias[j]
            z = min(max(x * _ROOT_HALF, -_FOUR), _FOUR)
            s = z * z
            p = ((((((_P0 * s + _P1) * s + _P2) * s + _P3) * s + _P4) * s + _P5) * s) + _P6
            q = ((((_Q0 * s + _Q1) * s + _Q2) * s + _Q3) * s) + _Q4
            row[j] = _HALF * x * (_ONE + np.divide(z * p, q))


@regrouped
def add_and_norm(
    rows: Floats,
    addend: Floats,
    bias: Floats,
    scale: Floats,
    shift: Floats,
    epsilon: np.float32,
    out: Floats,
) -> None:
    """Add two matrices and a bias, and apply layer normalisation to each row."""
    width = _F(rows.shape[1])
    for i in range(rows.shape[0]):
        row, addend_row, result = rows[i], addend[i], out[i]
        total = _ZERO
        for j in range(row.size):
            x = row[j] + addend_row[j] + bias[j]
            result[j] = x
            total += x
        mean = np.divide(total, width)
        squares = _ZERO
        for j in range(row.size):
            x = result[j] - mean
            squares += x * x
        factor = np.divide(_ONE, np.sqrt(np.divide(squares, width) + epsilon))
        for j in range(row.size):
            result[j] = (result[j] - mean) * factor * scale[j] + shift[j]


@regrouped
def _exponentials(numbers, count):
    for i in range(count):
        x = max(numbers[i], _LOWEST)
        n = np.floor(x * _LOG2_E + _HALF)
        r = x - n * _LN2_HIGH - n * _LN2_LOW
        y = ((((_E0 * r + _E1) * r + _E2) * r + _E3) * r + _E4) * r + _E5
        power = np.int32(_F(n + _EXPONENT).view(np.int32) << 23)
        numbers[i] = (y * r * r + r + _ONE) * np.int32(power).view(np.float32)


@regrouped
def softmax(rows: Floats, factor: np.float32) -> None:
    """Replace each row by its softmax, exp(factor x) over the sum of the row."""
    for i in range(rows.shape[0]):
        row = rows[i]
        top = row[0]
        for j in range(row.size):
            top = max(top, row[j])
        for j in range(row.size):
            row[j] = (row[j] - top) * factor
        _exponentials(row, row.size)
        total = _ZERO
        for j in range(row.size):
            total += row[j]
        total = np.divide(_ONE, total)
        for j in range(row.size):
            row[j] *= total


@regrouped
def _gather(qkv, start, count, column, factor, bias, out):
    """Copy the columns of one head for all tokens of a text, plus a bias, times a factor."""
    for i in range(count):
        for c in range(out.shape[1]):
            out[i, c] = (qkv[start + i, column + np.uint64(c)] + bias[c]) * factor


@regrouped
def _scores(queries, keys, count, filled, out):
    """Compute the products of each query with all keys, four at a time, minus the largest."""
    for i in range(count):
        row = i * filled
        top = _NEVER
        for block in range(filled // _4):
            j = block * _4
            a, b, d, e = _ZERO, _ZERO, _ZERO, _ZERO
            for c in range(keys.shape[1]):
                q = queries[i, c]
                a += q * keys[j, c]
                b += q * keys[j + _1, c]
                d += q * keys[j + _2, c]
                e += q * keys[j + _3, c]
            out[row + j], out[row + j + _1] = a, b
            out[row + j + _2], out[row + j + _3] = d, e
            top = max(top, max(max(a, b), max(d, e)))
        for k in range(count):
            out[row + k] -= top
        for k in range(count, filled):
            out[row + k] = _NEVER


@regrouped
def _mixtures(weights, values, count, filled, mixed, start, column, out):
    """Write the weighted mean of all values for each token."""
    for i in range(count):
        row = i * filled
        total = _ZERO
        for c in range(values.shape[1]):
            mixed[c] = _ZERO
        for block in range(filled // _4):
            j = block * _4
            a, b = weights[row + j], weights[row + j + _1]
            d, e = weights[row + j + _2], weights[row + j + _3]
            total += (a + b) + (d + e)
            for c in range(values.shape[1]):
                mixed[c] += (a * values[j, c] + b * values[j + _1, c]) + (
                    d * values[j + _2, c] + e * values[j + _3, c]
                )
        total = np.divide(_ONE, total)
        for c in range(values.shape[1]):
            out[start + i, column + np.uint64(c)] = mixed[c] * total


@regrouped
def attend(
    qkv: Floats,
    bias: Floats,
    starts: NDArray[np.int64],
    first: int,
    last: int,
    heads: int,
    factor: np.float32,
    out: Floats,
) -> None:
    """Compute the attention output within each short text.

    ``qkv`` has the query, key and value of a token side by side, each with its heads side by side.
    Only queries have a bias: that of the keys would add the same to all scores of a token. Keys
    are padded to a multiple of four with copies of the last one, which get no weight.
    """
    width = np.uint64(out.shape[1])
    size = width // np.uint64(heads)
    longest = 0
    for text in range(first, last):
        longest = max(longest, starts[text + 1] - starts[text])
    room = (longest + 3) // 4 * 4
    scores = np.empty(longest * room, np.float32)
    queries = np.empty((longest, size), np.float32)
    keys = np.empty((room, size), np.float32)
    values = np.empty((room, size), np.float32)
    mixed = np.empty(size, np.float32)
    none = np.zeros(size, np.float32)
    for text in range(first, last):
        start = np.uint64(starts[text])
        count = np.uint64(starts[text + 1]) - start
        filled = (count + _3) // _4 * _4
        for head in range(np.uint64(heads)):
            column = head * size
            _gather(qkv, start, count, column, factor, bias[column : column + size], queries)
            _gather(qkv, start, count, column + width, _ONE, none, keys)
            _gather(qkv, start, count, column + width + width, _ONE, none, values)
            for i in range(count, filled):
                keys[i], values[i] = keys[count - _1], _ZERO
            _scores(queries, keys, count, filled, scores)
            _exponentials(scores, np.int64(count * filled))
            _mixtures(scores, values, count, filled, mixed, start, column, out)
