"""Small networks of all kinds, and batches for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rejoinder.learn.checkpoint import Model
from rejoinder.learn.dialogue.batches import DialogueBatch, collate
from rejoinder.learn.dialogue.dialogues import Dialogues, Piece
from rejoinder.learn.dialogue.make_network import make_network
from rejoinder.learn.dialogue.settings import (
    NETWORKS,
    SystemSettings,
    VocabularySettings,
    read_system_settings,
)
from rejoinder.learn.dialogue.vocabulary import Vocabulary, Words, train_vocabulary
from rejoinder.learn.inference import initialised
from trained import small_talk

GENERATIVE = [name for name in NETWORKS if name != "dual-encoder"]
LATENT = ["vhred", "cvae"]


def settings_of(name: str, **sizes: object) -> SystemSettings:
    """Return settings of the preset tiny, with other sizes of the network."""
    settings = read_system_settings(name, "tiny")
    return replace(settings, network=replace(settings.network, **sizes))


def network_of(name: str, vocab_size: int = 30, seed: int = 1, **sizes: object) -> Model:
    """Return a network with random weights, in evaluation mode."""
    settings = settings_of(name, **sizes)
    return initialised(seed, lambda: make_network(settings, vocab_size)).eval()


def word_vocabulary(texts: Sequence[str]) -> Vocabulary:
    return train_vocabulary(texts, VocabularySettings(kind="words", size=200, tok="whitespace"))


def talk() -> tuple[list[Piece], Vocabulary]:
    """Return dialogues of three to five turns, and their words."""
    rows = small_talk(12)
    texts = [text for row in rows for text in (row["utterance"], row["response"])]
    pieces = []
    for number in range(12):
        own = [row for row in rows if row["dialogue_id"] == f"d{number}"]
        turns = [own[0]["utterance"], *(row["response"] for row in own)]
        pieces.append(Piece(turns[: 3 + number % 2], 1))
    return pieces, word_vocabulary(texts)


def encoded_talk() -> tuple[Dialogues, Vocabulary]:
    pieces, vocabulary = talk()
    return Dialogues.of(pieces, vocabulary, 30), vocabulary


def whole_batch(dialogues: Dialogues, **kwargs: float) -> DialogueBatch:
    return collate(dialogues, np.arange(len(dialogues)), **kwargs)


__all__ = [
    "GENERATIVE", "LATENT", "Words", "encoded_talk", "network_of", "settings_of", "talk",
    "whole_batch", "word_vocabulary",
]  # fmt: skip
