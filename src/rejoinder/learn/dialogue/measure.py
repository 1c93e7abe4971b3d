"""Measure a trained network on held-out dialogues: perplexity, KL divergence, and its replies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rejoinder.learn.batches import make_rng
from rejoinder.learn.dialogue.batches import DialogueBatches
from rejoinder.learn.dialogue.contexts import Contexts
from rejoinder.learn.dialogue.decoding import Decoding, decode
from rejoinder.learn.dialogue.dialogues import Piece
from rejoinder.learn.dialogue.networks.dual_encoder import DualEncoder, ranking_loss
from rejoinder.learn.dialogue.networks.network import GenerativeNetwork
from rejoinder.learn.dialogue.settings import DialogueDataSettings
from rejoinder.learn.dialogue.vocabulary import Vocabulary
from rejoinder.learn.training import VALIDATION

MAX_REPLIES = 500
"""Held-out contexts that are replied to."""


def measure_likelihood(
    network: GenerativeNetwork, held_out: DialogueBatches, words: int, seed: int = 0
) -> dict[str, float]:
    """Return the perplexity of held-out replies by token and by word, and the KL divergence.

    ``words`` is the number of words of these replies; the end of a reply counts as one more. For a
    network with a latent variable the perplexity is an upper bound, exp(-ELBO / words), of one
    sample of the variable for each reply.
    """
    nll, kl, tokens, replies = 0.0, 0.0, 0.0, 0.0
    with torch.inference_mode(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        for step in range(held_out.steps(*VALIDATION)):
            losses = network.losses(held_out.batch(*VALIDATION, step))
            nll, tokens = nll + losses.nll.item(), tokens + losses.tokens
            replies += losses.replies
            kl += 0.0 if losses.kl is None else losses.kl.item()
    result = {
        "perplexity": _exp((nll + kl) / (words + replies)),
        "perplexity_by_token": _exp((nll + kl) / tokens),
        "nll_by_reply": nll / replies,
    }
    if network.latent_size:
        result["kl"] = kl / replies
    return result


def measure_ranking(network: DualEncoder, held_out: DialogueBatches) -> dict[str, float]:
    """Return how often the true reply is the best of its batch, and the mean loss."""
    first, loss, count = 0.0, 0.0, 0.0
    with torch.inference_mode():
        for step in range(held_out.steps(*VALIDATION)):
            batch = held_out.batch(*VALIDATION, step)
            total, n = ranking_loss(network, batch)
            replies = network.encode_replies(batch.replies)
            scores = network.encode_contexts(batch) @ replies.T
            best = scores >= scores.diagonal()[:, None]
            first += float((best.sum(1) == 1).sum())
            loss, count = loss + total.item(), count + n
    return {"recall_at_1": first / count, "candidates": count / held_out.steps(*VALIDATION),
            "loss": loss / count}  # fmt: skip


def sample_contexts(pieces: Sequence[Piece], seed: int = 0) -> list[list[str]]:
    """Return contexts of held-out replies, drawn at random."""
    contexts = [
        piece.turns[:place]
        for piece in pieces
        for place in range(piece.first_reply, len(piece.turns))
    ]
    if len(contexts) <= MAX_REPLIES:
        return contexts
    chosen = make_rng(seed).choice(len(contexts), MAX_REPLIES, replace=False)
    return [contexts[i] for i in np.sort(chosen)]


def measure_replies(
    network: GenerativeNetwork,
    contexts: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    settings: DialogueDataSettings,
    seed: int = 0,
) -> dict[str, Any]:
    """Return mean length and distinct-n of greedy replies to held-out contexts, with examples."""
    encoded = Contexts.of(contexts, vocabulary, settings)
    decoding = Decoding(max_tokens=settings.max_turn_tokens)
    rngs = [make_rng(seed, number) for number in range(len(contexts))]
    answers = decode(network, encoded, 1, decoding, rngs, vocabulary.never_generated)
    texts = [vocabulary.decode(answer[0]) for answer in answers]
    words = vocabulary.split(texts)
    total = sum(map(len, words))
    result: dict[str, Any] = {"contexts": len(contexts), "mean_length": total / len(texts)}
    for n in (1, 2):
        grams = [tuple(row[i : i + n]) for row in words for i in range(len(row) - n + 1)]
        result[f"distinct_{n}"] = len(set(grams)) / max(1, len(grams))
    result["examples"] = [
        {"context": list(context[-2:]), "reply": text}
        for context, text in zip(contexts[:3], texts, strict=False)
    ]
    return result


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))
