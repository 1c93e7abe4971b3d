"""Files of other programs are read exactly; bad files are refused with their name."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gensim.models import KeyedVectors

from rejoinder.encode.static.convert import convert
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors_folder import open_vectors_folder
from rejoinder.encode.static.word_vectors import WordVectors
from rejoinder.errors import DataError

WORDS = ["the", "of", "東京", "naïve", "don't", "1999", "…", "Ünïcödé"]


@pytest.fixture(scope="module")
def keyed() -> KeyedVectors:
    keyed = KeyedVectors(12)
    rows = np.random.default_rng(1).normal(size=(len(WORDS), 12)).astype(np.float32)
    rows[2] = 0
    rows[3] *= 1e-30
    keyed.add_vectors(WORDS, rows)
    return keyed


def read(path: Path) -> WordVectors:
    """Convert beside the file, without the cache."""
    target = path.with_name(path.name + ".folder")
    convert(Source(path, path.name), target)
    return open_vectors_folder(target)


def origin(path: Path) -> dict[str, Any]:
    manifest = path.with_name(path.name + ".folder") / "manifest.json"
    origin: dict[str, Any] = json.loads(manifest.read_text())["origin"]
    return origin


def same(vectors: WordVectors, keyed: KeyedVectors) -> None:
    assert list(vectors.words) == list(keyed.index_to_key)
    found, known = vectors.find(WORDS)
    assert known.all()
    np.testing.assert_array_equal(found, [keyed[word] for word in WORDS])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "options", "format"),
    [
        ("v.txt", {}, "word2vec text"),
        ("v.bin", {"binary": True}, "word2vec binary"),
        ("glove.txt", {"write_header": False}, "GloVe text"),
    ],
)
def test_files_of_gensim(
    tmp_path: Path,
    keyed: KeyedVectors,
    name: str,
    options: dict[str, Any],
    format: str,
    packed: bool,
) -> None:
    path = tmp_path / name
    keyed.save_word2vec_format(str(path), **options)
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    same(read(path), keyed)
    assert origin(path) == {"source": name, "source_format": format}


def test_line_breaks_after_vectors_as_the_original_word2vec_writes(
    tmp_path: Path, keyed: KeyedVectors
) -> None:
    body = b"".join(word.encode() + b" " + keyed[word].tobytes() + b"\n" for word in WORDS)
    (tmp_path / "v.bin").write_bytes(b"8 12\n" + body)
    same(read(tmp_path / "v.bin"), keyed)


def test_binary_words_across_blocks(
    tmp_path: Path, keyed: KeyedVectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed.save_word2vec_format(str(tmp_path / "v.bin"), binary=True)
    from rejoinder.encode.static.formats import word2vec_binary

    monkeypatch.setattr(word2vec_binary, "READ_BYTES", 7)
    same(read(tmp_path / "v.bin"), keyed)


@pytest.mark.parametrize(
    ("text", "words", "rows"),
    [
        # fastText's .vec has a space at the end of lines
        ("2 2 \na 1 2 \nb 3 4 \n", ["a", "b"], [[1, 2], [3, 4]]),
        ("a\t1\t2\r\nb\t3\t4\r\n\r\n", ["a", "b"], [[1, 2], [3, 4]]),
        ("\ufeffa 1 2\nb 3 4", ["a", "b"], [[1, 2], [3, 4]]),
        # numbers that JSON does not know
        ("a +1 .5\nb 1. -2e-01\n", ["a", "b"], [[1, 0.5], [1, -0.2]]),
        ("a 1  2\nb 3 4\n", ["a", "b"], [[1, 2], [3, 4]]),
        # a few words of GloVe have spaces in them; others are no-break spaces
        ("a 1 2\n. . . 3 4\n\u00a0 5 6\n", ["a", ". . .", "\u00a0"], [[1, 2], [3, 4], [5, 6]]),
        # words that are numbers
        ("1 1 2\n2 3 4\n", ["1", "2"], [[1, 2], [3, 4]]),
        # an old control character is no line break: bytes are split at \n only
        ("a 1 2\n\u0085 3 4\n\u2028 5 6\n", ["a", "\x85", "\u2028"], [[1, 2], [3, 4], [5, 6]]),
        ("a 1 2\na 3 4\nb 5 6\n 7 8\n", ["a", "b"], [[1, 2], [5, 6]]),
        ("2 2\na 1 2\n\x08\x00 3 4\n", ["a", "\x08\x00"], [[1, 2], [3, 4]]),
        ("a 1 2\n\x1f 3 4\n", ["a", "\x1f"], [[1, 2], [3, 4]]),
    ],
)
def test_unusual_but_valid_text(
    tmp_path: Path, text: str, words: list[str], rows: list[list[float]]
) -> None:
    (tmp_path / "v.txt").write_bytes(text.encode())
    vectors = read(tmp_path / "v.txt")
    assert list(vectors.words) == words
    np.testing.assert_array_equal(vectors.find(words)[0], np.array(rows, np.float32))


def test_words_that_are_not_utf8_are_kept(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(b"caf\xe9 1 2\nb 3 4\n")
    vectors = read(tmp_path / "v.txt")
    assert list(vectors.words) == ["caf\udce9", "b"]
    assert origin(tmp_path / "v.txt")["words_not_utf8"] == 1


HEADER = b"3 2\n"
BINARY = HEADER + b"".join(w + b" " + struct.pack("<2f", 1, 2) for w in (b"a", b"b", b"c"))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "v: the file is empty"),
        (b"\n\n", "v: the file is empty"),
        (b"a 1 2\nb 3\n", "v:2: 'b' has 1 numbers, expected 2 as in the first line"),
        (b"a 1 2\nb 3 4 5\n", "v:2: 'b' has 3 numbers, expected 2"),
        (b"a 1 2\n\nword\n", "v:3: 'word' has 0 numbers, expected 2"),
        (b"2 2\na 1 2\nb 3\n", "v:3: 'b' has 1 numbers, expected 2 as the header says"),
        (b"a 1 2\nb 3 x\n", "v:2: 'x' is no number"),
        (b"a 1 2\nb 3 nan\n", "v:2: a number of 'b' is NaN"),
        (b"a 1 2\nb -inf 3\n", "v:2: a number of 'b' is NaN, infinite"),
        (b"a 1 2\nb 1e300 3\n", "v:2: a number of 'b' is NaN, infinite or beyond"),
        (b"3 2\na 1 2\nb 3 4\n", "v:1: the header says 3 words, the file has 2"),
        (b"1 2\na 1 2\nb 3 4\n", "v:1: the header says 1 words, the file has 2"),
        (b"3 2\n", "v:1: the header says 3 words, the file has 0"),
        (b"3 0\na\n", "v:1: the header says 0 dimensions"),
        (b"3 99999999\na 1\n", "v:1: the header says 99999999 dimensions"),
        (BINARY[:-1], "v: the file ends within word 3 of 3: it is cut off"),
        (BINARY[:-9], "v: the file ends within word 3 of 3"),
        (BINARY[:-10], "v: the file ends within word 3 of 3"),
        (BINARY + b"d \0\0\0\0", "v: the header says 3 words, but the file continues"),
        (HEADER + b"\0" * 2**17, "v: word 1 of 3 has no end: the file is damaged"),
        (
            HEADER + b"a " + struct.pack("<2f", 1, float("nan")) + b"b 12345678c 12345678",
            "v: word 1: a number of 'a' is NaN",
        ),
        (b"\x80\x04\x95abc", "v: the file is a pickle"),
        (b"PK\x03\x04abc", "v: the file is a zip archive; unpack it"),
        (b"\x28\xb5\x2f\xfdabc", "v: the file is compressed with zstd"),
        ("a 1 2\n".encode("utf-16"), "v: the file is in UTF-16"),
        (b"\x7fELF\x00\x00", "v: the format of the file is unknown"),
        (b"Dear Sir or Madam,\n", "v:1: the first line is not a word with numbers"),
        (
            gzip.compress(b"a 1 2\nb 3 4\n" * 999, mtime=0)[:40],
            "v: the compressed file is damaged or cut",
        ),
        (b"\x1f\x8b\x00", "v: the compressed file is damaged or cut"),
        (b'{"dimensions": 2}', "v: no JSON of wink-embeddings: the field is missing: vectors"),
        (b'{"dimensions": 2, "vectors"', "v: broken JSON"),
        (b'{"dimensions": 0, "vectors": {"a": []}}', "v: the document says 0 dimensions"),
        (b'{"dimensions": 2, "vectors": {"a": [1]}}', "v: 'a' has 1 numbers, expected 2"),
        (b'{"dimensions": 2, "vectors": {"a": [1, "x"]}}', "v: the vector of 'a'"),
        (b'{"dimensions": 2, "vectors": {"a": [1, 1e39]}}', "v: word 1: a number of 'a' is NaN"),
        (b'{"dimensions": 2, "vectors": {}}', "v: there is no word with a vector in it"),
        (
            b'{"dimensions": 1, "words": ["a", "b"], "vectors": {"a": [1]}}',
            "v: the word 'b' has no vector",
        ),
    ],
)
def test_bad_files_are_refused_with_their_name(tmp_path: Path, data: bytes, complaint: str) -> None:
    (tmp_path / "v").write_bytes(data)
    with pytest.raises(DataError) as caught:
        read(tmp_path / "v")
    assert str(caught.value).startswith(complaint)
    assert [path.name for path in tmp_path.iterdir()] == ["v"]


NPM = {
    "precision": 8,
    "l2NormIndex": 3,
    "wordIndex": 4,
    "dimensions": 3,
    "words": ["the", "\\", 'a"b', "東京"],
    "vectors": {
        "東京": [1, 2, 3, 3.74, 3],
        "the": [0.5, -0.25, 0.125, 0.57, 0],
        "\\": [4, 5, 6, 8.77, 1],
        'a"b': [7, 8, 9, 13.9, 2],
    },
    "unkVector": [0, 0, 0, 0, -1],
}


@pytest.mark.parametrize("kind", ["json", "json.gz", "tgz"])
def test_npm_package(tmp_path: Path, kind: str) -> None:
    data = json.dumps(NPM, ensure_ascii=False).encode()
    path = tmp_path / f"vectors.{kind}"
    if kind == "tgz":
        with tarfile.open(path, "w:gz", format=tarfile.USTAR_FORMAT) as archive:
            for name, content in (("package/package.json", b"{}"), ("package/v.json", data)):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    else:
        path.write_bytes(gzip.compress(data) if kind == "json.gz" else data)
    vectors = read(path)
    # in the order of "words", without the length and the number after each vector
    assert list(vectors.words) == NPM["words"]
    expected = [[0.5, -0.25, 0.125], [4, 5, 6], [7, 8, 9], [1, 2, 3]]
    np.testing.assert_array_equal(vectors.find(NPM["words"])[0], expected)


def test_archive_without_vectors(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "v.tgz", "w:gz", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("package/README.md"))
    with pytest.raises(DataError, match="no JSON file in the archive"):
        read(tmp_path / "v.tgz")


@pytest.mark.parametrize("beginning", [b"the 1 2\n", b"2 2\nthe 1 2\n", b'{"dimensions": 2, "'])
def test_gzip_bomb_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    from rejoinder.encode.static.formats import source

    monkeypatch.setattr(source, "FREE_OUTPUT", 2**20)
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb") as stream:
        stream.write(beginning)
        for _ in range(64):
            stream.write(b" " * 2**20)
    with pytest.raises(DataError, match=r"times its size|bytes"):
        convert(Source(path, "bomb.gz"), tmp_path / "folder")
    assert not (tmp_path / "folder").exists()
