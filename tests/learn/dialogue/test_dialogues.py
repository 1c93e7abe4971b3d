"""Pairs are joined to dialogues; batches say which turns a reply may read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learn.dialogue.small import word_vocabulary
from rejoinder.errors import DataError
from rejoinder.learn.dialogue.batches import (
    DialogueBatches,
    collate,
    decoder_inputs,
    joined_contexts,
)
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece, check_turns, pieces_of
from rejoinder.learn.dialogue.vocabulary import END, PAD, START
from rejoinder.learn.training import VALIDATION
from rejoinder.learn.training_data import Pairs


def pairs_of(*rows: tuple[str, list[str], str, str]) -> Pairs:
    dialogue, context, utterance, response = zip(*rows, strict=True)
    columns = {
        "dialogue_id": pa.array(dialogue),
        "context": pa.array(context, pa.list_(pa.string())),
        "utterance": pa.array(utterance),
        "response": pa.array(response),
    }
    return Pairs(pa.table(columns))


def test_pairs_of_a_dialogue_are_joined() -> None:
    pairs = pairs_of(
        ("a", [], "1", "2"),
        ("a", ["1"], "2", "3"),
        ("a", ["1", "2"], "3", "4"),
        ("b", [], "1", "2"),  # another dialogue
        ("b", [], "2", "9"),
        ("b", ["x"], "5", "6"),  # does not follow the pair before it
    )
    assert pieces_of(pairs, 6) == [
        Piece(["1", "2", "3", "4"], 1),
        Piece(["1", "2", "9"], 1),
        Piece(["x", "5", "6"], 2),
    ]


def test_long_dialogues_are_divided() -> None:
    """With two turns of context, a piece has four turns; all but the first piece begin with two
    turns of context."""
    turns = [str(number) for number in range(7)]
    rows = [("a", turns[: place - 1], turns[place - 1], turns[place]) for place in range(1, 7)]
    assert pieces_of(pairs_of(*rows), 2) == [
        Piece(["0", "1", "2", "3"], 1),
        Piece(["2", "3", "4", "5"], 2),
        Piece(["4", "5", "6"], 2),
    ]


@given(st.lists(st.integers(2, 9), min_size=1, max_size=6), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_every_reply_is_in_one_piece(lengths: list[int], context_turns: int) -> None:
    """Each response is once a reply, after the turns that precede it, at least its utterance."""
    rows, replies = [], []
    for number, length in enumerate(lengths):
        turns = [f"{number}.{place}" for place in range(length)]
        for place in range(1, length):
            rows.append((str(number), turns[: place - 1], turns[place - 1], turns[place]))
            replies.append(turns[place])
    pieces = pieces_of(pairs_of(*rows), context_turns)
    assert [turn for piece in pieces for turn in piece.turns[piece.first_reply :]] == replies
    for piece in pieces:
        assert 1 <= piece.first_reply <= context_turns
        assert len(piece.turns) <= 2 * context_turns
        places = [turn.split(".") for turn in piece.turns]
        assert len({dialogue for dialogue, _ in places}) == 1
        assert np.diff([int(place) for _, place in places]).tolist() == [1] * (len(places) - 1)


def test_hierarchical_networks_need_several_turns() -> None:
    with pytest.raises(DataError, match="no pair has more than one turn"):
        check_turns([Piece(["a", "b"], 1)], "hred")
    check_turns([Piece(["a", "b"], 1), Piece(["a", "b", "c"], 2)], "hred")


VOCABULARY = word_vocabulary(["a b c d e f g h i j"])
A, B, C, D = (VOCABULARY.encode([word])[0][0] for word in "abcd")
PIECES = Dialogues.of([Piece(["a b", "c", "d"], 1), Piece(["d d d", "a"], 1)], VOCABULARY, 2)


def test_a_batch_by_hand() -> None:
    """Turns are cut to two tokens and end with END."""
    batch = collate(PIECES, np.array([0, 1]))
    assert batch.turns.tolist() == [
        [A, B, END], [C, END, PAD], [D, END, PAD], [D, D, END], [A, END, PAD],
    ]  # fmt: skip
    assert batch.places.tolist() == [[0, 1, 2], [3, 4, -1]]
    assert batch.dialogues.tolist() == [0, 0, 1]
    assert batch.positions.tolist() == [1, 2, 1]
    assert batch.replies.tolist() == [[C, END], [D, END], [A, END]]
    assert decoder_inputs(batch.replies).tolist() == [[START, C], [START, D], [START, A]]
    assert PIECES.cut == 1
    assert PIECES.replies == 3


def test_joined_contexts_by_hand() -> None:
    batch = collate(PIECES, np.array([0, 1]))
    assert joined_contexts(batch, 10).tolist() == [
        [A, B, END, PAD, PAD], [A, B, END, C, END], [D, D, END, PAD, PAD],
    ]  # fmt: skip
    assert joined_contexts(batch, 2).tolist() == [[B, END], [C, END], [D, END]]


def test_the_weight_of_the_kl_divergence_rises() -> None:
    """Two batches an epoch, two epochs of annealing: 0, 1/4, 2/4, 3/4, then 1; 1 in validation."""
    source = DialogueBatches.of(PIECES, 1, kl_annealing_epochs=2.0)
    weights = [
        source.batch(0, epoch, step).kl_weight.item() for epoch in range(3) for step in range(2)
    ]
    assert weights == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert source.batch(*VALIDATION, 0).kl_weight.item() == 1.0
