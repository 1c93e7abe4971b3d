"""Trained networks as dialogue systems."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from rejoinder.errors import DataError, UsageError
from rejoinder.learn.checkpoint import load_model, save_model
from rejoinder.learn.dialogue.settings import NETWORKS
from rejoinder.learn.dialogue.system_folder import (
    MANIFEST,
    SystemManifest,
    read_manifest,
    write_manifest,
)
from rejoinder.retrieve.index_folder import open_pool
from rejoinder.systems.best_response import search
from rejoinder.systems.system import make_system
from trained import pairs_file, small_talk, trained_system

CONTEXTS = [
    ["do you like tea ?"],
    ["do you like soup ?", "yes , i like soup a lot .", "and what about cats ?"],
    ["hello", "and what about rain ?"],
]


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a trained system, to be changed."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(trained_system(name), tmp_path / name))

    return copy


@pytest.mark.parametrize("name", NETWORKS)
def test_a_folder_is_a_system(name: str) -> None:
    folder = trained_system(name)
    system = make_system(str(folder))
    assert str(system) == name
    replies = system.reply(CONTEXTS)
    assert all(len(answer.texts) == 1 and answer.texts[0].strip() for answer in replies)
    # a reply does not depend on the other contexts
    assert [system.reply([context])[0] for context in CONTEXTS] == replies


@pytest.mark.parametrize("name", NETWORKS)
def test_several_replies_are_different(name: str) -> None:
    """Drawn again until there are enough different ones, the same for the same seed."""
    folder = trained_system(name)
    system = make_system(f"trained(model={folder},seed=3)")
    replies = system.reply(CONTEXTS, n=3)
    for answer in replies:
        assert len(set(answer.texts)) == len(answer.texts)
    if name not in ("vhred", "cvae"):  # greedy words: latent variables may say the same
        assert all(len(answer.texts) == 3 for answer in replies)
    assert system.reply(CONTEXTS, n=3) == replies
    assert system.reply(CONTEXTS[::-1], n=3) == replies[::-1]


def test_a_spec_sets_the_decoding() -> None:
    folder = trained_system("hred")
    beam = make_system(f"trained(model={folder},decoding=beam,beam_size=4)")
    assert str(beam) == f"trained(model={folder},decoding=beam,beam_size=4)"
    assert len(beam.reply(CONTEXTS, n=4)[0].texts) == 4
    with pytest.raises(UsageError, match=r"unknown decoding 'best'.*top_p must be"):
        make_system(f"trained(model={folder},decoding=best,top_p=3)")
    with pytest.raises(UsageError, match="5 replies need beam_size=5"):
        beam.reply(CONTEXTS, n=5)


def test_notes() -> None:
    """Contexts of the training data, long contexts, and too few different replies are told."""
    folder = trained_system("hred")
    notes: list[str] = []
    rows = small_talk()
    known = [[*row["context"], row["utterance"]] for row in rows if len(row["context"]) == 1]
    long = ["x", "y", "z", "do you like tea ?"]
    greedy = f"trained(model={folder},decoding=greedy)"
    make_system(greedy).reply([*known, long], n=2, on_note=notes.append)
    text = "\n".join(notes)
    assert "contexts were in its training data" in text
    assert "1 contexts have more than 3 turns" in text
    assert "decoding=greedy gives no more" in text
    notes.clear()
    make_system(str(folder)).reply([["do you like tea ?"]], on_note=notes.append)
    assert notes == []


def test_a_dual_encoder_chooses_the_best_response() -> None:
    """Against all dot products in double precision."""
    rng = np.random.default_rng(0)
    queries = rng.standard_normal((7, 5)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    vectors = rng.standard_normal((20_000, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1).max()
    best = search(queries, vectors, 3)
    exact = queries.astype(float) @ vectors.astype(float).T
    assert best.rows.tolist() == np.argsort(-exact, axis=1)[:, :3].tolist()


def test_a_dual_encoder_takes_responses_of_training_or_of_the_pool(tmp_path: Path) -> None:
    folder = trained_system("dual-encoder")
    responses = {row["response"] for row in small_talk()}
    system = make_system(str(folder))
    assert {text for answer in system.reply(CONTEXTS, n=2) for text in answer.texts} <= responses
    with open_pool(str(pairs_file())) as pool:
        texts = system.reply(CONTEXTS, pool, n=2)
        leaks = np.ones(pool.size, np.bool_)
        leaks[5] = False
        only = pool.responses(np.array([5]))[0]
        assert system.reply(CONTEXTS, pool, leaks=leaks)[0].texts == (only,)
    assert all(len(answer.texts) == 2 for answer in texts)


def damage(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.model", "contexts.npy"])
def test_a_damaged_folder(name: str, copied: Callable[[str], Path]) -> None:
    folder = copied("hred")
    damage(folder, name)
    with pytest.raises(DataError, match=f"damaged: {name} is not the file"):
        make_system(str(folder))
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"damaged: {name} is missing"):
        make_system(str(folder))


def test_a_folder_of_another_kind(tmp_path: Path, copied: Callable[[str], Path]) -> None:
    with pytest.raises(DataError, match="not a trained dialogue system: there is no such folder"):
        make_system(str(tmp_path / "nothing"))
    with pytest.raises(DataError, match=r"it has no manifest\.json"):
        make_system(str(tmp_path))
    folder = copied("hred")
    text = (folder / MANIFEST).read_text()
    for old, new, message in (
        ('"kind": "dialogue system"', '"kind": "evaluator"', "but 'evaluator'"),
        ('"format": 1', '"format": 9', "format 9.*update rejoinder"),
        ('"network": "hred"', '"network": "gpt"', "network 'gpt', which this version"),
    ):
        (folder / MANIFEST).write_text(text.replace(old, new, 1))
        with pytest.raises(DataError, match=message):
            make_system(str(folder))


def test_a_network_of_another_class(copied: Callable[[str], Path]) -> None:
    """The digests fit, the network does not."""
    folder = copied("hred")
    shutil.copy(trained_system("seq2seq") / "model.safetensors", folder)
    write_manifest(folder, _manifest(folder))
    with pytest.raises(DataError, match="holds a Seq2Seq, not the network 'hred'"):
        make_system(str(folder)).reply(CONTEXTS)


def test_a_vocabulary_of_another_size(copied: Callable[[str], Path]) -> None:
    from learn.dialogue.small import network_of

    folder = copied("hred")
    save_model(folder / "model.safetensors", network_of("hred", 50))
    assert load_model(folder / "model.safetensors")[0].config["vocab_size"] == 50
    write_manifest(folder, _manifest(folder))
    with pytest.raises(DataError, match="has weights for 50 tokens"):
        make_system(str(folder)).reply(CONTEXTS)


def _manifest(folder: Path) -> SystemManifest:
    return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=SystemManifest)


def test_tampered_settings(copied: Callable[[str], Path]) -> None:
    folder = copied("hred")
    manifest = _manifest(folder)
    manifest.settings["data"]["context_turns"] = -5
    write_manifest(folder, manifest)
    assert read_manifest(folder).settings["data"]["context_turns"] == -5
    with pytest.raises(DataError, match=r"the settings are damaged.*context_turns"):
        make_system(str(folder)).reply(CONTEXTS)


def test_turns_of_another_language_or_without_known_letters() -> None:
    """Emoji and unknown letters are replied to, somehow."""
    for name in NETWORKS:
        (answer,) = make_system(str(trained_system(name))).reply([["😂 ж 漢"]])
        assert answer.texts
