"""Training from pairs to a folder: repeatable, resumable, and with figures."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from learn.dialogue.small import LATENT
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.dialogue.settings import NETWORKS, PRESETS, read_system_settings
from rejoinder.learn.dialogue.system_folder import read_manifest, seen_contexts
from rejoinder.learn.dialogue.train_system import prepare_training, train_system
from trained import QUICK, pairs_file, small_talk, train_in, trained_system

FILES = {"README.md", "contexts.npy", "manifest.json", "model.safetensors", "vocabulary.model"}
RESPONSES = {"responses.arrow", "responses.npy"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_folder(name: str) -> None:
    folder = trained_system(name)
    made = contents(folder)
    assert set(made) == FILES | (RESPONSES if name == "dual-encoder" else set())
    manifest = read_manifest(folder)
    result = manifest.result
    assert (manifest.network, manifest.preset, manifest.seed) == (name, "tiny", 0)
    assert set(manifest.files) == set(made) - {"manifest.json"}
    assert result["best_loss"] < result["history"][0]["validation_loss"]
    assert (name in LATENT) == ("kl" in result)
    card = made["README.md"].decode()
    if name == "dual-encoder":
        assert 0 <= result["recall_at_1"] <= 1
        assert "responses of the training data" in card
    else:
        assert f"{result['perplexity']:.2f}" in card
        assert 1 < result["perplexity_by_token"] < manifest.data["vocabulary_size"]
        assert 0 < result["distinct_1"] <= 1
    assert not list(folder.parent.glob(f".{folder.name}.*"))


def test_the_same_run_writes_the_same_bytes(tmp_path: Path) -> None:
    first, second = (train_in(tmp_path / name, "cvae") for name in ("a", "b"))
    assert contents(first) == contents(second) == contents(trained_system("cvae"))
    other = train_in(tmp_path / "c", "cvae", seed=1)
    assert contents(other)["model.safetensors"] != contents(first)["model.safetensors"]


KILLED = """
import sys
from pathlib import Path
import rejoinder.learn.training as training
from rejoinder.learn.dialogue.settings import read_system_settings
from rejoinder.learn.dialogue.train_system import prepare_training, train_system
settings = read_system_settings(sys.argv[1], "tiny", overrides=sys.argv[4:])
prepared = prepare_training(Path(sys.argv[2]), Path(sys.argv[3]), settings, print)
def show(progress):
    print("step", progress.step, flush=True)
