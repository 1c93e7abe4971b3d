"""Folders of word vectors: written and read again; damaged or incomplete ones do not open."""

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

from rejoinder.encode.static import word_index as index_module
from rejoinder.encode.static.vectors_folder import Batch, new_vectors_folder, open_vectors_folder
from rejoinder.encode.static.word_index import (
    WordIndex,
    Words,
    decode_word,
    encode_word,
    sorted_hashes,
)
from rejoinder.errors import DataError, UsageError

WORDS = ["the", "Haus", "東京", "a\\n", "a\nb", "\\", "naïve", "x" * 5000]


def rows_of(count: int, dimensions: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dimensions)).astype(np.float32)


def write(folder: Path, words: list[str], rows: np.ndarray) -> Path:
    with new_vectors_folder(folder, "test") as writer:
        writer.add(Batch([word.encode() for word in words[:3]], rows[:3]))
        writer.add(Batch([word.encode() for word in words[3:]], rows[3:]))
        writer.finish({"source": "test"})
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "v", WORDS, rows_of(len(WORDS)))


def test_written_vectors_are_read_again(folder: Path) -> None:
    vectors = open_vectors_folder(folder)
    assert list(vectors.words) == WORDS
    assert vectors.words[-1] == WORDS[-1] and vectors.words[1:3] == WORDS[1:3]
    assert vectors.dimensions == 7
    found, known = vectors.find(WORDS[::-1])
    np.testing.assert_array_equal(found, rows_of(len(WORDS))[::-1])
    assert known.all()
    np.testing.assert_array_equal(np.load(folder / "vectors.npy"), rows_of(len(WORDS)))


def test_policy_for_unknown_words(folder: Path) -> None:
    """As written, else in lower case, else unknown with a vector of zeros."""
    found, known = open_vectors_folder(folder).find(
        ["THE", "the", "haus", "HAUS", "", "\ud800", "zebra"]
    )
    assert known.tolist() == [True, True, False, False, False, False, False]
    np.testing.assert_array_equal(found[0], rows_of(len(WORDS))[0])
    assert not found[2:].any()
    found, known = open_vectors_folder(folder).find([])
    assert found.shape == (0, 7) and known.shape == (0,)


def test_word_as_written_is_preferred_to_its_lower_case(tmp_path: Path) -> None:
    folder = write(tmp_path / "v", ["us", "US", "it", "he"], rows_of(4))
    np.testing.assert_array_equal(
        open_vectors_folder(folder).find(["US", "IT"])[0], rows_of(4)[[1, 2]]
    )


def test_digest_depends_on_the_content_only(tmp_path: Path) -> None:
    one = open_vectors_folder(write(tmp_path / "one", WORDS, rows_of(len(WORDS))))
    same = open_vectors_folder(write(tmp_path / "same", WORDS, rows_of(len(WORDS))), "another name")
    assert one.digest == same.digest and len(one.digest) == 12
    assert same.name == "another name"
    moved = rows_of(len(WORDS))
    moved[3, 2] = np.nextafter(moved[3, 2], np.float32(9))
    assert open_vectors_folder(write(tmp_path / "moved", WORDS, moved)).digest != one.digest
    other = [*WORDS[:-1], "y" * 5000]
    assert (
        open_vectors_folder(write(tmp_path / "other", other, rows_of(len(WORDS)))).digest
        != one.digest
    )


def test_repeated_empty_and_invalid_words_are_counted(tmp_path: Path) -> None:
    with new_vectors_folder(tmp_path / "v", "test") as writer:
        words = [b"a", b"", b"b", b"a", b"\xff\xfe", b"b"]
        writer.add(Batch(words, rows_of(6)))
        writer.finish({})
    origin = json.loads((tmp_path / "v" / "manifest.json").read_text())["origin"]
    assert origin == {"repeated_words": 2, "empty_words": 1, "words_not_utf8": 1}
    vectors = open_vectors_folder(tmp_path / "v")
    assert list(vectors.words) == ["a", "b", "\udcff\udcfe"]
    found, known = vectors.find(["a", "b", "\udcff\udcfe"])
    np.testing.assert_array_equal(found, rows_of(6)[[0, 2, 4]])  # the first of each
    assert known.all()


