"""How long, how fast and how carefully to train; nothing here needs torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Any

from rejoinder.errors import UsageError

OPTIMIZERS = ("adam", "adamw")
SCHEDULES = ("linear", "constant")
HIGHEST = 1e30
"""Learning rate beyond which a step is no number in single precision, and torch gives up."""
LOSSES = ("margin", "softmax", "logistic")
OF_OTHERS = ("dialogue", "words", "vectors", "matched")
"""Kinds of replies that look right and are wrong, given to something else: see
``learn/negatives.py``."""
PARROT = "parrot"
"""The utterance itself: no reply of any pair."""
HARD = (*OF_OTHERS, PARROT)
"""All kinds that look right."""
BY_VECTOR = {"vectors", "matched"}
RANDOM = "random"

_HARMLESS = {"accumulate", "save_every"}
"""Settings that do not change the weights. (How many batches make a step is told apart from
how many processes share them: see ``training.train``.)"""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Settings of one run. Exactly one of ``steps`` and ``epochs`` says when it ends."""

    steps: int | None = None
    """Updates of the weights."""
    epochs: float | None = None
    """Passes over the material, counted in steps of the first one; 0.5 is half of it."""
    rate: float = 1e-4
    """The highest learning rate, reached when the warm-up is over."""
    optimizer: str = "adamw"
    decay: float = 0.01
    """Weight decay of AdamW, on matrices only: biases and norms keep their size."""
    warmup: float = 0.06
    """Share of the steps during which the rate rises."""
    schedule: str = "linear"
    """After the warm-up: down to nothing (linear), or as it is (constant)."""
    clip: float | None = 1.0
    """Longest gradient (Euclidean); a longer one is scaled down to it."""
    accumulate: int = 1
    """Batches a step, in each process: a large step from batches that fit the memory."""
    validate_every: int | None = None
    """Steps between validations; once in an epoch by default. First and last step always."""
    patience: int | None = None
    """Validations without a new best after which the run ends."""
    save_every: float = 60.0
    """Seconds of work that a kill may cost."""
    seed: int = 0

    def __post_init__(self) -> None:
        problems = [
            f"{field.name}: {getattr(self, field.name)} is not a finite number"
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), float) and not isfinite(value)
        ] or [message for wrong, message in self._checks() if wrong]
        if problems:
            raise UsageError(*problems)

    def _checks(self) -> list[tuple[bool, str]]:
        every = (self.steps, self.epochs, self.validate_every, self.patience, self.accumulate)
        return [
            ((self.steps is None) == (self.epochs is None), "give either steps or epochs"),
            (
                any(number is not None and number <= 0 for number in every),
                "steps, epochs, validate_every, patience and accumulate must be above 0",
            ),
            (self.rate <= 0, f"the learning rate must be above 0, not {self.rate}"),
            (self.rate > HIGHEST, f"the learning rate must not be above {HIGHEST:g}: {self.rate}"),
            (self.clip is not None and self.clip <= 0, f"clip must be above 0, not {self.clip}"),
            (not 0 <= self.warmup <= 1, f"warmup is a share from 0 to 1, not {self.warmup}"),
            (self.decay < 0, f"decay must not be below 0, but is {self.decay}"),
            (self.seed < 0, f"the seed must not be below 0, but is {self.seed}"),
            (
                self.optimizer not in OPTIMIZERS,
                f"unknown optimizer '{self.optimizer}'; there are {', '.join(OPTIMIZERS)}",
            ),
            (
                self.schedule not in SCHEDULES,
                f"unknown schedule '{self.schedule}'; there are {', '.join(SCHEDULES)}",
            ),
        ]

    def plain(self) -> dict[str, Any]:
        """What decides the weights: for manifests, and to know a run again."""
        return {name: value for name, value in asdict(self).items() if name not in _HARMLESS}

    def rate_at(self, step: int, total: int) -> float:
        """The learning rate of a step, counted from 0; no step is taken with a rate of 0.

        >>> short = Training(steps=10, warmup=0.2, rate=1.0)
        >>> [short.rate_at(step, 10) for step in (0, 1, 2, 6, 9)]
        [0.5, 1.0, 1.0, 0.5, 0.125]
        """
        rising = round(self.warmup * total)
        if step < rising:
            return self.rate * (step + 1) / rising
        if self.schedule == "constant":
            return self.rate
        return self.rate * (total - step) / (total - rising)


