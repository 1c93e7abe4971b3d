"""The weights of a model, read by name from safetensors files, tensor by tensor, without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.errors import DataError, missing_extra
from rejoinder.files.checked import check_finite

Floats = NDArray[np.float32]

NOT_IN_NUMPY = ("BF16", "F8", "F6", "F4")
"""Beginnings of the names of number types that numpy does not have."""


class Weights:
    """Tensors as float32, by their names below the model's own prefix.

    A model that was trained with a head has a prefix such as ``bert.``; it is recognised by a
    tensor name that every such model has.
    """

    def __init__(self, folder: ModelFolder, anchor: str) -> None:
        self.path = folder.path
        self._files: dict[str, Any] = {}
        self._paths: dict[str, Path] = {}
        for path, file in _open_files(folder):
            names = list(file.keys())
            self._files |= dict.fromkeys(names, file)
            self._paths |= dict.fromkeys(names, path)
        names = [name for name in self._files if name.endswith(anchor)]
        if not names:
            raise self._missing(anchor)
        self._prefix = min(names, key=len).removesuffix(anchor)

    @property
    def readable(self) -> bool:
        """Whether numpy has the number types of all tensors."""
        types = (file.get_slice(name).get_dtype() for name, file in self._files.items())
        return not any(kind.startswith(NOT_IN_NUMPY) for kind in types)

    def has(self, name: str) -> bool:
        """Return whether there is a tensor of this name."""
        return self._prefix + name in self._files

    def get(self, name: str, *shape: int | None) -> Floats:
        """Return a tensor, which must have this shape; None stands for any length."""
        full = self._prefix + name
        if not self.has(name):
            raise self._missing(full)
        file = self._files[full]
        actual = file.get_slice(full).get_shape()
        if (
            len(actual) != len(shape)
            or 0 in actual
            or any(wanted not in (None, size) for size, wanted in zip(actual, shape, strict=True))
        ):
            raise self._missing(full)
        tensor: Floats = file.get_tensor(full).astype(np.float32, copy=False)
        check_finite(self._paths[full], full, tensor)
        return tensor

    def linear(self, name: str, inputs: int, outputs: int) -> tuple[Floats, Floats]:
        """Return the matrix [inputs, outputs] and the bias of a linear layer."""
        matrix = self.get(f"{name}.weight", outputs, inputs)
        return np.ascontiguousarray(matrix.T), self.get(f"{name}.bias", outputs)

    def norm(self, name: str, hidden_size: int) -> tuple[Floats, Floats]:
        """Return scale and shift of a layer norm, under their current or their oldest names."""
        scale, shift = ("gamma", "beta") if self.has(f"{name}.gamma") else ("weight", "bias")
        return self.get(f"{name}.{scale}", hidden_size), self.get(f"{name}.{shift}", hidden_size)

    def _missing(self, name: str) -> DataError:
        return DataError(
            f"the weights have no {name} of the size that config.json asks for",
            path=str(self.path),
        )


def _open_files(folder: ModelFolder) -> list[tuple[Path, Any]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise missing_extra("neural", "safetensors", task=f"model '{folder.name}'") from None
    files = []
    for path in folder.weights:
        try:
            files.append((path, safe_open(str(path), framework="np")))
        except (SafetensorError, OSError) as error:
            raise DataError(f"the file is damaged ({error})", path=str(path)) from None
    return files