train_system(prepared, show)
"""


@pytest.mark.parametrize("name", ["vhred", "transformer"])
def test_a_killed_run_resumes_to_the_same_bytes(name: str, tmp_path: Path) -> None:
    """SIGKILL in the middle; the repeated run goes on from a checkpoint."""
    changes = [*QUICK, "training.save_every_seconds=0"]
    arguments = [name, str(pairs_file()), str(tmp_path / "killed"), *changes]
    command = [sys.executable, "-c", KILLED, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("step 5"):
                os.kill(process.pid, signal.SIGKILL)
                break
        process.wait(timeout=60)
    assert not (tmp_path / "killed").exists()
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    steps = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("step")]
    assert steps[0] >= 4, "the run began again instead of going on"
    whole = train_in(tmp_path / "whole", name, changes)
    assert contents(tmp_path / "killed") == contents(whole)


def test_contexts_of_training_are_recognised() -> None:
    """By their last two turns, whatever their case and punctuation; a short single turn is not."""
    folder = trained_system("seq2seq")
    manifest = read_manifest(folder)
    rows = small_talk()
    trained = [[*row["context"], row["utterance"]] for row in rows if len(row["context"]) > 0]
    held_out = manifest.data["validation"]
    assert 0 < len(trained) - seen_contexts(folder, trained) <= held_out
    upper = [[turn.upper().replace(" ", "  ") for turn in context] for context in trained]
    assert seen_contexts(folder, upper) == seen_contexts(folder, trained)
    assert seen_contexts(folder, [["hello", "how are you ?"], ["do you like tea ?"]]) == 0


def test_perplexity_is_given_by_word() -> None:
    """Words and ends of replies: exp(nll / (words + replies)), whatever the tokens are."""
    result = read_manifest(trained_system("hred")).result
    per_word = math.log(result["perplexity"])
    per_token = math.log(result["perplexity_by_token"])
    assert per_word > per_token  # subwords are shorter than words
    # all held-out replies have 5 to 9 words by the tokenizer 13a
    words = result["nll_by_reply"] / per_word - 1
    assert 5 <= words <= 9


@pytest.mark.parametrize("kind", ["words", "subwords"])
@pytest.mark.parametrize("language", ["ja", "zh", "en"])
def test_any_language(kind: str, language: str, tmp_path: Path) -> None:
    from fitting.toy import row, write
    from rejoinder.systems.system import make_system

    texts = {
        "ja": ["お茶は好きですか。", "はい、とても好きです。", "雨はどうですか。"],
        "zh": ["你喜欢喝茶吗？", "是的，我很喜欢。", "下雨怎么样？"],
        "en": ["Do you like tea?", "Yes, a lot.", "What about rain?"],
    }[language]
    rows = []
    for number in range(30):
        turns = [text + str(number % 7) for text in texts]
        rows.append(row(f"d{number}", [], turns[0], turns[1], f"{number}/1"))
        rows.append(row(f"d{number}", turns[:1], turns[1], turns[2], f"{number}/2"))
    pairs = write(tmp_path / "pairs.parquet", rows)
    overrides = [f"vocabulary.kind={kind}", "vocabulary.size=60", "training.epochs=30"]
    settings = read_system_settings("hred", "tiny", language=language, overrides=overrides)
    train_system(prepare_training(pairs, tmp_path / "bot", settings, lambda what: None))
    (answer,) = make_system(str(tmp_path / "bot")).reply([[texts[0] + "3"]])
    assert answer.texts[0][:3].lower() == texts[1][:3].lower()


def test_presets_are_complete() -> None:
    for preset in PRESETS:
        for name in NETWORKS:
            settings = read_system_settings(name, preset)
            assert json.loads(json.dumps(settings.to_dict())) == settings.to_dict()
    assert read_system_settings("cvae", "paper").network.latent_size == 200
    sizes = read_system_settings("vhred", "paper").network
    assert (2 * sizes.utterance_size, sizes.context_size, sizes.decoder_size) == (1000,) * 3


def test_wrong_settings_are_reported_at_once() -> None:
    changes = [
        "hred.dropout=2", "hred.hidden=3", "training.epochs=0", "vocabulary.kind=letters",
        "data.batch_size=0", "datas.x=1", "nothing",
    ]  # fmt: skip
    with pytest.raises(UsageError) as error:
        read_system_settings("hred", "tiny", overrides=changes)
    text = "\n".join(error.value.messages)
    for part in ("dropout", "'hidden'", "epochs", "letters", "batch_size", "[datas]", "nothing"):
        assert part in text
    with pytest.raises(UsageError, match="did you mean 'hred' or 'vhred'"):
        read_system_settings("hread", "tiny")
    with pytest.raises(UsageError, match="must be a multiple of twice num_heads"):
        read_system_settings("transformer", "tiny", overrides=["transformer.num_heads=3"])


def test_a_vocabulary_of_three_words_is_refused(tmp_path: Path) -> None:
    from fitting.toy import row, write

    rows = [row(f"d{n}", ["a b"], "b c", "c a", f"{n}") for n in range(20)]
    settings = read_system_settings("hred", "tiny", overrides=["vocabulary.kind=words"])
    with pytest.raises(DataError, match="the vocabulary has only 3 words"):
        prepare_training(
            write(tmp_path / "p.parquet", rows), tmp_path / "bot", settings, lambda what: None
        )


def test_fewer_pairs_than_a_batch(tmp_path: Path) -> None:
    from fitting.toy import write

    pairs = write(tmp_path / "p.parquet", small_talk(3))
    settings = read_system_settings("hred", "tiny", overrides=["vocabulary.size=60"])
    trained = train_system(prepare_training(pairs, tmp_path / "bot", settings, lambda what: None))
    assert trained is not None
    assert trained.manifest.data["replies"] == 6
