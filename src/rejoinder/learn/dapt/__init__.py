"""Domain-adaptive pre-training: continue the masked language modelling of an encoder on dialogues.

Gururangan et al. (2020), "Don't Stop Pretraining: Adapt Language Models to Domains and Tasks",
found that encoders improve in a domain after further pre-training on its texts; Tsuta et al. (2023,
§ 5.3) do so with BERT on Twitter dialogues before they retrieve and rate with it. A text is an
utterance with its response, joined as the model joins two sentences.
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

from rejoinder.encode.transformer.find_model import DEFAULT_MODEL, find_model_folder
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.transformers_network import load_model
from rejoinder.files.cache import open_cache
from rejoinder.files.output import whole_folder
from rejoinder.files.paths import check_new_folder, file_digest, work_folder
from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.dapt.batches import MaskedBatches
from rejoinder.learn.dapt.masking import Vocabulary
from rejoinder.learn.dapt.model import MaskedLanguageModel, load_head, masked_loss
from rejoinder.learn.dapt.output import KIND, is_adapted_encoder, write_encoder
from rejoinder.learn.dapt.tokens import TokenizedPairs, open_tokenizer, read_vocabulary, tokenize
from rejoinder.learn.distributed import open_process_group
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.settings import TrainingSettings, check_settings
from rejoinder.learn.training import VALIDATION, TrainingResult, train
from rejoinder.learn.training_data import read_training_data
from rejoinder.version import __version__

MIN_MAX_TOKENS = 8
"""Smallest max_tokens: three tokens of a pair are special."""
MAX_VALIDATION_PAIRS = 1000
"""More pairs would make validation slower, but hardly more exact."""


@dataclass(frozen=True, kw_only=True)
class DaptSettings:
    """Settings of domain-adaptive pre-training."""

    training: TrainingSettings
    model: str = DEFAULT_MODEL
    mask_probability: float = 0.15
    """Share of the tokens that are masked."""
    whole_word_mask: bool = False
    """Mask all subwords of a word together; only for languages with spaces between words."""
    batch_tokens: int = 2048
    """Tokens per batch, padding included."""
    max_tokens: int = 128
    """Tokens per pair; longer pairs are cut."""
    max_pairs: int | None = None
    """Train on this many pairs, drawn at random."""

    def __post_init__(self) -> None:
        share, pairs = self.mask_probability, self.max_pairs
        check_settings(
            (not 0 < share < 1, f"mask_probability must be between 0 and 1, not {share}"),
            (self.batch_tokens < 1, f"batch_tokens must be above 0, not {self.batch_tokens}"),
            (
                self.max_tokens < MIN_MAX_TOKENS,
                f"max_tokens must be {MIN_MAX_TOKENS} or more, not {self.max_tokens}",
            ),
            (pairs is not None and pairs < 1, f"max_pairs must be above 0, not {pairs}"),
        )

    def to_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in asdict(self).items() if name != "training"}
        return {**own, **self.training.to_dict()}


@dataclass(frozen=True)
class AdaptResult:
    """The manifest of the adapted encoder's folder, and the training result."""

    manifest: dict[str, Any]
    training: TrainingResult


def adapt(
    pairs: Path,
    output: Path,
    settings: DaptSettings,
    on_progress: Callable[[TrainingProgress], None] | None = None,
) -> AdaptResult:
    """Write an adapted encoder to the folder ``output``, whole or not at all.

    An interrupted run resumes when it is repeated: its checkpoints are in a hidden folder beside
    the output until that is complete.
    """
    check_new_folder(output, may_replace=is_adapted_encoder)
    folder = ModelFolder(settings.model, find_model_folder(settings.model))
    model_digest = folder.digest(open_cache())
    tokenizer = open_tokenizer(folder)
    data = read_training_data(
        pairs,
        max_pairs=settings.max_pairs,
        max_validation_pairs=MAX_VALIDATION_PAIRS,
        seed=settings.training.seed,
        whole_dialogues=False,
    )
    data_digest = file_digest(pairs).hex()
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(settings.training.seed)
        model = MaskedLanguageModel(load_model(folder, folder.layers))
    head = load_head(model, folder)
    vocabulary = read_vocabulary(tokenizer, len(model.embeddings))
    max_tokens = min(settings.max_tokens, folder.max_tokens)
    training = _batches(tokenize(tokenizer, data.training, max_tokens), vocabulary, settings)
    held_out = tokenize(tokenizer, data.validation, max_tokens)
    validation = _batches(held_out, vocabulary, settings, fixed=True)
    work = work_folder(output)
    with open_process_group() as group:
        result = train(
            model,
            masked_loss,
            training,
            settings.training,
            work,
            validation=validation,
            identity={
                "rejoinder": __version__,
                "pairs": data_digest,
                "model": model_digest,
                "settings": settings.to_dict(),
            },
            on_progress=on_progress,
            group=group,
        )
        unigram = _unigram_loss(training.pairs, validation)
        manifest = {
            "kind": KIND,
            "rejoinder": __version__,
            "model": {"name": settings.model, "digest": model_digest},
            "data": {
                "file": pairs.name,
                "digest": data_digest,
                "split_by": data.split_by,
                **data.counts,
                "train_tokens": len(training.pairs.ids),
                "truncated": training.pairs.truncated,
            },
            "settings": {**settings.to_dict(), "max_tokens": max_tokens},
            "result": _summary(result, head, unigram),
        }
        if group.is_main_process:
            with whole_folder(output) as filling:
                write_encoder(filling, folder, model, manifest)
            shutil.rmtree(work, ignore_errors=True)
        group.barrier()
    return AdaptResult(manifest, result)


def _batches(
    pairs: TokenizedPairs, vocabulary: Vocabulary, settings: DaptSettings, *, fixed: bool = False
) -> MaskedBatches:
    return MaskedBatches(
        pairs,
        vocabulary,
        LengthBatches(pairs.lengths, settings.batch_tokens),
        settings.mask_probability,
        settings.whole_word_mask,
        fixed,
    )


def _unigram_loss(training: TokenizedPairs, validation: MaskedBatches) -> float:
    """Return the loss of predicting masked tokens by their frequency in training (plus one)."""
    counts = np.bincount(training.ids, minlength=validation.vocabulary.size) + 1.0
    counts[validation.vocabulary.special] = 0.0
    steps = range(validation.steps(*VALIDATION))
    targets = np.concatenate([validation.batch(*VALIDATION, k).targets.numpy() for k in steps])
    return float(-np.log(counts[targets] / counts.sum()).mean())


def _summary(result: TrainingResult, head: str, unigram: float) -> dict[str, Any]:
    before, after = result.first_loss, result.best_loss
    assert before is not None
    assert after is not None
    return {
        "head": head,
        "loss_before": before,
        "loss_after": after,
        "perplexity_before": _perplexity(before),
        "perplexity_after": _perplexity(after),
        "perplexity_unigram": _perplexity(unigram),
        "steps": result.steps,
        "best_step": result.best_step,
        "stopped_early": result.stopped_early,
        "history": result.history,
    }


def _perplexity(loss: float) -> float:
    return math.exp(min(loss, 700.0))
