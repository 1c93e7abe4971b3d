"""Our own folder: what is written comes back, what is damaged or half-written does not open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.encode.static import index as index_module
from rejoinder.encode.static.folder import Batch, new_folder, open_folder
from rejoinder.encode.static.index import WordIndex, Words, restored, sorted_hashes, stored
from rejoinder.errors import DataError, UsageError

WORDS = ["the", "Haus", "東京", "a\\n", "a\nb", "\\", "naïve", "x" * 5000]


def rows_of(count: int, dimensions: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


def write(folder: Path, words: list[str], rows: np.ndarray) -> Path:
    with new_folder(folder, "test") as writer:
        writer.add(Batch([word.encode() for word in words[:3]], rows[:3]))
        writer.add(Batch([word.encode() for word in words[3:]], rows[3:]))
        writer.finish({"source": "test"})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "v", WORDS, rows_of(len(WORDS)))


def test_what_is_written_comes_back(folder: Path) -> None:
    vectors = open_folder(folder)
    assert list(vectors.words) == WORDS
    assert vectors.words[-1] == WORDS[-1] and vectors.words[1:3] == WORDS[1:3]
    assert vectors.dimensions == 7
    found, known = vectors.find(WORDS[::-1])
    np.testing.assert_array_equal(found, rows_of(len(WORDS))[::-1])
    assert known.all()
    np.testing.assert_array_equal(np.load(folder / "vectors.npy"), rows_of(len(WORDS)))


def test_the_policy_for_unknown_words(folder: Path) -> None:
    """As written, else in lower case, else unknown with a vector of zeros."""
    found, known = open_folder(folder).find(["THE", "the", "haus", "HAUS", "", "\ud800", "zebra"])
    assert known.tolist() == [True, True, False, False, False, False, False]
    np.testing.assert_array_equal(found[0], rows_of(len(WORDS))[0])
    assert not found[2:].any()
    found, known = open_folder(folder).find([])
    assert found.shape == (0, 7) and known.shape == (0,)


def test_a_word_as_written_comes_before_its_lower_case(tmp_path: Path) -> None:
    folder = write(tmp_path / "v", ["us", "US", "it", "he"], rows_of(4))
    np.testing.assert_array_equal(open_folder(folder).find(["US", "IT"])[0], rows_of(4)[[1, 2]])


def test_the_digest_is_of_the_content_only(tmp_path: Path) -> None:
    one = open_folder(write(tmp_path / "one", WORDS, rows_of(len(WORDS))))
    same = open_folder(write(tmp_path / "same", WORDS, rows_of(len(WORDS))), "another name")
    assert one.digest == same.digest and len(one.digest) == 12
    assert same.name == "another name"
    moved = rows_of(len(WORDS))
    moved[3, 2] = np.nextafter(moved[3, 2], np.float32(9))
    assert open_folder(write(tmp_path / "moved", WORDS, moved)).digest != one.digest
    other = [*WORDS[:-1], "y" * 5000]
    assert open_folder(write(tmp_path / "other", other, rows_of(len(WORDS)))).digest != one.digest


def test_repeated_empty_and_broken_words_are_counted(tmp_path: Path) -> None:
    with new_folder(tmp_path / "v", "test") as writer:
        words = [b"a", b"", b"b", b"a", b"\xff\xfe", b"b"]
        writer.add(Batch(words, rows_of(6)))
        writer.finish({})
    origin = json.loads((tmp_path / "v" / "manifest.json").read_text())["origin"]
    assert origin == {"repeated_words": 2, "empty_words": 1, "words_not_utf8": 1}
    vectors = open_folder(tmp_path / "v")
    assert list(vectors.words) == ["a", "b", "\udcff\udcfe"]
    found, known = vectors.find(["a", "b", "\udcff\udcfe"])
    np.testing.assert_array_equal(found, rows_of(6)[[0, 2, 4]])  # the first of each
    assert known.all()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=60, unique=True), st.integers(0, 3))
def test_every_word_is_found_whatever_the_hashes(words: list[str], bits: int) -> None:
    """Also where many words share a hash: here it has from 0 to 3 bits."""
    words = [word for word in words if stored(word)] or ["x"]
    assert [restored(stored(word)) for word in words if word.isascii()] == [
        word for word in words if word.isascii()
    ]
    true = index_module.hashes_of
    index_module.hashes_of = lambda lines: (
        true(lines) >> np.uint64(64 - bits) if bits else (true(lines) * np.uint64(0))
    )
    try:
        lines = [stored(word) for word in words]
        text = b"\n".join(lines) + b"\n"
        starts = np.cumsum([0, *(len(line) + 1 for line in lines)])
        index = WordIndex(Words(memoryview(text), starts), *sorted_hashes(lines))
        assert index.rows(words).tolist() == list(range(len(words)))
        absent = [word + "?" for word in words if word + "?" not in words]
        assert (index.rows(absent) == -1).all()
    finally:
        index_module.hashes_of = true


PARTS = ["vectors.npy", "words.txt", "starts.npy", "hashes.npy", "order.npy"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "longer"])
def test_a_damaged_part_is_never_read(folder: Path, part: str, damage: str) -> None:
    path = folder / part
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-3] ^= 1
        path.write_bytes(data)
    elif damage == "cut":
        path.write_bytes(data[:-3])
    elif damage == "longer":
        path.write_bytes(data + b"\0")
    else:
        path.unlink()
    with pytest.raises(DataError, match=rf"{part}: .*make it anew"):
        open_folder(folder).find(WORDS)


def test_only_what_is_read_is_checked(tmp_path: Path) -> None:
    """Damage in a far block of a large matrix does not stop words from other blocks."""
    rows = rows_of(3000, 400)  # 4.8 MB
    words = [f"w{i}" for i in range(3000)]
    folder = write(tmp_path / "v", words, rows)
    with (folder / "vectors.npy").open("r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        stream.write(b"!")
    vectors = open_folder(folder)
    np.testing.assert_array_equal(vectors.find(["w0", "w2000"])[0], rows[[0, 2000]])
    with pytest.raises(DataError, match="MiB 5 is not as it was written"):
        vectors.find(["w2999"])


def test_the_manifest_is_checked(folder: Path) -> None:
    path = folder / "manifest.json"
    sound = json.loads(path.read_text())

    def opened(**changes: object) -> str:
        path.write_text(json.dumps({**sound, **changes}))
        with pytest.raises(DataError) as caught:
            open_folder(folder)
        return str(caught.value)

    assert "the folder has format 2, written by Rejoinder 9.1; version" in opened(
        format=2, version="9.1"
    )
    assert "does not fit" in opened(words=7)
    assert "does not fit" in opened(dimensions=6)
    assert "is not the manifest of a folder of word vectors" in opened(kind="index")
    assert "expected a whole number" in opened(words="many")
    path.write_text("{")
    with pytest.raises(DataError, match="is no manifest"):
        open_folder(folder)
    path.unlink()
    with pytest.raises(DataError, match="no such file"):
        open_folder(folder)


def test_nothing_else_is_overwritten(tmp_path: Path, folder: Path) -> None:
    write(folder, ["a", "b", "c", "d"], rows_of(4))  # vectors may be replaced
    assert list(open_folder(folder).words) == ["a", "b", "c", "d"]
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", WORDS, rows_of(len(WORDS)))
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"meow")
    (tmp_path / "file").write_text("text")
    for name, complaint in (
        ("photos", "other things"),
        ("file", "is a file"),
        ("no/where", "no folder"),
    ):
        with (
            pytest.raises(UsageError, match=complaint),
            new_folder(tmp_path / name, "test"),
        ):
            raise AssertionError("nothing may be begun")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"


def test_a_failure_leaves_what_was_there(tmp_path: Path, folder: Path) -> None:
    with (
        pytest.raises(DataError, match=r"test:5: .*'b'.*NaN"),
        new_folder(folder, "test") as writer,
    ):
        writer.add(Batch([b"a", b"b"], np.array([[1], [np.inf]], np.float32), [4, 5]))
    assert list(open_folder(folder).words) == WORDS
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    with pytest.raises(DataError, match="no word"), new_folder(tmp_path / "n", "test") as writer:
        writer.finish({})
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


KILLED = """
import sys, time
from pathlib import Path
import numpy as np
from rejoinder.encode.static.folder import Batch, new_folder
with new_folder(Path(sys.argv[1]), "test") as writer:
    for i in range(10**6):
        writer.add(Batch([b"w%d" % i], np.ones((1, 50), np.float32)))
        if i == 200:
            writer.finish({})  # even when all files are there, the name is not
            print("ready", flush=True)
            time.sleep(60)
