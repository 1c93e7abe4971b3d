"""The NN-rater: rates whether a retrieved response is also a response to the given utterance.

Tsuta et al. (2020, § 4.2). Two responses to one utterance are a positive example; a negative one
has the same first pair and a second pair from elsewhere, so that the first pair alone tells
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.learn.batches import LengthBatches, PlannedBatches, make_rng
from rejoinder.learn.inference import (
    NO_TOKEN_LIMIT,
    FittedNetwork,
    inference_batches,
    initialised,
    run_identity,
)
from rejoinder.learn.inputs.input_encoder import Contexts, EncodedTexts, InputEncoder, Ints
from rejoinder.learn.negatives import NegativeSampler
from rejoinder.learn.networks.ensemble import make_ensemble, separate_losses
from rejoinder.learn.networks.raters import rating
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.scorer import make_sampler
from rejoinder.learn.settings import RaterSettings
from rejoinder.learn.training import TrainingResult, train
from rejoinder.learn.training_data import Pairs, TrainingData
from rejoinder.text.distinct import distinct

__all__ = ["Rater", "RaterSettings", "fit_rater", "missing_rater_data"]

MIN_UTTERANCES = 10
"""Utterances with several responses that are needed to train a rater."""
VALIDATION_SHARE = 0.1
"""Share of them that is held out where the validation pairs have too few."""

Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""U1, R1, U2, R2, and whether R2 is a response to U1."""


class Rater(FittedNetwork):
    """A fitted rater. Options: context_turns and soft_ratings."""

    part: ClassVar[str] = "rater"
    option_types: ClassVar[Mapping[str, type]] = {"context_turns": int, "soft_ratings": bool}

    def rate(
        self,
        contexts1: Contexts,
        responses1: Sequence[str],
        contexts2: Contexts,
        responses2: Sequence[str],
    ) -> NDArray[np.float64]:
        """[n] return from -1 to 1 whether response 2, given to context 2, also fits context 1.

        A response without a context of its own (the utterance itself, or the reply of a system) has
        an empty context 2; then the second triplet, which asks whether response 1 fits context 2,
        is not used.
        """
        if len({len(part) for part in (contexts1, responses1, contexts2, responses2)}) > 1:
            raise ValueError("the numbers of contexts and responses differ")
        no_context = np.array([not turns for turns in contexts2], np.bool_)
        once, prefixes = distinct(list(zip(map(tuple, contexts1), responses1, strict=True)))
        first_pair = (
            self.inputs.encode_contexts([context for context, _ in once], self.context_turns),
            self.inputs.encode_replies([response for _, response in once]),
        )
        second_pair = (
            self.inputs.encode_contexts(
                [b or a for a, b in zip(contexts1, contexts2, strict=True)], self.context_turns
            ),
            self.inputs.encode_replies(responses2),
        )
        lengths = [text.lengths[prefixes] for text in first_pair]
        lengths += [text.lengths for text in second_pair]
        ratings = np.empty(len(responses2))
        for numbers, rows in inference_batches(prefixes, np.sum(lengths, axis=0)):
            with torch.inference_mode():
                first = (text.batch(numbers) for text in first_pair)
                logits = self.model(*first, *(text.batch(rows) for text in second_pair))
                forward, backward = (part.double().softmax(dim=1)[:, 1] for part in logits)
                backward = torch.where(torch.from_numpy(no_context[rows]), forward, backward)
                soft = self.options["soft_ratings"]
                ratings[rows] = rating(forward, backward, soft=soft).numpy()
        return ratings


def missing_rater_data(data: TrainingData) -> str | None:
    """Return why these pairs are too few to train a rater, None if they are enough.

    This needs no encoding: a rater that cannot be trained costs nothing.
    """
    groups, validation_groups = data.training.response_groups, data.validation.response_groups
    count = len(groups) + len(validation_groups)
    if count >= MIN_UTTERANCES and len(groups) >= 2:
        return None
    return (
        f"only {count} utterances have several different responses; a rater needs at least"
        f" {MIN_UTTERANCES} to learn which other responses fit an utterance"
    )


