"""The unreferenced scorer: how well a reply fits its context, trained without labels.

RUBER (Tao et al. 2018, § 3.2): true pairs against the same contexts with other replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.errors import DataError, UsageError
from rejoinder.learn.batches import LengthBatches, PlannedBatches, make_rng
from rejoinder.learn.calibration import calibrate
from rejoinder.learn.inference import (
    NO_TOKEN_LIMIT,
    FittedNetwork,
    inference_batches,
    initialised,
    run_identity,
)
from rejoinder.learn.inputs.input_encoder import Contexts, EncodedTexts, InputEncoder
from rejoinder.learn.negatives import NegativeSampler
from rejoinder.learn.networks.ensemble import make_ensemble, members_of, separate_losses
from rejoinder.learn.networks.folded_scorer import MIN_REPLIES, FoldedScorer
from rejoinder.learn.networks.scorers import VectorScorer, logistic_loss, margin_loss
from rejoinder.learn.progress import TrainingProgress
from rejoinder.learn.settings import PARROT, RANDOM, VECTOR_NEGATIVES, ScorerSettings
from rejoinder.learn.training import VALIDATION, Loss, TrainingResult, train
from rejoinder.learn.training_data import Pairs, TrainingData
from rejoinder.text.distinct import distinct

__all__ = ["Scorer", "ScorerSettings", "fit_scorer"]

Batch = tuple[Tensor, Tensor]
"""Contexts, and replies: for each context the true one, then its negatives."""


class Scorer(FittedNetwork):
    """A fitted scorer. Options: context_turns, cosine_weight, and the calibration."""

    part: ClassVar[str] = "scorer"
    option_types: ClassVar[Mapping[str, type]] = {
        "context_turns": int,
        "slope": float,
        "intercept": float,
        "cosine_weight": float,
    }

    @cached_property
    def _folded(self) -> FoldedScorer | None:
        return FoldedScorer.of(self.model)

    def score(self, contexts: Contexts, replies: Sequence[str]) -> NDArray[np.float64]:
        """[n] return how well each reply fits its context, from 0 to 1."""
        if len(contexts) != len(replies):
            raise ValueError(f"{len(contexts)} contexts, but {len(replies)} replies")
        once, prefixes = distinct([tuple(context) for context in contexts])
        queries = self.inputs.encode_contexts(once, self.context_turns)
        texts = self.inputs.encode_replies(replies)
        weight = self.options["cosine_weight"]
        raw = np.empty(len(replies))
        for numbers, rows in inference_batches(prefixes, queries.lengths[prefixes] + texts.lengths):
            batch = queries.batch(numbers), texts.batch(rows)
            raw[rows] = _raw_scores(self.model, *batch, weight, self._folded)
        logits = self.options["slope"] * raw + self.options["intercept"]
        return torch.from_numpy(logits).sigmoid().numpy()


def fit_scorer(
    data: TrainingData,
    inputs: InputEncoder,
    settings: ScorerSettings,
    work: Path,
    on_progress: Callable[[TrainingProgress], None] | None = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Scorer, TrainingResult]:
    """Train a scorer in the folder ``work``, from which a repeated call resumes after a kill.

    ``identity`` (JSON) has everything else that makes it another run.
    """
    check_scorer_data(data)
    model = initialised(
        settings.training.seed,
        lambda: make_ensemble(settings.ensemble_size, lambda: inputs.make_scorer(settings)),
    )
    if settings.cosine_weight and not isinstance(members_of(model)[0], VectorScorer):
        raise UsageError(f"cosine_weight needs the input vectors, not {inputs.name}")
    validation = ScorerBatches.of(data.validation, inputs, settings, fixed=True)
    result = train(
        model,
        separate_losses(scorer_loss(settings)),
        ScorerBatches.of(data.training, inputs, settings),
        settings.training,
        work,
        validation=validation,
        identity=run_identity(inputs, settings.to_dict(), data.digest, identity),
        on_progress=on_progress,
    )
    options = {"context_turns": settings.context_turns, **_calibrated(model, validation, settings)}
    return Scorer(inputs, model, **options), result


def check_scorer_data(data: TrainingData) -> None:
    """Raise DataError if there is nothing that a scorer could learn."""
    if len(np.unique(data.training.response_ids)) < 2:
        raise DataError("all responses are the same: a scorer needs different ones to tell apart")


@dataclass(frozen=True)
class ScorerBatches(PlannedBatches):
    """Batches of pairs with negatives, which are drawn anew in each epoch."""

    contexts: EncodedTexts
    replies: EncodedTexts
    """The responses, followed by the utterances if they are used as negatives (``parrot``)."""
    negatives: NegativeSampler
    plan: LengthBatches
    settings: ScorerSettings
    fixed: bool

    @classmethod
    def of(
        cls, pairs: Pairs, inputs: InputEncoder, settings: ScorerSettings, *, fixed: bool = False
    ) -> ScorerBatches:
        turns = settings.context_turns
        contexts = inputs.encode_contexts(pairs.contexts(turns), turns)
        parrots = pairs.utterances if PARROT in settings.hard_negatives else []
        replies = inputs.encode_replies(pairs.responses + parrots)
        kinds = (RANDOM, *settings.hard_negatives)
        return cls(
            contexts,
            replies,
            make_sampler(pairs, kinds, inputs, settings.frequent_reply_discount),
            # by contexts only: most replies of a batch are negatives, of any length
            LengthBatches(contexts.lengths, NO_TOKEN_LIMIT, settings.batch_size),
            settings,
            fixed,
        )

    def batch(self, seed: int, epoch: int, step: int) -> Batch:
        rows = self.batches(seed, epoch)[step]
        rng = make_rng(seed, epoch, step, 2)
        settings = self.settings
        repeated = np.repeat(rows, settings.num_negatives)
        kinds = np.zeros(len(repeated), np.int64)
        if settings.hard_negatives:
            hard = rng.random(len(repeated)) < settings.hard_negative_share
            kinds[hard] = 1 + rng.integers(len(settings.hard_negatives), size=int(hard.sum()))
        negatives = self.negatives.draw(repeated, kinds, rng).reshape(len(rows), -1)
        candidates = np.concatenate([rows[:, None], negatives], axis=1).reshape(-1)
        return self.contexts.batch(rows), self.replies.batch(candidates)


def make_sampler(
    pairs: Pairs, kinds: Sequence[str], inputs: InputEncoder, frequent_reply_discount: float = 0.0
) -> NegativeSampler:
    """Return a sampler that uses the sentence vectors of the input encoder, if it has any."""
    encode = getattr(inputs, "sentence_vectors", None)
    if encode is None and VECTOR_NEGATIVES & set(kinds):
        raise UsageError(f"negatives by vector need the input vectors, not {inputs.name}")
    if encode is None and frequent_reply_discount:
        raise UsageError(f"frequent_reply_discount needs the input vectors, not {inputs.name}")
    return NegativeSampler(pairs, kinds, encode, frequent_reply_discount)


def scorer_loss(settings: ScorerSettings) -> Loss[Batch]:
    """Return the loss function: RUBER's margin over all negatives, cross entropy among the replies
    to a context, or binary cross entropy of each reply."""

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        contexts, replies = batch
        scores = model(contexts, replies).reshape(len(contexts), -1)
        if settings.loss == "margin":
            losses = margin_loss(scores[:, :1].sigmoid(), scores[:, 1:].sigmoid(), settings.margin)
            return losses.sum(), float(losses.numel())
        if settings.loss == "logistic":
            return logistic_loss(scores[:, 0], scores[:, 1:]).sum(), float(len(scores))
        target = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return nn.functional.cross_entropy(scores, target, reduction="sum"), float(len(scores))

    return loss


def _raw_scores(
    model: nn.Module,
    contexts: Tensor,
    replies: Tensor,
    cosine_weight: float,
    folded: FoldedScorer | None = None,
) -> NDArray[np.float64]:
    """[replies] return the score of the network plus the weighted cosine, before calibration.

    ``folded`` is the same network, faster for many replies to a context.
    """
    many = len(replies) >= MIN_REPLIES * len(contexts)
    network = folded if many and folded is not None else model
    with torch.inference_mode():
        scores: Tensor = network(contexts, replies)
        first = members_of(model)[0]
        if cosine_weight and isinstance(first, VectorScorer):
            scores = scores + cosine_weight * first.max_cosine(contexts, replies)
        return scores.double().numpy()


def _calibrated(
    model: nn.Module, source: ScorerBatches, settings: ScorerSettings
) -> dict[str, float]:
    """Return the weight of the cosine, and slope and intercept of the calibration, from held-out
    pairs."""

    def held_out(cosine_weight: float) -> NDArray[np.float64]:
        """Return one row per context: the true reply, then its negatives."""
        steps = (source.batch(*VALIDATION, step) for step in range(source.steps(*VALIDATION)))
        scores = [
            _raw_scores(model, *batch, cosine_weight).reshape(len(batch[0]), -1) for batch in steps
        ]
        return np.concatenate(scores)

    weight = 0.0
    if settings.cosine_weight:
        plain = held_out(0.0)
        spread = float((held_out(1.0) - plain).std())
        weight = settings.cosine_weight * float(plain.std()) / spread if spread > 0 else 0.0
    if settings.loss == "margin" and not weight:
        return {"slope": 1.0, "intercept": 0.0, "cosine_weight": weight}
    scores = held_out(weight)
    slope, intercept = calibrate(scores[:, 0], scores[:, 1:].reshape(-1))
    return {"slope": slope, "intercept": intercept, "cosine_weight": weight}