"""


def test_a_killed_writer_leaves_no_folder(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "v")], stdout=subprocess.PIPE
    )
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert not (tmp_path / "v").exists()
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".v.")
    shutil.rmtree(left)


def test_rare_words_are_told_from_frequent_ones(tmp_path: Path) -> None:
    """Of ten tokens, six and one: a / (a + p) with a = 0.2 is 0.2/0.8 and 0.2/0.3."""
    with new_folder(tmp_path / "v", "source") as writer:
        writer.add(Batch([b"the", b"kitchen", b"a"], np.eye(3, dtype=np.float32)))
        writer.add_counts(np.array([6, 1, 3]))
        writer.finish({})
    vectors = open_folder(tmp_path / "v")
    weights = vectors.rarity(["the", "Kitchen", "unheard-of"], 0.2)
    np.testing.assert_allclose(weights, [0.25, 0.2 / 0.3, 1], rtol=1e-6)


def test_without_counts_all_words_weigh_the_same(tmp_path: Path) -> None:
    with new_folder(tmp_path / "v", "source") as writer:
        writer.add(Batch([b"the", b"kitchen"], np.eye(2, dtype=np.float32)))
        writer.finish({})
    assert open_folder(tmp_path / "v").rarity(["the", "kitchen"], 0.1).tolist() == [1, 1]
