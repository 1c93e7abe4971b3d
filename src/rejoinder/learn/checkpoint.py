"""Checkpoints: tensors and their metadata in one safetensors file, written whole or not at all.

Everything but tensors (the class of a model, its configuration, the position in a run) is JSON in
the header, under the key ``rejoinder``: with two files, a kill could leave a new one beside an old
one. Nothing is pickled.

The file of a model names its class (``kind``, as ``module:Class`` within ``rejoinder.learn``) and
its ``config``, so that it can be opened without knowing its class. A file may come from
somebody else: sizes are compared with the tensors of the file before a model is allocated.
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

from rejoinder.errors import DataError, RejoinderError, ResourceError, UsageError
from rejoinder.files.checked import check_finite
from rejoinder.files.output import open_output
from rejoinder.files.paths import open_regular, reason

FORMAT = 1
"""Increased when an older version could not read what a newer one writes."""
KEY = "rejoinder"
HOME = "rejoinder.learn."
"""Classes are looked up in this package only: a file must not name other code to run."""
MAX_SIZE = 10**8
"""Largest number in the configuration of a model."""
MAX_LAYERS = 1000
"""Layers are built one by one, so their number is limited before anything is built."""
MAX_DEPTH = 20

_DTYPES = {
    torch.float64: "F64", torch.int64: "I64", torch.float32: "F32", torch.int32: "I32",
    torch.float16: "F16", torch.bfloat16: "BF16", torch.int16: "I16",
    torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip


class Model(nn.Module):
    """A network that can be built again from its ``config``, which is JSON."""

    config: dict[str, Any]

    @classmethod
    def build(cls, config: Mapping[str, Any]) -> Self:
        """Return a network of this shape; its weights are loaded afterwards."""
        return cls(**config)

    @classmethod
    def kind(cls) -> str:
        return f"{cls.__module__}:{cls.__qualname__}"


def describe(model: nn.Module) -> dict[str, Any]:
    """Return the metadata from which ``build_model`` builds such a model again."""
    if isinstance(model, Model):
        return {"kind": model.kind(), "config": model.config}
    return {}


def save_model(path: Path, model: Model, **metadata: Any) -> None:
    """Write a model and further metadata (JSON)."""
    write_checkpoint(path, model.state_dict(), {**describe(model), **metadata})


def load_model(path: Path) -> tuple[Model, dict[str, Any]]:
    """Return the model of a file, of any class, and the metadata of the file."""
    tensors, metadata = read_checkpoint(path)
    for name, tensor in tensors.items():
        check_finite(path, name, tensor)
    try:
        with torch.device("meta"):  # shapes only, without memory
            _check_shapes(build_model(metadata), tensors)
        model = build_model(metadata)
    except (DataError, UsageError) as error:
        raise DataError(str(error), path=str(path)) from None
    except RejoinderError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError, OverflowError) as error:
        # constructors of torch and transformers raise any error for a wrong configuration
        first = (str(error).splitlines() or [""])[0]
        message = f"the configuration of the model is invalid: {type(error).__name__}: {first}"
        raise DataError(message, path=str(path)) from None
    load_weights(model, tensors, path)
    return model.eval(), metadata


def build_model(description: Mapping[str, Any]) -> Model:
    """Return an untrained model of the class and shape that ``describe`` has recorded."""
    cls, config = _model_class(description.get("kind")), description.get("config", {})
    if not isinstance(config, dict):
        raise DataError("the configuration of the model is not an object")
    _check_config(config)
    return cls.build(config)


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load the weights of a file into a model that has exactly these tensors."""
    try:
        model.load_state_dict(dict(tensors))
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise DataError(f"the weights do not fit the model: {first}", path=str(path)) from None