@dataclass(frozen=True, kw_only=True)
class ScorerSettings:
    """The unreferenced scorer: does a reply fit its context?"""

    training: Training
    turns: int = 2
    """Turns of a context that are read, counted from its end."""
    wide: int = 256
    """Units of the hidden layer."""
    dropout: float = 0.2
    loss: str = "margin"
    """``margin`` (RUBER): the true reply scores higher than a wrong one, by ``margin``;
    ``softmax``: cross entropy of the true reply among the wrong ones; ``logistic``: cross entropy
    of each reply by itself, the wrong ones together as heavy as the true one. The first two
    compare replies to one context only; the last one makes scores of all contexts comparable."""
    margin: float = 0.5
    negatives: int = 1
    """Wrong replies for each true one, drawn anew in every epoch."""
    hard: tuple[str, ...] = ()
    """Kinds of which some of the wrong replies are (see ``HARD``); the others are random."""
    hard_share: float = 0.5
    """How many are, where there are kinds."""
    spare: float = 0.0
    """How far common replies are spared as wrong ones, because they are right in many places:
    random ones are drawn by exp(-spare · c), where c is how common a reply is, in standard
    deviations from the mean (form ``vectors``)."""
    closeness: float = 0.0
    """How much the plain cosine of context and reply counts beside what was learnt, which counts 1
    (form ``vectors``): the encoder knows of more domains than the logs have."""
    batch: int = 256
    """Pairs at once."""
    networks: int = 1
    """How many learn side by side; their mean counts."""

    def __post_init__(self) -> None:
        complain(
            *_shape_checks(self.turns, self.wide, self.dropout, self.batch, self.networks),
            *(
                (
                    not 0 <= value < float("inf"),
                    f"{name} must not be below 0, or without end, but is {value}",
                )
                for name, value in (("closeness", self.closeness), ("spare", self.spare))
            ),
            (
                self.loss not in LOSSES,
                f"unknown loss '{self.loss}'; there are {', '.join(LOSSES)}",
            ),
            (not 0 < self.margin <= 1, f"margin is above 0 and at most 1, not {self.margin}"),
            (self.negatives < 1, f"negatives must be above 0, not {self.negatives}"),
            (
                not 0 <= self.hard_share <= 1,
                f"hard_share is a share from 0 to 1, not {self.hard_share}",
            ),
            *_kind_checks(self.hard, HARD),
        )

    def plain(self) -> dict[str, Any]:
        """What decides the weights, as JSON."""
        return _plain(self)


@dataclass(frozen=True, kw_only=True)
class RaterSettings:
    """The NN-rater: may a response answer another utterance, to which a good reply is known?"""

    training: Training
    turns: int = 1
    """Turns of a context that are read, counted from its end; the papers read the last one."""
    wide: int = 1024
    """Units of each hidden layer."""
    layers: int = 5
    """Of the feed-forward network, the last one included."""
    dropout: float = 0.0
    soft: bool = False
    """Rate with ``2p - 1`` instead of the papers' form, which has no rating between -.5 and .5."""
    negatives: tuple[str, ...] = (RANDOM,)
    """Kinds of wrong pairs, in equal parts: ``random`` (the papers), or kinds of ``OF_OTHERS``."""
    batch: int = 256
    """Pairs of pairs at once."""
    networks: int = 1
    """How many learn side by side; their mean counts."""

    def __post_init__(self) -> None:
        complain(
            *_shape_checks(self.turns, self.wide, self.dropout, self.batch, self.networks),
            (self.layers < 1, f"layers must be above 0, not {self.layers}"),
            (not self.negatives, f"negatives: name a kind, such as {RANDOM}"),
            *_kind_checks(self.negatives, (RANDOM, *OF_OTHERS)),
        )

    def plain(self) -> dict[str, Any]:
        """What decides the weights and the ratings, as JSON."""
        return _plain(self)


Checks = tuple[bool, str]


MOST_NETWORKS = 100


def _shape_checks(turns: int, wide: int, dropout: float, batch: int, networks: int) -> list[Checks]:
    return [
        (turns < 1, f"turns must be above 0, not {turns}"),
        (wide < 1, f"wide must be above 0, not {wide}"),
        (not 0 <= dropout < 1, f"dropout is a share from 0 to below 1, not {dropout}"),
        (batch < 1, f"batch must be above 0, not {batch}"),
        (
            not 1 <= networks <= MOST_NETWORKS,
            f"networks is from 1 to {MOST_NETWORKS}, not {networks}",
        ),
    ]


def _kind_checks(kinds: tuple[str, ...], known: tuple[str, ...]) -> list[Checks]:
    return [
        (kind not in known, f"unknown kind of negatives '{kind}'; there are {', '.join(known)}")
        for kind in kinds
    ]


def complain(*checks: Checks) -> None:
    if problems := [message for wrong, message in checks if wrong]:
        raise UsageError(*problems)


def _plain(settings: ScorerSettings | RaterSettings) -> dict[str, Any]:
    own = {name: value for name, value in asdict(settings).items() if name != "training"}
    lists = {name: list(value) for name, value in own.items() if isinstance(value, tuple)}
    return {**own, **lists, "training": settings.training.plain()}
