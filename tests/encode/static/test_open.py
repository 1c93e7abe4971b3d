"""Opening vectors by name, and the cache of converted files: shared, complete, repaired."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rejoinder.encode.static import open_vectors
from rejoinder.encode.static.convert import open_foreign_file
from rejoinder.errors import DataError, MissingExtra
from rejoinder.files.cache import open_cache

TEXT = "the 1 2\nof 3 4\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache folder for each test."""
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    open_vectors.cache_clear()
    yield tmp_path / "cache" / "word-vectors"
    open_vectors.cache_clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "v.txt").write_text(TEXT)
    return tmp_path / "v.txt"


def folders(cache: Path) -> list[Path]:
    return [path for path in cache.iterdir() if path.is_dir()]


def test_file_is_converted_once(cache: Path, file: Path) -> None:
    vectors = open_vectors(str(file))
    assert vectors.name == str(file)
    np.testing.assert_array_equal(vectors.find(["of"])[0], [[3, 4]])
    (folder,) = folders(cache)
    made = (folder / "manifest.json").stat().st_mtime_ns
    again = open_foreign_file(file, "again")
    assert again.digest == vectors.digest and again.name == "again"
    # the same content under another name is the same folder
    copy = file.with_name("copy.txt")
    copy.write_text(TEXT)
    assert open_foreign_file(copy, "copy").digest == vectors.digest
    assert (folder / "manifest.json").stat().st_mtime_ns == made
    assert folders(cache) == [folder]
    assert open_vectors(str(file)) is vectors
    # a folder in the cache is a folder like any other
    assert open_vectors(str(folder)).digest == vectors.digest


def test_changed_file_is_converted_again(cache: Path, file: Path) -> None:
    """Also if name and size are the same."""
    one = open_foreign_file(file, "v")
    file.write_text(TEXT.replace("4", "5"))
    other = open_foreign_file(file, "v")
    assert other.digest != one.digest
    np.testing.assert_array_equal(other.find(["of"])[0], [[3, 5]])
    np.testing.assert_array_equal(one.find(["of"])[0], [[3, 4]])


@pytest.mark.parametrize("part", ["manifest.json", "words.txt", "vectors.npy"])
def test_damaged_folder_in_the_cache_is_converted_again(cache: Path, file: Path, part: str) -> None:
    sound = open_foreign_file(file, "v").digest
    (folder,) = folders(cache)
    data = bytearray((folder / part).read_bytes())
    data[len(data) - 3] ^= 1
    (folder / part).write_bytes(data)
    before = open_cache().repaired
    vectors = open_foreign_file(file, "v")
    # a block of vectors is looked at when it is read
    np.testing.assert_array_equal(vectors.find(["the", "of"])[0], [[1, 2], [3, 4]])
    assert vectors.digest == sound
    assert open_cache().repaired == before + 1
    assert any("damaged entry was computed again" in note for note in open_cache().notes())


@pytest.mark.parametrize("why", ["off", "no folder"])
def test_without_a_cache(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    (tmp_path / "plain").write_text("a file where the folder should be")
    monkeypatch.setenv("REJOINDER_CACHE", "off" if why == "off" else str(tmp_path / "plain"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    vectors = open_foreign_file(file, "v")
    np.testing.assert_array_equal(vectors.find(["of"])[0], [[3, 4]])
    assert len(list(tmp_path.glob("rejoinder-vectors-*"))) == 1
    del vectors
    assert not list(tmp_path.glob("rejoinder-vectors-*"))


CONVERT = """
import sys
from pathlib import Path
from rejoinder.encode.static import convert, open_vectors
true = convert.convert
def counting(source, target):
    print("converted", flush=True)
    true(source, target)
convert.convert = counting
vectors = open_vectors(sys.argv[1])
assert vectors.find(["w3", "w99"])[1].all()
"""


def test_many_processes_convert_once(cache: Path, tmp_path: Path) -> None:
    lines = (f"w{i} " + " ".join(["0.125"] * 100) for i in range(5000))
    (tmp_path / "v.txt").write_text("\n".join(lines))
    # what a killed process left is cleared away
    first = subprocess.run(
        [sys.executable, "-c", CONVERT, str(tmp_path / "v.txt")], capture_output=True, check=True
    )
    (folder,) = folders(cache)
    left = folder.with_name(f".{folder.name[:40]}.12345.part")
    os.rename(folder, left)
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CONVERT, str(tmp_path / "v.txt")], stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    outputs = [child.communicate()[0] for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert b"".join([first.stdout, *outputs]).split() == [b"converted"] * 2
    assert folders(cache) == [folder]


def test_bad_file_leaves_nothing_in_the_cache(cache: Path, file: Path) -> None:
    file.write_text("the 1 2\nof 3\n")
    with pytest.raises(DataError, match=r"v.txt:2: 'of' has 1 numbers"):
        open_vectors(str(file))
    assert folders(cache) == []


def test_unknown_names(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"'glove\.txt' are not on this machine.*or minilm"):
        open_vectors("glove.txt")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no manifest\.json.*no config\.json"):
        open_vectors(str(tmp_path / "empty"))
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "manifest.json").write_text(json.dumps({"kind": "an index"}))
    with pytest.raises(DataError, match="is not the manifest of a folder of word vectors"):
        open_vectors(str(tmp_path / "index"))
