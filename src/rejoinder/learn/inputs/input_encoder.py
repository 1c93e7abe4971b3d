"""How a network reads texts: as subwords, as frozen sentence vectors, or with its own transformer.

An input encoder encodes texts once and makes the networks that read them; the scorer and the rater
are the same for all input encoders. A saved input encoder is a folder with ``input.json`` and
further files, such as a SentencePiece model.
"""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rejoinder.errors import DataError, UsageError
from rejoinder.files.checked import inside, read_json
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.progress import Progress

Ints = NDArray[np.int64]
Contexts = Sequence[Sequence[str]]
OpenProgress = Callable[[], AbstractContextManager[Progress | None]]
"""Opened while texts are encoded; yields the callback for the number of texts done."""

FILE = "input.json"
FORMAT = 1
"""Increased when an older version could not read the files of a newer one."""
INPUTS = {
    "gru": "rejoinder.learn.inputs.subwords:SubwordInput",
    "vectors": "rejoinder.learn.inputs.vectors:VectorInput",
    "encoder": "rejoinder.learn.inputs.cross_encoder:CrossEncoderInput",
}


class EncodedTexts(Protocol):
    """Encoded texts, of which any rows can be requested as a tensor."""

    @property
    def lengths(self) -> Ints:
        """[n] tokens of each text; 1 where the length does not matter."""

    def batch(self, rows: Ints) -> Tensor:
        """Return some of the texts, one per row of the tensor."""


class InputEncoder(ABC):
    """A way to read texts, with the networks that read them this way."""

    name: ClassVar[str]

    open_progress: OpenProgress = staticmethod(nullcontext)
    """How encoding reports its progress."""

    make: ClassVar[Callable[..., InputEncoder]]
    """``make(data, work, **options)`` returns a new input encoder for this training data."""

    @classmethod
    def check(cls, **options: Any) -> None:
        """Raise UsageError for options that ``make`` would refuse, as far as is cheap to tell."""
        return

    @abstractmethod
    def encode_contexts(self, contexts: Contexts, turns: int = 1) -> EncodedTexts:
        """Encode the last ``turns`` turns of each context."""

    @abstractmethod
    def encode_replies(self, texts: Sequence[str]) -> EncodedTexts:
        """Encode replies, or any other single texts."""

    @abstractmethod
    def make_scorer(self, settings: ScorerSettings) -> Model:
        """Return a new network: contexts and replies → [replies] logits.

        There may be several times as many replies as contexts: first those to the first context,
        and so on. Weights are drawn from torch's global generator.
        """

    @abstractmethod
    def make_rater(self, settings: RaterSettings) -> Model:
        """Return a new network: U1, R1, U2, R2 → [m, 2] logits of ⟨U1, R1, R2⟩ and ⟨U2, R2, R1⟩.

        There may be several times as many second pairs (m) as first ones, as in ``make_scorer``.
        """

    @property
    @abstractmethod
    def depends(self) -> dict[str, str]:
        """Models or vectors that must be installed to read texts: ``{"model": "name@digest"}``."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON: with ``depends``, they determine the encoded texts."""

    @abstractmethod
    def expected_config(self, context_turns: int) -> dict[str, Any]:
        """Return the part of a network's configuration that must fit this input encoder."""

    def check_model(self, model: Model, context_turns: int, path: Path) -> None:
        """Raise DataError unless the network can read the texts of this input encoder."""
        from rejoinder.learn.networks.ensemble import members_of

        for member in members_of(model):
            config = getattr(member, "config", {})
            for name, expected in self.expected_config(context_turns).items():
                if config.get(name) != expected:
                    raise DataError(
                        f"the network does not fit {FILE}: {name} is {config.get(name)}, expected"
                        f" {expected}",
                        path=str(path),
                    )

    def save(self, folder: Path) -> None:
        """Write the input encoder to an existing folder."""
        record = {"format": FORMAT, "input": self.name, "depends": self.depends, **self.to_dict()}
        text = json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        (folder / FILE).write_text(text, encoding="utf-8")
        self._save_files(folder)

    @abstractmethod
    def _save_files(self, folder: Path) -> None:
        """Write further files, if there are any."""

    @classmethod
    @abstractmethod
    def _open(cls, folder: Path, record: Mapping[str, Any]) -> InputEncoder:
        """Open a saved folder; a missing key raises KeyError, a wrong value ValueError."""

    @staticmethod
    def open(folder: Path) -> InputEncoder:
        """Open the input encoder, of any kind, that was saved to a folder."""
        path = inside(folder, FILE)
        record = read_json(path, dict[str, Any])
        version, name = record.get("format"), record.get("input")
        if not isinstance(version, int) or not isinstance(name, str) or name not in INPUTS:
            raise DataError("does not describe the input of a network", path=str(path))
        if version > FORMAT:
            raise DataError(
                f"was written by a newer version of Rejoinder (format {version}, this version"
                f" reads up to {FORMAT}); update with: pip install --upgrade rejoinder",
                path=str(path),
            )
        try:
            inputs = input_class(name)._open(folder, record)
        except (UsageError, ValueError, KeyError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            message = f"does not describe the input of a network: {reason}"
            raise DataError(message, path=str(path)) from None
        if inputs.depends != record.get("depends"):
            raise DataError(
                f"was fitted with {_described(record.get('depends'))}, but found"
                f" {_described(inputs.depends)}; install the model or vectors of the fit",
                path=str(path),
            )
        return inputs


def input_class(name: str) -> type[InputEncoder]:
    """Return the class of an input encoder; an unknown name is a KeyError."""
    module, _, cls = INPUTS[name].partition(":")
    encoder: type[InputEncoder] = getattr(importlib.import_module(module), cls)
    return encoder


def whole_number(record: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return a whole number of a record; raise ValueError if it is not one, or out of range."""
    value = record[name]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ValueError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
    return value


def _described(depends: Any) -> str:
    if not isinstance(depends, Mapping):
        return str(depends)
    return ", ".join(f"{kind} {name}" for kind, name in depends.items()) or "nothing"
