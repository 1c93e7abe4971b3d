"""A calibration of a small corpus, counted and averaged by hand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from plane import PlaneEncoder, metric_of

from rejoinder.errors import DataError
from rejoinder.metrics.embedding.bertscore import BertScore
from rejoinder.metrics.embedding.calibrate import _Sample, calibrate, read_corpus
from rejoinder.metrics.embedding.calibration import Calibration


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = PlaneEncoder()
    monkeypatch.setattr("rejoinder.encode.transformer.open_encoder", lambda name: opened)


def made_of(*texts: str, pairs: int = 50, seed: int = 3) -> Calibration:
    metric = metric_of("bertscore(layer=2)")
    assert isinstance(metric, BertScore)
    corpus = read_corpus(texts, metric.encoder, max_sample=2 * pairs, seed=seed)
    return calibrate(corpus, metric, pairs=pairs, seed=seed)


def test_counts() -> None:
    made = made_of("up up right", "up", " \n", "up", "left\n")
    # a blank text is not there, a repeated one is there twice, a repeated token once;
    # up is token 2, right 3, left 4; 0 and 1 are the marks
    assert made.texts == 4
    assert made.counts == {0: 4, 1: 4, 2: 3, 3: 1, 4: 1}
    assert (made.model, made.digest, made.layer) == ("plane", "0123456789ab", 2)


def test_random_pairs() -> None:
    """Two different texts: every pair is one of them with the other, in either order."""
    # steep with right: P = R = F = 0.6, in both directions; no token is in both texts
    made = made_of("steep", "right", "right", "steep")
    assert made.random_pairs == pytest.approx((0.6, 0.6, 0.6))
    assert made.random_pairs_idf == pytest.approx((0.6, 0.6, 0.6))
    # "up steep" with "up right": up, in both, says nothing with idf = log(3 / 3).
    # without: up 1, steep 0.8 and up 1, right 0.6: 0.9 and 0.8 (as P or R), F = 1.44 / 1.7;
    # with: steep finds up 0.8 and right finds steep 0.6, F = 0.96 / 1.4
    made = made_of("up steep", "up right", pairs=400)
    share = (made.random_pairs[0] - 0.8) / 0.1
    assert 0.4 < share < 0.6  # how often "up steep" came first
    assert made.random_pairs == pytest.approx((0.8 + 0.1 * share, 0.9 - 0.1 * share, 1.44 / 1.7))
    assert made.random_pairs_idf == pytest.approx(
        (0.6 + 0.2 * share, 0.8 - 0.2 * share, 0.96 / 1.4)
    )


def test_the_seed_decides_the_sample() -> None:
    texts = ["up", "right", "left", "steep", "back up", "steep right"]
    assert made_of(*texts) == made_of(*texts)
    assert made_of(*texts).random_pairs != made_of(*texts, seed=4).random_pairs


@pytest.mark.parametrize("texts", [[], [" "], ["up"], ["up", "up"]])
def test_two_texts_are_needed(texts: list[str]) -> None:
    with pytest.raises(DataError, match="needs at least two different texts"):
        made_of(*texts)


def test_the_sample_is_uniform() -> None:
    """Each of 20 texts is among 5 in a quarter of 4,000 draws: 1,000 ± 27.4; 5 deviations."""
    counts = np.zeros(20)
    chooser = random.Random(8)
    for _ in range(4000):
        sample = _Sample(5, chooser)
        sample.add([str(i) for i in range(13)])
        sample.add([str(i) for i in range(13, 20)])
        counts[[int(text) for text in sample.texts]] += 1
    assert np.abs(counts - 1000).max() < 137
