"""Each distinct text is encoded once, read from the cache if possible, and counted if truncated."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rejoinder.encode.transformer import Encoder, open_encoder
from rejoinder.encode.transformer import model_folder as folder_module
from rejoinder.encode.transformer.bert_network import BertNetwork
from rejoinder.errors import UsageError
from rejoinder.files.cache import open_cache
from tiny_models import TEXTS

Make = Callable[..., Path]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts went through the network, batch by batch."""
    counts: list[int] = []
    run = BertNetwork.run

    def counting(self: BertNetwork, ids: object, lengths: np.ndarray, layers: list[int]) -> object:
        counts.append(lengths.size)
        return run(self, ids, lengths, layers)  # type: ignore[arg-type]

    monkeypatch.setattr(BertNetwork, "run", counting)
    return counts


def test_each_distinct_text_is_encoded_once(make_model: Make, seen: list[int]) -> None:
    encoder = Encoder(str(make_model()))
    texts = ["blue", "the kitchen", "blue", "blue", "the kitchen", "hello"]
    found = encoder.sentences(texts)
    assert sum(seen) == 3
    np.testing.assert_array_equal(found[[0, 1]], found[[2, 4]])
    assert abs(found[0] - found[1]).max() > 0.01

    tokens = encoder.tokens(texts)
    assert sum(seen) == 6
    assert np.diff(tokens.starts).tolist() == [3, 4, 3, 3, 4, 3]
    np.testing.assert_array_equal(tokens.vectors[:3], tokens.vectors[7:10])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("bert", {}),
        # through transformers, once for all layers
        ("bert", {"hidden_act": "relu"}),
        ("roberta", {"hidden_act": "relu"}),
        ("xlm-roberta", {"hidden_act": "relu"}),
        ("camembert", {"hidden_act": "relu"}),
        ("distilbert", {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40,
                        "activation": "relu"}),
        ("electra", {"embedding_size": 12}),
        ("mpnet", {}),
        # through one network a layer: albert is not known to end every layer, t5 does not
        ("albert", {"embedding_size": 12}),
        ("t5", {"d_model": 24, "num_layers": 3, "num_heads": 4, "d_ff": 40, "d_kv": 6}),
    ],
)  # fmt: skip
def test_several_layers_at_once(make_model: Make, kind: str, settings: dict[str, Any]) -> None:
    """Each as it is alone."""
    name = str(make_model(kind, **settings))
    texts = [*TEXTS, TEXTS[0]]
    together = Encoder(name).layered(texts, [None, 0, 2])
    for layer, vectors in zip([3, 0, 2], together, strict=True):
        alone = Encoder(str(make_model(kind, **settings)))
        alone.digest = f"as if never seen {layer}"
        np.testing.assert_allclose(vectors, alone.sentences(texts, layer=layer), atol=1e-6)


def test_several_layers_take_one_forward_pass(make_model: Make, seen: list[int]) -> None:
    encoder = Encoder(str(make_model()))
    texts = ["blue", "the kitchen", "hello"]
    last, lower = encoder.layered(texts, [3, 1])
    assert sum(seen) == 3
    np.testing.assert_array_equal(encoder.sentences(texts, layer=1), lower)
    np.testing.assert_array_equal(encoder.sentences(texts), last)
    assert sum(seen) == 3


def test_cached_layer_is_not_computed_again(make_model: Make, seen: list[int]) -> None:
    """Beside other texts its last bits may be others, and what was built on them would not fit."""
    encoder = Encoder(str(make_model()))
    known = encoder.sentences(["blue", "hello"])
    calls: list[tuple[int, int]] = []
    last, lower = encoder.layered(
        ["the kitchen", "blue", "hello"], [3, 1], on_progress=lambda *c: calls.append(c)
    )
    np.testing.assert_array_equal(last[1:], known)
    assert seen == [2, 1, 2]  # the first two; the new one, both layers; those two, layer 1 alone
    np.testing.assert_array_equal(
        encoder.sentences(["the kitchen", "blue", "hello"], layer=1), lower
    )
    assert calls == [(0, 3), (1, 3), (3, 3)]


def test_encoded_texts_are_read_from_the_cache(make_model: Make, seen: list[int]) -> None:
    name = str(make_model())
    first = Encoder(name)
    sentences, tokens = first.sentences(TEXTS), first.tokens(TEXTS, layer=2)
    computed = sum(seen)
    open_cache().close()

    second = Encoder(name)
    np.testing.assert_array_equal(second.sentences(TEXTS), sentences)
    again = second.tokens(TEXTS, layer=2)
    np.testing.assert_array_equal(again.vectors, tokens.vectors)
    np.testing.assert_array_equal(again.ids, tokens.ids)
    assert sum(seen) == computed
    # any other setting is something else
    second.sentences(TEXTS, pooling="cls")
    second.sentences(TEXTS, layer=2)
    second.tokens(TEXTS)
    assert sum(seen) == computed + 3 * len(TEXTS)


