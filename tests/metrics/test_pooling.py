"""``refs=soft(b)``: a smooth maximum over references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoinder
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference

words = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat"]), min_size=1, max_size=6)
texts = words.map(" ".join)


def test_by_hand() -> None:
    """ROUGE-L of "a b" is 1 with "a b" and ½ with "a c"; of "c", ½ with the latter alone."""
    items = [
        Item("1", "a b", references=[Reference("a b"), Reference("a c")]),
        Item("2", "c", references=[Reference("a b"), Reference("c d c")]),
    ]
    spec = "rouge-l(beta=1,refs=soft(10))"
    found = rejoinder.score(items, spec, resamples=100)[spec]
    expected = [math.log(math.exp(10) + math.exp(5)) / 10, math.log(1 + math.exp(5)) / 10]
    assert found.values.tolist() == pytest.approx(expected)
    (corpus,) = found.corpus.values()
    assert corpus is not None and corpus.value == pytest.approx(np.mean(expected))
    assert "refs:soft(10)" in found.signature


@given(reply=texts, references=st.lists(texts, min_size=1, max_size=5), b=st.floats(0.5, 1e4))
@pytest.mark.parametrize("name", ["bleu", "wer", "chrf"])
def test_never_below_the_best(name: str, reply: str, references: list[str], b: float) -> None:
    """And above it by log(n) / b at most, which is nothing for large b."""
    best = rejoinder.score_one(f"{name}(refs=max)", reply, references)
    soft = rejoinder.score_one(f"{name}(refs=soft(b={b!r}))", reply, references)
    assert best is not None and soft is not None
    assert best - 1e-9 <= soft <= best + math.log(len(references)) / b + 1e-9


@pytest.mark.parametrize("b", ["0", "-1", "true", "1e9", "x"])
def test_wrong_b_of_soft(b: str) -> None:
    with pytest.raises(UsageError, match=r"is not all, max, mean, top\(k\) or soft\(b\)"):
        rejoinder.score_one(f"bleu(refs=soft(b={b}))", "a", ["a"])
