"""What metrics that ask an evaluator share: how it is named, opened, signed, and what it adds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from rejoinder.errors import UsageError
from rejoinder.metrics.base import ItemMetric, WholeItemMetric, check_range

if TYPE_CHECKING:
    from rejoinder.evaluator.folder import Evaluator
    from rejoinder.metrics.sitting import Scored, Sitting

HOW = (
    "needs an evaluator: make one of your logs with 'rejoinder fit LOGS -o evaluator/'"
    " and add --evaluator evaluator/"
)
MOST = 1000
TOLERANCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class Evaluated(ItemMetric):
    """A metric that may ask an evaluator; ``--evaluator`` fills it in where none is given.

    It stands last among the bases of a class: the others have the say about its parameters.
    """

    evaluator: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evaluator is not None:
            # ratings are a network's arithmetic
            object.__setattr__(self, "tolerance", max(self.tolerance, TOLERANCE))

    @cached_property
    def opened(self) -> Evaluator | None:
        if self.evaluator is None:
            return None
        from rejoinder.evaluator.folder import open_evaluator

        return open_evaluator(self.evaluator)

    @property
    def asked(self) -> Evaluator:
        """The evaluator, where there is no doing without."""
        if self.opened is None:
            raise UsageError(f"{self.name} {HOW}")
        return self.opened

    def evaluators(self) -> list[Evaluator]:
        return [] if self.opened is None else [self.opened]

    def _signed(self, key: str) -> str:
        if key == "evaluator":
            # its name and digest, wherever the folder lies
            return "none" if self.opened is None else str(self.opened)
        return super()._signed(key)


@dataclass(frozen=True, kw_only=True)
class Asking(WholeItemMetric, Evaluated):
    """A metric that gives what a network of the evaluator says of a reply: there is no doing
    without. Its rows are a score and 1; scores come with how well the logs cover the context."""

    tolerance: ClassVar[float] = TOLERANCE

    def lacking(self) -> str | None:
        return HOW if self.evaluator is None else None

    def judge(self, sitting: Sitting) -> Scored:
        from rejoinder.metrics.sitting import judged

        return judged(self, sitting.batch, sitting.expansion(self.asked))


@dataclass(frozen=True, kw_only=True)
class Expanding(Evaluated):
    """A metric over the references of an item, and those that an evaluator adds: ``k`` retrieved
    ones (as many as the evaluator was made for, if none is given) and perhaps the parrot, rated.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k is not None:
            check_range("k", self.k, 1, MOST)

    def _signed(self, key: str) -> str:
        if key == "k":
            planned = None if self.opened is None else self.opened.manifest.retrieval.k
            return str(self.k if self.k is not None else planned or "none")
        return super()._signed(key)

    def judge(self, sitting: Sitting) -> Scored:
        from rejoinder.metrics.sitting import judged

        if self.opened is None:
            return super().judge(sitting)
        expansion = sitting.expansion(self.opened, self.k)
        return judged(self, sitting.expanded(self.opened, self.k), expansion)
