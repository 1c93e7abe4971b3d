"""Every path of every verb, replaced by every kind of bad path or file.

Each command must end with exit code 2, 3 or 4 and a message, without a traceback, and leave
nothing behind.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import zstandard

from attacks.commands import Slot, integer_pairs, slots
from attacks.running import is_root, left_behind, refused

Make = Callable[[Path], str]


def made(name: str, content: bytes) -> Make:
    def make(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return make


def loop(folder: Path) -> str:
    (folder / "loop").symlink_to("loop")
    return str(folder / "loop")


def below_a_file(folder: Path) -> str:
    (folder / "file").touch()
    return str(folder / "file" / "x")


def full_folder(folder: Path) -> str:
    (folder / "full").mkdir()
    (folder / "full" / "precious").touch()
    return str(folder / "full")


PATHS: dict[str, Make] = {
    "a name of 300 letters": lambda folder: str(folder / ("x" * 300)),
    "a folder of 300 letters": lambda folder: str(folder / ("x" * 300) / "x"),
    "a loop of links": loop,
    "below a loop of links": lambda folder: f"{loop(folder)}/x",
    "below a file": below_a_file,
    "a NUL byte": lambda folder: str(folder / "a\0b"),
}
"""Paths that nothing can be read from or written to."""

BLOCK = b" " * 1023 + b"\n"


@cache
def bomb(kind: str) -> bytes:
    """A small file that expands to 1 GB."""
    block = BLOCK * 2**15
    return (gzip.compress if kind == "gz" else zstandard.ZstdCompressor().compress)(block) * 32


INPUTS: dict[str, Make] = PATHS | {
    "nothing": lambda folder: str(folder / "nothing"),
    "a folder": lambda folder: str(folder),
    "an empty file": made("empty.jsonl", b""),
    "an empty Parquet file": made("empty.parquet", b""),
    "an empty CSV file": made("empty.csv", b""),
    "random bytes": made("random.jsonl", bytes(range(256)) * 50),
    "random bytes as Parquet": made("random.parquet", bytes(range(256)) * 50),
    "a pickle": made("x.npy", pickle.dumps({"a": 1})),
    "deep JSON": made("deep.jsonl", b'{"id": ' * 50_000),
    "deep lists": made("deep.json", b"[" * 100_000),
    "numbers as texts": lambda folder: str(integer_pairs(folder / "numbers.parquet")),
    "cut gzip": made("cut.jsonl.gz", gzip.compress(json.dumps({"id": "1"}).encode())[:-8]),
    "cut zstd": made("cut.jsonl.zst", zstandard.ZstdCompressor().compress(b"x" * 1000)[:-3]),
    "a gzip bomb": lambda folder: made("bomb.jsonl.gz", bomb("gz"))(folder),
    "a zstd bomb": lambda folder: made("bomb.jsonl.zst", bomb("zst"))(folder),
}
OUTPUTS: dict[str, Make] = PATHS | {
    "a missing folder": lambda folder: str(folder / "no" / "x"),
    "a folder with files": full_folder,
}
FOLDERS: dict[str, Make] = PATHS | {
    "a folder with files": full_folder,
    "a file": made("file", b"precious"),
}
CASES = [
    (slot, kind)
    for slot in slots()
    for kind in {"input": INPUTS, "output": OUTPUTS, "folder": FOLDERS}[slot.kind]
    # the demo passes its log on to 'corpus'
    if kind in PATHS or not slot.command.startswith("demo")
]

TEXT_SLOTS = {"log", "texts"}
"""They hold plain text, so most bytes are data; bad records are counted and set aside."""

WORK_SLOTS = {"work", "demo"}
"""Folders of work that a failed run keeps; other files may be in them."""

HARMLESS = {
    ("plugin", "an empty file"),
    ("preset", "an empty file"),
    *((name, "a folder with files") for name in (*WORK_SLOTS, "simulated")),
}


@pytest.mark.parametrize(("slot", "kind"), CASES, ids=[f"{slot}: {kind}" for slot, kind in CASES])
def test_bad_paths_and_files(
    slot: Slot, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, output = tmp_path / "bad", tmp_path / "output"
    bad.mkdir()
    output.mkdir()
    make = {"input": INPUTS, "output": OUTPUTS, "folder": FOLDERS}[slot.kind][kind]
    path = make(bad)
    before = left_behind(bad)
    is_data = slot.name in TEXT_SLOTS and os.path.isfile(path)
    codes = (0, 2, 3, 4) if is_data or (slot.name, kind) in HARMLESS else (2, 3, 4)
    message = refused(slot.arguments(path, output), capsys, codes)
    left = [name for name in left_behind(output) if name.split(os.sep)[0] not in WORK_SLOTS]
    assert not [name for name in left if name.startswith(".")]
    if message:
        assert [name for name in left if not name.endswith("rejects.jsonl")] == []
    if (slot.name, kind) not in HARMLESS:
        assert left_behind(bad) == before


NO_PERMISSION = """
import io, json, os, sys
from pathlib import Path
from attacks.commands import slots
from rejoinder.cli.main import run

closed, output = Path(sys.argv[1]), Path(sys.argv[2])
wrong = []
for slot in slots():
    for path in (closed / "x", closed / "folder" / "x"):
        sys.stderr = io.StringIO()
        try:
            code = run(slot.arguments(str(path), output))
        except BaseException as error:
            code = repr(error)
        said = sys.stderr.getvalue()
        sys.stderr = sys.__stderr__
        left = [name for name in os.listdir(output) if name not in ("cache", "demo")]
        named = "ermission denied" in said or "REJOINDER_DATA" in said
        if code not in (2, 3, 4) or not named or left:
            wrong.append([str(slot), str(path), code, said[-300:], left])
            for name in left:
                os.rename(output / name, output.parent / f"left-{len(wrong)}-{name}")
sys.__stdout__.write(chr(10) + json.dumps(wrong))
"""


def give_up_rights() -> None:
    """In the new process: root may no longer pass every folder."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    drop_capability, dac_override, dac_read_search = 24, 1, 2
    for capability in (dac_override, dac_read_search):
        if prctl(drop_capability, capability, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")


@pytest.mark.skipif(sys.platform != "linux", reason="rights of root are dropped with prctl")
def test_no_permission_on_a_folder_on_the_way(tmp_path: Path) -> None:
    closed, output = tmp_path / "closed", tmp_path / "left" / "output"
    output.mkdir(parents=True)
    (closed / "folder").mkdir(parents=True)
    closed.chmod(0)
    done = subprocess.run(
        [sys.executable, "-c", NO_PERMISSION, str(closed), str(output)],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path]),
            "REJOINDER_CACHE": str(output / "cache"),
        },
        preexec_fn=give_up_rights if is_root() else None,
        timeout=600,
        check=False,
    )
    closed.chmod(0o700)  # for pytest to delete it
    assert done.returncode == 0, done.stderr[-2000:]
    wrong = json.loads(done.stdout.splitlines()[-1])
    assert not wrong, "\n".join(map(str, wrong))
