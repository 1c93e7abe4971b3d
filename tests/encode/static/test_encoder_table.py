"""Input embeddings of an encoder as word vectors: rows of the weights, without torch."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from rejoinder.encode.static import open_vectors
from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.errors import DataError, MissingExtra


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    return load_file(find_model_folder("minilm") / "model.safetensors")[
        "embeddings.word_embeddings.weight"
    ]


def test_words_of_minilm_are_rows_of_its_embeddings(weights: np.ndarray) -> None:
    tokenizer = Tokenizer.from_file(str(find_model_folder("minilm") / "tokenizer.json"))
    words = ["the", "kitchen", "Paris", ".", "7"]
    vectors = open_vectors("minilm")
    assert vectors.dimensions == 384 and vectors.name == "minilm"
    assert len(vectors.words) == 30522 and vectors.words[1996] == "the"
    found, known = vectors.find(words)
    assert known.all()
    ids = [tokenizer.token_to_id(word.lower()) for word in words]
    np.testing.assert_array_equal(found, weights[ids])


def test_other_words_are_the_mean_of_their_subwords(weights: np.ndarray) -> None:
    tokenizer = Tokenizer.from_file(str(find_model_folder("minilm") / "tokenizer.json"))
    subwords = {
        "snowboarder": ["snow", "##board", "##er"],
        "don't": ["don", "'", "t"],
        "##ing": ["#", "#", "ing"],  # as text, not as the token of this name
    }
    found, known = open_vectors("minilm").find(list(subwords))
    assert known.all()
    for row, names in zip(found, subwords.values(), strict=True):
        ids = [tokenizer.token_to_id(name) for name in names]
        np.testing.assert_allclose(row, weights[ids].mean(axis=0), atol=1e-7)


def test_words_that_the_tokenizer_does_not_know_are_unknown() -> None:
    words = ["🜊", "", " ", "[CLS]", "[UNK]", "\ud800", "the"]
    found, known = open_vectors("minilm").find(words)
    assert known.tolist() == [False, False, False, False, False, False, True]
    assert not found[:-1].any()


def test_very_long_word_and_very_many_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from rejoinder.encode.static import encoder_table

    monkeypatch.setattr(encoder_table, "MAX_REMEMBERED", 10)
    vectors = open_vectors("minilm")
    words = [f"w{i}" for i in range(50)] + ["ha" * 3000]
    found, known = vectors.find(words)
    again, _ = vectors.find(words)
    np.testing.assert_array_equal(found, again)
    assert known[:-1].all()


def test_neither_torch_nor_transformers_is_imported() -> None:
    code = (
        "import sys\nfrom rejoinder.encode.static import open_vectors\n"
        "assert open_vectors('minilm').find(['hello', 'snowboarder'])[1].all()\n"
        "heavy = {'torch', 'transformers', 'gensim', 'sklearn', 'numba'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TOKENS = ["[UNK]", "hello", "world", "Hello", "a", "b", "##b"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A cased encoder with a small table."""
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 4}))
    vocabulary = {token: number for number, token in enumerate(TOKENS)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rows = np.arange(len(TOKENS) * 4, dtype=np.float32).reshape(-1, 4)
    save_file({"bert.embeddings.word_embeddings.weight": rows}, str(tmp_path / "model.safetensors"))
    return tmp_path


def test_policy_of_a_cased_encoder(model: Path) -> None:
    """As written, else in lower case, else its subwords as written, else unknown."""
    vectors = open_vectors(str(model))
    found, known = vectors.find(["Hello", "WORLD", "ab", "AB", "xyz"])
    # rows 3 and 2; the mean of rows 4 and 6 is (20, 21, 22, 23)
    assert found[:, 0].tolist() == [12, 8, 20, 0, 0]
    # AB is no token and has none; its lower case has two, but is not split
    assert known.tolist() == [True, True, True, False, False]


def test_half_precision(model: Path) -> None:
    plain = open_vectors(str(model)).find(TOKENS[1:6])[0]
    for name, half in (("F16", np.float16), ("BF16", None)):
        rows = np.arange(len(TOKENS) * 4, dtype=np.float32).reshape(-1, 4)
        data = (
            rows.astype(half).tobytes()
            if half
            else (rows.view("<u4") >> 16).astype("<u2").tobytes()
        )
        header = json.dumps(
            {"shared.weight": {"dtype": name, "shape": rows.shape, "data_offsets": [0, len(data)]}}
        ).encode()
        (model / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
        open_vectors.cache_clear()
        vectors = open_vectors(str(model))
        np.testing.assert_array_equal(vectors.find(TOKENS[1:6])[0], plain)


def test_byte_level_tokenizer_gets_words_after_a_space(model: Path) -> None:
    """As in RoBERTa: the token of a whole word begins with the mark of a space."""
    vocabulary = {token: number for number, token in enumerate(["h", "i", "Ġ", "hi", "Ġhi"])}
    merges = [("h", "i"), ("Ġ", "hi")]
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.save(str(model / "tokenizer.json"))
    found, _ = open_vectors(str(model)).find(["hi"])
    assert found[0, 0] == 16  # row 4


def test_unigram_tokenizer(model: Path) -> None:
    listed = [("<unk>", 0.0), ("▁hello", -1.0), ("▁", -3.0), ("x", -2.0)]
    tokenizer = Tokenizer(models.Unigram(listed, unk_id=0))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.save(str(model / "tokenizer.json"))
    vectors = open_vectors(str(model))
    assert vectors.words[1] == "▁hello"
    found, known = vectors.find(["hello", "x", "é"])
    # the mark of the space before "x" is no part of it; of "é" it would be all that is known
    assert found[:, 0].tolist() == [4, 12, 0]
    assert known.tolist() == [True, True, False]


def test_folders_without_input_embeddings(model: Path) -> None:
    weights = model / "model.safetensors"
    sound = weights.read_bytes()
    for data, complaint in (
        (sound[:3], "no safetensors file"),
        (sound[:40], "no safetensors file"),
        (sound[:-8], "outside the file"),
    ):
        weights.write_bytes(data)
        with pytest.raises(DataError, match=complaint):
            open_vectors(str(model))
    save_file({"pooler.weight": np.zeros((2, 2), np.float32)}, str(weights))
    with pytest.raises(DataError, match="no input embeddings among the weights"):
        open_vectors(str(model))
    weights.rename(model / "pytorch_model.bin")
    with pytest.raises(DataError, match=r"pickle .* save the model as model\.safetensors"):
        open_vectors(str(model))
    (model / "pytorch_model.bin").unlink()
    with pytest.raises(MissingExtra, match=r"no model\.safetensors"):
        open_vectors(str(model))


@pytest.mark.parametrize(
    "tokenizer",
    [
        "[]",
        "{",
        '{"model": []}',
        '{"model": {"vocab": 7}}',
        '{"model": {"vocab": {"a": "b"}}}',
        '{"model": {"vocab": [["a"]]}}',
        '{"model": {}, "added_tokens": [7]}',
        '{"model": ' + "[" * 100_000,
    ],
    ids=lambda text: text[:40],
)
def test_damaged_tokenizer(model: Path, tokenizer: str) -> None:
    (model / "tokenizer.json").write_text(tokenizer)
    with pytest.raises(DataError, match=r"tokenizer\.json"):
        open_vectors(str(model))


def test_token_without_a_row(model: Path) -> None:
    rows = np.zeros((2, 4), np.float32)
    save_file({"bert.embeddings.word_embeddings.weight": rows}, str(model / "model.safetensors"))
    with pytest.raises(DataError, match="the weights have 2 tokens"):
        open_vectors(str(model)).find(["world"])


def test_embeddings_that_are_not_numbers(model: Path) -> None:
    rows = np.full((len(TOKENS), 4), np.nan, np.float32)
    save_file({"bert.embeddings.word_embeddings.weight": rows}, str(model / "model.safetensors"))
    with pytest.raises(DataError, match=r"model\.safetensors"):
        open_vectors(str(model)).find(["world"])
