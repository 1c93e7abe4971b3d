"""What scorer and rater share: a network with its form in a folder, and reading in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch

from rejoinder.errors import DataError
from rejoinder.learn.batches import LengthBatches, Rows
from rejoinder.learn.checkpoint import Model, load_model, save_model
from rejoinder.learn.forms.base import Form, Prepared
from rejoinder.version import __version__

MODEL = "model.safetensors"
AT_ONCE = 512
"""Rows that a fitted network reads together."""
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


def batches_of(*texts: Prepared) -> Iterator[Rows]:
    """Rows that are read together: of about one length, all texts of a row counted."""
    lengths = np.sum([prepared.lengths for prepared in texts], axis=0)
    return iter(LengthBatches(lengths, NO_LIMIT, AT_ONCE).in_order)


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
