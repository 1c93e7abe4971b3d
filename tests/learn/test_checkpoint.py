"""Checkpoints: round trips, damaged files, and files that were tampered with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from rejoinder.errors import DataError, ResourceError
from rejoinder.learn import checkpoint
from rejoinder.learn.checkpoint import (
    Model,
    load_model,
    read_checkpoint,
    save_model,
    write_checkpoint,
)

KINDS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
KINDS += [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]

shapes = st.lists(st.integers(0, 3), max_size=3)
tensors = st.builds(
    lambda kind, shape, number: (
        (torch.arange(number, number + 27)[: _size(shape)] % 100).to(kind).reshape(shape)
    ),
    st.sampled_from(KINDS),
    shapes,
    st.integers(0, 50),
)


def _size(shape: list[int]) -> int:
    size = 1
    for number in shape:
        size *= number
    return size


@given(st.dictionaries(st.text(min_size=1), tensors, max_size=5), st.text())
def test_tensors_and_metadata_are_read_as_written(
    tmp_path_factory: Any, parts: dict[str, Tensor], text: str
) -> None:
    parts.pop("__metadata__", None)
    path = tmp_path_factory.mktemp("c") / "checkpoint.safetensors"
    write_checkpoint(path, parts, {"text": text, "number": 0.1})
    found, metadata = read_checkpoint(path)
    assert metadata == {"format": 1, "text": text, "number": 0.1}
    assert found.keys() == parts.keys()
    # the library of the format reads the same from it
    theirs = safetensors.torch.load_file(path)
    for name, tensor in parts.items():
        for other in (found[name], theirs[name]):
            assert other.dtype == tensor.dtype
            assert other.shape == tensor.shape
            assert torch.equal(other, tensor)


def test_views_of_tensors_are_written_with_their_own_values(tmp_path: Path) -> None:
    table = torch.arange(12.0).reshape(3, 4)
    write_checkpoint(tmp_path / "c", {"turned": table.T, "some": table[1:, ::2]}, {})
    found, _ = read_checkpoint(tmp_path / "c")
    assert torch.equal(found["turned"], table.T)
    assert torch.equal(found["some"], torch.tensor([[4.0, 6.0], [8.0, 10.0]]))


class Scale(Model):
    """A model with one layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.config = {"width": width}
        self.linear = nn.Linear(width, 1)


def test_a_model_is_built_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "Scale", Scale, raising=False)
    monkeypatch.setattr(Scale, "__module__", "rejoinder.learn.checkpoint")
    model = Scale(3)
    save_model(tmp_path / "m", model, counts={"pairs": 5})
    loaded, metadata = load_model(tmp_path / "m")
    assert type(loaded) is Scale
    assert metadata["counts"] == {"pairs": 5}
    assert not loaded.training
    assert torch.equal(loaded.linear.weight, model.linear.weight)
    write_checkpoint(
        tmp_path / "m", {"linear.weight": torch.zeros(1, 2)}, checkpoint.describe(model)
    )
    with pytest.raises(DataError, match="do not fit"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "kind",
    [
        "subprocess:Popen",  # other code is not even imported
        "rejoinder.errors:DataError",
        "rejoinder.learn.checkpoint:load_model",
        "rejoinder.learn.no_such_module:Model",
        "rejoinder.__main__:Model",
        "rejoinder.learn.checkpoint:NoSuchModel",
        "rejoinder:",
        "",
        None,
        7,
    ],
)
def test_an_unknown_class_is_refused(tmp_path: Path, kind: object) -> None:
    write_checkpoint(tmp_path / "m", {}, {"kind": kind, "config": {}})
    with pytest.raises(DataError, match="which this version does not know"):
        load_model(tmp_path / "m")


def test_a_truncated_file_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write_checkpoint(path, {"a": torch.arange(3.0)}, {})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="c: "):
            read_checkpoint(path)


def test_files_of_other_programs_are_data_errors(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with pytest.raises(DataError, match="cannot be read"):
        read_checkpoint(path)
    safetensors.torch.save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(DataError, match="not written by Rejoinder"):
        read_checkpoint(path)
    for text in ("[]", "{}", "no JSON", json.dumps({"format": "1"})):
        safetensors.torch.save_file({"a": torch.zeros(1)}, path, {"rejoinder": text})
        with pytest.raises(DataError, match="not written by Rejoinder"):
            read_checkpoint(path)
    safetensors.torch.save_file({}, path, {"rejoinder": json.dumps({"format": 2})})
    with pytest.raises(DataError, match="newer version of Rejoinder"):
        read_checkpoint(path)


def test_a_full_disk_is_a_resource_error() -> None:
    with pytest.raises(ResourceError, match="/dev/full: cannot be written: no space left"):
        write_checkpoint(Path("/dev/full"), {"a": torch.zeros(1)}, {})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "not an object"),
        ({}, "invalid"),
        ({"width": 10**12}, "width is 1000000000000, out of range"),
        ({"width": 10**7}, "do not fit the model"),
        ({"width": -3}, "invalid|do not fit"),
        ({"width": "3"}, "invalid"),
        ({"width": 3, "depth": 1}, "invalid"),
        ({"num_layers": 5000}, "num_layers is 5000, out of range"),
        ({"width": [[[[[[[[[[[[[[[[[[[[[[[[3]]]]]]]]]]]]]]]]]]]]]]]]}, "nested too deeply"),
    ],
)
def test_a_tampered_configuration_is_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: object, message: str
) -> None:
    """Nothing large is allocated: shapes are compared with the tensors of the file first."""
    monkeypatch.setattr(checkpoint, "Scale", Scale, raising=False)
    monkeypatch.setattr(Scale, "__module__", "rejoinder.learn.checkpoint")
    metadata = {"kind": Scale.kind(), "config": config}
    write_checkpoint(tmp_path / "m", Scale(3).state_dict(), metadata)
    with pytest.raises(DataError, match=message):
        load_model(tmp_path / "m")


def test_weights_that_are_not_finite_are_a_data_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "Scale", Scale, raising=False)
    monkeypatch.setattr(Scale, "__module__", "rejoinder.learn.checkpoint")
    model = Scale(3)
    with torch.no_grad():
        model.linear.weight[0, 1] = float("nan")
    save_model(tmp_path / "m", model)
    with pytest.raises(DataError, match=r"linear\.weight.*not a number"):
        load_model(tmp_path / "m")
