"""Contexts to reply to: what a network reads of each, and that nothing is read twice."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from learn.dialogue.small import GENERATIVE, encoded_talk, network_of, word_vocabulary
from rejoinder.learn.dialogue.batches import joined_contexts
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.vocabulary import END, PAD

LETTERS = word_vocabulary(["a b c d e f g h i j k l"])
A, B, C, D = (LETTERS.encode([letter])[0][0] for letter in "abcd")
_, VOCABULARY = encoded_talk()

contexts_of_letters = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=5), min_size=1, max_size=12
)


def test_only_the_last_turns_are_read() -> None:
    settings = DialogueDataSettings(context_turns=2, max_turn_tokens=5)
    contexts = Contexts.of([["a", "b", "c"], ["d"]], LETTERS, settings)
    batch = contexts.batch(np.array([0, 1]))
    assert batch.positions.tolist() == [2, 1]
    assert joined_contexts(batch, 9).tolist() == [[B, END, C, END], [D, END, PAD, PAD]]
    assert contexts.take([1]).batch(np.array([0])).turns.tolist() == [[D, END]]


def test_contexts_that_begin_another_one_are_read_once() -> None:
    """Four contexts of one dialogue, one of them twice, and one of another: two pieces, 4 turns."""
    asked = [["a"], ["a", "b", "c"], ["a", "b"], ["d"], ["a", "b"]]
    contexts = Contexts.of(asked, LETTERS, DialogueDataSettings())
    batch = contexts.batch(np.arange(5))
    assert len(contexts.dialogues) == 2
    assert len(batch.turns) == 4
    assert len(set(batch.dialogues[[0, 1, 2, 4]].tolist())) == 1
    assert batch.positions.tolist() == [1, 3, 2, 1, 2]


@given(contexts_of_letters, st.integers(1, 4), st.integers(1, 5))
def test_every_context_keeps_its_own_turns(asked: list[list[str]], turns: int, size: int) -> None:
    """Whatever the batches, each context is read as it would be alone, and is in one batch."""
    contexts = Contexts.of(asked, LETTERS, DialogueDataSettings(context_turns=turns))
    batches = contexts.batches(size)
    assert sorted(number for numbers in batches for number in numbers) == list(range(len(asked)))
    assert all(len(numbers) <= size for numbers in batches)
    for numbers in batches:
        rows = joined_contexts(contexts.batch(numbers), 99).tolist()
        for number, row in zip(numbers.tolist(), rows, strict=True):
            ids = [i for turn in asked[number][-turns:] for i in (*LETTERS.encode([turn])[0], END)]
            assert [i for i in row if i != PAD] == ids


def test_networks_read_shared_turns_as_if_alone() -> None:
    """The logits of the first token are those of each context by itself."""
    talk = ["do you like rain ?", "yes , i like rain a lot .", "and cats ?", "no"]
    asked = [talk[:k] for k in range(1, 5)] + [["tea"], ["tea", "soup"]]
    contexts = Contexts.of(asked, VOCABULARY, DialogueDataSettings())
    alone = [Contexts.of([context], VOCABULARY, DialogueDataSettings()) for context in asked]
    for name in GENERATIVE:
        network = network_of(name, len(VOCABULARY))
        assert isinstance(network, GenerativeNetwork)
        start = torch.ones(len(asked), dtype=torch.long)
        with torch.inference_mode():
            state = network.read(contexts.batch(np.arange(len(asked))))
            together, _ = network.step(start, state)
            for number, single in enumerate(alone):
                own, _ = network.step(start[:1], network.read(single.batch(np.array([0]))))
                torch.testing.assert_close(together[number], own[0], rtol=1e-4, atol=1e-5)
