"""Parts that were tampered with are refused by name, whatever is wrong with them."""

from __future__ import annotations

import io
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import DataError
from rejoinder.files import checked


def npy(array: Any, **arguments: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **arguments)
    return stream.getvalue()


def header(text: str, content: bytes = b"") -> bytes:
    encoded = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(encoded)) + encoded + content


GOOD = np.arange(6, dtype=np.float32).reshape(2, 3)
DESCR = "{'descr': '<f4', 'fortran_order': False, 'shape': %s}"
BAD_ARRAYS: dict[str, bytes] = {
    "empty": b"",
    "a pickle": pickle.dumps([1, 2]),
    "object array": npy(np.array([[1, None, "x"]] * 2, dtype=object), allow_pickle=True),
    "other type": npy(GOOD.astype(np.float64)),
    "text": npy(np.array([["a"] * 3] * 2)),
    "other shape": npy(GOOD.T.copy()),
    "flat": npy(GOOD.ravel()),
    "cut": npy(GOOD)[:-1],
    "with a rest": npy(GOOD) + b"x",
    "header lie": header(DESCR % "(2000000000000, 3)"),
    "header overflow": header(DESCR % f"({2**62}, {2**62})"),
    "negative shape": header(DESCR % "(-2, 3)"),
    "deep header": header("(" * 100),
    "no dictionary": header("[1, 2]"),
    "code in the header": header("__import__('os').abort()"),
    "other version": b"\x93NUMPY\x09\x00" + npy(GOOD)[8:],
    "below": npy(GOOD - 1),
    "above": npy(GOOD + 1),
    "not a number": npy(np.where(GOOD == 3, np.nan, GOOD)),
    "infinite": npy(np.where(GOOD == 3, np.inf, GOOD)),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
@pytest.mark.parametrize("mmap", [False, True])
def test_bad_arrays(tmp_path: Path, kind: str, mmap: bool) -> None:
    path = tmp_path / "part.npy"
    path.write_bytes(BAD_ARRAYS[kind])
    with pytest.raises(DataError, match=r"part\.npy: "):
        checked.read_array(
            path, dtype="float32", shape=(2, 3), low=0, high=5, finite=True, mmap=mmap
        )


def test_good_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "part.npy", GOOD)
    for arguments in ({"shape": (2, None)}, {"ndim": 2}, {"mmap": True}, {"high": 5, "low": 0}):
        found = checked.read_array(tmp_path / "part.npy", dtype=("float16", "float32"), **arguments)
        assert np.array_equal(found, GOOD)
    np.save(tmp_path / "part.npy", np.asfortranarray(GOOD))
    assert np.array_equal(checked.read_array(tmp_path / "part.npy", dtype="float32"), GOOD)


@given(st.data())
@settings(max_examples=200)
def test_no_damage_of_an_array_raises_anything_else(data: st.DataObject) -> None:
    import tempfile

    content = bytearray(npy(GOOD))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.npy"
        path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
        try:
            found = checked.read_array(path, dtype="float32", shape=(2, 3))
        except DataError:
            return
        assert found.shape == (2, 3)


def test_npz(tmp_path: Path) -> None:
    path = tmp_path / "part.npz"
    np.savez(path, a=GOOD, b=np.arange(3))
    found = checked.read_npz(path, {"a": "float32", "b": "int64"})
    assert np.array_equal(found["a"], GOOD)
    whole = path.read_bytes()
    for dtypes in ({"c": "float32"}, {"a": "int64"}):
        with pytest.raises(DataError, match=r"part\.npz: has "):
            checked.read_npz(path, dtypes)
    for content in (
        b"",
        b"PK\x03\x04",
        whole[:-30],
        whole[:60] + b"\xff" * 30 + whole[90:],
        npy(GOOD),
    ):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"part\.npz: "):
            checked.read_npz(path, {"a": "float32"})
    np.savez(path, a=np.array([None], dtype=object))
    with pytest.raises(DataError, match=r"part\.npz: "):
        checked.read_npz(path, {"a": "float32"})


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


