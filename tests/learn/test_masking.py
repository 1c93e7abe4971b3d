"""Hiding tokens: how many, which, and by what."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.learn.batches import make_rng
from rejoinder.learn.dapt.masking import Vocabulary, choose, hide

WORDS = Vocabulary(
    mask=4,
    padding=0,
    special=np.arange(1000) < 5,
    inside=np.arange(1000) >= 900,
)


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 40), st.floats(0.01, 0.9))
def test_a_share_of_what_is_free_is_chosen(seed: int, rows: int, width: int, share: float) -> None:
    rng = make_rng(seed)
    free = rng.random((rows, width)) < 0.7
    chosen = choose(free, np.zeros_like(free), share, rng)
    assert not (chosen & ~free).any()
    # the share, rounded, but one at least where there is one
    wanted = np.maximum(1, np.rint(share * free.sum(axis=1)))
    assert np.array_equal(chosen.sum(axis=1), np.minimum(wanted, free.sum(axis=1)))


@given(st.integers(0, 2**31), st.floats(0.05, 0.6))
def test_whole_words_are_chosen_with_all_their_pieces(seed: int, share: float) -> None:
    rng = make_rng(seed)
    free = rng.random((6, 30)) < 0.9
    inside = rng.random((6, 30)) < 0.4
    chosen = choose(free, inside, share, rng)
    assert not (chosen & ~free).any()
    for row in range(6):
        wanted = max(1, round(share * free[row].sum()))
        words: list[list[int]] = []
        for k in np.flatnonzero(free[row]):
            if words and inside[row, k] and words[-1][-1] == k - 1:
                words[-1].append(int(k))
            else:
                words.append([int(k)])
        hit = [word for word in words if chosen[row, word].any()]
        assert all(chosen[row, word].all() for word in hit)
        # no more than needed: without the last word, there would be too few
        count = sum(map(len, hit))
        assert wanted <= count < wanted + max(map(len, hit))


def test_words_have_the_same_chance_wherever_they_stand() -> None:
    free = np.ones((20000, 8), np.bool_)
    free[:, [0, 7]] = False
    chosen = choose(free, np.zeros_like(free), 0.34, make_rng(1))
    # 2 of 6
    assert np.abs(chosen.mean(axis=0)[1:7] - 1 / 3).max() < 0.015


def test_what_is_hidden_becomes_mask_random_or_stays() -> None:
    rng = make_rng(3)
    ids = rng.integers(5, 1000, (400, 100))
    chosen = choose(np.ones_like(ids, np.bool_), np.zeros_like(ids, np.bool_), 0.15, rng)
    hidden = hide(ids, chosen, WORDS, rng)
    assert np.array_equal(hidden[~chosen], ids[~chosen])
    now, then = hidden[chosen], ids[chosen]
    assert len(now) == 400 * 15
    masked, same = (now == WORDS.mask).mean(), (now == then).mean()
    # 6,000 draws: three standard deviations are 0.016 and 0.012
    assert abs(masked - 0.8) < 0.016
    assert abs(same - 0.1) < 0.012
    swapped = now[(now != WORDS.mask) & (now != then)]
    assert not WORDS.special[swapped].any()
    assert len(set(swapped.tolist())) > 300
    assert np.array_equal(
        hide(ids, chosen, WORDS, make_rng(8)), hide(ids, chosen, WORDS, make_rng(8))
    )
