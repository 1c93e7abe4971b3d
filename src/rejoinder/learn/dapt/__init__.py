"""Domain-adaptive pre-training: an encoder goes on learning, on the dialogues at hand.

Gururangan et al. (2020), "Don't Stop Pretraining: Adapt Language Models to Domains and Tasks",
found that models do better in a domain if they first go on guessing hidden words in its texts;
Tsuta et al. (2023, § 5.3) do so with BERT on Twitter dialogues before they retrieve and rate with
it. A text is an utterance with its response, joined as the model joins two sentences.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rejoinder.encode.cache import open_cache
from rejoinder.encode.transformer.find import DEFAULT_MODEL, find_folder
from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.encode.transformer.network import load
from rejoinder.errors import UsageError
from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.dapt.batches import MaskedPairs
from rejoinder.learn.dapt.masking import Vocabulary
from rejoinder.learn.dapt.model import MaskedModel, find_head, guessing_loss
from rejoinder.learn.dapt.output import KIND, is_ours, write_encoder
from rejoinder.learn.dapt.tokens import Sequences, open_tokenizer, tokenize, vocabulary
from rejoinder.learn.folder import check_new_folder, whole_folder
from rejoinder.learn.pairs import read_material
from rejoinder.learn.progress import Progress
from rejoinder.learn.settings import Training
from rejoinder.learn.team import open_team
from rejoinder.learn.training import VALIDATION, Outcome, train
from rejoinder.version import __version__

SHORTEST = 8
"""Tokens that a pair must be allowed: three of them are special."""


@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """What to adapt, and how."""

    training: Training
    model: str = DEFAULT_MODEL
    mask: float = 0.15
    """Share of the tokens that are hidden."""
    whole_words: bool = False
    """Hide all pieces of a word together; only for languages that put spaces between words."""
    batch_tokens: int = 2048
    """Tokens of a batch, padding included."""
    longest: int = 128
    """Tokens of a pair; what is longer is cut."""
    sample: int | None = None
    """Train on so many pairs, drawn at random."""

    def __post_init__(self) -> None:
        checks = [
            (not 0 < self.mask < 1, f"mask is a share between 0 and 1, not {self.mask}"),
            (self.batch_tokens < 1, f"batch_tokens must be above 0, not {self.batch_tokens}"),
            (self.longest < SHORTEST, f"longest must be {SHORTEST} or more, not {self.longest}"),
            (self.sample is not None and self.sample < 1, "sample must be above 0"),
        ]
        if problems := [message for wrong, message in checks if wrong]:
            raise UsageError(*problems)

    def plain(self) -> dict[str, Any]:
        own = {name: value for name, value in asdict(self).items() if name != "training"}
        return {**own, **self.training.plain()}


@dataclass(frozen=True)
class Adapted:
    """What came out; ``manifest`` is that of the folder."""

    manifest: dict[str, Any]
    outcome: Outcome


def adapt(
    pairs: Path,
    output: Path,
    settings: Adaptation,
    on_progress: Callable[[Progress], None] | None = None,
) -> Adapted:
    """Write an adapted encoder to the folder ``output``, whole or not at all.

    A run that was interrupted and is repeated goes on: its state stands in a hidden folder
    beside the output until that is done.
    """
    check_new_folder(output, may_replace=is_ours)
    folder = ModelFolder(settings.model, find_folder(settings.model))
    digest = folder.digest(open_cache())
    tokenizer = open_tokenizer(folder)
    material = read_material(pairs, sample=settings.sample, seed=settings.training.seed)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.training.seed)
        model = MaskedModel(load(folder, folder.layers))
    head = find_head(model, folder)
    words = vocabulary(tokenizer, len(model.table))
    longest = min(settings.longest, folder.longest)
    training = _source(tokenize(tokenizer, material.training, longest), words, settings)
    held_out = tokenize(tokenizer, material.validation, longest)
    validation = _source(held_out, words, settings, fixed=True)
    work = output.with_name(f".{output.name}.work")
    with open_team() as team:
        outcome = train(
            model,
            guessing_loss,
            training,
            settings.training,
            work,
            validation=validation,
            identity={
                "rejoinder": __version__,
                "pairs": material.digest,
                "model": digest,
                "settings": settings.plain(),
            },
            on_progress=on_progress,
            team=team,
        )
        unigram = _unigram_loss(training.sequences, validation)
        manifest = {
            "kind": KIND,
            "rejoinder": __version__,
            "model": {"name": settings.model, "digest": digest},
            "data": {
                "file": pairs.name,
                "digest": material.digest,
                "split_by": material.split_by,
                **material.counts,
                "train_tokens": len(training.sequences.ids),
                "cut": training.sequences.cut,
            },
            "settings": {**settings.plain(), "longest": longest},
            "result": _result(outcome, head, unigram),
        }
        if team.first:
            with whole_folder(output) as filling:
                write_encoder(filling, folder, model, manifest)
            shutil.rmtree(work, ignore_errors=True)
        team.wait()
    return Adapted(manifest, outcome)


def _source(
    sequences: Sequences, words: Vocabulary, settings: Adaptation, *, fixed: bool = False
) -> MaskedPairs:
    return MaskedPairs(
        sequences,
        words,
        LengthBatches(sequences.lengths, settings.batch_tokens),
        settings.mask,
        settings.whole_words,
        fixed,
    )


def _unigram_loss(training: Sequences, validation: MaskedPairs) -> float:
    """Of guessing every hidden token by how often it stands in the training pairs (plus one)."""
    counts = np.bincount(training.ids, minlength=validation.words.size) + 1.0
    counts[validation.words.special] = 0.0
    steps = range(validation.steps(*VALIDATION))
    truth = np.concatenate([validation.batch(*VALIDATION, k).truth.numpy() for k in steps])
    return float(-np.log(counts[truth] / counts.sum()).mean())


def _result(outcome: Outcome, head: str, unigram: float) -> dict[str, Any]:
    before, after = outcome.first_loss, outcome.best_loss
    assert before is not None
    assert after is not None
    return {
        "head": head,
        "loss_before": before,
        "loss_after": after,
        "perplexity_before": _perplexity(before),
        "perplexity_after": _perplexity(after),
        "perplexity_unigram": _perplexity(unigram),
        "steps": outcome.steps,
        "best_step": outcome.best_step,
        "out_of_patience": outcome.out_of_patience,
        "history": outcome.history,
    }


def _perplexity(loss: float) -> float:
    return math.exp(min(loss, 700.0))