def test_cached_run_imports_no_torch_and_reads_no_weights(own_model: Path) -> None:
    """In another process, with weights that can't be read any more but look untouched."""
    code = (
        "import sys, json; from rejoinder.encode.transformer import Encoder\n"
        "encoder = Encoder(sys.argv[1]); texts = json.loads(sys.argv[2])\n"
        "arrays = encoder.sentences(texts), encoder.tokens(texts).vectors\n"
        "heavy = {'torch', 'transformers', 'tokenizers', 'numba', 'safetensors'}\n"
        "imported = sorted(heavy & set(sys.modules))\n"
        "sums = [float(array.sum()) for array in arrays]\n"
        "print(json.dumps([encoder.digest, sums, encoder.truncated, imported]))"
    )

    def run() -> list[object]:
        arguments = [sys.executable, "-c", code, str(own_model), json.dumps(TEXTS)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        found: list[object] = json.loads(done.stdout)
        return found

    digest, sums, truncated, heavy = run()
    # this family needs no torch even the first time
    assert heavy == ["numba", "safetensors", "tokenizers"]
    assert run() == [digest, sums, truncated, []]


def test_weights_are_hashed_once(own_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = Encoder(str(own_model)).digest
    assert len(digest) == 12 and int(digest, 16) >= 0

    def never(*arguments: object, **settings: object) -> object:
        raise AssertionError("a file was hashed again")

    monkeypatch.setattr(folder_module, "blake2b", never)
    assert Encoder(str(own_model)).digest == digest


def test_changed_model_of_the_same_name_has_another_digest(
    own_model: Path, make_model: Make
) -> None:
    """Other weights, other settings or another tokenizer: another digest, and other vectors."""
    before = Encoder(str(own_model))
    first = before.sentences(["hello"])
    shutil.copy(make_model("bert", hidden_act="relu") / "config.json", own_model / "config.json")
    after = Encoder(str(own_model))
    assert after.digest != before.digest
    assert abs(after.sentences(["hello"]) - first).max() > 1e-3

    weights = bytearray((own_model / "model.safetensors").read_bytes())
    weights[-8:] = np.array([9, 9], np.float32).tobytes()
    (own_model / "model.safetensors").write_bytes(weights)
    assert Encoder(str(own_model)).digest not in (before.digest, after.digest)

    copy = shutil.copytree(own_model, own_model.parent / "elsewhere")
    assert Encoder(str(copy)).digest == Encoder(str(own_model)).digest


def test_damaged_entries_are_computed_again(make_model: Make, own_cache: Path) -> None:
    name = str(make_model())
    expected = Encoder(name).sentences(TEXTS)
    open_cache().close()
    (path,) = own_cache.glob("*.sqlite")
    with sqlite3.connect(path) as database:
        # the entries of texts: four bytes and 24 numbers
        database.execute("UPDATE entries SET data = zeroblob(100) WHERE length(data) = 100")
    database.close()

    code = (
        "import sys, json; from rejoinder.encode.transformer import Encoder\n"
        "encoder = Encoder(sys.argv[1])\n"
        "found = encoder.sentences(json.loads(sys.argv[2]))\n"
        "print(json.dumps([found.tolist(), encoder.cache.repaired, encoder.notes()]))"
    )
    arguments = [sys.executable, "-c", code, name, json.dumps(TEXTS)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    found, repaired, notes = json.loads(done.stdout)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert repaired == len(TEXTS)
    assert f"cache: {len(TEXTS)} damaged entries were computed again" in notes


def test_long_texts_are_truncated_and_counted(make_model: Make) -> None:
    name = str(make_model())
    encoder = Encoder(name)
    assert encoder.max_tokens == 64 == encoder.max_sentence_tokens  # positions of the network
    fits, over = "and " * 62, "and " * 63
    found = encoder.tokens([fits, over, over + "the"])
    assert np.diff(found.starts).tolist() == [64, 64, 64]
    assert found.ids[-1] == 3  # [SEP] is kept
    np.testing.assert_allclose(found.vectors[:64], found.vectors[64:128], atol=1e-5)
    assert encoder.truncated == 2
    encoder.sentences([over])
    assert encoder.truncated == 2  # the same text
    assert encoder.notes() == [f"model {name}: 2 texts were too long and truncated"]
    # also where the vectors come from the cache
    again = Encoder(name)
    again.tokens([fits, over, "blue"])
    assert again.truncated == 1


@pytest.mark.parametrize("maximum", [None, int(1e30)])
def test_tokenizer_without_a_maximum(make_model: Make, tmp_path: Path, maximum: int) -> None:
    """Nothing says how long a text may be: 512 tokens, and never a crash."""
    source = make_model("t5", d_model=24, num_layers=1, num_heads=4, d_ff=40, d_kv=6)
    folder = Path(shutil.copytree(source, tmp_path / "t5"))
    config = json.loads((folder / "config.json").read_text())
    for key in ("max_position_embeddings", "n_positions"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    settings["model_max_length"] = maximum
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    encoder = Encoder(str(folder))
    assert encoder.max_tokens == 512
    found = encoder.sentences(["and " * 5000, ""])
    assert np.isfinite(found).all() and encoder.truncated == 1


def test_positions_of_the_roberta_family(make_model: Make) -> None:
    """It counts from behind the padding token: of 64 positions, 64 - 1 - 1 are left for pad 1."""
    encoder = Encoder(str(make_model("roberta", pad_token_id=1)))
    assert encoder.max_tokens == 62
    assert np.isfinite(encoder.sentences(["and " * 100])).all()


def test_nothing_to_encode(make_model: Make) -> None:
    encoder = Encoder(str(make_model()))
    assert encoder.sentences([]).shape == (0, 24)
    tokens = encoder.tokens([])
    assert tokens.vectors.shape == (0, 24) and tokens.starts.tolist() == [0]
    ids, starts = encoder.token_ids([])
    assert ids.size == 0 and starts.tolist() == [0]
    empty = encoder.tokens(["", " \n"])
    assert empty.ids.tolist() == [2, 3, 2, 3]


def test_special_tokens(make_model: Make) -> None:
    """Tokens around every text; the unknown token is not among them."""
    assert Encoder(str(make_model())).special_ids == {2, 3}
    assert open_encoder().special_ids == {101, 102}
    assert open_encoder() is open_encoder("minilm")


def test_progress_ends_at_the_number_of_distinct_texts(
    make_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BertNetwork, "batch_tokens", 16)
    encoder = Encoder(str(make_model()))
    encoder.sentences(TEXTS[:3])
    calls: list[tuple[int, int]] = []
    encoder.sentences([*TEXTS, *TEXTS], on_progress=lambda *call: calls.append(call))
    assert calls[0] == (3, len(TEXTS)) and calls[-1] == (len(TEXTS), len(TEXTS))
    assert len(calls) > 3
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_wrong_arguments(make_model: Make) -> None:
    encoder = Encoder(str(make_model()))
    with pytest.raises(UsageError, match="layers 0 to 3"):
        encoder.tokens(["hello"], layer=4)
    with pytest.raises(UsageError, match="layers 0 to 3"):
        encoder.sentences(["hello"], layer=-1)
    with pytest.raises(UsageError, match="mean, cls"):
        encoder.sentences(["hello"], pooling="max")


WORKER = """
import sys, json, numpy as np
from rejoinder.encode.transformer import Encoder
encoder = Encoder(sys.argv[1])
texts = [f"the {a} kitchen {b}" for a in "abcdefghij" for b in "abcdefghij"]
print("ready", flush=True)
for start in range(0, 100, 10):
    encoder.tokens(texts[start:start + 10])
np.save(sys.argv[2], encoder.sentences(texts))
assert encoder.notes() == [], encoder.notes()
"""


def test_processes_encode_the_same_texts_and_one_is_killed(
    make_model: Make, tmp_path: Path
) -> None:
    name = str(make_model())

    def start(out: str) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", WORKER, name, str(tmp_path / out)]
        return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)

    doomed, *others = (start(f"{number}.npy") for number in range(3))
    assert doomed.stdout is not None and doomed.stdout.readline() == "ready\n"
    time.sleep(0.05)
    doomed.send_signal(signal.SIGKILL)
    doomed.communicate()
    for process in others:
        process.communicate(timeout=120)
    assert [process.returncode for process in others] == [0, 0]

    texts = [f"the {a} kitchen {b}" for a in "abcdefghij" for b in "abcdefghij"]
    encoder = Encoder(name)
    expected = np.stack([row / np.linalg.norm(row) for row in means(encoder, texts)])
    for number in (1, 2):
        np.testing.assert_allclose(np.load(tmp_path / f"{number}.npy"), expected, atol=1e-5)
    assert encoder.notes() == []


def means(encoder: Encoder, texts: list[str]) -> list[np.ndarray]:
    """By the network itself, past the cache."""
    split = encoder._tokenize(texts, 64)
    parts = zip(split.starts, split.starts[1:], strict=False)
    return [
        encoder._network.run(split.ids[a:b], np.array([b - a]), [3])[0].mean(axis=0)
        for a, b in parts
    ]
