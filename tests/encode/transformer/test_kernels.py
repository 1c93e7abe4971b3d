"""The compiled loops between the matrix products, against the formulas in 64 bits."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rejoinder.kernels.transformer import add_and_norm, attend, gelu, softmax

Floats = NDArray[np.float32]


def draws(seed: int, *shape: int, scale: float = 1.0) -> Floats:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def plain_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found: NDArray[np.float64] = powers / powers.sum(axis=-1, keepdims=True)
    return found


def test_gelu_over_its_whole_range() -> None:
    """Half x times one plus erf(x/√2): also where it is 0 or x, and far beyond."""
    numbers = np.concatenate([np.linspace(-12, 12, 5001), [-1e30, -100, 0, 100, 1e30]])
    rows = numbers.astype(np.float32)[None]
    bias = draws(1, rows.size)
    bias[-5:] = 0
    x = (rows + bias).astype(np.float64)[0]
    gelu(rows, bias)
    expected = [v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x]
    np.testing.assert_allclose(rows[0], expected, rtol=3e-7, atol=2e-6)


@pytest.mark.parametrize("width", [1, 7, 24, 384])
def test_add_and_norm(width: int) -> None:
    rows, others = draws(2, 5, width, scale=3), draws(3, 5, width) + 20
    bias, scale, shift = draws(4, width), draws(5, width), draws(6, width)
    out = np.empty_like(rows)
    add_and_norm(rows, others, bias, scale, shift, np.float32(1e-5), out)
    total = rows.astype(np.float64) + others + bias
    centred = total - total.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt(centred.var(axis=1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("width", [1, 3, 8, 61, 512])
@pytest.mark.parametrize("scale", [1e-3, 1, 50, 1e6])
def test_softmax(width: int, scale: float) -> None:
    rows = draws(7, 9, width, scale=scale)
    expected = plain_softmax(rows.astype(np.float64) * 0.5)
    softmax(rows, np.float32(0.5))
    np.testing.assert_allclose(rows, expected, rtol=2e-5, atol=1e-7)


@settings(max_examples=40)
@given(
    lengths=st.lists(st.integers(1, 20), min_size=1, max_size=6),
    heads=st.integers(1, 4),
    size=st.sampled_from([1, 5, 8, 12, 32]),
    scale=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_attention_is_within_one_text(
    lengths: list[int], heads: int, size: int, scale: float, seed: int
) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    total, width = int(starts[-1]), heads * size
    split = draws(seed, total, 3 * width, scale=scale)
    bias = draws(seed + 1, width)
    out = np.full((total, width), np.nan, np.float32)
    middle = len(lengths) // 2
    for first, last in ((0, middle), (middle, len(lengths))):  # in two shares
        if first < last:
            attend(split, bias, starts, first, last, heads, np.float32(size**-0.5), out)

    exact = split.astype(np.float64).reshape(total, 3, heads, size)
    for start, end in pairwise(starts):
        query, key, value = exact[start:end].transpose(1, 2, 0, 3)
        query = query + bias.reshape(heads, 1, size)
        weights = plain_softmax(query @ key.transpose(0, 2, 1) * size**-0.5)
        expected = (weights @ value).transpose(1, 0, 2).reshape(-1, width)
        # scores of some thousands have an error of about 3e-4 themselves, which the values enlarge
        atol = 2e-6 * max(1, scale**3)
        np.testing.assert_allclose(out[start:end], expected, atol=atol)
