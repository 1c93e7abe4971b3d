"""``repetition`` and ``self-similarity``: values by hand, and properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoinder
from rejoinder.errors import DataError, UsageError
from rejoinder.metrics.dialogue.repetition import repeated_share

DIALOGUE = ["i like tea a lot", "me too", "i like milk", "so what ?"]
words = st.lists(st.sampled_from("abc"), max_size=8)


def value(spec: str, reply: str, context: list[str]) -> float:
    return rejoinder.score_one(spec, reply, context=context)


@pytest.mark.parametrize(
    ("n", "reply", "share"),
    [
        # own turns: "i like milk" and "i like tea a lot"
        (1, "i like tea too", 3 / 4),
        (2, "i like tea too", 2 / 3),  # i like, like tea, not tea too
        (3, "i like tea too", 1 / 2),
        (4, "i like tea too", 0),
        (3, "me too", 0),  # that was the other speaker
        (3, "like tea", 1),  # shorter than n: one n-gram of two words, which was said
        (3, "tea like", 0),
        (2, "i like i like", 2 / 3),  # with repetitions: i like, like i, i like
        (3, "", 0),
    ],
)
def test_repetition_by_hand(n: int, reply: str, share: float) -> None:
    assert value(f"repetition(n={n})", reply, DIALOGUE) == pytest.approx(share)


def test_only_own_turns_count() -> None:
    """Without the first turn, the speaker's own are "i like milk" alone."""
    assert value("repetition(n=2)", "i like tea too", DIALOGUE[1:]) == pytest.approx(1 / 3)
    assert value("self-similarity(d=rouge-l)", "me too", DIALOGUE) == 0
    assert value("self-similarity(d=rouge-l)", "i like milk", DIALOGUE) == 1


def test_vectors_find_what_is_said_in_other_words() -> None:
    """ROUGE-L takes the place of vectors: "milk i like" shares "i like" with "i like milk", so the
    F-score of 2/3 and 2/3; no bigram but "i like" of two, 1/2."""
    assert value("repetition(n=2)", "milk i like", DIALOGUE) == pytest.approx(1 / 2)
    assert value("repetition(n=2,d=rouge-l)", "milk i like", DIALOGUE) == pytest.approx(2 / 3)


@pytest.mark.parametrize("spec", ["repetition", "self-similarity(d=rouge-l)"])
def test_a_first_turn_has_nothing_to_repeat(spec: str) -> None:
    with pytest.raises(DataError, match="no earlier turn of the same speaker"):
        value(spec, "hello", ["hi"])
    with pytest.raises(DataError, match="no context"):
        value(spec, "hello", [])


def test_encoders_by_default() -> None:
    context = ["i have a cat", "nice", "my dog is old", "oh"]
    same = value("self-similarity", "i have got a cat", context)
    other = value("self-similarity", "the meeting is on monday", context)
    assert same > 0.8 > 0.4 > other


def test_unscored_replies_stay_in_their_place() -> None:
    items = [
        {"id": "a", "response": "x y", "context": ["q"]},
        {"id": "b", "response": "x y", "context": ["x y", "q"]},
        {"id": "c", "response": "z", "context": ["x y", "q"]},
    ]
    scores = rejoinder.score(items, "repetition")["repetition"]
    assert np.isnan(scores.values[0])
    assert scores.values[1:].tolist() == [1, 0]
    assert scores.unscored == {"a": "no earlier turn of the same speaker"}


@pytest.mark.parametrize("spec", ["repetition(d=unreferenced)", "self-similarity(d=repetition)"])
def test_only_metrics_that_compare_two_texts(spec: str) -> None:
    with pytest.raises(UsageError, match="does not compare a reply with single references"):
        value(spec, "a", ["b", "c"])


@given(words, st.lists(words, min_size=1, max_size=3), st.integers(1, 4))
def test_properties_of_shares(reply: list[str], turns: list[list[str]], n: int) -> None:
    """In [0, 1]; 1 for a reply that was said; never lower with more turns; longer n-grams are not
    repeated more, in number."""
    ids = [ord(word) for word in reply]
    said = [[ord(word) for word in turn] for turn in turns]
    share = repeated_share(ids, said, n)
    assert 0 <= share <= 1
    assert repeated_share(ids, [*said, ids], n) == (1 if ids else 0)
    assert repeated_share(ids, said[:1], n) <= share
    if len(ids) > n:
        count, longer = len(ids) - n + 1, len(ids) - n
        assert repeated_share(ids, said, n + 1) * longer <= share * count + 1e-9