@given(st.lists(st.text(max_size=12), min_size=1, max_size=60, unique=True), st.integers(0, 3))
def test_every_word_is_found_also_with_equal_hashes(words: list[str], bits: int) -> None:
    """Also where many words share a hash: here it has from 0 to 3 bits."""
    words = [word for word in words if encode_word(word)] or ["x"]
    assert [decode_word(encode_word(word)) for word in words if word.isascii()] == [
        word for word in words if word.isascii()
    ]
    true = index_module.hashes_of
    index_module.hashes_of = lambda lines: (
        true(lines) >> np.uint64(64 - bits) if bits else (true(lines) * np.uint64(0))
    )
    try:
        lines = [encode_word(word) for word in words]
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
def test_damaged_part_is_never_read(folder: Path, part: str, damage: str) -> None:
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
    with pytest.raises(DataError, match=rf"{part}: .*make it again"):
        open_vectors_folder(folder).find(WORDS)


def test_only_blocks_that_are_read_are_checked(tmp_path: Path) -> None:
    """Damage in a far block of a large matrix does not stop words from other blocks."""
    rows = rows_of(3000, 400)  # 4.8 MB
    words = [f"w{i}" for i in range(3000)]
    folder = write(tmp_path / "v", words, rows)
    with (folder / "vectors.npy").open("r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        stream.write(b"!")
    vectors = open_vectors_folder(folder)
    np.testing.assert_array_equal(vectors.find(["w0", "w2000"])[0], rows[[0, 2000]])
    with pytest.raises(DataError, match="MiB 5 does not have its checksum"):
        vectors.find(["w2999"])


def test_manifest_is_checked(folder: Path) -> None:
    path = folder / "manifest.json"
    sound = json.loads(path.read_text())

    def opened(**changes: object) -> str:
        path.write_text(json.dumps({**sound, **changes}))
        with pytest.raises(DataError) as caught:
            open_vectors_folder(folder)
        return str(caught.value)

    assert "the folder has format 2, written by Rejoinder 9.1; version" in opened(
        format=2, version="9.1"
    )
    assert "does not fit" in opened(words=7)
    assert "does not fit" in opened(dimensions=6)
    assert "is not the manifest of a folder of word vectors" in opened(kind="index")
    assert "expected a whole number" in opened(words="many")
    path.write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        open_vectors_folder(folder)
    path.unlink()
    with pytest.raises(DataError, match="no such file"):
        open_vectors_folder(folder)


def test_only_word_vectors_are_overwritten(tmp_path: Path, folder: Path) -> None:
    write(folder, ["a", "b", "c", "d"], rows_of(4))  # vectors may be replaced
    assert list(open_vectors_folder(folder).words) == ["a", "b", "c", "d"]
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
            new_vectors_folder(tmp_path / name, "test"),
        ):
            raise AssertionError("nothing may be begun")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"meow"


def test_failure_keeps_the_old_folder(tmp_path: Path, folder: Path) -> None:
    with (
        pytest.raises(DataError, match=r"test:5: .*'b'.*NaN"),
        new_vectors_folder(folder, "test") as writer,
    ):
        writer.add(Batch([b"a", b"b"], np.array([[1], [np.inf]], np.float32), [4, 5]))
    assert list(open_vectors_folder(folder).words) == WORDS
    assert [path.name for path in tmp_path.iterdir()] == ["v"]
    with (
        pytest.raises(DataError, match="no word"),
        new_vectors_folder(tmp_path / "n", "test") as writer,
    ):
        writer.finish({})
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


KILLED = """
import sys, time
from pathlib import Path
import numpy as np
from rejoinder.encode.static.vectors_folder import Batch, new_vectors_folder
with new_vectors_folder(Path(sys.argv[1]), "test") as writer:
    for i in range(10**6):
        writer.add(Batch([b"w%d" % i], np.ones((1, 50), np.float32)))
        if i == 200:
            writer.finish({})  # even when all files are there, the name is not
            print("ready", flush=True)
            time.sleep(60)
"""


def test_killed_writer_leaves_no_folder(tmp_path: Path) -> None:
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


def test_smooth_inverse_frequency_by_hand(tmp_path: Path) -> None:
    """Of ten tokens, six and one: a / (a + p) with a = 0.2 is 0.2/0.8 and 0.2/0.3."""
    with new_vectors_folder(tmp_path / "v", "source") as writer:
        writer.add(Batch([b"the", b"kitchen", b"a"], np.eye(3, dtype=np.float32)))
        writer.add_counts(np.array([6, 1, 3]))
        writer.finish({})
    vectors = open_vectors_folder(tmp_path / "v")
    weights = vectors.sif_weights(["the", "Kitchen", "unheard-of"], 0.2)
    np.testing.assert_allclose(weights, [0.25, 0.2 / 0.3, 1], rtol=1e-6)


