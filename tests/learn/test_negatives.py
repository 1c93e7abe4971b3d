"""Negatives are not true responses, and of the kind that was requested."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from rejoinder.errors import UsageError
from rejoinder.learn import negatives as module
from rejoinder.learn import settings
from rejoinder.learn.batches import make_rng
from rejoinder.learn.negatives import (
    NegativeSampler,
    _sample_rows,
    neighbours,
    reply_density,
    words_of,
)
from rejoinder.learn.training_data import Pairs

pytestmark = pytest.mark.usefixtures("one_thread")


def make_pairs(count: int = 100) -> Pairs:
    """Return dialogues of five pairs; responses 2k and 2k + 1 share a word, and have the same
    utterance if k is a multiple of 5."""
    rows: list[dict[str, Any]] = [
        {
            "dialogue_id": f"d{n // 5}",
            "utterance": f"what is number {n // 2 if n // 2 % 5 == 0 else n + 1000} about?",
            "response": f"word{n // 2} and more{n}",
        }
        for n in range(count)
    ]
    return Pairs(pa.Table.from_pylist(rows))


def draw(negatives: NegativeSampler, rows: Any, kind: int = 0, seed: int = 1) -> Any:
    rows = np.asarray(rows)
    return negatives.draw(rows, np.full(len(rows), kind), make_rng(seed))


def test_random_negatives_come_from_all_pairs() -> None:
    pairs = make_pairs()
    negatives, rows = NegativeSampler(pairs, ["random"]), np.arange(100).repeat(50)
    found = draw(negatives, rows)
    assert (found != rows).all()
    assert (pairs.utterance_ids[found] != pairs.utterance_ids[rows]).all()
    assert len(set(found.tolist())) == 100
    assert (draw(negatives, rows) == found).all()
    assert (draw(negatives, rows, seed=2) != found).any()


def test_reply_density_is_standardised() -> None:
    """Cosines of the first two with the others are 1 and 0, of the last one 0 and 0: the logarithms
    of e^10 + 1, twice, and of 2 are brought to mean 0 and spread 1: with two equal numbers, 1/√2,
    1/√2 and -√2."""
    vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    assert reply_density(vectors) == pytest.approx([0.5**0.5, 0.5**0.5, -(2**0.5)])
    assert reply_density(vectors[:2]).tolist() == [0, 0]  # all are the same
    assert reply_density(vectors[:1]).tolist() == [0]


def test_density_does_not_depend_on_being_in_the_pool(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of ten replies of one kind and ten of another, six are in the pool. The density of a reply
    depends on the other replies of the pool only."""
    monkeypatch.setattr("rejoinder.learn.negatives.MAX_DENSITY_POOL", 6)
    vectors = np.repeat(np.eye(2, dtype=np.float32), 10, axis=0)
    drawn = np.isin(np.arange(20), _sample_rows(20, 6))
    found = reply_density(vectors)
    for kind in (slice(0, 10), slice(10, 20)):
        # k of 6 in the pool equal a reply outside of it, k - 1 of 5 a reply inside
        k = int(drawn[kind].sum())
        assert 1 < k < 6
        inside, outside = found[kind][drawn[kind]], found[kind][~drawn[kind]]
        assert len(set(inside.round(9))) == len(set(outside.round(9))) == 1
        assert inside[0] < outside[0]  # (k - 1) / 5 < k / 6


