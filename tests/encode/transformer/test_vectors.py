"""The vectors are those of transformers and sentence-transformers, for every kind of network."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rejoinder.encode.transformer import Encoder
from rejoinder.encode.transformer.bert_network import BertNetwork
from rejoinder.encode.transformer.find_model import find_model_folder
from rejoinder.encode.transformer.transformers_network import TransformersNetwork
from tiny_models import TEXTS

Make = Callable[..., Path]

REAL = [
    "I finally finished painting the kitchen!",
    "That's great, which colour did you choose?",
    "",
    " ",
    "ok",
    "Ça va, mon ami? Où est la bibliothèque…",
    "今日は天気がいいですね。",
    "😀😀 lol",
    "a lone \ud800 surrogate",
    "Do you know a good place to eat around here, where one can sit outside and talk? " * 4,
    "long " * 300,
    "very long " * 400,
]


def hidden_states(folder: Path, ids: NDArray[np.int32], starts: NDArray[np.int64]) -> list[Any]:
    """All layers of every text by transformers, one text at a time: nothing is padded."""
    import torch
    from transformers import AutoModel

    model = AutoModel.from_pretrained(folder).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    found = []
    with torch.inference_mode():
        for start, end in pairwise(starts):
            text = torch.from_numpy(ids[start:end].astype(np.int64))[None]
            states = model(input_ids=text, output_hidden_states=True).hidden_states
            found.append([state[0].numpy() for state in states])
    return found


def check_against_transformers(folder: Path, texts: list[str], *, atol: float) -> Encoder:
    encoder = Encoder(str(folder))
    ids, starts = encoder.token_ids(texts)
    expected = hidden_states(folder, ids, starts)
    for layer in {0, 1, encoder.layers // 2, encoder.layers}:
        found = encoder.tokens(texts, layer=layer)
        assert found.ids.tolist() == ids.tolist()
        assert found.starts.tolist() == starts.tolist()
        assert found.vectors.dtype == np.float32
        theirs = np.concatenate([states[layer] for states in expected])
        np.testing.assert_allclose(found.vectors, theirs, atol=atol)
    return encoder


def test_minilm_equals_transformers() -> None:
    encoder = check_against_transformers(find_model_folder("minilm"), REAL, atol=1e-5)
    assert isinstance(encoder._network, BertNetwork)
    # 2 specials and 300 words fit the 512 tokens of the network, 2 and 800 do not
    lengths = np.diff(encoder.token_ids(REAL)[1])
    assert lengths[-2:].tolist() == [302, 512] == [302, encoder.max_tokens]
    assert lengths[2] == 2


def test_minilm_equals_sentence_transformers() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it imports
        from sentence_transformers import SentenceTransformer

        theirs = SentenceTransformer(str(find_model_folder("minilm")), device="cpu")
        texts = [text.replace("\ud800", "�") for text in REAL]
        expected = theirs.encode(texts, show_progress_bar=False)
    encoder = Encoder()
    found = encoder.sentences(REAL)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    # it cuts at 256 tokens
    assert encoder.max_sentence_tokens == 256 == theirs.max_seq_length
    assert encoder.truncated == 2


@pytest.mark.parametrize("kind", ["bert", "roberta", "xlm-roberta", "distilbert"])
def test_bert_like_families_equal_transformers(make_model: Make, kind: str) -> None:
    settings: dict[str, Any] = {}
    if kind == "distilbert":
        settings = {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40}
    encoder = check_against_transformers(make_model(kind, **settings), TEXTS, atol=1e-5)
    assert isinstance(encoder._network, BertNetwork)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("albert", {"embedding_size": 12}),  # its layers share their weights
        ("electra", {"embedding_size": 12}),
        ("mpnet", {}),
        ("bert", {"hidden_act": "relu"}),
    ],
)
def test_other_families_equal_transformers(
    make_model: Make, kind: str, settings: dict[str, Any]
) -> None:
    encoder = check_against_transformers(make_model(kind, **settings), TEXTS, atol=1e-5)
    assert isinstance(encoder._network, TransformersNetwork)


def test_encoder_of_an_encoder_decoder(make_model: Make) -> None:
    """T5 ends with a norm, which a truncated network keeps, as with bert-score."""
    import torch

    folder = make_model("t5", d_model=24, num_layers=3, num_heads=4, d_ff=40, d_kv=6)
    encoder = Encoder(str(folder))
    ids, starts = encoder.token_ids(TEXTS)
    last = np.concatenate([states[-1] for states in hidden_states(folder, ids, starts)])
    np.testing.assert_allclose(encoder.tokens(TEXTS).vectors, last, atol=1e-5)

    from rejoinder.encode.transformer.transformers_network import load_model

    model = load_model(encoder._folder, 1)
    assert len(model.block) == 1
    with torch.inference_mode():
        text = torch.from_numpy(ids[: starts[1]].astype(np.int64))[None]
        first = model(input_ids=text)[0][0].numpy()
    found = encoder.tokens(TEXTS[:1], layer=1).vectors
    np.testing.assert_allclose(found, first, atol=1e-5)


def test_layers_above_are_not_computed(make_model: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.electra.modeling_electra import ElectraLayer

    calls = []
    whole = ElectraLayer.forward

    def counting(self: Any, *arguments: Any, **settings: Any) -> Any:
        calls.append(self)
        return whole(self, *arguments, **settings)

    monkeypatch.setattr(ElectraLayer, "forward", counting)
    encoder = Encoder(str(make_model("electra", embedding_size=12)))
    encoder.sentences(["hello"], layer=2)
    assert len(calls) == 2 == len(set(calls))
    encoder.layered(["blue"], [3, 1])
    assert len(calls) == 2 + 3  # once for both

    own = Encoder(str(make_model("bert")))
    passed = []
    through = BertNetwork._run_layer

    def noting(self: BertNetwork, layer: Any, *rest: Any) -> Any:
        passed.append(layer)
        return through(self, layer, *rest)

    monkeypatch.setattr(BertNetwork, "_run_layer", noting)
    own.sentences(["hello"], layer=2)
    assert len(passed) == 2 == len(set(passed))
    assert isinstance(own._network, BertNetwork)
    assert len(own._network._layers) == 2  # the third was not even read


def test_poolings_by_hand(make_model: Make) -> None:
    encoder = Encoder(str(make_model("bert")))
    tokens = encoder.tokens(["hello the kitchen"], layer=2)
    assert tokens.ids.tolist() == [2, 5, 6, 7, 3]
    mean = tokens.vectors.mean(axis=0)
    first = tokens.vectors[0]
    for pooling, vector in (("mean", mean), ("cls", first)):
        (found,) = encoder.sentences(["hello the kitchen"], layer=2, pooling=pooling)
        np.testing.assert_allclose(found, vector / np.linalg.norm(vector), atol=1e-6)


def test_half_precision_weights_and_a_prefix(make_model: Make, tmp_path: Path) -> None:
    """Weights of a model that was saved with its head, in 16 bits."""
    from safetensors.numpy import load_file, save_file

    folder = make_model("bert")
    weights = load_file(folder / "model.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    half = {f"bert.{name}": array.astype(np.float16) for name, array in weights.items()}
    save_file(half, tmp_path / "model.safetensors", metadata={"format": "pt"})
    found = check_against_transformers(tmp_path, TEXTS, atol=1e-5)
    assert isinstance(found._network, BertNetwork)


def test_vectors_do_not_depend_on_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{text} {number}" for number in range(6) for text in REAL[:8]]
    together = Encoder().sentences(texts)
    monkeypatch.setenv("REJOINDER_CACHE", "off")
    alone = np.concatenate([Encoder().sentences([text]) for text in texts[::7]])
    np.testing.assert_allclose(together[::7], alone, atol=1e-6)


def test_settings_of_torch_are_unchanged(make_model: Make) -> None:
    import torch

    before = torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()
    state = torch.random.get_rng_state()
    Encoder(str(make_model("electra", embedding_size=12))).sentences(TEXTS)
    after = torch.get_num_threads(), torch.is_grad_enabled(), torch.get_default_dtype()
    assert before == after
    assert torch.equal(state, torch.random.get_rng_state())