def write_checkpoint(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, Any]
) -> None:
    """Write a checkpoint tensor by tensor, without a copy of all of them in memory."""
    text = json.dumps({"format": FORMAT, **metadata}, ensure_ascii=False, allow_nan=False)
    try:
        with open_output(path) as stream:
            _write_tensors(stream, tensors, {KEY: text})
            stream.flush()
            os.fsync(stream.fileno())
    except UsageError as error:
        kept = " (the file that was there before is kept)" if path.exists() else ""
        raise ResourceError(f"{error}{kept}") from None


def write_weights(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write weights for transformers, which requires the metadata ``format: pt``."""
    with open_output(path) as stream:
        _write_tensors(stream, tensors, {"format": "pt"})


def _write_tensors(
    stream: IO[bytes], tensors: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> None:
    """Write the safetensors format: length of the header, header, data (widest types first).

    The library's own writer needs all bytes in memory at once; this one streams.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    end = 0
    for name in order:
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    encoded = json.dumps(header, ensure_ascii=False).encode()
    encoded += b" " * (-len(encoded) % 8)
    stream.write(len(encoded).to_bytes(8, "little") + encoded)
    for name in order:
        flat = tensors[name].detach().cpu().contiguous().reshape(-1)
        stream.write(flat.view(torch.uint8).numpy().data)


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the tensors and the metadata of a checkpoint."""
    from safetensors import SafetensorError, safe_open

    open_regular(path).close()
    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = _parse_metadata(file.metadata(), path)
            return {name: file.get_tensor(name) for name in file.keys()}, metadata  # noqa: SIM118
    except SafetensorError as error:
        raise DataError(f"damaged, or not a checkpoint ({error})", path=str(path)) from None
    except OSError as error:
        raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None


def _parse_metadata(notes: Mapping[str, str] | None, path: Path) -> dict[str, Any]:
    try:
        metadata = json.loads((notes or {})[KEY])
    except (KeyError, ValueError, RecursionError):
        raise DataError("was not written by Rejoinder", path=str(path)) from None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("format"), int):
        raise DataError("was not written by Rejoinder", path=str(path))
    if metadata["format"] > FORMAT:
        raise DataError(
            f"was written by a newer version of Rejoinder (format {metadata['format']}, this"
            f" version reads up to {FORMAT}); update with: pip install --upgrade rejoinder",
            path=str(path),
        )
    return metadata


def _model_class(kind: Any) -> type[Model]:
    module, _, name = str(kind).partition(":")
    member: Any = None
    if module.startswith(HOME):
        try:
            member = importlib.import_module(module)
            for part in name.split("."):
                member = getattr(member, part, None)
        except ModuleNotFoundError as error:
            if not f"{error.name}.".startswith(HOME):
                raise  # the module exists, but one of its dependencies does not
    if not (isinstance(member, type) and issubclass(member, Model)):
        raise DataError(f"is a model of kind '{kind}', which this version does not know")
    return member


def _check_config(value: Any, name: str = "", depth: int = 0) -> None:
    """Refuse numbers in a configuration that no model has, before anything is built of them."""
    if depth > MAX_DEPTH:
        raise DataError("the configuration of the model is nested too deeply")
    if isinstance(value, dict):
        for key, member in value.items():
            _check_config(member, str(key), depth + 1)
    elif isinstance(value, list):
        for member in value:
            _check_config(member, name, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        limit = MAX_LAYERS if "layers" in name else MAX_SIZE
        if not abs(value) <= limit and not _is_unbounded(name, value):
            raise DataError(f"the configuration of the model: {name} is {value}, out of range")


def _is_unbounded(name: str, value: float) -> bool:
    """Whether transformers uses a huge number for "no limit" here."""
    return name in ("model_max_length", "max_length") and value > 0


def _check_shapes(model: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    actual = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    for name in sorted(expected.keys() | actual.keys()):
        if expected.get(name) != actual.get(name):
            raise DataError(
                f"the weights do not fit the model: {name}: expected"
                f" {_shape(expected.get(name))}, found {_shape(actual.get(name))}"
            )


def _shape(shape: tuple[int, ...] | None) -> str:
    return "no such tensor" if shape is None else f"shape {list(shape)}"