def test_frequent_replies_are_drawn_less_often() -> None:
    """Replies 0 to 59 have one vector, 60 to 99 one each. Without a discount, 60 of 100 draws are
    among the former; z is .816 for them and -1.225 for the others, so with a discount of 1 it is
    60 e^-.816 / (60 e^-.816 + 40 e^1.225) = .163."""
    pairs, rows = make_pairs(), np.arange(100).repeat(200)
    places = {text: max(0, n - 59) for n, text in enumerate(pairs.responses)}

    def sentences(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(41, dtype=np.float32)[[places[text] for text in texts]]

    share = {}
    for discount in (0.0, 1.0):
        found = draw(NegativeSampler(pairs, ["random"], sentences, discount), rows)
        assert (pairs.utterance_ids[found] != pairs.utterance_ids[rows]).all()
        share[discount] = float((found < 60).mean())
    assert share == {0.0: pytest.approx(0.6, abs=0.02), 1.0: pytest.approx(0.163, abs=0.02)}


def test_a_reply_equal_to_the_true_one_is_not_a_negative() -> None:
    table = pa.table(
        {
            "utterance": [f"utterance number {n}" for n in range(40)],
            "response": ["Yes.", "yes!", "YES"] * 13 + ["No."],
        }
    )
    found = draw(NegativeSampler(Pairs(table), ["random"]), np.arange(39).repeat(3))
    assert (found == 39).all(), "the only different reply is found"
    assert set(draw(NegativeSampler(Pairs(table.slice(36)), ["random"]), [0, 1, 2] * 9)) == {3}


def test_other_responses_to_the_same_utterance_are_not_negatives() -> None:
    """Rows 0 and 1 have the same utterance; row 2 repeats the response of row 1 elsewhere."""
    table = pa.table(
        {
            "utterance": ["how are you today?"] * 2 + [f"utterance number {n}" for n in range(4)],
            "response": ["Fine.", "Not so well.", "not so well!", "Blue.", "At noon.", "FINE"],
        }
    )
    negatives = NegativeSampler(Pairs(table), ["random"])
    assert set(draw(negatives, [0, 1] * 50).tolist()) == {3, 4}
    assert set(draw(negatives, [2] * 50).tolist()) == {0, 3, 4, 5}


def test_a_parrot_that_is_a_true_response_is_not_a_negative() -> None:
    table = pa.table(
        {
            "utterance": ["good morning sir", "Good morning, sir!", "and now?"],
            "response": ["hello", "good morning sir", "go"],
        }
    )
    assert set(draw(NegativeSampler(Pairs(table), ["parrot"]), [0] * 20, 0).tolist()) == {2}


def test_the_fallback_where_no_reply_is_a_negative() -> None:
    def drawn(utterances: list[str], responses: list[str]) -> set[int]:
        table = pa.table({"utterance": utterances, "response": responses})
        return set(draw(NegativeSampler(Pairs(table), ["random"]), [0] * 60).tolist())

    same = "all answer the same utterance"
    assert drawn([same] * 3, ["a", "b", "c"]) == {1, 2}
    assert drawn([same] * 3, ["a", "A!", "c"]) == {2}, "a different reply, though not a negative"
    assert drawn(["first thing", "second thing", "third"], ["a"] * 3) == {1, 2}
    assert drawn(["only one"], ["a"]) == {0}
    # one of a thousand is a negative: too few for random draws
    assert drawn([same] * 999 + ["another"], ["a", *["b"] * 998, "c"]) == {999}


def test_negatives_of_the_same_dialogue() -> None:
    pairs = make_pairs()
    rows = np.arange(100).repeat(20)
    found = draw(NegativeSampler(pairs, ["random", "dialogue"]), rows, 1)
    assert (found // 5 == rows // 5).all()
    assert (found != rows).all()
    assert (pairs.utterance_ids[found] != pairs.utterance_ids[rows]).all()


def test_negatives_that_share_a_word() -> None:
    rows = np.array([n for n in range(100) if n // 2 % 5]).repeat(20)
    found = draw(NegativeSampler(make_pairs(), ["words"]), rows)
    assert (found == rows ^ 1).mean() > 0.99, "only one other has the word (ten draws of two)"
    same = np.arange(2).repeat(50)
    others = draw(NegativeSampler(make_pairs(), ["words"]), same)
    assert not set(others.tolist()) & {0, 1}, "that one is a true response: a random one instead"


def test_negatives_by_words_are_the_same_in_every_process() -> None:
    """Words come from sets, whose order depends on the process."""
    program = """
import numpy as np
from rejoinder.learn.batches import make_rng
from rejoinder.learn.negatives import _sharing_words
texts = [f"w{k % 7} x{k % 11} y{k % 13} z{k % 17}" for k in range(200)]
print(_sharing_words(texts)(np.arange(200), make_rng(1)).tolist())
"""
    drawn = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(drawn) == 1


def test_frequent_words_are_ignored() -> None:
    table = pa.table(
        {
            "utterance": [f"utterance number {n}" for n in range(60)],
            "response": [f"the reply {n} {'rare' if n < 2 else ''}" for n in range(60)],
        }
    )
    found = draw(NegativeSampler(Pairs(table), ["words"]), np.zeros(100, int))
    assert set(found.tolist()) == {1}


def test_words_of_languages_without_spaces() -> None:
    assert words_of("Guten Tag, 東京タワー!") == {"guten", "tag", "東京", "京タ", "タワ", "ワー"}
    assert words_of("犬") == {"犬"}
    assert words_of("…") == set()


def test_parrot_negatives_are_the_utterances() -> None:
    table = pa.table({"utterance": ["a", "b b", "c"], "response": ["x", "B, b!", "z"]})
    negatives = NegativeSampler(Pairs(table), ["random", "parrot"])
    assert draw(negatives, [0, 2], 1).tolist() == [3, 5]
    assert set(draw(negatives, [1] * 20, 1).tolist()) == {0, 2}, "a parrot that is a true response"


def test_a_rater_has_no_parrot_negatives(monkeypatch: pytest.MonkeyPatch) -> None:
    """A parrot is not the response of a pair, which a rater needs."""
    monkeypatch.setattr(settings, "HARD_NEGATIVES", (*settings.HARD_NEGATIVES, "another"))
    with pytest.raises(UsageError, match="unknown kind of negatives 'parrot'"):
        settings.RaterSettings(training=settings.TrainingSettings(steps=1), negatives=("parrot",))
    settings.ScorerSettings(
        training=settings.TrainingSettings(steps=1), hard_negatives=("parrot", "another")
    )


def test_neighbours_by_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a circle, neighbours have the next angles, without those that mean the same."""
    angles = np.sort(make_rng(3).random(300)) * 2 * np.pi
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = neighbours(vectors)
    assert found.shape == (300, module.NEIGHBOURS)
    cosines = (vectors[found] * vectors[:, None]).sum(axis=2)
    assert (cosines <= module.SAME_MEANING + 1e-6).all()
    all_cosines = np.where(vectors @ vectors.T > module.SAME_MEANING, -1, vectors @ vectors.T)
    best = -np.sort(-all_cosines, axis=1)[:, : module.NEIGHBOURS]
    np.testing.assert_allclose(cosines, best, atol=1e-6)
    monkeypatch.setattr(module, "MAX_NEIGHBOUR_POOL", 50)
    assert len(set(neighbours(vectors).flat) - {-1}) <= 50
    opposite = np.array([[1, 0], [-1, 0]], np.float32)
    assert (neighbours(opposite) == -1).all()
    pairs = make_pairs(300)
    drawn = draw(NegativeSampler(pairs, ["vectors"], lambda texts: vectors), np.arange(300))
    assert np.mean((vectors[drawn] * vectors).sum(axis=1)) > 0.6


def test_negatives_are_random_where_there_is_none_of_the_kind() -> None:
    table = pa.table(
        {
            "dialogue_id": [f"d{n}" for n in range(30)],
            "utterance": [f"utterance number {n}" for n in range(30)],
            "response": [f"reply{n}" for n in range(30)],
        }
    )
    for kind in ("dialogue", "words"):
        found = draw(NegativeSampler(Pairs(table), [kind]), np.zeros(200, int))
        assert set(found.tolist()) == set(range(1, 30))


def test_a_matched_reply_is_as_near_to_the_utterance_as_the_true_one() -> None:
    """Of 60 random points on a circle, one is about as far from the utterance as the true reply:
    within a few degrees, where a random one is off by 90 degrees on average."""
    pairs = make_pairs(300)
    rng = np.random.default_rng(3)
    known: dict[str, float] = {}
    for text in pairs.utterances + pairs.responses:
        known.setdefault(text, rng.uniform(0, 2 * np.pi))
    points = {text: (np.cos(angle), np.sin(angle)) for text, angle in known.items()}

    def sentences(texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([points[text] for text in texts], np.float32)

    rows = np.arange(300)
    drawn = draw(NegativeSampler(pairs, ["matched"], sentences), rows)
    asked, said = sentences(pairs.utterances), sentences(pairs.responses)
    found, true = (asked * said[drawn]).sum(axis=1), (asked * said).sum(axis=1)
    assert np.abs(found - true).mean() < 0.03
    assert np.abs((asked * said[rng.permutation(300)]).sum(axis=1) - true).mean() > 0.5
    assert (drawn != rows).all()
