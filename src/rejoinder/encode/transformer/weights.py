"""The numbers of a model, read by name from safetensors files, tensor by tensor, without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.folder import ModelFolder
from rejoinder.errors import DataError, MissingExtra

Floats = NDArray[np.float32]

UNREADABLE = ("BF16", "F8", "F6", "F4")
"""How kinds of numbers begin that numpy does not have."""


class Weights:
    """Tensors as 32-bit floats, by the names they have below the model's own prefix.

    A model that was trained with a head has a prefix such as ``bert.``; it is found by a name
    that every such model has.
    """

    def __init__(self, folder: ModelFolder, anchor: str) -> None:
        try:
            from safetensors import SafetensorError, safe_open
        except ImportError:
            raise MissingExtra(
                f"model '{folder.name}' needs safetensors: pip install safetensors"
            ) from None
        self.path = folder.path
        self._files: dict[str, Any] = {}
        for path in folder.weights:
            try:
                opened: Any = safe_open(str(path), framework="np")
            except SafetensorError as error:
                raise DataError(f"the file is damaged ({error})", path=str(path)) from None
            self._files |= dict.fromkeys(opened.keys(), opened)
        found = [name for name in self._files if name.endswith(anchor)]
        if not found:
            raise self._missing(anchor)
        self._prefix = min(found, key=len).removesuffix(anchor)

    @property
    def readable(self) -> bool:
        kinds = (file.get_slice(name).get_dtype() for name, file in self._files.items())
        return not any(kind.startswith(UNREADABLE) for kind in kinds)

    def has(self, name: str) -> bool:
        return self._prefix + name in self._files

    def get(self, name: str, *shape: int | None) -> Floats:
        """A tensor of this shape; None is any number."""
        full = self._prefix + name
        if not self.has(name):
            raise self._missing(full)
        found: Floats = self._files[full].get_tensor(full).astype(np.float32, copy=False)
        expected = tuple(found.shape[i] if n is None else n for i, n in enumerate(shape))
        if found.shape != expected:
            raise self._missing(full)
        return found

    def linear(self, name: str, inputs: int, outputs: int) -> tuple[Floats, Floats]:
        """Matrix (to be multiplied from the right) and bias."""
        matrix = self.get(f"{name}.weight", outputs, inputs)
        return np.ascontiguousarray(matrix.T), self.get(f"{name}.bias", outputs)

    def norm(self, name: str, width: int) -> tuple[Floats, Floats]:
        """Scale and shift; the first models called them otherwise."""
        scale, shift = ("gamma", "beta") if self.has(f"{name}.gamma") else ("weight", "bias")
        return self.get(f"{name}.{scale}", width), self.get(f"{name}.{shift}", width)

    def _missing(self, name: str) -> DataError:
        return DataError(
            f"the weights have no {name} of the size that config.json asks for",
            path=str(self.path),
        )
