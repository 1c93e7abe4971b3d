"""Tamper with parts of evaluators, indexes and word vectors, and make their digests fit again."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rejoinder.encode.static.mapped_files import Part

Change = Callable[[bytes], bytes]
"""From the content of a part to what an attacker writes instead."""


def npy(array: Any, **arguments: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **arguments)
    return stream.getvalue()


def of_array(change: Callable[[Any], Any]) -> Change:
    return lambda content: npy(change(np.load(io.BytesIO(content))))


def with_values(**values: float) -> Callable[[Any], Any]:
    """Return a change of the first value, for arrays whose type can hold it."""
    (value,) = values.values()

    def change(array: Any) -> Any:
        wider = array.astype(np.int64) if abs(value) > 2**31 and array.dtype.kind == "i" else array
        wider = wider.copy()
        wider.flat[0] = value
        return wider

    return change


def header_lie(content: bytes) -> bytes:
    array: NDArray[Any] = np.load(io.BytesIO(content))
    shape = (10**12, *array.shape[1:])
    text = repr({"descr": array.dtype.str, "fortran_order": False, "shape": shape})
    encoded = text.encode().ljust(117) + b"\n"
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(encoded)) + encoded
    return (header + array.tobytes())[: len(content)].ljust(len(content), b"\0")


ARRAYS: dict[str, Change] = {
    "empty": lambda content: b"",
    "a pickle": lambda content: pickle.dumps([1, 2]),
    "objects": lambda content: npy(np.array([None, "x"], dtype=object), allow_pickle=True),
    "texts": of_array(lambda array: array.astype("U")),
    "another type": of_array(
        lambda array: array.astype(np.float64 if array.dtype.kind == "f" else np.int16)
    ),
    "one more dimension": of_array(lambda array: array[None]),
    "no dimension": of_array(lambda array: array.ravel()[0]),
    "fewer rows": of_array(lambda array: array[:-1]),
    "more rows": of_array(lambda array: np.concatenate([array, array[:1]])),
    "no rows": of_array(lambda array: array[:0]),
    "cut": lambda content: content[:-3],
    "header lie": header_lie,
}
FLOATS: dict[str, Change] = {
    "NaN": of_array(with_values(value=np.nan)),
    "infinite": of_array(with_values(value=np.inf)),
}
INTEGERS: dict[str, Change] = {
    "-1": of_array(with_values(value=-1)),
    "1e12": of_array(with_values(value=10**12)),
}


def npz_array(name: str, change: Callable[[Any], Any]) -> Change:
    def changed(content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as stored:
            arrays = {key: stored[key] for key in stored.files}
        arrays[name] = change(arrays[name])
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()

    return changed


ZIPPED: dict[str, Change] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[: len(content) // 2],
    "damaged": lambda content: content[:60] + b"\xff" * 40 + content[100:],
    "an array": lambda content: npy(np.arange(3)),
    "a pickle": lambda content: pickle.dumps({"words": 1}),
    "objects": npz_array("rows", lambda array: np.array([None], dtype=object)),
    "row -1": npz_array("rows", with_values(value=-1)),
    "row 1e12": npz_array("rows", with_values(value=10**12)),
    "starts backwards": npz_array("starts", lambda array: array[::-1]),
    "starts beyond": npz_array("starts", lambda array: array * 10**9),
    "fewer starts": npz_array("starts", lambda array: array[:-2]),
    "fewer counts": npz_array("counts", lambda array: array[:-1]),
    "lengths of 0": npz_array("lengths", lambda array: array * 0 - 1),
    "floats": npz_array("rows", lambda array: array.astype(np.float64)),
}


def arrow(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def of_table(change: Callable[[pa.Table], pa.Table]) -> Change:
    return lambda content: arrow(change(pa.ipc.open_file(pa.BufferReader(content)).read_all()))


def response(values: Callable[[int], pa.Array]) -> Change:
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index("response")
        return table.set_column(at, "response", values(table.num_rows))

    return of_table(change)


TABLES: dict[str, Change] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-30],
    "another format": lambda content: b"PAR1" * 100,
    "integers": response(lambda rows: pa.array([1] * rows)),
    "nulls": response(lambda rows: pa.array([None] * rows, pa.string())),
    "lists": response(lambda rows: pa.array([["a"]] * rows)),
    "no UTF-8": response(lambda rows: pa.array([b"\xff"] * rows).view(pa.string())),
    "fewer rows": of_table(lambda table: table.slice(0, table.num_rows - 1)),
    "no rows": of_table(lambda table: table.slice(0, 0)),
    "no responses": of_table(lambda table: table.drop_columns("response")),
    "responses twice": of_table(lambda t: t.append_column("response", t["response"])),
}


def metadata(change: Callable[[Any], Any]) -> Change:
    def changed(content: bytes) -> bytes:
        size = struct.unpack("<Q", content[:8])[0]
        header = json.loads(content[8 : 8 + size])
        found = change(json.loads(header["__metadata__"]["rejoinder"]))
        header["__metadata__"] = {
            "rejoinder": found if isinstance(found, str) else json.dumps(found)
        }
        encoded = json.dumps(header).encode()
        return struct.pack("<Q", len(encoded)) + encoded + content[8 + size :]

    return changed


def configured(**values: Any) -> Change:
    return metadata(lambda found: {**found, "config": {**found["config"], **values}})


def weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    def changed(content: bytes) -> bytes:
        size = struct.unpack("<Q", content[:8])[0]
        found = json.loads(content[8 : 8 + size]).get("__metadata__")
        return save_tensors(change(load_tensors(content)), found)

    return changed


def first(tensors: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    name = min(tensors)
    return {**tensors, name: np.ascontiguousarray(change(tensors[name]))}


TENSORS: dict[str, Change] = {
    "empty": lambda content: b"",
    "cut": lambda content: content[:-4],
    "header of 1 TB": lambda content: struct.pack("<Q", 2**40) + content[8:],
    "no JSON": lambda content: content[:8] + b"x" * (len(content) - 8),
    "no metadata": lambda content: save_tensors(load_tensors(content)),
    "metadata no JSON": metadata(lambda found: "{"),
    "metadata a list": metadata(lambda found: []),
    "metadata deep": metadata(lambda found: '{"format": ' + "[" * 5_000),
    "another class": metadata(lambda found: {**found, "kind": "os:system"}),
    "a class of torch": metadata(lambda found: {**found, "kind": "torch.nn:Linear"}),
    "no class": metadata(lambda found: {**found, "kind": 7}),
    "another part": metadata(lambda found: {**found, "part": "nothing"}),
    "no options": metadata(lambda found: {**found, "options": None}),
    "config a list": metadata(lambda found: {**found, "config": []}),
    "config empty": metadata(lambda found: {**found, "config": {}}),
    "size of 1e12": configured(hidden_size=10**12),
    "size of -1": configured(hidden_size=-1),
    "size a text": configured(hidden_size="x"),
    "size NaN": configured(hidden_size=None),
    "unknown setting": configured(colour="red"),
    "a tensor less": weights(lambda tensors: dict(list(tensors.items())[1:])),
    "a tensor more": weights(lambda tensors: tensors | {"x": np.zeros(1, np.float32)}),
    "another shape": weights(lambda tensors: first(tensors, lambda t: t.reshape(-1)[:1])),
    "another type": weights(lambda tensors: first(tensors, lambda t: t.astype(np.int64))),
    "NaN": weights(lambda tensors: first(tensors, lambda t: t * np.nan)),
    "infinite": weights(lambda tensors: first(tensors, lambda t: t + np.inf)),
}


def of_json(change: Callable[[Any], Any]) -> Change:
    return lambda content: json.dumps(change(json.loads(content))).encode()


def without(name: str) -> Change:
    return of_json(lambda found: {k: v for k, v in found.items() if k != name})


JSON: dict[str, Change] = {
    "empty": lambda content: b"",
    "a list": lambda content: b"[]",
    "a number": lambda content: b"7",
    "an object": lambda content: b"{}",
    "no UTF-8": lambda content: b'{"a": "\xff"}',
    "deep": lambda content: b'{"a": ' + b"[" * 100_000,
    "digits": lambda content: b'{"a": 1' + b"0" * 5_000 + b"}",
    "cut": lambda content: content[:-5],
}


def changes_of(path: Path) -> dict[str, Change]:
    """Return the ways to tamper with a file, by its kind."""
    if path.suffix == ".npy":
        kind = np.load(path, mmap_mode="r").dtype.kind
        return ARRAYS | (FLOATS if kind == "f" else INTEGERS if kind == "i" else {})
    by_suffix = {".npz": ZIPPED, ".arrow": TABLES, ".safetensors": TENSORS, ".json": JSON}
    return by_suffix.get(path.suffix, {"empty": lambda content: b""})


def parts_of(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "README.md":
            yield path.relative_to(folder)


def seal(folder: Path) -> None:
    """Make sizes and digests in the manifests fit the files, as an attacker would."""
    for manifest in sorted(folder.rglob("manifest.json"), key=lambda path: -len(path.parts)):
        try:
            found = json.loads(manifest.read_bytes())
        except (ValueError, RecursionError):
            continue
        if not isinstance(found, dict):
            continue
        here = manifest.parent
        if isinstance(found.get("files"), dict):  # an index
            found["files"] = {
                name: (here / name).stat().st_size
                for name in found["files"]
                if (here / name).is_file()
            }
        elif str(found.get("kind")).endswith("word vectors") and "parts" in found:
            found["parts"] = {
                name: msgspec.to_builtins(Part.of(here / name))
                for name in found["parts"]
                if (here / name).is_file()
            }
        elif found.get("kind") == "evaluator" and isinstance(found.get("parts"), dict):
            found["parts"] = {
                str(path): {
                    "size": (here / path).stat().st_size,
                    "sha256": hashlib.sha256((here / path).read_bytes()).hexdigest(),
                }
                for path in map(Path, [str(p) for p in parts_of(here)] + ["README.md"])
                if (here / path) != manifest
            }
        manifest.write_text(json.dumps(found))
