"""Index folders that were tampered with, and whose manifest was made to fit, end with exit code 3.

Every case changes one part of a good index and writes the new sizes into the manifest. ``expand``
must then name the part, print no traceback and write no output.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rejoinder.cli import main
from rejoinder.retrieve.index_folder import build_index
from rejoinder.retrieve.retriever import make_retriever

PAIRS = [(["hello"], f"w{i % 10} w{i % 7}", f"r{i}") for i in range(40)]
SCHEMA = pa.schema(
    [("context", pa.list_(pa.string())), ("utterance", pa.string()), ("response", pa.string())]
)

Tamper = Callable[[Path], object]


def replace(pattern: str, content: bytes | Callable[[bytes], bytes]) -> Tamper:
    """Write other content into the only file of the index that matches a pattern."""

    def change(index: Path) -> None:
        (path,) = index.glob(pattern)
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)

    return change


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array), allow_pickle=True)
    return stream.getvalue()


def arrow(schema: pa.Schema, rows: list[dict[str, Any]]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def texts(count: int = 40, **other: Any) -> list[dict[str, Any]]:
    return [{"context": [], "utterance": "w1", "response": "r"} | other for _ in range(count)]


def change_segment(**arrays: Any) -> Tamper:
    def change(content: bytes) -> bytes:
        with np.load(io.BytesIO(content)) as stored:
            changed = {name: stored[name] for name in stored.files}
        for name, function in arrays.items():
            changed[name] = function(changed[name].copy())
        sink = io.BytesIO()
        np.savez(sink, **changed)
        return sink.getvalue()

    return replace("index-*/utterance-00000.npz", change)


def set_first(value: int) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[0] = value
        return array

    return change


def change_json(pattern: str, **fields: Any) -> Tamper:
    return replace(pattern, lambda old: json.dumps(json.loads(old) | fields).encode())


def link_out(pattern: str) -> Tamper:
    def change(index: Path) -> None:
        (path,) = index.glob(pattern)
        outside = index.parent / "outside"
        path.rename(outside)
        path.symlink_to(outside)

    return change


TEXTS: dict[str, tuple[str, Tamper]] = {
    "cut off": ("pairs.arrow", replace("pairs.arrow", lambda old: old[:-100])),
    "foreign": ("pairs.arrow", replace("pairs.arrow", b"PK\3\4" * 50)),
    "empty": ("pairs.arrow", replace("pairs.arrow", b"")),
    "fewer rows": ("pairs.arrow", replace("pairs.arrow", arrow(SCHEMA, texts(39)))),
    "null text": ("pairs.arrow", replace("pairs.arrow", arrow(SCHEMA, texts(response=None)))),
    "null turn": ("pairs.arrow", replace("pairs.arrow", arrow(SCHEMA, texts(context=[None])))),
    "integer texts": (
        "pairs.arrow",
        replace(
            "pairs.arrow",
            arrow(SCHEMA.set(2, pa.field("response", pa.int64())), texts(response=1)),
        ),
    ),
    "missing column": (
        "pairs.arrow",
        replace("pairs.arrow", arrow(SCHEMA.remove(0), texts())),
    ),
    "object ids": ("replies.npy", replace("replies.npy", npy(np.array([{}] * 40, object)))),
    "float ids": ("replies.npy", replace("replies.npy", npy(np.zeros(40)))),
    "fewer ids": ("replies.npy", replace("replies.npy", npy(np.zeros(39, np.int64)))),
    "header lies": (
        "replies.npy",
        replace("replies.npy", lambda old: old.replace(b"(40,)", b"(9**9,)"[:5])),
    ),
    "a link out of the folder": ("replies.npy", link_out("replies.npy")),
    "rows are negative": ("manifest", change_json("manifest.json", rows=-1)),
    "rows are 1e12": ("pairs.arrow", change_json("manifest.json", rows=10**12)),
    "a list": ("manifest", replace("manifest.json", b"[]")),
    "nested deeply": ("manifest", replace("manifest.json", b'{"a":' * 100_000)),
    "a path out of the folder": (
        "outside",
        change_json("manifest.json", files={"../outside": 0, "pairs.arrow": 0, "replies.npy": 0}),
    ),
    "a retriever that does not exist": ("retriever", change_json("manifest.json", retriever="x()")),
}
WORDS: dict[str, tuple[str, Tamper]] = {
    "totals": ("utterance.json", change_json("index-*/utterance.json", size=10**12)),
    "totals of another type": (
        "utterance.json",
        replace("index-*/utterance.json", b'{"size": []}'),
    ),
    "segments": ("utterance.json", change_json("index-*/utterance.json", firsts=[0, 50, 40])),
    "frequencies": ("utterance-rows.npy", replace("index-*/utterance-rows.npy", npy([[1, 2]]))),
    "frequency 0": (
        "utterance-rows.npy",
        replace("index-*/utterance-rows.npy", npy(np.zeros(10, np.int64))),
    ),
    "words are numbers": (
        "utterance-words.json",
        replace("index-*/utterance-words.json", b"[1,2,3]"),
    ),
    "too few words": ("utterance-words.json", replace("index-*/utterance-words.json", b'["w1"]')),
    "segment is no zip": (
        "utterance-00000.npz",
        replace("index-*/utterance-00000.npz", b"nothing"),
    ),
    "row -1": ("utterance-00000.npz", change_segment(rows=set_first(-1))),
    "row 1e9": ("utterance-00000.npz", change_segment(rows=set_first(10**9))),
    "start 1e12": ("utterance-00000.npz", change_segment(starts=set_first(10**12))),
    "word 1e6": ("utterance-00000.npz", change_segment(words=set_first(10**6))),
    "count 0": ("utterance-00000.npz", change_segment(counts=set_first(0))),
    "fewer lengths": ("utterance-00000.npz", change_segment(lengths=lambda a: a[:-1])),
    "float rows": ("utterance-00000.npz", change_segment(rows=lambda a: a.astype(np.float32))),
    "object words": ("utterance-00000.npz", change_segment(words=lambda a: a.astype(object))),
}
VECTORS: dict[str, tuple[str, Tamper]] = {
    "object vectors": (
        "utterance.npy",
        replace("index-*/utterance.npy", npy(np.array([{}] * 40, object))),
    ),
    "one dimension": ("utterance.npy", replace("index-*/utterance.npy", npy(np.zeros(40, "f4")))),
    "fewer dimensions": (
        "utterance.npy",
        replace("index-*/utterance.npy", npy(np.ones((40, 3), "f4"))),
    ),
    "fewer rows": ("utterance.npy", replace("index-*/utterance.npy", npy(np.ones((39, 5), "f4")))),
    "doubles": ("utterance.npy", replace("index-*/utterance.npy", npy(np.ones((40, 5))))),
    "not a number": (
        "utterance.npy",
        replace("index-*/utterance.npy", npy(np.full((40, 5), np.nan, "f4"))),
    ),
    "infinite": (
        "utterance.npy",
        replace("index-*/utterance.npy", npy(np.full((40, 5), np.inf, "f4"))),
    ),
}
CASES = [
    pytest.param(by, part, tamper, id=f"{by}-{name}")
    for by, cases in (("bm25", TEXTS | WORDS), ("vectors", VECTORS))
    for name, (part, tamper) in cases.items()
]


@pytest.fixture
def index(pairs: Any, tmp_path: Path) -> Callable[[str], Path]:
    def build(by: str) -> Path:
        if by == "vectors":
            rng = np.random.default_rng(6)
            lines = [f"w{i} " + " ".join(f"{x:.3f}" for x in rng.random(5)) for i in range(10)]
            (tmp_path / "words.vec").write_text("10 5\n" + "\n".join(lines) + "\n")
            by = f'vectors(vectors="{tmp_path}/words.vec")'
        build_index(pairs(PAIRS), make_retriever(by), tmp_path / "index")
        return tmp_path / "index"

    return build


@pytest.mark.parametrize(("by", "part", "tamper"), CASES)
def test_a_tampered_index_is_refused_and_the_part_named(
    index: Any, tmp_path: Path, capfd: Any, by: str, part: str, tamper: Tamper
) -> None:
    folder = index(by)
    tamper(folder)
    manifest = folder / "manifest.json"
    try:
        content = json.loads(manifest.read_text())
        for name in content["files"]:
            path = folder / name
            content["files"][name] = os.path.getsize(path) if path.exists() else 0
        manifest.write_text(json.dumps(content))
    except (ValueError, TypeError, RecursionError):
        pass  # the manifest is what was tampered with
    items = tmp_path / "items.jsonl"
    items.write_text('{"id": "1", "context": ["w1 w2"], "response": "r"}\n')
    output = tmp_path / "out.jsonl"
    code = main.run(["expand", str(items), "--pool", str(folder), "--k", "2", "-o", str(output)])
    message = capfd.readouterr().err
    assert code == 3, message
    assert "Traceback" not in message
    assert part in message
    assert not output.exists()
