"""What scorer and rater share: a network with its form in a folder, and reading in batches.

Most questions that a fitted network is asked begin alike: does this one answer the context, or this
one, or any of the hundred that were found? So questions are put in batches in which each beginning
stands once, and networks do once for it what does not depend on the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from rejoinder.errors import DataError
from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.checkpoint import Model, load_model, save_model
from rejoinder.learn.forms.base import Form, Ints
from rejoinder.version import __version__

MODEL = "model.safetensors"
AT_ONCE = 1024
"""Questions that a fitted network is asked together."""
NO_LIMIT = 2**40
"""Batches are counted in rows, not in tokens."""


class Judge:
    """A fitted network; ``reading`` is what it must know besides its weights to be asked."""

    def __init__(self, form: Form, model: Model, **reading: Any) -> None:
        self.form, self.model, self.reading = form, model.eval(), reading

    @property
    def turns(self) -> int:
        """Turns of a context that are read."""
        return int(self.reading["turns"])

    def save(self, folder: Path) -> None:
        """Write form and network to a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.form.save(folder)
        save_model(folder / MODEL, self.model, part=self.part(), reading=self.reading)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The inverse of ``save``."""
        model, known = load_model(folder / MODEL)
        if known.get("part") != cls.part() or not isinstance(known.get("reading"), dict):
            raise DataError(f"holds no {cls.part()}", path=str(folder / MODEL))
        return cls(Form.open(folder), model, **known["reading"])

    @classmethod
    def part(cls) -> str:
        return cls.__name__.lower()


def batches_of(owners: Ints, lengths: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Beginnings, and questions that are asked together: as many for each beginning of a batch.

    ``owners`` are the numbers of the questions' beginnings, ``lengths`` are those of the questions,
    all texts counted: rows of a batch are about as long.

    >>> for batch in batches_of(np.array([0, 1, 0, 2]), np.array([1, 1, 1, 1])):
    ...     print(*batch)
    [1 2] [1 3]
    [0] [0 2]
    """
    order = np.lexsort((lengths, owners))
    sorted_owners = owners[order]
    first = np.searchsorted(sorted_owners, sorted_owners)
    starts = np.flatnonzero((np.arange(len(order)) - first) % AT_ONCE == 0)
    sizes = np.diff(starts, append=len(order))
    longest = lengths[order[starts + sizes - 1]]
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        for some in LengthBatches(longest[alike], NO_LIMIT, max(1, AT_ONCE // size)).in_order:
            begin = starts[alike[some]]
            yield sorted_owners[begin], order[begin[:, None] + np.arange(size)].reshape(-1)


def drawn_from(seed: int, make: Callable[[], Model]) -> Model:
    """A network whose first weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def identity_of(
    form: Form, settings: Mapping[str, Any], material: str, more: Mapping[str, Any] | None
) -> dict[str, Any]:
    """All that decides the weights: see ``training.train``."""
    reads = {"name": form.name, "depends": form.depends, **form.plain()}
    known = {"rejoinder": __version__, "form": reads, "settings": dict(settings)}
    return {**known, "material": material, "more": dict(more or {})}