def test_without_counts_all_words_have_the_same_weight(tmp_path: Path) -> None:
    with new_vectors_folder(tmp_path / "v", "source") as writer:
        writer.add(Batch([b"the", b"kitchen"], np.eye(2, dtype=np.float32)))
        writer.finish({})
    assert open_vectors_folder(tmp_path / "v").sif_weights(["the", "kitchen"], 0.1).tolist() == [
        1,
        1,
    ]


def rewrite(folder: Path, part: str, content: bytes | np.ndarray, **changes: object) -> None:
    """Change a part, and make all digests fit: the work of an attacker, not of a bad disk."""
    from rejoinder.encode.static.mapped_files import Part
    from rejoinder.encode.static.vectors_manifest import VectorsManifest

    manifest = VectorsManifest.read(folder)
    if isinstance(content, bytes):
        (folder / part).write_bytes(content)
    else:
        np.save(folder / part, content, allow_pickle=True)
    parts = {**manifest.parts, part: Part.of(folder / part)}
    settings = {"words": manifest.words, "dimensions": manifest.dimensions} | changes
    VectorsManifest.new(**settings, subwords=None, origin={}, parts=parts).write(folder)  # type: ignore[arg-type]


COUNT = len(WORDS)


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("vectors.npy", np.array([{"a": 1}] * COUNT, object)),
        ("vectors.npy", rows_of(COUNT).astype(np.float64)),
        ("vectors.npy", rows_of(COUNT + 1)),
        ("vectors.npy", rows_of(COUNT).reshape(-1)),
        ("vectors.npy", np.full((COUNT, 7), np.nan, np.float32)),
        ("vectors.npy", b""),
        ("vectors.npy", b"PK no array"),
        ("vectors.npy", b"\x93NUMPY\x01\x00\x76\x00" + b"(" * 0x76),
        ("starts.npy", np.zeros(COUNT + 1, np.int64)),
        ("starts.npy", np.arange(COUNT + 1) * 10**12),
        ("starts.npy", -np.arange(COUNT + 1)),
        ("starts.npy", np.zeros(COUNT + 1)),
        ("order.npy", np.full(COUNT, -1, np.int32)),
        ("order.npy", np.full(COUNT, 10**9, np.int32)),
        ("hashes.npy", np.zeros(COUNT, np.int64)),
        ("counts.npy", np.full(COUNT, -5, np.int64)),
        ("counts.npy", np.zeros(3, np.int64)),
        ("counts.npy", np.array([None] * COUNT, object)),
    ],
    ids=str,
)
def test_parts_of_the_wrong_kind_whose_digests_fit(
    folder: Path, part: str, content: bytes | np.ndarray
) -> None:
    rewrite(folder, part, content)
    with pytest.raises(DataError, match=part):
        open_vectors_folder(folder).find(WORDS)


@pytest.mark.parametrize(
    "changes",
    [{"words": 10**12}, {"words": -1}, {"dimensions": 10**12}, {"dimensions": 0}],
    ids=str,
)
def test_implausible_sizes_whose_digests_fit(folder: Path, changes: dict[str, object]) -> None:
    rewrite(folder, "vectors.npy", rows_of(COUNT), **changes)
    with pytest.raises(DataError, match=str(folder)):
        open_vectors_folder(folder).find(WORDS)


def test_parts_outside_the_folder_are_not_followed(tmp_path: Path, folder: Path) -> None:
    (folder / "vectors.npy").rename(tmp_path / "vectors.npy")
    (folder / "vectors.npy").symlink_to(tmp_path / "vectors.npy")
    with pytest.raises(DataError, match="leaves the folder"):
        open_vectors_folder(folder)


def test_languages_are_kept(tmp_path: Path) -> None:
    with new_vectors_folder(tmp_path / "v", "source") as writer:
        writer.add(Batch([b"the", b"kitchen"], np.eye(2, dtype=np.float32)))
        digest = writer.finish({}, ["en"]).digest
    vectors = open_vectors_folder(tmp_path / "v")
    assert vectors.languages == frozenset(["en"]) and vectors.digest == digest
    assert open_vectors_folder(write(tmp_path / "w", WORDS, rows_of(COUNT))).languages is None
