"""The NN-rater: which of the responses that were found for an utterance may answer it.

Tsuta et al. (2020, § 4.2). Two responses to one utterance are a positive example; a negative one
has the same first pair and another one from elsewhere, so that the first pair alone tells nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rejoinder.learn.batches import LengthBatches, Planned, generator
from rejoinder.learn.forms.base import Contexts, Form, Ints, Prepared
from rejoinder.learn.forms.ragged import numbered
from rejoinder.learn.judging import NO_LIMIT, Judge, batches_of, drawn_from, identity_of
from rejoinder.learn.material import Examples, Material
from rejoinder.learn.negatives import Negatives
from rejoinder.learn.networks.panel import apart, several
from rejoinder.learn.networks.raters import rating
from rejoinder.learn.progress import Progress
from rejoinder.learn.scorer import negatives_of
from rejoinder.learn.settings import RaterSettings
from rejoinder.learn.training import Outcome, train

__all__ = ["Rater", "RaterSettings", "fit_rater"]

FEWEST = 10
"""Utterances with several responses, without which there is no rater."""
HELD_OUT = 0.1
"""Share of them that is held out where the pairs held out have none."""

Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""U1, R1, U2, R2, and whether R2 answers U1."""


class Rater(Judge):
    """A fitted network with the form that reads for it: ``reading`` has turns and soft."""

    def rate(
        self,
        contexts1: Contexts,
        responses1: Sequence[str],
        contexts2: Contexts,
        responses2: Sequence[str],
    ) -> NDArray[np.float64]:
        """[n] from -1 to 1: may response 2, said to context 2, answer context 1?

        A response that nobody has given to anything (a parrot's, a system's) has an empty context
        2; then there is no second triplet, which would ask whether response 1 answers that.
        """
        if len({len(part) for part in (contexts1, responses1, contexts2, responses2)}) > 1:
            raise ValueError("contexts and responses are not of the same number")
        alone = np.array([not turns for turns in contexts2], np.bool_)
        once, owners = numbered(list(zip(map(tuple, contexts1), responses1, strict=True)))
        begin = (
            self.form.contexts([context for context, _ in once], self.turns),
            self.form.replies([response for _, response in once]),
        )
        rest = (
            self.form.contexts(
                [b or a for a, b in zip(contexts1, contexts2, strict=True)], self.turns
            ),
            self.form.replies(responses2),
        )
        lengths = [text.lengths[owners] for text in begin] + [text.lengths for text in rest]
        found = np.empty(len(responses2))
        for numbers, rows in batches_of(owners, np.sum(lengths, axis=0)):
            with torch.inference_mode():
                first_pairs = (text.batch(numbers) for text in begin)
                scores = self.model(*first_pairs, *(text.batch(rows) for text in rest))
                first, second = (part.double().softmax(dim=1)[:, 1] for part in scores)
                second = torch.where(torch.from_numpy(alone[rows]), first, second)
                found[rows] = rating(first, second, soft=self.reading["soft"]).numpy()
        return found


def fit_rater(
    material: Material,
    form: Form,
    settings: RaterSettings,
    work: Path,
    on_progress: Callable[[Progress], None] | None = None,
    identity: Mapping[str, Any] | None = None,
) -> tuple[Rater, Outcome] | tuple[None, str]:
    """Train a rater in the folder ``work``, from where a repeated call goes on after a kill.

    Returns None, and why, where too few utterances have several responses to learn from, or
    where nothing that was learnt helps.
    """
    groups, held_out = material.training.answered, material.validation.answered
    if (number := len(groups) + len(held_out)) < FEWEST or len(groups) < 2:
        return None, (
            f"{number} utterances have several different responses, {FEWEST} are needed:"
            " without them a rater can't learn what else would have been an answer"
        )
    training = Questions.of(material.training, groups, form, settings)
    if len(held_out) >= FEWEST:
        validation = Questions.of(material.validation, held_out, form, settings, fixed=True)
    else:
        training, validation = training.split(HELD_OUT)
    model = drawn_from(
        settings.training.seed, lambda: several(settings.networks, lambda: form.rater(settings))
    )
    outcome = train(
        model,
        apart(rating_loss),
        training,
        settings.training,
        work,
        validation=validation,
        identity=identity_of(form, settings.plain(), material.digest, identity),
        on_progress=on_progress,
    )
    if outcome.best_step == 0:
        return None, "it learned nothing that helps on held-out utterances"
    return Rater(form, model, turns=settings.turns, soft=settings.soft), outcome


class Questions(Planned):
    """A source of batches: each pair that has others beside it twice, once with one of those and
    once with a wrong one, drawn anew in each epoch."""

    def __init__(
        self,
        texts: tuple[Prepared, Prepared],
        groups: Sequence[Ints],
        negatives: Negatives,
        settings: RaterSettings,
        *,
        fixed: bool = False,
    ) -> None:
        """``texts`` are contexts and replies; ``groups``, rows that answer one utterance."""
        self.contexts, self.replies = texts
        self.groups, self.negatives, self.settings = groups, negatives, settings
        self.fixed = fixed
        sizes = np.array([len(group) for group in groups])
        self._rows = np.concatenate(groups)
        self._sizes = np.repeat(sizes, sizes)
        self._starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        lengths = (self.contexts.lengths + self.replies.lengths)[np.repeat(self._rows, 2)]
        self.plan = LengthBatches(lengths, NO_LIMIT, settings.batch)

    @classmethod
    def of(
        cls,
        examples: Examples,
        groups: Sequence[Ints],
        form: Form,
        settings: RaterSettings,
        *,
        fixed: bool = False,
    ) -> Questions:
        contexts = form.contexts(examples.contexts(settings.turns), settings.turns)
        texts = (contexts, form.replies(examples.responses))
        negatives = negatives_of(examples, settings.negatives, form)
        return cls(texts, groups, negatives, settings, fixed=fixed)

    def split(self, share: float) -> tuple[Questions, Questions]:
        """A part of the utterances to be measured on, spread over all, and the others."""
        step = round(1 / share)
        held_out = [group for number, group in enumerate(self.groups) if number % step == 1]
        others = [group for number, group in enumerate(self.groups) if number % step != 1]
        texts = (self.contexts, self.replies)
        return (
            Questions(texts, others, self.negatives, self.settings),
            Questions(texts, held_out, self.negatives, self.settings, fixed=True),
        )

    def batch(self, seed: int, epoch: int, step: int) -> Batch:
        numbers = self.batches(seed, epoch)[step]
        chance = generator(seed, epoch, step, 2)
        places, truth = numbers // 2, numbers % 2
        first = self._rows[places]
        kinds = chance.integers(len(self.settings.negatives), size=len(places))
        second = self.negatives.draw(first, kinds, chance)
        right = truth == 1
        second[right] = self._rows[self._beside(places, chance)][right]
        return (
            self.contexts.batch(first),
            self.replies.batch(first),
            self.contexts.batch(second),
            self.replies.batch(second),
            torch.from_numpy(truth),
        )

    def _beside(self, places: Ints, chance: np.random.Generator) -> Ints:
        """Another place of the same group."""
        starts, sizes = self._starts[places], self._sizes[places]
        moved: Ints = starts + (places - starts + 1 + chance.integers(sizes - 1)) % sizes
        return moved


def rating_loss(model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
    """Cross entropy of both triplets."""
    *texts, truth = batch
    both = torch.cat(model(*texts))
    loss = nn.functional.cross_entropy(both, torch.cat([truth, truth]), reduction="sum")
    return loss, float(len(both))
