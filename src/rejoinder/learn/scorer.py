"""The unreferenced scorer: how well a reply fits its context, learnt without a single label.

RUBER (Tao et al. 2018, § 3.2): true pairs against the same contexts with replies from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.errors import DataError, UsageError
from rejoinder.learn.batches import LengthBatches, Planned, generator
from rejoinder.learn.calibration import calibrate
from rejoinder.learn.forms.base import Contexts, Form, Prepared
from rejoinder.learn.forms.ragged import numbered
from rejoinder.learn.judging import NO_LIMIT, Judge, batches_of, drawn_from, identity_of
from rejoinder.learn.material import Examples, Material
from rejoinder.learn.negatives import Negatives
from rejoinder.learn.networks.panel import apart, members_of, several
from rejoinder.learn.networks.scorers import VectorScorer, logistic_loss, margin_loss
from rejoinder.learn.progress import Progress
from rejoinder.learn.settings import BY_VECTOR, RANDOM, ScorerSettings
from rejoinder.learn.training import VALIDATION, Loss, Outcome, train

__all__ = ["Scorer", "ScorerSettings", "fit_scorer"]

Batch = tuple[Tensor, Tensor]
"""Contexts, and replies: for each context the true one, then its wrong ones."""


class Scorer(Judge):
    """A fitted network with the form that reads for it: ``reading`` has turns, slope, height, and
    how much closeness counts."""

    def score(self, contexts: Contexts, replies: Sequence[str]) -> NDArray[np.float64]:
        """[n] from 0 to 1: how well each reply fits its context."""
        if len(contexts) != len(replies):
            raise ValueError(f"{len(contexts)} contexts, but {len(replies)} replies")
        once, owners = numbered([tuple(context) for context in contexts])
        asked, texts = self.form.contexts(once, self.turns), self.form.replies(replies)
        closeness = self.reading.get("closeness", 0.0)
        found = np.empty(len(replies))
        for numbers, rows in batches_of(owners, asked.lengths[owners] + texts.lengths):
            found[rows] = _judged(self.model, asked.batch(numbers), texts.batch(rows), closeness)
        line = self.reading["slope"] * found + self.reading["height"]
        return torch.from_numpy(line).sigmoid().numpy()


def fit_scorer(
    material: Material,
    form: Form,
    settings: ScorerSettings,
    work: Path,
    on_progress: Callable[[Progress], None] | None = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Scorer, Outcome]:
    """Train a scorer in the folder ``work``, from where a repeated call goes on after a kill.

    ``identity`` is whatever else should make it another run.
    """
    if len(np.unique(material.training.said)) < 2:
        raise DataError("all responses say the same: there is nothing to tell apart")
    model = drawn_from(
        settings.training.seed, lambda: several(settings.networks, lambda: form.scorer(settings))
    )
    if settings.closeness and not isinstance(members_of(model)[0], VectorScorer):
        raise UsageError(f"closeness needs the form vectors, not {form.name}")
    validation = Candidates.of(material.validation, form, settings, fixed=True)
    outcome = train(
        model,
        apart(loss_of(settings)),
        Candidates.of(material.training, form, settings),
        settings.training,
        work,
        validation=validation,
        identity=identity_of(form, settings.plain(), material.digest, identity),
        on_progress=on_progress,
    )
    reading = {"turns": settings.turns, **_reading(model, validation, settings)}
    return Scorer(form, model, **reading), outcome


@dataclass(frozen=True)
class Candidates(Planned):
    """A source of batches: pairs with wrong replies, new ones in each epoch."""

    contexts: Prepared
    replies: Prepared
    """Of the responses, and behind them of the utterances if those are used, too."""
    negatives: Negatives
    plan: LengthBatches
    settings: ScorerSettings
    fixed: bool

    @classmethod
    def of(
        cls, examples: Examples, form: Form, settings: ScorerSettings, *, fixed: bool = False
    ) -> Candidates:
        contexts = form.contexts(examples.contexts(settings.turns), settings.turns)
        parrots = examples.utterances if "parrot" in settings.hard else []
        replies = form.replies(examples.responses + parrots)
        return cls(
            contexts,
            replies,
            negatives_of(examples, (RANDOM, *settings.hard), form, settings.spare),
            # by contexts alone: most replies of a batch are wrong ones, of any length
            LengthBatches(contexts.lengths, NO_LIMIT, settings.batch),
            settings,
            fixed,
        )

    def batch(self, seed: int, epoch: int, step: int) -> Batch:
        rows = self.batches(seed, epoch)[step]
        chance = generator(seed, epoch, step, 2)
        repeated = np.repeat(rows, self.settings.negatives)
        kinds = np.zeros(len(repeated), np.int64)
        if self.settings.hard:
            hard = chance.random(len(repeated)) < self.settings.hard_share
            kinds[hard] = 1 + chance.integers(len(self.settings.hard), size=int(hard.sum()))
        wrong = self.negatives.draw(repeated, kinds, chance).reshape(len(rows), -1)
        asked = np.concatenate([rows[:, None], wrong], axis=1).reshape(-1)
        return self.contexts.batch(rows), self.replies.batch(asked)


def negatives_of(
    examples: Examples, kinds: Sequence[str], form: Form, spare: float = 0.0
) -> Negatives:
    """With the form's own vectors, for neighbours."""
    sentences = getattr(form, "sentences", None)
    if sentences is None and BY_VECTOR & set(kinds):
        raise UsageError(f"negatives by vector need the form vectors, not {form.name}")
    if sentences is None and spare:
        raise UsageError(f"spare needs the form vectors, not {form.name}")
    return Negatives(examples, kinds, sentences, spare)


