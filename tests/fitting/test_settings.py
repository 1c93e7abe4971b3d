"""Presets and overrides: merged, and all problems reported at once."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rejoinder.encode.static.packaged import PACKAGED_VECTORS
from rejoinder.errors import MissingExtra, UsageError
from rejoinder.fitting.settings import PRESETS, FitSettings, read_settings
from rejoinder.spec import parse
from rejoinder.wording import for_command_line


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("language", ["en", "ja", "zh", "de"])
def test_every_preset_works_for_every_language(preset: str, language: str) -> None:
    settings = read_settings(preset, language, seed=5)
    assert settings.preset == preset
    assert settings.rater.settings.training.seed == 5
    assert settings.unreferenced.settings.training.seed == 5
    assert not settings.needs_vectors or settings.vectors is not None
    # the packaged encoders know English only
    named = json.dumps(settings.to_dict(), default=str)
    english = ("minilm", "mpnet", "bertscore", "sentence-")
    assert language == "en" or not any(word in named for word in english)
    assert "unreferenced" in settings.validation.ranges
    assert all(str(parse(spec)) == spec for spec in settings.validation.ranges)


def test_small_reads_sentence_vectors_in_english_and_word_vectors_elsewhere() -> None:
    alone = ["vectors.packaged=none"]
    english = read_settings("small", "en")
    japanese = read_settings("small", "ja", overrides=alone)
    assert english.vectors is None
    assert str(english.unreferenced.input) == (
        "vectors(model=minilm,question_feature=true,extra_layer=3,concat_turns=false)"
    )
    assert japanese.vectors is not None
    assert japanese.vectors.method == "fasttext"
    assert str(japanese.unreferenced.input) == "vectors(sif_a=0.0001,char_ngram_buckets=2048)"
    assert (english.unreferenced.settings.ensemble_size, english.rater.settings.ensemble_size) == (
        3,
        3,
    )
    # all other settings are the same
    assert (
        english.unreferenced.settings.cosine_weight,
        japanese.unreferenced.settings.cosine_weight,
    ) == (
        0.5,
        0.0,
    )
    plain = replace(
        english.unreferenced.settings,
        cosine_weight=0.0,
        frequent_reply_discount=0.0,
        ensemble_size=1,
        loss="softmax",
        training=replace(english.unreferenced.settings.training, epochs=2),
    )
    assert plain == japanese.unreferenced.settings


def test_medium_is_small_with_another_encoder() -> None:
    small, medium = (read_settings(preset, "en").to_dict() for preset in ("small", "medium"))
    for part, key in (("retrieval", "by"), ("rater", "input"), ("unreferenced", "input")):
        assert "mpnet.bf16" in medium[part].pop(key)
        del small[part][key]
    assert (small.pop("preset"), medium.pop("preset")) == ("small", "medium")
    assert medium == small
    small, medium = (read_settings(preset, "ja").to_dict() for preset in ("small", "medium"))
    assert medium == small | {"preset": "medium"}


def test_a_file_contains_only_differences_from_its_base(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        "base = 'medium'\n[retrieval]\nk = 7\n[languages.ja.retrieval]\nk = 8\n"
        "[rater]\ninput = 'vectors'\n[languages.en.unreferenced]\nensemble_size = 1\n"
        "[languages.ja.vectors]\nepochs = 1\n[languages.en.vectors]\nmethod = 'glove'\n"
    )
    english, japanese = (read_settings(str(mine), code) for code in ("en", "ja"))
    assert (english.preset, english.retrieval.k, japanese.retrieval.k) == ("mine", 7, 8)
    medium = read_settings("medium", "en")
    assert english.retrieval.by == medium.retrieval.by
    # also where the base has settings for the language
    assert str(english.rater.input) == "vectors" != str(medium.rater.input)
    assert japanese.vectors is not None
    assert (japanese.vectors.method, japanese.vectors.epochs) == ("fasttext", 1)
    assert (english.unreferenced.settings.ensemble_size, english.rater.settings.ensemble_size) == (
        1,
        3,
    )

    mine.write_text("base = 'smal'\n")
    with pytest.raises(UsageError, match="base 'smal': did you mean 'small'"):
        read_settings(str(mine), "en")


def test_paper_has_the_sizes_of_the_paper() -> None:
    """Tsuta et al. 2023, § 5.3 and 5.4."""
    paper = read_settings("paper", "ja")
    assert dict(paper.rater.input.params) == {
        "vocab_size": 16000, "embedding_size": 512, "hidden_size": 512,
    }  # fmt: skip
    rater = paper.rater.settings
    assert (rater.hidden_size, rater.num_layers, rater.batch_size) == (1024, 5, 1000)
    training = rater.training
    assert (training.epochs, training.learning_rate, training.optimizer) == (15, 1e-3, "adam")
    assert (training.lr_schedule, training.warmup_ratio, training.max_grad_norm) == (
        "constant",
        0.0,
        None,
    )
    assert (paper.retrieval.k, paper.retrieval.parrot) == (15, True)


def test_overrides_replace_settings() -> None:
    overrides = [
        "retrieval.k=7",
        "rater.training.steps=30",
        "unreferenced.input=gru(vocab_size=500)",
        'unreferenced.hard_negatives=["parrot"]',
        "data.max_pairs=none",
        "unreferenced.training.max_grad_norm=none",
    ]
    settings = read_settings("tiny", "en", overrides=overrides)
    assert settings.retrieval.k == 7
    # steps replace the epochs of the preset
    assert settings.rater.settings.training.steps == 30
    assert settings.rater.settings.training.epochs is None
    assert str(settings.unreferenced.input) == "gru(vocab_size=500)"
    assert settings.unreferenced.settings.hard_negatives == ("parrot",)
    assert settings.data.max_pairs is None
    assert settings.unreferenced.settings.training.max_grad_norm is None


def test_all_problems_are_reported_at_once() -> None:
    overrides = [
        "retrieval.kk=3", "rater.training.steps=many", "data.validation_share=1.5", "extra.key=1",
        "unreferenced.input=gruu", "nonsense", "rater.context_turns=0", "retrieval.by=bm25(",
        "unreferenced.loss=hinge", "data=3.x=1",
    ]  # fmt: skip
    with pytest.raises(UsageError) as caught, for_command_line():
        read_settings("tiny", "en", overrides=overrides)
    messages = "\n".join(caught.value.messages)
    for word in (
        "'kk'", "steps: expected a whole number", "validation_share must be between", "[extra]",
        "unknown input 'gruu': did you mean 'gru'?", "--set nonsense",
        "context_turns must be above 0", "unknown loss 'hinge'", "--set data=3.x=1",
    ):  # fmt: skip
        assert word in messages, word
    with pytest.raises(UsageError, match=r"retrieval.*expected"):
        read_settings("tiny", "en", overrides=["retrieval.by=bm25("])


def test_preset_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown preset 'smal': did you mean 'small'"):
        read_settings("smal", "en")
    path = tmp_path / "mine.toml"
    with pytest.raises(UsageError, match="cannot be read"):
        read_settings(str(path), "en")
    path.write_text("[data\n")
    with pytest.raises(UsageError, match="broken TOML"):
        read_settings(str(path), "en")
    path.write_text(f"[data]\nmax_pairs = {'9' * 5000}\n")
    with pytest.raises(UsageError, match="broken TOML"):
        read_settings(str(path), "en")
    path.write_text("languages = 3\n")
    with pytest.raises(UsageError, match="must be tables"):
        read_settings(str(path), "en")
    path.write_text('rater = 3\n[retrieval]\nby = "bm25"\n')
    with pytest.raises(UsageError, match=r"section \[rater\] is missing"):
        read_settings(str(path), "en")
    part = 'input = "gru"\ntraining = {steps = 3}\n'
    path.write_text(f'[retrieval]\nby = "bm25"\n[rater]\n{part}[unreferenced]\n{part}')
    settings = read_settings(str(path), "en")
    assert settings.preset == "mine"
    assert not settings.needs_vectors


def test_word_vectors_need_settings_if_they_are_used() -> None:
    with pytest.raises(UsageError, match=r"no section \[vectors\]"):
        read_settings("small", "en", overrides=["retrieval.by=vectors"])
    known = read_settings("small", "en", overrides=["retrieval.by=vectors(vectors=minilm)"])
    assert not known.needs_vectors


def test_settings_are_read_without_torch() -> None:
    import subprocess

    code = (
        "import sys\nfrom rejoinder.fitting.settings import read_settings\n"
        "read_settings('small', 'en')\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def installed(monkeypatch: pytest.MonkeyPatch, yes: bool) -> None:
    """Let ``chive`` be installed or not, whatever is."""
    module = "json" if yes else "rejoinder_not_installed"
    changed = replace(PACKAGED_VECTORS["chive"], module=module, requires=())
    monkeypatch.setitem(PACKAGED_VECTORS, "chive", changed)


def inputs(settings: FitSettings) -> list[str]:
    return [
        str(dict(parse(str(spec)).params).get("vectors"))
        for spec in (settings.retrieval.by, settings.rater.input, settings.unreferenced.input)
    ]


def test_packaged_vectors_are_read_together_with_those_of_the_pairs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, True)
    settings = read_settings("small", "ja")
    assert inputs(settings) == ["evaluator+chive"] * 3
    assert settings.needs_vectors and not settings.notes
    assert settings.to_dict()["vectors"]["packaged"] == "chive"
    one = read_settings("small", "ja", overrides=["unreferenced.input=vectors(vectors=chive)"])
    assert inputs(one) == ["evaluator+chive", "evaluator+chive", "chive"]
    alone = ["rater.input=vectors(vectors=chive)", "retrieval.by=vectors(vectors=chive)"]
    both = [*alone, "unreferenced.input=vectors(vectors=chive)"]
    assert not read_settings("small", "ja", overrides=both).needs_vectors
    without = read_settings("small", "ja", overrides=["vectors.packaged=none"])
    assert inputs(without) == ["None"] * 3


def test_without_the_package_the_vectors_of_the_pairs_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch, False)
    settings = read_settings("small", "ja")
    assert inputs(settings) == ["None"] * 3
    (note,) = settings.notes
    assert "pip install 'rejoinder[ja-vectors]'" in note and "from the logs alone" in note
    assert "notes" not in settings.to_dict() and settings.vectors is not None
    assert settings.vectors.packaged is None
    with pytest.raises(MissingExtra, match="'chive' need ja-ginza"):
        read_settings("small", "ja", overrides=["vectors.packaged='chive'"])


def test_a_language_without_packaged_vectors_is_named() -> None:
    (note,) = read_settings("small", "de").notes
    assert "word vectors for German are learned from the logs alone" in note
    with for_command_line():
        (note,) = read_settings("small", "de").notes
    assert "--set 'unreferenced.input=vectors(model=FOLDER)'" in note
    assert not read_settings("small", "en").notes
    with pytest.raises(UsageError, match="packaged must be chive, synonyms-zh or none"):
        read_settings("small", "de", overrides=["vectors.packaged=glove"])
