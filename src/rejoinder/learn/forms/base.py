"""How a network reads texts: as pieces, as frozen sentence vectors, or with an encoder of its own.

A form prepares texts once and makes the networks that read them; the scorer and the rater are
the same whatever their form is. A saved form is a folder: ``form.json`` and the files that it
needs, such as the model of its pieces.
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

from rejoinder.errors import DataError
from rejoinder.learn.checkpoint import Model
from rejoinder.learn.settings import RaterSettings, ScorerSettings
from rejoinder.progress import Progress

Ints = NDArray[np.int64]
Contexts = Sequence[Sequence[str]]
Watch = Callable[[], AbstractContextManager[Progress | None]]
"""Opened while texts are read; gives what is told how many of how many are done."""

FILE = "form.json"
FORMAT = 1
"""Goes up when an older version could no longer read what a newer one writes."""
FORMS = {
    "gru": "rejoinder.learn.forms.gru:GruForm",
    "vectors": "rejoinder.learn.forms.vectors:VectorForm",
    "encoder": "rejoinder.learn.forms.encoder:EncoderForm",
}


class Prepared(Protocol):
    """Texts that have been read: any of them can be asked for as a tensor."""

    @property
    def lengths(self) -> Ints:
        """[n] tokens of each text; 1 where length costs nothing."""

    def batch(self, numbers: Ints) -> Tensor:
        """Some of the texts, a row each; what a row means only the form's networks know."""


class Form(ABC):
    """A way to read texts, with the networks that read them so."""

    name: ClassVar[str]

    watch: Watch = staticmethod(nullcontext)
    """How reading is shown, where it takes long."""

    make: ClassVar[Callable[..., Form]]
    """``make(material, work, **options)``: a new form; the options are the kind's own."""

    @classmethod
    def check(cls, **options: Any) -> None:
        """UsageError where it can be told without any work that ``make`` would refuse these."""
        return

    @abstractmethod
    def contexts(self, contexts: Contexts, turns: int = 1) -> Prepared:
        """Contexts, of each of which only the last ``turns`` turns are read."""

    @abstractmethod
    def replies(self, texts: Sequence[str]) -> Prepared:
        """Replies, or any other single texts."""

    @abstractmethod
    def scorer(self, settings: ScorerSettings) -> Model:
        """A new network: contexts and replies → [replies] scores before the sigmoid.

        There may be several times as many replies as contexts: the first few for the first
        context, and so on. Weights are drawn from torch's own chance.
        """

    @abstractmethod
    def rater(self, settings: RaterSettings) -> Model:
        """A new network: U1, R1, U2, R2 → [m, 2] scores of ⟨U1, R1, R2⟩, and of ⟨U2, R2, R1⟩.

        There may be several times as many second pairs (m) as first ones (n), as in ``scorer``.
        """

    @property
    @abstractmethod
    def depends(self) -> dict[str, str]:
        """What must be on the machine to read texts so: ``{"model": "minilm@digest"}``."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """The settings of the form, as JSON: with ``depends``, all that decides what is read."""

    def save(self, folder: Path) -> None:
        """Write the form to a folder that is there."""
        record = {"format": FORMAT, "form": self.name, "depends": self.depends, **self.plain()}
        text = json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        (folder / FILE).write_text(text, encoding="utf-8")
        self._save_files(folder)

    @abstractmethod
    def _save_files(self, folder: Path) -> None:
        """What is no JSON, if there is anything."""

    @classmethod
    @abstractmethod
    def _opened(cls, folder: Path, record: Mapping[str, Any]) -> Form:
        """The inverse of ``save``; a key that is missing is a KeyError."""

    @staticmethod
    def open(folder: Path) -> Form:
        """The form of whatever kind that was saved to a folder."""
        path = folder / FILE
        try:
            record = json.loads(path.read_bytes())
            if record["format"] > FORMAT:
                raise DataError(
                    f"was written by a newer version of Rejoinder (format {record['format']},"
                    f" this version reads up to {FORMAT}); update with:"
                    " pip install --upgrade rejoinder",
                    path=str(path),
                )
            form = form_class(record["form"])._opened(folder, record)
            expected = record["depends"]
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DataError(f"cannot be read: {reason}", path=str(path)) from None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"is no form of a network ({error!r})", path=str(path)) from None
        if form.depends != expected:
            raise DataError(
                f"was fitted with {_listed(expected)}, but here is {_listed(form.depends)}",
                path=str(path),
            )
        return form


def form_class(name: str) -> type[Form]:
    """The class of a form; an unknown name is a KeyError."""
    module, _, kind = FORMS[name].partition(":")
    found: type[Form] = getattr(importlib.import_module(module), kind)
    return found


def _listed(depends: Mapping[str, str]) -> str:
    return ", ".join(f"{what} {which}" for what, which in depends.items()) or "nothing"
