"""The interface of how simulated people answer a kind of task."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rejoinder.annotate.rehearse.opinions import Opinions, Unit
from rejoinder.annotate.rehearse.page import Page
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import NewTask, StoredAnswer

Fields = dict[str, str]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """What people's answers say about a reply or a set of replies, and what was planted."""

    system: str
    planted: float
    found: float


class Behaviour(ABC):
    """How people answer the tasks of a study."""

    def __init__(self, store: Store, seed: int, view: float) -> None:
        self.store, self.seed = store, seed
        self.opinions = Opinions.of(seed, self.units(), view)

    @cached_property
    def tasks(self) -> list[NewTask]:
        """The tasks of the study, as they are in its database."""
        settings = self.store.settings
        rng = np.random.default_rng(settings.seed)
        return self.store.kind.tasks(self.store.study.items, rng)

    @abstractmethod
    def units(self) -> dict[Unit, str]:
        """Return everything that has a quality, with its system."""

    @abstractmethod
    def answer(self, person: str, page: Page, rng: random.Random) -> Fields:
        """Fill in the form of a task as a careful person does."""

    def repeat(self, page: Page, fields: Fields, rng: random.Random) -> Fields | None:
        """Return a form in which a text repeats another one, which must be refused; None if people
        do not write, or if nothing can be repeated here."""
        return None

    def careless_answer(self, page: Page, rng: random.Random) -> Fields:
        """Fill in the form of a task without reading it."""
        fields = {name: rng.choice(values) for name, values in page.choices.items()}
        return fields | {name: "1" for name in page.boxes if rng.random() < 0.5}

    def answers(self, people: Sequence[str]) -> Floats | None:
        """Return [people, questions] what people would answer if all were asked everything; None
        if they write."""
        return None

    def estimates(self, answers: Sequence[StoredAnswer]) -> list[Estimate]:
        """Return what was found out, and what was planted."""
        return []