def loss_of(settings: ScorerSettings) -> Loss[Batch]:
    """RUBER's margin over all wrong replies, or cross entropy: among all replies, or of each."""

    def loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        contexts, replies = batch
        scores = model(contexts, replies).reshape(len(contexts), -1)
        if settings.loss == "margin":
            found = margin_loss(scores[:, :1].sigmoid(), scores[:, 1:].sigmoid(), settings.margin)
            return found.sum(), float(found.numel())
        if settings.loss == "logistic":
            return logistic_loss(scores[:, 0], scores[:, 1:]).sum(), float(len(scores))
        truth = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
        return nn.functional.cross_entropy(scores, truth, reduction="sum"), float(len(scores))

    return loss


def _judged(
    model: nn.Module, contexts: Tensor, replies: Tensor, closeness: float
) -> NDArray[np.float64]:
    """[replies] what the network says, and what is plainly close."""
    with torch.inference_mode():
        scores: Tensor = model(contexts, replies)
        first = members_of(model)[0]
        if closeness and isinstance(first, VectorScorer):
            scores = scores + closeness * first.closeness(contexts, replies)
        return scores.double().numpy()


def _reading(model: nn.Module, source: Candidates, settings: ScorerSettings) -> dict[str, float]:
    """How much closeness counts, and where the scores of held-out replies become probabilities."""

    def held_out(closeness: float) -> NDArray[np.float64]:
        """A row for each context: the true reply, then wrong ones."""
        steps = (source.batch(*VALIDATION, step) for step in range(source.steps(*VALIDATION)))
        judged = [_judged(model, *batch, closeness).reshape(len(batch[0]), -1) for batch in steps]
        return np.concatenate(judged)

    closeness = 0.0
    if settings.closeness:
        plain = held_out(0.0)
        spread = float((held_out(1.0) - plain).std())
        closeness = settings.closeness * float(plain.std()) / spread if spread > 0 else 0.0
    if settings.loss == "margin" and not closeness:
        return {"slope": 1.0, "height": 0.0}
    scores = held_out(closeness)
    slope, height = calibrate(scores[:, 0], scores[:, 1:].reshape(-1))
    return {"slope": slope, "height": height, "closeness": closeness}
