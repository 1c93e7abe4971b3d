"""Settings of training and of the two networks; this module does not need torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

from rejoinder.errors import UsageError

OPTIMIZERS = ("adam", "adamw")
LR_SCHEDULES = ("linear", "constant")
MAX_LEARNING_RATE = 1e30
"""Above this, a step overflows single precision and torch raises an error."""
LOSSES = ("margin", "softmax", "logistic")
HARD_REPLIES = ("dialogue", "words", "vectors", "matched")
"""Kinds of hard negatives that are replies of other pairs: see ``learn/negatives.py``."""
PARROT = "parrot"
"""The utterance itself as a hard negative."""
HARD_NEGATIVES = (*HARD_REPLIES, PARROT)
VECTOR_NEGATIVES = {"vectors", "matched"}
"""Kinds that need sentence vectors."""
RANDOM = "random"
MAX_ENSEMBLE_SIZE = 100

_NOT_IDENTIFYING = {"gradient_accumulation_steps", "save_every_seconds"}
"""Settings that do not change the weights. (How many batches make a step is recorded separately,
because several processes may share them: see ``training.train``.)"""

Check = tuple[bool, str]
"""Whether a setting is wrong, and the message for it."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of one training run. Exactly one of ``steps`` and ``epochs`` must be given."""

    steps: int | None = None
    """Number of updates of the weights."""
    epochs: float | None = None
    """Number of passes over the training data, in steps of the first one; 0.5 is half a pass."""
    learning_rate: float = 1e-4
    """Peak learning rate, reached after the warm-up."""
    optimizer: str = "adamw"
    weight_decay: float = 0.01
    """Weight decay of AdamW, for matrices only, not for biases and norms."""
    warmup_ratio: float = 0.06
    """Share of the steps during which the learning rate rises."""
    lr_schedule: str = "linear"
    """After the warm-up: ``linear`` decay to 0, or ``constant``."""
    max_grad_norm: float | None = 1.0
    """Gradients with a larger Euclidean norm are scaled down to it."""
    gradient_accumulation_steps: int = 1
    """Batches per step in each process: for steps larger than the memory allows at once."""
    validate_every: int | None = None
    """Steps between validations; by default one epoch. The first and last step are validated."""
    patience: int | None = None
    """Number of validations without improvement after which training stops."""
    save_every_seconds: float = 60.0
    """Time between checkpoints: a kill loses at most this much work."""
    seed: int = 0

    def __post_init__(self) -> None:
        problems = [
            f"{field.name}: {getattr(self, field.name)} is not a finite number"
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), float) and not isfinite(value)
        ]
        if problems:
            raise UsageError(*problems)
        check_settings(*self._checks())

    def _checks(self) -> list[Check]:
        positive = (
            "steps", "epochs", "validate_every", "patience", "gradient_accumulation_steps",
        )  # fmt: skip
        rate, norm = self.learning_rate, self.max_grad_norm
        return [
            ((self.steps is None) == (self.epochs is None), "give either steps or epochs"),
            *(
                (value is not None and value <= 0, f"{name} must be above 0, not {value}")
                for name, value in ((name, getattr(self, name)) for name in positive)
            ),
            (rate <= 0, f"learning_rate must be above 0, not {rate}"),
            (
                rate > MAX_LEARNING_RATE,
                f"learning_rate must be at most {MAX_LEARNING_RATE:g}, not {rate}",
            ),
            (norm is not None and norm <= 0, f"max_grad_norm must be above 0, not {norm}"),
            (
                not 0 <= self.warmup_ratio <= 1,
                f"warmup_ratio must be from 0 to 1, not {self.warmup_ratio}",
            ),
            (self.weight_decay < 0, f"weight_decay must be 0 or more, not {self.weight_decay}"),
            (self.seed < 0, f"seed must be 0 or more, not {self.seed}"),
            (
                self.optimizer not in OPTIMIZERS,
                f"unknown optimizer '{self.optimizer}'; choose from {', '.join(OPTIMIZERS)}",
            ),
            (
                self.lr_schedule not in LR_SCHEDULES,
                f"unknown lr_schedule '{self.lr_schedule}'; choose from {', '.join(LR_SCHEDULES)}",
            ),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the weights: for manifests, and to identify a run."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name not in _NOT_IDENTIFYING}

    def learning_rate_at(self, step: int, total_steps: int) -> float:
        """Return the learning rate of a step, counted from 0; it is never 0.

        >>> short = TrainingSettings(steps=10, warmup_ratio=0.2, learning_rate=1.0)
        >>> [short.learning_rate_at(step, 10) for step in (0, 1, 2, 6, 9)]
        [0.5, 1.0, 1.0, 0.5, 0.125]
        """
        warmup_steps = round(self.warmup_ratio * total_steps)
        if step < warmup_steps:
            return self.learning_rate * (step + 1) / warmup_steps
        if self.lr_schedule == "constant":
            return self.learning_rate
        return self.learning_rate * (total_steps - step) / (total_steps - warmup_steps)


@dataclass(frozen=True, kw_only=True)
class ScorerSettings:
    """Settings of the unreferenced scorer: how well does a reply fit its context?"""

    training: TrainingSettings
    context_turns: int = 2
    """Number of last turns of the context that the network reads."""
    hidden_size: int = 256
    dropout: float = 0.2
    loss: str = "margin"
    """``margin`` (RUBER): the true reply scores higher than a negative, by ``margin``;
    ``softmax``: cross entropy of the true reply among its negatives; ``logistic``: binary cross
    entropy of each reply, where the negatives together weigh as much as the true reply. The first
    two compare replies to one context only; the last makes scores comparable across contexts."""
    margin: float = 0.5
    num_negatives: int = 1
    """Negatives per true reply, drawn anew in every epoch."""
    hard_negatives: tuple[str, ...] = ()
    """Kinds of hard negatives (see ``HARD_NEGATIVES``); the other negatives are random."""
    hard_negative_share: float = 0.5
    """Share of the negatives that are hard, if there are ``hard_negatives``."""
    frequent_reply_discount: float = 0.0
    """How much less often frequent replies ("I see") are drawn as random negatives, because they
    fit many contexts: replies are drawn with probability proportional to exp(-discount · f),
    where f is the standardised density of replies around them (input ``vectors`` only)."""
    cosine_weight: float = 0.0
    """Weight of the cosine of context and reply beside the network's score, both at unit variance
    (input ``vectors`` only): the encoder knows more domains than the logs."""
    batch_size: int = 256
    """Number of pairs per batch."""
    ensemble_size: int = 1
    """Number of networks trained in parallel; the mean of their scores is used."""

    def __post_init__(self) -> None:
        check_settings(
            *_network_checks(self),
            *(
                (
                    not 0 <= value < float("inf"),
                    f"{name} must be 0 or more, and finite, not {value}",
                )
                for name, value in (
                    ("cosine_weight", self.cosine_weight),
                    ("frequent_reply_discount", self.frequent_reply_discount),
                )
            ),
            (
                self.loss not in LOSSES,
                f"unknown loss '{self.loss}'; choose from {', '.join(LOSSES)}",
            ),
            (not 0 < self.margin <= 1, f"margin must be above 0 and at most 1, not {self.margin}"),
            (self.num_negatives < 1, f"num_negatives must be above 0, not {self.num_negatives}"),
            (
                not 0 <= self.hard_negative_share <= 1,
                f"hard_negative_share must be from 0 to 1, not {self.hard_negative_share}",
            ),
            *_kind_checks(self.hard_negatives, HARD_NEGATIVES),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the weights, as JSON."""
        return _to_dict(self)


@dataclass(frozen=True, kw_only=True)
class RaterSettings:
    """Settings of the NN-rater: is a response also a response to another utterance, of which one
    true response is known?"""

    training: TrainingSettings
    context_turns: int = 1
    """Number of last turns of the context that the network reads; 1 in the papers."""
    hidden_size: int = 1024
    num_layers: int = 5
    """Layers of the feed-forward network, the output layer included."""
    dropout: float = 0.0
    soft_ratings: bool = False
    """Rate with ``2p - 1`` instead of the papers' form, which has no rating between -.5 and .5."""
    negatives: tuple[str, ...] = (RANDOM,)
    """Kinds of negatives, in equal parts: ``random`` (the papers), or kinds of ``HARD_REPLIES``."""
    batch_size: int = 256
    """Number of pairs of pairs per batch."""
    ensemble_size: int = 1
    """Number of networks trained in parallel; the mean of their scores is used."""

    def __post_init__(self) -> None:
        check_settings(
            *_network_checks(self),
            (self.num_layers < 1, f"num_layers must be above 0, not {self.num_layers}"),
            (not self.negatives, f"negatives: name at least one kind, such as {RANDOM}"),
            *_kind_checks(self.negatives, (RANDOM, *HARD_REPLIES)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that determine the weights and the ratings, as JSON."""
        return _to_dict(self)


def _network_checks(settings: ScorerSettings | RaterSettings) -> list[Check]:
    turns, dropout, size = settings.context_turns, settings.dropout, settings.ensemble_size
    return [
        (turns < 1, f"context_turns must be above 0, not {turns}"),
        (settings.hidden_size < 1, f"hidden_size must be above 0, not {settings.hidden_size}"),
        (not 0 <= dropout < 1, f"dropout must be from 0 to below 1, not {dropout}"),
        (settings.batch_size < 1, f"batch_size must be above 0, not {settings.batch_size}"),
        (
            not 1 <= size <= MAX_ENSEMBLE_SIZE,
            f"ensemble_size must be from 1 to {MAX_ENSEMBLE_SIZE}, not {size}",
        ),
    ]


def _kind_checks(kinds: tuple[str, ...], known: tuple[str, ...]) -> list[Check]:
    return [
        (kind not in known, f"unknown kind of negatives '{kind}'; choose from {', '.join(known)}")
        for kind in kinds
    ]


def check_settings(*checks: Check) -> None:
    """Raise a UsageError that names everything that is wrong."""
    if problems := [message for is_wrong, message in checks if is_wrong]:
        raise UsageError(*problems)


def _to_dict(settings: ScorerSettings | RaterSettings) -> dict[str, Any]:
    own = {name: value for name, value in asdict(settings).items() if name != "training"}
    lists = {name: list(value) for name, value in own.items() if isinstance(value, tuple)}
    return {**own, **lists, "training": settings.training.to_dict()}
