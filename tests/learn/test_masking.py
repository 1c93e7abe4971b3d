"""Masking: how many tokens, which, and what replaces them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.learn.batches import make_rng
from rejoinder.learn.dapt.masking import Vocabulary, choose_tokens, mask_tokens

VOCABULARY = Vocabulary(
    mask=4,
    padding=0,
    special=np.arange(1000) < 5,
    continues_word=np.arange(1000) >= 900,
)


@given(st.integers(0, 2**31), st.integers(1, 9), st.integers(1, 40), st.floats(0.01, 0.9))
def test_a_share_of_the_maskable_tokens_is_chosen(
    seed: int, rows: int, width: int, share: float
) -> None:
    rng = make_rng(seed)
    maskable = rng.random((rows, width)) < 0.7
    chosen = choose_tokens(maskable, np.zeros_like(maskable), share, rng)
    assert not (chosen & ~maskable).any()
    # the rounded share, but at least one if there is one
    wanted = np.maximum(1, np.rint(share * maskable.sum(axis=1)))
    assert np.array_equal(chosen.sum(axis=1), np.minimum(wanted, maskable.sum(axis=1)))


@given(st.integers(0, 2**31), st.floats(0.05, 0.6))
def test_whole_words_are_chosen_with_all_their_subwords(seed: int, share: float) -> None:
    rng = make_rng(seed)
    maskable = rng.random((6, 30)) < 0.9
    continues = rng.random((6, 30)) < 0.4
    chosen = choose_tokens(maskable, continues, share, rng)
    assert not (chosen & ~maskable).any()
    for row in range(6):
        wanted = max(1, round(share * maskable[row].sum()))
        words: list[list[int]] = []
        for k in np.flatnonzero(maskable[row]):
            if words and continues[row, k] and words[-1][-1] == k - 1:
                words[-1].append(int(k))
            else:
                words.append([int(k)])
        hit = [word for word in words if chosen[row, word].any()]
        assert all(chosen[row, word].all() for word in hit)
        # no more than needed: without the last word, there would be too few
        count = sum(map(len, hit))
        assert wanted <= count < wanted + max(map(len, hit))


def test_all_positions_are_equally_likely() -> None:
    maskable = np.ones((20000, 8), np.bool_)
    maskable[:, [0, 7]] = False
    chosen = choose_tokens(maskable, np.zeros_like(maskable), 0.34, make_rng(1))
    # 2 of 6
    assert np.abs(chosen.mean(axis=0)[1:7] - 1 / 3).max() < 0.015


def test_chosen_tokens_are_masked_replaced_or_kept() -> None:
    rng = make_rng(3)
    ids = rng.integers(5, 1000, (400, 100))
    chosen = choose_tokens(np.ones_like(ids, np.bool_), np.zeros_like(ids, np.bool_), 0.15, rng)
    masked_ids = mask_tokens(ids, chosen, VOCABULARY, rng)
    assert np.array_equal(masked_ids[~chosen], ids[~chosen])
    now, then = masked_ids[chosen], ids[chosen]
    assert len(now) == 400 * 15
    masked, same = (now == VOCABULARY.mask).mean(), (now == then).mean()
    # 6,000 draws: three standard deviations are 0.016 and 0.012
    assert abs(masked - 0.8) < 0.016
    assert abs(same - 0.1) < 0.012
    swapped = now[(now != VOCABULARY.mask) & (now != then)]
    assert not VOCABULARY.special[swapped].any()
    assert len(set(swapped.tolist())) > 300
    assert np.array_equal(
        mask_tokens(ids, chosen, VOCABULARY, make_rng(8)),
        mask_tokens(ids, chosen, VOCABULARY, make_rng(8)),
    )
