"""Domain-adaptive pre-training: perplexity falls, and the result is an encoder for transformers."""

from __future__ import annotations

import dataclasses
import json
import math
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertForMaskedLM

from learn.tiny import PIECES, SPECIAL, WORDS, make_bert, make_pairs
from rejoinder.cli.main import run
from rejoinder.encode.transformer import open_encoder
from rejoinder.encode.transformer.model_folder import ModelFolder
from rejoinder.encode.transformer.transformers_network import load_model
from rejoinder.errors import DataError, UsageError
from rejoinder.learn.batches import LengthBatches
from rejoinder.learn.checkpoint import read_checkpoint
from rejoinder.learn.dapt import AdaptResult, DaptSettings, adapt
from rejoinder.learn.dapt.batches import MaskedBatches
from rejoinder.learn.dapt.model import MaskedLanguageModel, load_head
from rejoinder.learn.dapt.tokens import open_tokenizer, read_vocabulary, tokenize
from rejoinder.learn.settings import TrainingSettings
from rejoinder.learn.state import STATE
from rejoinder.learn.training_data import Pairs, read_training_data
from support import COMMAND

STEPS = 120


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bert(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pairs(tmp_path_factory.mktemp("pairs") / "pairs.parquet")


def settings(model: Path, steps: int = STEPS, **more: Any) -> DaptSettings:
    training = TrainingSettings(steps=steps, learning_rate=1e-2, validate_every=40, seed=1)
    return DaptSettings(model=str(model), batch_tokens=400, training=training, **more)


@pytest.fixture(scope="module")
def adapted(
    bert: Path, pairs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, AdaptResult]:
    output = tmp_path_factory.mktemp("out") / "adapted"
    return output, adapt(pairs, output, settings(bert))


def test_perplexity_falls_to_that_of_the_topic(adapted: tuple[Path, AdaptResult]) -> None:
    output, made = adapted
    result = made.manifest["result"]
    # twenty equally frequent words
    assert result["perplexity_unigram"] == pytest.approx(20, rel=0.1)
    assert result["perplexity_before"] > 18
    # four words per topic
    assert 3.5 < result["perplexity_after"] < 6
    assert result["loss_after"] == pytest.approx(math.log(result["perplexity_after"]))
    assert result["head"] == "fresh"
    assert not list(output.parent.glob(".*")), "the work folder is removed"


def test_the_manifest_says_where_it_comes_from(
    adapted: tuple[Path, AdaptResult], pairs: Path
) -> None:
    output, made = adapted
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest == made.manifest
    # 100 dialogues of three pairs; every tenth is held out
    data = manifest["data"]
    assert (data["pairs"], data["train"], data["validation"]) == (300, 270, 30)
    assert data["file"] == "pairs.parquet"
    assert data["split_by"] == "the column split"
    assert manifest["settings"]["seed"] == 1
    assert [entry["step"] for entry in manifest["result"]["history"]] == [0, 40, 80, 120]
    card = (output / "README.md").read_text()
    assert f"{manifest['result']['perplexity_after']:,.1f} after" in card
    assert str(pairs.parent) not in card + json.dumps(manifest)


def test_the_folder_is_read_by_transformers(adapted: tuple[Path, AdaptResult], bert: Path) -> None:
    output, _ = adapted
    texts = ["wa wb wc", "wt", "wk walking wl wm"]
    before, after = open_encoder(str(bert)), open_encoder(str(output))
    assert before.digest != after.digest
    # vectors of transformers
    tokenizer = AutoTokenizer.from_pretrained(output)
    model, found = AutoModel.from_pretrained(output, output_loading_info=True)
    assert not found["missing_keys"] and not found["unexpected_keys"]
    for text, vector in zip(texts, after.sentences(texts), strict=True):
        with torch.no_grad():
            mean = model.eval()(**tokenizer(text, return_tensors="pt"))[0][0].mean(dim=0)
        assert np.allclose(vector, mean / mean.norm(), atol=1e-5)
    assert np.abs(after.sentences(texts) - before.sentences(texts)).max() > 0.1
    for name in ("tokenizer.json", "modules.json", "1_Pooling/config.json", "vocab.txt"):
        assert (output / name).read_bytes() == (bert / name).read_bytes()


def test_an_adapted_encoder_can_be_adapted_again(
    adapted: tuple[Path, AdaptResult], pairs: Path, tmp_path: Path
) -> None:
    """With its head: the second run starts with the loss of the first one."""
    output, made = adapted
    again = adapt(pairs, tmp_path / "again", settings(output, steps=1)).manifest["result"]
    assert again["head"] == "adapted"
    assert again["loss_before"] == pytest.approx(made.manifest["result"]["loss_after"], abs=1e-5)


def test_the_head_equals_that_of_bert(tmp_path: Path) -> None:
    """Logits of our model and of transformers from the same files."""
    path = make_bert(tmp_path / "with-head", with_head=True)
    theirs = BertForMaskedLM.from_pretrained(path).eval()
    with torch.no_grad():  # fresh heads have plain biases, which would hide a mistake
        for weight in theirs.cls.parameters():
            weight += torch.linspace(-0.5, 0.5, weight.numel()).reshape(weight.shape)
    theirs.save_pretrained(path)
    folder = ModelFolder("m", path)
    ours = MaskedLanguageModel(load_model(folder, folder.layers)).eval()
    assert load_head(ours, folder) == "model"
    source = masked_pairs(folder, [("wa wb wc", "wd we"), ("wf", "wg wh")])
    batch = source.batch(0, 0, 0)
    with torch.no_grad():
        scores = ours(batch)
        whole = theirs(
            input_ids=batch.ids,
            attention_mask=batch.attention_mask,
            token_type_ids=batch.token_types,
        ).logits
    assert torch.allclose(scores, whole.flatten(0, 1)[batch.positions], atol=1e-5)


def table_of(texts: list[tuple[str, str]]) -> Pairs:
    utterances, responses = zip(*texts, strict=True)
    return Pairs(pa.table({"utterance": utterances, "response": responses}))


def masked_pairs(folder: ModelFolder, texts: list[tuple[str, str]], **more: Any) -> MaskedBatches:
    tokenizer = open_tokenizer(folder)
    sequences = tokenize(tokenizer, table_of(texts), 40)
    vocabulary = read_vocabulary(tokenizer, len(SPECIAL + WORDS + PIECES))
    return MaskedBatches(sequences, vocabulary, LengthBatches(sequences.lengths, 400), 0.3, **more)


def test_pairs_are_joined_and_truncated(bert: Path) -> None:
    tokenizer = open_tokenizer(ModelFolder("m", bert))
    texts = [("wa wb", "wc"), ("wa " * 60, "wb wc"), ("", "wd"), ("zz", "we")]
    found = tokenize(tokenizer, table_of(texts), 12)
    rows = [found.ids[a:b].tolist() for a, b in zip(found.starts, found.starts[1:], strict=False)]
    cls, sep, unknown = 2, 3, 1
    a, b, c, d, e = range(5, 10)
    assert (
        rows
        == [
            [cls, a, b, sep, c, sep],
            [cls, *[a] * 7, sep, b, c, sep],  # the longer text is cut, to 12 in all
            [cls, sep, d, sep],
            [cls, *rows[3][1:-3], sep, e, sep],
        ]
    )
    assert set(rows[3][1:-3]) == {unknown}
    assert found.token_types[:6].tolist() == [0, 0, 0, 0, 1, 1]
    assert found.truncated == 1


def test_special_tokens_and_padding_are_never_masked(bert: Path) -> None:
    texts = [("wa wb walking", "wc wd"), ("wf", "wg wh zz"), ("zz", "zz")]  # zz is unknown
    source = masked_pairs(ModelFolder("m", bert), texts)
    pieces = masked_pairs(ModelFolder("m", bert), texts, whole_word_mask=True)
    for epoch in range(30):
        batch = source.batch(0, epoch, 0)
        assert (batch.targets >= len(SPECIAL)).all()
        original = batch.ids.clone().flatten()
        original[batch.positions] = batch.targets
        assert (batch.ids.flatten() != original).sum() <= len(batch.targets)
        assert batch.attention_mask.sum() == len(source.pairs.ids)
        batch = pieces.batch(0, epoch, 0)
        walk, ing = (25 in batch.targets.tolist()), (26 in batch.targets.tolist())
        assert walk == ing


def test_a_resumed_run_writes_the_same_bytes(
    adapted: tuple[Path, AdaptResult], bert: Path, pairs: Path, tmp_path: Path
) -> None:
    """Started as a command, interrupted, resumed; the result replaces an older one."""
    output, _ = adapted
    target = tmp_path / "adapted"
    adapt(pairs, target, settings(bert, steps=1))
    arguments = ["train", "dapt", str(pairs), "-o", str(target), "--model", str(bert)]
    arguments += ["--steps", str(STEPS), "--learning-rate", "1e-2", "--batch-tokens", "400"]
    arguments += ["--validate-every", "40", "--seed", "1"]
    process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(b"step 40 "):
            break
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    state = tmp_path / ".adapted.work" / STATE
    assert 40 <= read_checkpoint(state)[1]["state"]["step"] < STEPS
    assert run([*arguments, "--json"]) == 0
    for path in sorted(output.rglob("*")):
        if path.is_file():
            other = target / path.relative_to(output)
            assert other.read_bytes() == path.read_bytes(), path.name
    assert sorted(path.name for path in tmp_path.iterdir()) == ["adapted"]


def test_pairs_without_a_split_are_held_out_by_dialogue(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    names = [f"d{number // 3}" for number in range(1200)]
    pq.write_table(pa.table({"dialogue_id": names, "utterance": names, "response": names}), path)
    everything = read_training_data(path)
    assert everything.split_by == "a hash of dialogue_id"
    training, validation = [
        set(texts.texts(0, 1200)[0]) for texts in (everything.training, everything.validation)
    ]
    assert not training & validation
    assert training | validation == set(names)
    # 20 of 400 expected; three standard deviations are 13
    assert 7 <= len(validation) <= 33
    some = [
        read_training_data(path, max_pairs=50, seed=seed, whole_dialogues=False)
        for seed in (2, 2, 3)
    ]
    assert [len(data.training) for data in some] == [50] * 3
    assert some[0].counts["train_taken"] == 50
    assert some[0].training.table.equals(some[1].training.table)
    assert not some[0].training.table.equals(some[2].training.table)
    assert set(some[0].training.texts(0, 50)[0]) <= training


def test_two_dialogues_are_needed(tmp_path: Path) -> None:
    rows = {"utterance": ["wa", "wb"], "response": ["wb", "wc"], "dialogue_id": ["1", "2"]}
    pq.write_table(pa.table(rows), tmp_path / "two.parquet")
    data = read_training_data(tmp_path / "two.parquet")
    assert (len(data.training), len(data.validation)) == (1, 1)
    pq.write_table(pa.table({**rows, "dialogue_id": ["1", "1"]}), tmp_path / "one.parquet")
    with pytest.raises(DataError, match="too few dialogues"):
        read_training_data(tmp_path / "one.parquet")


def test_fewer_pairs_than_a_batch_and_long_ones(bert: Path, tmp_path: Path) -> None:
    rows = {"utterance": ["wa " * 500, "wb"], "response": ["wb", "wc"]}
    pq.write_table(pa.table(rows), tmp_path / "p.parquet")
    made = adapt(tmp_path / "p.parquet", tmp_path / "o", settings(bert, steps=2))
    assert made.training.steps == 2
    assert made.manifest["settings"]["max_tokens"] == 40  # the limit of the model


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["p", "--steps", "1", "--epochs", "1"], 2, "either --steps or --epochs"),
        (["p", "--mask", "1"], 2, "mask_probability must be between 0 and 1"),
        (["p", "--learning-rate", "0"], 2, "learning_rate must be above 0"),
        (["p", "--epochs", "-1"], 2, "above 0"),
        (["p", "--max-tokens", "3"], 2, "max_tokens must be 8 or more"),
        (["p", "-o", "full"], 2, "full: is a folder with other things"),
        (["p", "-o", "p"], 2, "p: is a file"),
        (["p", "-o", "no/such"], 2, "there is no folder no"),
        (["nothing"], 3, "nothing: cannot be read"),
        (["text"], 3, "text: not a Parquet file"),
        (["columns"], 3, "columns: has no column response"),
        (["null"], 3, "null: column response: a text is missing"),
        (["numbers"], 3, "numbers: column response: expected texts, found int64"),
        (["empty"], 3, "empty: there is no pair in it"),
        (["p", "--model", "no/model"], 4, "is not on this machine"),
        (["p", "--model", "full"], 4, "full"),
        (["p", "--learning-rate", "1e30", "--steps", "50"], 2, "training diverged"),
    ],
)
def test_wrong_arguments_and_bad_data(
    bert: Path,
    pairs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").symlink_to(pairs)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").touch()
    (tmp_path / "text").write_text("no Parquet")
    tables = {
        "columns": {"utterance": ["a"]},
        "null": {"utterance": ["a"], "response": pa.array([None], pa.string())},
        "numbers": {"utterance": ["a"], "response": [1]},
        "empty": {name: pa.array([], pa.string()) for name in ("utterance", "response")},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / name)
    more = [] if "-o" in arguments else ["-o", "out"]
    more += [] if "--model" in arguments else ["--model", str(bert)]
    assert run(["train", "dapt", *arguments, *more]) == code
    said = capsys.readouterr().err
    assert complaint in said
    assert said.splitlines()[-1].startswith("rejoinder: ")
    assert not (tmp_path / "out").exists()


def test_a_model_without_mask_token_is_refused(bert: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other"
    shutil.copytree(bert, other)
    (other / "vocab.txt").unlink()
    settings_file = other / "tokenizer_config.json"
    content = json.loads(settings_file.read_text())
    content |= {"mask_token": None, "tokenizer_class": "PreTrainedTokenizerFast"}
    settings_file.write_text(json.dumps(content))
    with pytest.raises(DataError, match="no mask token"):
        open_tokenizer(ModelFolder("m", other))


def test_settings_are_checked_together() -> None:
    with pytest.raises(UsageError) as wrong:
        DaptSettings(
            training=TrainingSettings(steps=1), mask_probability=0.0, max_tokens=1, max_pairs=0
        )
    assert len(wrong.value.messages) == 3
    assert (
        "gradient_accumulation_steps"
        not in dataclasses.replace(
            DaptSettings(training=TrainingSettings(steps=1)), mask_probability=0.2
        ).to_dict()
    )