TEXTS = pa.table({"text": ["a", "b"], "turns": [["x"], []], "n": [1, 2]})
COLUMNS = {"text": "string", "turns": "list<string>", "n": "int32|int64"}
BAD_TABLES: dict[str, bytes] = {
    "empty": b"",
    "cut": arrow(TEXTS)[:-40],
    "other file": b"PAR1" * 100,
    "numbers for texts": arrow(TEXTS.set_column(0, "text", pa.array([1, 2]))),
    "null": arrow(TEXTS.set_column(0, "text", pa.array(["a", None]))),
    "null in a list": arrow(TEXTS.set_column(1, "turns", pa.array([["a", None], []]))),
    "column missing": arrow(TEXTS.drop_columns("n")),
    "column more": arrow(TEXTS.append_column("m", pa.array([1, 2]))),
    "two of one name": arrow(TEXTS.append_column("n", pa.array([1, 2]))),
    "bytes that are no text": arrow(
        TEXTS.set_column(0, "text", pa.array([b"\xff", b"b"]).view(pa.string()))
    ),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
@pytest.mark.parametrize("mmap", [False, True])
def test_bad_tables(tmp_path: Path, kind: str, mmap: bool) -> None:
    (tmp_path / "part.arrow").write_bytes(BAD_TABLES[kind])
    with pytest.raises(DataError, match=r"part\.arrow: "):
        checked.read_table(tmp_path / "part.arrow", COLUMNS, mmap=mmap)


def test_good_tables(tmp_path: Path) -> None:
    (tmp_path / "part.arrow").write_bytes(arrow(TEXTS))
    assert checked.read_table(tmp_path / "part.arrow", COLUMNS, mmap=True) == TEXTS
    large = TEXTS.set_column(0, "text", TEXTS["text"].cast(pa.large_string()))
    (tmp_path / "part.arrow").write_bytes(arrow(large))
    assert checked.read_table(tmp_path / "part.arrow", COLUMNS).num_rows == 2


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_tensors_with_values_that_are_not_finite_are_refused(tmp_path: Path, wrong: float) -> None:
    import torch

    path = tmp_path / "part.safetensors"
    weights = np.array([0, 3e38, wrong], np.float32)
    for tensor in (weights, torch.from_numpy(weights)):
        with pytest.raises(DataError, match=r"part\.safetensors: tensor 'b' holds a value that is"):
            checked.check_finite(path, "b", tensor)
        checked.check_finite(path, "b", tensor[:2])
        checked.check_finite(path, "b", np.arange(3))


BAD_JSON: dict[str, bytes] = {
    "empty": b"",
    "no JSON": b"{",
    "no UTF-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "wrong type": b'{"a": "x"}',
    "deep": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "number too large": b'{"a": 1' + b"0" * 5000 + b"}",
    "large": b" " * (checked.MAX_JSON_BYTES + 1),
}


@pytest.mark.parametrize("kind", BAD_JSON)
def test_bad_json(tmp_path: Path, kind: str) -> None:
    (tmp_path / "part.json").write_bytes(BAD_JSON[kind])
    with pytest.raises(DataError, match=r"part\.json: "):
        checked.read_json(tmp_path / "part.json", dict[str, int])


def test_good_json(tmp_path: Path) -> None:
    (tmp_path / "part.json").write_text(json.dumps({"a": 1}))
    assert checked.read_json(tmp_path / "part.json", dict[str, int]) == {"a": 1}


@pytest.mark.parametrize("read", [checked.read_bytes, checked.read_json, checked.read_toml])
def test_paths_that_are_not_regular_files(tmp_path: Path, read: Callable[[Path], object]) -> None:
    for path in (tmp_path, tmp_path / "no", Path("/dev/zero"), tmp_path / ("x" * 300)):
        with pytest.raises(DataError, match="cannot be read: "):
            read(path)


def test_names_that_leave_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "evaluator"
    folder.mkdir()
    (tmp_path / "secret").touch()
    (folder / "part").touch()
    (folder / "inner").symlink_to("part")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "up").symlink_to("..")
    assert checked.inside(folder, "part") == folder / "part"
    assert checked.inside(folder, "inner") == folder / "inner"
    assert checked.inside(folder, "sub/new.npy") == folder / "sub" / "new.npy"
    for name in ("", "../secret", "/etc/passwd", "a/../../secret", "a\0b", "link", "up/secret"):
        with pytest.raises(DataError, match=r"outside of the folder|leaves the folder"):
            checked.inside(folder, name)
