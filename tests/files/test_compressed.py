"""Compressed files are read in bounded memory, and damage is noticed."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import DataError
from rejoinder.files.compressed import DAMAGE, decompressed, pieces


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(content)


PACK: dict[str, Callable[[bytes], bytes]] = {"x.gz": gzip.compress, "x.zst": zstd}


@pytest.mark.parametrize("name", PACK)
@given(frames=st.lists(st.binary(max_size=3000) | st.just(b"x" * 3_000_000), max_size=4))
def test_all_frames_are_read(name: str, frames: list[bytes]) -> None:
    raw = io.BytesIO(b"".join(PACK[name](frame) for frame in frames))
    assert decompressed(raw, name).read() == b"".join(frames)


@pytest.mark.parametrize("name", PACK)
def test_a_file_without_its_end_is_damaged(name: str) -> None:
    content = bytes(range(256)) * 1000
    packed = PACK[name](content)
    for end in (1, 10, len(packed) // 2, len(packed) - 1):
        found = b""
        with pytest.raises(DAMAGE):
            for piece in pieces(io.BytesIO(packed[:end]), name):
                found += piece
        assert content.startswith(found)
    with pytest.raises(DAMAGE):
        list(pieces(io.BytesIO(packed + b"no frame"), name))


@lru_cache
def bomb(name: str, line: bytes) -> bytes:
    """A small file that expands to 2 GB."""
    block = line * (2**26 // len(line))
    if name.endswith(".gz"):
        return gzip.compress(block) * 32
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(block) * 32


MEASURED = r"""
import re, sys
from rejoinder.errors import DataError
from rejoinder.files.item_file import read_items
try:
    list(read_items(sys.argv[1]))
except DataError as error:
    print(error)
print(int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


BOMBS = [
    (b" " * 1023 + b"\n", r"expands to more than 250 times|the first line is empty"),
    (b"\0", "longer than 16 MB"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("name", ["x.jsonl.gz", "x.jsonl.zst", "x.csv.gz", "x.csv.zst"])
@pytest.mark.parametrize(("line", "complaint"), BOMBS, ids=["blank lines", "one line"])
def test_a_bomb_is_refused_within_300_mb(
    tmp_path: Path, name: str, line: bytes, complaint: str
) -> None:
    path = tmp_path / name
    path.write_bytes(bomb(name[-3:], line))
    assert path.stat().st_size < 2**31 // 250
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    message, peak = done.stdout.rstrip().rsplit("\n", 1)
    assert re.search(complaint, message)
    assert int(peak) < 300


def test_text_that_is_very_repetitive_is_not_refused() -> None:
    content = b'{"id": 1, "response": "hello"}\n' * 1_000_000
    assert sum(map(len, pieces(io.BytesIO(zstd(content)), "x.zst"))) == len(content)


def test_the_message_names_the_file() -> None:
    with pytest.raises(DataError, match=r"^x\.gz: the compressed file expands to more than 250"):
        list(pieces(io.BytesIO(bomb(".gz", BOMBS[0][0])), "x.gz"))
