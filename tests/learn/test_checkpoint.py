"""Checkpoints: what comes back is what went in, and what is no checkpoint is told apart."""

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
from rejoinder.learn.checkpoint import Model, load_model, read, save_model, write

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
def test_all_comes_back(tmp_path_factory: Any, parts: dict[str, Tensor], text: str) -> None:
    parts.pop("__metadata__", None)
    path = tmp_path_factory.mktemp("c") / "checkpoint.safetensors"
    write(path, parts, {"text": text, "number": 0.1})
    found, known = read(path)
    assert known == {"format": 1, "text": text, "number": 0.1}
    assert found.keys() == parts.keys()
    # the library of the format reads the same from it
    theirs = safetensors.torch.load_file(path)
    for name, tensor in parts.items():
        for other in (found[name], theirs[name]):
            assert other.dtype == tensor.dtype
            assert other.shape == tensor.shape
            assert torch.equal(other, tensor)


def test_views_are_written_as_they_look(tmp_path: Path) -> None:
    table = torch.arange(12.0).reshape(3, 4)
    write(tmp_path / "c", {"turned": table.T, "some": table[1:, ::2]}, {})
    found, _ = read(tmp_path / "c")
    assert torch.equal(found["turned"], table.T)
    assert torch.equal(found["some"], torch.tensor([[4.0, 6.0], [8.0, 10.0]]))


class Scale(Model):
    """A model to keep."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.config = {"width": width}
        self.linear = nn.Linear(width, 1)


def test_a_model_is_loaded_without_knowing_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "Scale", Scale, raising=False)
    monkeypatch.setattr(Scale, "__module__", "rejoinder.learn.checkpoint")
    model = Scale(3)
    save_model(tmp_path / "m", model, counts={"pairs": 5})
    loaded, known = load_model(tmp_path / "m")
    assert type(loaded) is Scale
    assert known["counts"] == {"pairs": 5}
    assert not loaded.training
    assert torch.equal(loaded.linear.weight, model.linear.weight)
    write(tmp_path / "m", {"linear.weight": torch.zeros(1, 2)}, checkpoint.describe(model))
    with pytest.raises(DataError, match="do not fit"):
        load_model(tmp_path / "m")


@pytest.mark.parametrize(
    "kind",
    [
        "subprocess:Popen",  # code of somebody else is not even imported
        "rejoinder.errors:DataError",
        "rejoinder.learn.checkpoint:load_model",
        "rejoinder.no_such_module:Model",
        "rejoinder.learn.checkpoint:NoSuchModel",
        "rejoinder:",
        "",
        None,
        7,
    ],
)
def test_a_foreign_kind_is_refused(tmp_path: Path, kind: object) -> None:
    write(tmp_path / "m", {}, {"kind": kind, "config": {}})
    with pytest.raises(DataError, match="which this version does not know"):
        load_model(tmp_path / "m")


def test_damage_is_found_wherever_a_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "c"
    write(path, {"a": torch.arange(3.0)}, {})
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match="c: "):
            read(path)


def test_other_files_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with pytest.raises(DataError, match="cannot be read"):
        read(path)
    safetensors.torch.save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(DataError, match="not written by Rejoinder"):
        read(path)
    for text in ("[]", "{}", "no JSON", json.dumps({"format": "1"})):
        safetensors.torch.save_file({"a": torch.zeros(1)}, path, {"rejoinder": text})
        with pytest.raises(DataError, match="not written by Rejoinder"):
            read(path)
    safetensors.torch.save_file({}, path, {"rejoinder": json.dumps({"format": 2})})
    with pytest.raises(DataError, match="newer version of Rejoinder"):
        read(path)


def test_a_full_device_is_named() -> None:
    with pytest.raises(ResourceError, match="/dev/full: cannot be written: no space left"):
        write(Path("/dev/full"), {"a": torch.zeros(1)}, {})
