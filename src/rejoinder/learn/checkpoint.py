"""Tensors and what is known of them in one file: whole or absent, and never out of step.

A checkpoint is a safetensors file. What is no tensor (what kind of model, its configuration, the
position in a run) is JSON in the header, under the key ``rejoinder``: of two files, a kill could
leave a new one and an old one. Nothing is pickled.

A model's file says its ``kind``, ``module:Class`` within Rejoinder, and its ``config``, so that
it can be opened by somebody who does not know what it is.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

import torch
from torch import Tensor, nn

from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.io import open_output

FORMAT = 1
"""Goes up when an older version could no longer read what a newer one writes."""
KEY = "rejoinder"
HOME = "rejoinder"
"""Kinds are looked for in this package only: a file must not name code for us to run."""

_NAMES = {
    torch.float64: "F64", torch.int64: "I64", torch.float32: "F32", torch.int32: "I32",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.int16: "I16",
    torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


class Model(nn.Module):
    """A network that can be built again from its ``config``, which is JSON."""

    config: dict[str, Any]

    @classmethod
    def build(cls, config: Mapping[str, Any]) -> Self:
        """A network of this shape; the weights come from the file."""
        return cls(**config)

    @classmethod
    def kind(cls) -> str:
        return f"{cls.__module__}:{cls.__qualname__}"


def describe(model: nn.Module) -> dict[str, Any]:
    """What a file must say of a model so that it can be built again."""
    if isinstance(model, Model):
        return {"kind": model.kind(), "config": model.config}
    return {}


def save_model(path: Path, model: Model, **known: Any) -> None:
    """Write a model, and whatever else is ``known`` of it (JSON)."""
    write(path, model.state_dict(), {**describe(model), **known})


def load_model(path: Path) -> tuple[Model, dict[str, Any]]:
    """A model of whatever kind the file says, and all that the file knows of it."""
    tensors, known = read(path)
    try:
        model = built(known)
    except DataError as error:
        raise DataError(str(error), path=str(path)) from None
    fill(model, tensors, path)
    return model.eval(), known


def built(known: Mapping[str, Any]) -> Model:
    """A model of the kind and shape that ``describe`` has told; its weights mean nothing yet."""
    return _class_of(known.get("kind")).build(known.get("config", {}))


def fill(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Put the weights of a file into a model that has exactly these."""
    try:
        model.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise DataError(f"the weights do not fit the model: {first}", path=str(path)) from None


def write(path: Path, tensors: Mapping[str, Tensor], known: Mapping[str, Any]) -> None:
    """Write a checkpoint, tensor by tensor: it takes no memory of its own."""
    text = json.dumps({"format": FORMAT, **known}, ensure_ascii=False, allow_nan=False)
    try:
        with open_output(path) as stream:
            _stream(stream, tensors, {KEY: text})
            stream.flush()
            os.fsync(stream.fileno())
    except UsageError as error:
        before = " (what was there before is intact)" if path.exists() else ""
        raise ResourceError(f"{error}{before}") from None


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write weights for transformers, which wants to know what wrote them."""
    with open_output(path) as stream:
        _stream(stream, tensors, {"format": "pt"})


def _stream(stream: IO[bytes], tensors: Mapping[str, Tensor], notes: Mapping[str, str]) -> None:
    """The safetensors format: length of the header, header, bytes (widest types first)."""
    header: dict[str, Any] = {"__metadata__": dict(notes)}
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    encoded = json.dumps(header, ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for name in order:
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        stream.write(flat.view(torch.uint8).numpy().data)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a checkpoint, and what it knows."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            known = _known(file.metadata(), path)
            return {name: file.get_tensor(name) for name in file.keys()}, known  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"is damaged or no checkpoint ({error})", path=str(path)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be read: {reason}", path=str(path)) from None


def _known(notes: Mapping[str, str] | None, path: Path) -> dict[str, Any]:
    try:
        known = json.loads((notes or {})[KEY])
    except (KeyError, ValueError):
        raise DataError("was not written by Rejoinder", path=str(path)) from None
    if not isinstance(known, dict) or not isinstance(known.get("format"), int):
        raise DataError("was not written by Rejoinder", path=str(path))
    if known["format"] > FORMAT:
        raise DataError(
            f"was written by a newer version of Rejoinder (format {known['format']}, this version"
            f" reads up to {FORMAT}); update with: pip install --upgrade rejoinder",
            path=str(path),
        )
    return known


def _class_of(kind: Any) -> type[Model]:
    module, _, name = str(kind).partition(":")
    found: Any = None
    if module.partition(".")[0] == HOME:
        try:
            found = importlib.import_module(module)
            for part in name.split("."):
                found = getattr(found, part, None)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != HOME:
                raise  # the module is there, something that it needs is not
    if not (isinstance(found, type) and issubclass(found, Model)):
        raise DataError(f"holds a model of kind '{kind}', which this version does not know")
    return found
