"""The base of fitted scorer and rater: a network with its input encoder in a folder, and
inference in batches.

Most requests share their beginning: does this reply fit the context, or that one, or any of the
hundred retrieved ones? So each distinct beginning occurs once in a batch, and networks compute
once what depends on it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from rejoinder.errors import DataError
from rejoinder.files.checked import inside
from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.checkpoint import Model, load_model, save_model
from rejoinder.learn.inputs.input_encoder import InputEncoder, Ints
from rejoinder.version import __version__

MODEL = "model.safetensors"
BATCH_SIZE = 1024
"""Rows that a fitted network reads at once."""
NO_TOKEN_LIMIT = 2**40
"""For batches that are limited by rows, not by tokens."""
MAX_TURNS = 1000


class FittedNetwork:
    """A fitted network with its input encoder; ``options`` are its settings for inference."""

    part: ClassVar[str]
    """Name of the part in the evaluator's manifest."""
    option_types: ClassVar[Mapping[str, type]]
    """Names and types of the options."""

    def __init__(self, inputs: InputEncoder, model: Model, **options: Any) -> None:
        self.inputs, self.model, self.options = inputs, model.eval(), options

    @property
    def context_turns(self) -> int:
        """Number of last turns of a context that are read."""
        return int(self.options["context_turns"])

    def save(self, folder: Path) -> None:
        """Write input encoder and network to a new folder."""
        folder.mkdir(parents=True, exist_ok=True)
        self.inputs.save(folder)
        save_model(folder / MODEL, self.model, part=self.part, options=self.options)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open a folder that ``save`` has written."""
        path = inside(folder, MODEL)
        model, metadata = load_model(path)
        if metadata.get("part") != cls.part:
            raise DataError(
                f"does not hold the part '{cls.part}', but '{metadata.get('part')}'", path=str(path)
            )
        options = cls._checked_options(metadata.get("options"), path)
        inputs = InputEncoder.open(folder)
        inputs.check_model(model, options["context_turns"], path)
        return cls(inputs, model, **options)

    @classmethod
    def _checked_options(cls, options: Any, path: Path) -> dict[str, Any]:
        if not isinstance(options, dict) or options.keys() != cls.option_types.keys():
            expected = ", ".join(cls.option_types)
            raise DataError(f"the options of the network must be {expected}", path=str(path))
        for name, kind in cls.option_types.items():
            value = options[name]
            valid = isinstance(value, (int, float) if kind is float else kind)
            if isinstance(value, bool) and kind is not bool:
                valid = False
            if not valid or (kind is float and not np.isfinite(value)):
                expected = "a finite number" if kind is float else kind.__name__
                raise DataError(
                    f"the option {name} is {value!r}; expected {expected}", path=str(path)
                )
        if not 1 <= options["context_turns"] <= MAX_TURNS:
            raise DataError(
                f"context_turns is {options['context_turns']}; expected 1 to {MAX_TURNS}",
                path=str(path),
            )
        return options


def inference_batches(prefixes: Ints, lengths: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield prefix numbers and row numbers of batches with equally many rows per prefix.

    ``prefixes`` are the prefix numbers of the rows, ``lengths`` their total lengths: the rows of a
    batch have similar lengths.

    >>> for batch in inference_batches(np.array([0, 1, 0, 2]), np.array([1, 1, 1, 1])):
    ...     print(*batch)
    [1 2] [1 3]
    [0] [0 2]
    """
    order = np.lexsort((lengths, prefixes))
    sorted_prefixes = prefixes[order]
    first = np.searchsorted(sorted_prefixes, sorted_prefixes)
    starts = np.flatnonzero((np.arange(len(order)) - first) % BATCH_SIZE == 0)
    sizes = np.diff(starts, append=len(order))
    longest = lengths[order[starts + sizes - 1]]
    for size in np.unique(sizes):
        same_size = np.flatnonzero(sizes == size)
        max_rows = max(1, BATCH_SIZE // size)
        for some in LengthBatches(longest[same_size], NO_TOKEN_LIMIT, max_rows).in_order:
            begin = starts[same_size[some]]
            yield sorted_prefixes[begin], order[begin[:, None] + np.arange(size)].reshape(-1)


def initialised(seed: int, make: Callable[[], Model]) -> Model:
    """Return a network whose initial weights depend on the seed only."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def run_identity(
    inputs: InputEncoder,
    settings: Mapping[str, Any],
    data_digest: str,
    extra: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return everything that determines the weights: see ``training.train``."""
    reads = {"name": inputs.name, "depends": inputs.depends, **inputs.to_dict()}
    identity = {"rejoinder": __version__, "input": reads, "settings": dict(settings)}
    return {**identity, "data": data_digest, "extra": dict(extra or {})}