def fit_rater(
    data: TrainingData,
    inputs: InputEncoder,
    settings: RaterSettings,
    work: Path,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Rater, TrainingResult] | tuple[None, str]:
    """Train a rater in the folder ``work``, from which a repeated call resumes after a kill.

    Returns None and the reason if there are too few utterances with several responses, or if
    training does not improve the validation loss.
    """
    if reason := missing_rater_data(data):
        return None, reason
    groups, validation_groups = data.training.response_groups, data.validation.response_groups
    training = RaterBatches.of(data.training, groups, inputs, settings)
    if len(validation_groups) >= MIN_UTTERANCES:
        validation = RaterBatches.of(
            data.validation, validation_groups, inputs, settings, fixed=True
        )
    else:
        training, validation = training.split(VALIDATION_SHARE)
    model = initialised(
        settings.training.seed,
        lambda: make_ensemble(settings.ensemble_size, lambda: inputs.make_rater(settings)),
    )
    result = train(
        model,
        separate_losses(rater_loss),
        training,
        settings.training,
        work,
        validation=validation,
        identity=run_identity(inputs, settings.to_dict(), data.digest, identity),
        on_progress=on_progress,
    )
    if result.best_step == 0:
        return None, "training did not improve the loss on held-out utterances"
    options = {"context_turns": settings.context_turns, "soft_ratings": settings.soft_ratings}
    return Rater(inputs, model, **options), result


class RaterBatches(PlannedBatches):
    """Batches of pairs of pairs: each pair once with another response to the same utterance, and
    once with a negative, both drawn anew in each epoch."""

    def __init__(
        self,
        texts: tuple[EncodedTexts, EncodedTexts],
        groups: Sequence[Ints],
        negatives: NegativeSampler,
        settings: RaterSettings,
        *,
        fixed: bool = False,
    ) -> None:
        """``texts`` are contexts and replies; ``groups``, rows with the same utterance."""
        self.contexts, self.replies = texts
        self.groups, self.negatives, self.settings = groups, negatives, settings
        self.fixed = fixed
        sizes = np.array([len(group) for group in groups])
        self._rows = np.concatenate(groups)
        self._sizes = np.repeat(sizes, sizes)
        self._starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        lengths = (self.contexts.lengths + self.replies.lengths)[np.repeat(self._rows, 2)]
        self.plan = LengthBatches(lengths, NO_TOKEN_LIMIT, settings.batch_size)

    @classmethod
    def of(
        cls,
        pairs: Pairs,
        groups: Sequence[Ints],
        inputs: InputEncoder,
        settings: RaterSettings,
        *,
        fixed: bool = False,
    ) -> RaterBatches:
        turns = settings.context_turns
        contexts = inputs.encode_contexts(pairs.contexts(turns), turns)
        texts = (contexts, inputs.encode_replies(pairs.responses))
        negatives = make_sampler(pairs, settings.negatives, inputs)
        return cls(texts, groups, negatives, settings, fixed=fixed)

    def split(self, share: float) -> tuple[RaterBatches, RaterBatches]:
        """Return training and validation batches; utterances are held out at equal distances."""
        step = round(1 / share)
        held_out = [group for number, group in enumerate(self.groups) if number % step == 1]
        training = [group for number, group in enumerate(self.groups) if number % step != 1]
        texts = (self.contexts, self.replies)
        return (
            RaterBatches(texts, training, self.negatives, self.settings),
            RaterBatches(texts, held_out, self.negatives, self.settings, fixed=True),
        )

    def batch(self, seed: int, epoch: int, step: int) -> Batch:
        numbers = self.batches(seed, epoch)[step]
        rng = make_rng(seed, epoch, step, 2)
        places, labels = numbers // 2, numbers % 2
        first = self._rows[places]
        kinds = rng.integers(len(self.settings.negatives), size=len(places))
        second = self.negatives.draw(first, kinds, rng)
        positive = labels == 1
        second[positive] = self._rows[self._same_group(places, rng)][positive]
        return (
            self.contexts.batch(first),
            self.replies.batch(first),
            self.contexts.batch(second),
            self.replies.batch(second),
            torch.from_numpy(labels),
        )

    def _same_group(self, places: Ints, rng: np.random.Generator) -> Ints:
        """Draw another place of the same group."""
        starts, sizes = self._starts[places], self._sizes[places]
        moved: Ints = starts + (places - starts + 1 + rng.integers(sizes - 1)) % sizes
        return moved


def rater_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
    """Return the cross entropy of both triplets."""
    *texts, labels = batch
    both = torch.cat(model(*texts))
    loss = nn.functional.cross_entropy(both, torch.cat([labels, labels]), reduction="sum")
    return loss, float(len(both))
