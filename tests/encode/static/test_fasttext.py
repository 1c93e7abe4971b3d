"""Binary models of fastText: vectors equal those of gensim, also of unknown words."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from gensim.models import FastText
from gensim.models.fasttext import load_facebook_vectors, save_facebook_model
from gensim.models.fasttext_inner import compute_ngrams_bytes, ft_hash_bytes
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.encode.static.convert import convert
from rejoinder.encode.static.formats.source import Source
from rejoinder.encode.static.vectors_folder import open_vectors_folder
from rejoinder.encode.static.word_vectors import WordVectors
from rejoinder.errors import DataError
from rejoinder.kernels.subwords import ngram_buckets

TEXTS = [
    ["the", "cat", "sat", "on", "the", "mat"],
    ["the", "naïve", "dog", "ate", "the", "résumé"],
    ["東京", "は", "大きい", "都市", "です"],
    ["кот", "сидел", "на", "коврике"],
] * 5
UNKNOWN = [
    "cats",
    "dogs",
    "tokyo",
    "東京都",
    "котик",
    "résumés",
    "supercalifragilistic",
    "zq",
    "🙂",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fasttext") / "model.bin"
    trained = FastText(
        TEXTS, vector_size=16, min_count=1, epochs=2, bucket=700, min_n=2, max_n=5, workers=1
    )
    save_facebook_model(trained, str(path))
    return path


def read(path: Path) -> WordVectors:
    target = path.with_name(path.name + ".folder")
    convert(Source(path, path.name), target)
    return open_vectors_folder(target)


@pytest.mark.parametrize("packed", [False, True])
def test_vectors_equal_those_of_gensim(model: Path, tmp_path: Path, packed: bool) -> None:
    peer = load_facebook_vectors(str(model))
    copy = tmp_path / "copy.bin"
    copy.write_bytes(gzip.compress(model.read_bytes()) if packed else model.read_bytes())
    vectors = read(copy)
    assert set(vectors.words) == set(peer.key_to_index)
    assert not set(UNKNOWN) & set(peer.key_to_index)
    words = [*peer.index_to_key, *UNKNOWN]
    found, known = vectors.find(words)
    assert known.all()
    np.testing.assert_allclose(found, [peer[word] for word in words], rtol=0, atol=1e-6)
    assert np.abs(found).min(axis=1).max() > 0


def test_lower_case_is_preferred_to_ngrams(model: Path) -> None:
    vectors = read(model)
    found, _ = vectors.find(["CAT", "cat", "CATS"])
    np.testing.assert_array_equal(found[0], found[1])
    peer = load_facebook_vectors(str(model))
    np.testing.assert_allclose(found[2], peer["CATS"], atol=1e-6)


def test_word_too_short_for_ngrams_is_unknown(tmp_path: Path) -> None:
    """<a> has three characters; the shortest n-gram of this model has four."""
    trained = FastText(TEXTS, vector_size=4, min_count=1, epochs=1, bucket=50, min_n=4, max_n=5)
    save_facebook_model(trained, str(tmp_path / "m.bin"))
    found, known = read(tmp_path / "m.bin").find(["a", "ab"])
    assert known.tolist() == [False, True]
    assert not found[0].any()


@given(
    st.lists(st.text(max_size=8).filter(lambda w: w.isprintable()), max_size=8),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(1, 2**31 - 1),
)
def test_ngrams_and_hashes_equal_those_of_gensim(
    words: list[str], shortest: int, more: int, buckets: int
) -> None:
    encoded = [word.encode() for word in words]
    text = np.frombuffer(b"".join(encoded), np.uint8)
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    found, starts = ngram_buckets(text, ends, shortest, shortest + more, buckets)
    for number, word in enumerate(words):
        grams = compute_ngrams_bytes(word, shortest, shortest + more)
        expected = [ft_hash_bytes(gram) % buckets for gram in grams]
        assert found[starts[number] : starts[number + 1]].tolist() == expected


def test_end_of_sentence_has_no_ngrams(tmp_path: Path) -> None:
    """As in fastText itself: ``</s>`` is its own row; ``ab`` the mean of its row and <ab, ab>."""
    settings = struct.pack("<12id", 1, 5, 5, 1, 5, 1, 2, 2, 10, 3, 3, 100, 1e-4)
    dictionary = struct.pack("<3i2q", 2, 2, 0, 9, -1)
    dictionary += b"".join(w + b"\0" + struct.pack("<qb", 3, 0) for w in (b"</s>", b"ab"))
    # bucket k has the number 10 · k; the words have 1 and 2
    numbers = np.array([1, 2, *range(0, 100, 10)], "<f4").tobytes()
    data = struct.pack("<2i", 793712314, 12) + settings + dictionary
    data += struct.pack("<?2q", False, 12, 1) + numbers
    (tmp_path / "m.bin").write_bytes(data)
    buckets = [ft_hash_bytes(gram) % 10 for gram in (b"<ab", b"ab>")]
    found, _ = read(tmp_path / "m.bin").find(["</s>", "ab"])
    assert found[:, 0].tolist() == pytest.approx([1, (2 + 10 * sum(buckets)) / 3])


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.3, 0.6])
def test_truncated_model(model: Path, tmp_path: Path, share: float) -> None:
    data = model.read_bytes()
    cut = tmp_path / "cut.bin"
    cut.write_bytes(data[: max(8, int(share * len(data)))])
    with pytest.raises(DataError, match=r"cut.bin: the fastText model is cut off or damaged"):
        read(cut)
    assert [path.name for path in tmp_path.iterdir()] == ["cut.bin"]


def test_damaged_models_are_refused(model: Path, tmp_path: Path) -> None:
    data = bytearray(model.read_bytes())
    bad = tmp_path / "bad.bin"

    def complaint() -> str:
        bad.write_bytes(data)
        with pytest.raises(DataError) as caught:
            read(bad)
        return str(caught.value)

    data[4:8] = struct.pack("<i", 13)
    assert "version 13; expected 11 or 12" in complaint()
    data[4:8] = struct.pack("<i", 12)
    sound = data[8:12]
    data[8:12] = struct.pack("<i", -5)
    assert "it says -5 dimensions" in complaint()
    data[8:12] = struct.pack("<i", 17)
    assert "columns for 17 dimensions" in complaint()
    data[8:12] = sound
    data[64:68] = struct.pack("<i", 7)  # the size of the dictionary
    assert "size of its dictionary is wrong" in complaint()


def test_quantised_model_is_refused(tmp_path: Path) -> None:
    settings = struct.pack("<12id", 1, 5, 5, 1, 5, 1, 2, 2, 10, 3, 3, 100, 1e-4)
    dictionary = struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"ab\0" + struct.pack("<qb", 3, 0)
    data = struct.pack("<2i", 793712314, 12) + settings + dictionary + struct.pack("<?", True)
    (tmp_path / "m.ftz").write_bytes(data)
    with pytest.raises(DataError, match=r"quantised \(\.ftz\); give the full model"):
        read(tmp_path / "m.ftz")
