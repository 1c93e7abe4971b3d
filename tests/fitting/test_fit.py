"""Fitting an evaluator: complete, reproducible, and continued after interruptions."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

import rejoinder
from fitting.toy import QUICK, TOPICS, Row, dialogues, row, write
from rejoinder.encode.static.vectors_folder import Batch, new_vectors_folder
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.evaluator import Evaluator, open_evaluator
from rejoinder.files.output import only_run
from rejoinder.fitting import assemble, stages, validation
from rejoinder.fitting import fit as fit_module
from rejoinder.fitting.fit import FitProgress, FitResult, fit
from rejoinder.fitting.ranges import measure_ranges
from rejoinder.fitting.settings import FitSettings, read_settings
from rejoinder.items import Item
from rejoinder.learn.inputs.vectors import VectorInput
from rejoinder.learn.training import Diverged
from rejoinder.learn.training_data import read_training_data
from rejoinder.meta_evaluation.roc import auc
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import make_retriever


def settings(*changes: str, language: str = "en") -> FitSettings:
    return read_settings("tiny", language, seed=3, overrides=[*QUICK, *changes])


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def made(rows: list[Row], tmp_path: Path, *changes: str) -> tuple[Evaluator, FitResult]:
    path = write(tmp_path / "pairs.parquet", rows)
    found = fit([str(path)], tmp_path / "evaluator", settings(*changes))
    assert found is not None
    return open_evaluator(found.folder), found


def test_replies_of_the_right_topic_score_higher(fitted: FitResult) -> None:
    figures = fitted.manifest.validation
    # one topic in four: of nine random replies about two are of the same topic
    assert figures["unreferenced"]["recall_at_1"] > 0.25
    assert figures["unreferenced"]["auc"] > 0.75
    assert figures["rater"]["auc"] > 0.75
    for name in ("rater", "unreferenced"):
        assert figures[name]["loss"] < figures[name]["first_loss"]
    evaluator = open_evaluator(fitted.folder)
    right = []
    for at in range(8):  # many pairs of words, because single ones vary
        turned = [words[at:] + words[:at] for words in TOPICS.values()]
        contexts = [[f"we like the {words[0]} and {words[1]}"] for words in turned]
        replies = [f"we like the {words[2]} and {words[3]}" for words in turned]
        scores = [[evaluator.scorer.score([c], [r])[0] for r in replies] for c in contexts]
        right += (np.argmax(scores, axis=1) == np.arange(4)).tolist()
    assert np.mean(right) >= 0.75


def test_the_manifest_records_data_and_settings(fitted: FitResult, pairs: Path) -> None:
    manifest = fitted.manifest
    assert (manifest.language, manifest.preset, manifest.seed) == ("en", "tiny", 3)
    assert manifest.retrieval.by == "vectors(vectors=evaluator)"
    assert (manifest.retrieval.k, manifest.retrieval.parrot) == (5, True)
    assert list(manifest.data["files"]) == ["pairs.parquet"]
    counts = manifest.data["counts"]
    assert counts["pairs"] == counts["train_taken"] + counts["validation_taken"]
    assert counts["dialogues"] == 60
    assert set(manifest.ranges) == {"unreferenced", "vbleu"}
    assert all(low < high for low, high in manifest.ranges.values())
    assert manifest.coverage["0.1"] <= manifest.coverage["0.5"] <= 1
    assert manifest.notes == []
    names = {name.split("/")[0] for name in manifest.parts}
    assert names == {"README.md", "held-out.json", "pool", "rater", "unreferenced", "vectors"}
    for name in ("rater", "unreferenced"):
        assert manifest.settings[name]["training"]["batches_per_step"] == 1
    everything = b"".join(contents(fitted.folder).values())
    for secret in (pairs.parent, fitted.folder.parent):
        assert str(secret).encode() not in everything


def test_the_card_states_quality_and_limits(fitted: FitResult) -> None:
    card = (fitted.folder / "README.md").read_text()
    figures = fitted.manifest.validation
    assert f"{figures['unreferenced']['recall_at_1']:.3f}" in card
    assert f"{figures['rater']['auc']:.3f}" in card
    assert "## What it must not be used for" in card
    assert "Other languages than English" in card
    assert f"{fitted.manifest.data['counts']['train_taken']:,} of" in card
    assert "No test set was excluded" in card
    assert "SHA-256" in card
    # all settings are listed
    for name in fitted.manifest.settings["unreferenced"]:
        assert name in card


def test_the_pool_has_the_training_pairs_only(fitted: FitResult, pairs: Path) -> None:
    pool = open_evaluator(fitted.folder).pool
    assert pool.size == fitted.manifest.data["counts"]["train_taken"]
    held_out = read_training_data(pairs, validation_share=0.1).validation
    assert not set(pool.responses(range(pool.size))) & set(held_out.responses)
    listed = json.loads((fitted.folder / "held-out.json").read_bytes())
    assert set(listed) == set(held_out.utterances)


def test_word_vectors_are_not_trained_on_held_out_pairs(tmp_path: Path) -> None:
    rows = [{**each, "split": "train"} for each in dialogues(20)]
    rows += [
        {
            **row("new", [], "do we like the xylophone", "the xylophone and the soup", "new"),
            "split": s,
        }
        for s in ("validation", "test")
    ]
    path = write(tmp_path / "pairs.parquet", rows)
    made = fit([str(path)], tmp_path / "evaluator", settings())
    assert made is not None
    learnt = b"".join(contents(made.folder / "vectors").values())
    assert b"orchard" in learnt
    assert b"xylophone" not in learnt


def test_encoding_reports_its_progress(tmp_path: Path) -> None:
    reports: dict[str, list[tuple[int, int]]] = {}

    @contextlib.contextmanager
    def stage(name: str) -> Iterator[Progress]:
        yield lambda done, total: reports.setdefault(name, []).append((done, total))

    path = write(tmp_path / "pairs.parquet", dialogues(20))
    changed = settings("unreferenced.input=vectors(model=minilm)", "unreferenced.training.epochs=1")
    fit([str(path)], tmp_path / "evaluator", changed, progress=FitProgress(stage))
    done, total = reports["unreferenced: encoding"][-1]
    assert done == total > 0


def test_an_evaluator_can_be_moved(fitted: FitResult, tmp_path: Path) -> None:
    items = [Item("1", "we like the soup", ["we like the bread and cheese"])]
    before = open_evaluator(fitted.folder).expand(items)
    (tmp_path / "far").mkdir()
    moved = shutil.copytree(fitted.folder, tmp_path / "far" / "away")
    after = open_evaluator(moved).expand(items)
    assert before == after
    assert len(after[0].references) > 1
    assert all(reference.weight is not None for reference in after[0].references)


def test_the_same_seed_writes_the_same_bytes(
    fitted: FitResult, pairs: Path, tmp_path: Path
) -> None:
    again = fit([str(pairs)], tmp_path / "other-name", settings())
    assert again is not None
    assert contents(again.folder) == contents(fitted.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["other-name"], (
        "the work folder is removed"
    )


def test_an_interruption_in_any_stage_changes_nothing(
    fitted: FitResult, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted once before and once after each of six stages."""
    crashed: list[str] = []
    plain = stages.run_stage

    def crashing(work, name, depends, make, **more):  # type: ignore[no-untyped-def]
        def breaking(folder: Path) -> None:
            for moment in ("before", "after"):
                if moment == "after":
                    make(folder)
                if (seen := f"{name} {moment}") not in crashed:
                    crashed.append(seen)
                    raise KeyboardInterrupt(seen)

        return plain(work, name, depends, breaking, **more)

    monkeypatch.setattr(fit_module, "run_stage", crashing)
    output = tmp_path / "evaluator"
    tries = 0
    while not output.exists():
        tries += 1
        try:
            fit([str(pairs)], output, settings())
        except KeyboardInterrupt:
            assert not output.exists()
            assert (tmp_path / ".evaluator.work").is_dir()
    assert tries == 13, crashed
    assert contents(output) == contents(fitted.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["evaluator"]


def test_changed_settings_repeat_only_dependent_stages(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "evaluator"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(assemble, "make_card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings())
    work = tmp_path / ".evaluator.work"
    before = {path.name for path in work.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "make_card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings("unreferenced.context_turns=1", "retrieval.k=3"))
    added = {path.name.split("-")[0] for path in work.iterdir() if path.name not in before}
    assert added == {"unreferenced", "validation"}
    before = {path.name for path in work.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "make_card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings("rater.training.gradient_accumulation_steps=2"))
    added = {path.name.split("-")[0] for path in work.iterdir() if path.name not in before}
    assert added == {"rater", "validation"}


def test_processes_multiply_the_batches_per_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes make the steps of one that accumulates two batches."""
    part = settings("rater.training.gradient_accumulation_steps=3").rater
    assert assemble.batches_per_step(part) == 3
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert assemble.batches_per_step(part) == 6


def test_without_several_responses_there_is_no_rater(tmp_path: Path) -> None:
    """A note says so, and references are weighted by the scorer."""
    rows = [each for each in dialogues(80) if each["context"] == []]
    first = list({each["utterance_id"]: each for each in rows}.values())
    evaluator, found = made(first, tmp_path)
    assert evaluator.rater is None
    assert not (found.folder / "rater").exists()
    (note,) = found.manifest.notes
    assert note.startswith("there is no rater (")
    assert "weighted by the unreferenced scorer" in note
    assert note in (found.folder / "README.md").read_text()
    assert "rater" not in found.manifest.validation
    (item,) = evaluator.expand([Item("1", "we like soup", ["we like the bread and garlic"])])
    assert item.references
    contexts = [item.context] * len(item.references)
    scores = evaluator.scorer.score(contexts, [each.text for each in item.references])
    weights = [each.weight for each in item.references]
    assert weights == pytest.approx((2 * scores - 1).tolist(), abs=1e-5)


def test_a_rater_that_did_not_improve_is_dropped(tmp_path: Path) -> None:
    """Each step makes it worse, so the best weights are the initial ones."""
    changes = [
        "rater.training.learning_rate=100.0",
        "rater.training.steps=2",
        "rater.training.warmup_ratio=0.0",
    ]
    quick = ["unreferenced.training.steps=3", "vectors.epochs=2"]
    evaluator, found = made(dialogues(24), tmp_path, *changes, *quick)
    assert evaluator.rater is None
    assert "rater" not in found.manifest.validation
    note = found.manifest.notes[0]  # the other notes are about ranges
    assert note.startswith("there is no rater (training did not improve the loss on held-out")


def test_a_rater_that_is_almost_random_is_dropped(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges are measured without it."""
    monkeypatch.setattr(validation, "_validate_rater", lambda *_: {"utterances": 12, "auc": 0.5412})
    found = fit([str(pairs)], tmp_path / "evaluator", settings())
    assert found is not None
    evaluator = open_evaluator(found.folder)
    assert evaluator.rater is None
    assert not (found.folder / "rater").exists()
    assert "rater" not in found.manifest.validation
    (note,) = found.manifest.notes
    assert "its AUC on 12 held-out utterances is 0.541, below 0.55" in note
    assert "weighted by the unreferenced scorer" in note
    assert note in " ".join((found.folder / "README.md").read_text().split())
    data = read_training_data(pairs, validation_share=0.1, max_validation_pairs=200)
    items = validation.HeldOut(data.validation, seed=3).items(20)
    asked = ["unreferenced", "vbleu"]
    assert found.manifest.ranges == measure_ranges(found.folder, items, asked, "en")[0]


def test_fewer_pairs_than_a_batch(tmp_path: Path) -> None:
    evaluator, found = made(dialogues(4), tmp_path)
    assert found.manifest.data["counts"]["train_taken"] < 64
    scores = evaluator.scorer.score([["we like soup"]], ["we like bread"])
    assert np.isfinite(scores).all()


def test_a_diverging_fit_leaves_no_evaluator(pairs: Path, tmp_path: Path) -> None:
    """The best weights are kept, and a run with a lower learning rate continues."""
    with pytest.raises(Diverged, match="at step") as caught:
        fit(
            [str(pairs)],
            tmp_path / "evaluator",
            settings("unreferenced.training.learning_rate=1e30"),
        )
    kept = Path(str(caught.value).split(" are in ")[1])
    assert kept.is_file()
    assert not (tmp_path / "evaluator").exists()
    again = fit([str(pairs)], tmp_path / "evaluator", settings())
    assert again is not None


@pytest.mark.parametrize(
    "spec", ["gru(vocab_size=60,embedding_size=8,hidden_size=8)", "vectors(model=minilm)"]
)
def test_other_inputs(spec: str, tmp_path: Path) -> None:
    changes = [f"{part}.input={spec}" for part in ("rater", "unreferenced")]
    quick = ["rater.training.steps=3", "unreferenced.training.steps=3", "retrieval.by=bm25"]
    evaluator, found = made(dialogues(24), tmp_path, *changes, *quick)
    assert "vectors/manifest.json" not in found.manifest.parts, "word vectors are not used"
    (item,) = evaluator.expand([Item("1", "we like soup", ["we like the bread and garlic"])])
    assert item.references


@pytest.mark.filterwarnings("ignore:these items are outside the domain")  # unlike any log
@pytest.mark.parametrize(("preset", "model"), [("small", "minilm"), ("medium", "mpnet.bf16")])
def test_presets_with_an_encoder(preset: str, model: str, tmp_path: Path) -> None:
    """With smaller batches, because there are 160 pairs only."""
    path = write(tmp_path / "pairs.parquet", dialogues(40))
    changes = ["data.validation_share=0.3"]
    for part in ("rater", "unreferenced"):
        changes += [f"{part}.batch_size=32", f"{part}.training.epochs=6"]
    asked = read_settings(preset, "en", seed=3, overrides=changes)
    found = fit([str(path)], tmp_path / "evaluator", asked)
    assert found is not None
    assert make_retriever(found.manifest.retrieval.by) == make_retriever(asked.retrieval.by)
    assert {"unreferenced", "vcosine"} <= set(found.manifest.ranges)
    inputs = open_evaluator(found.folder).scorer.inputs
    assert inputs.depends["model"].startswith(f"{model}@")

    said = [[f"we like the {w[i]} and {w[i + 1]}" for i in (0, 2)] for w in TOPICS.values()]
    items = [
        Item(f"{asks}-{answers}", said[answers][1], context=["Hello!", said[asks][0]])
        for asks in range(4)
        for answers in range(4)
    ]
    fits = np.eye(4, dtype=bool).ravel()
    metrics = ["unreferenced", "vcosine", "rejoinder"]
    for scores in rejoinder.score(items, metrics, evaluator=found.folder, resamples=100).values():
        assert auc(scores.values[fits], scores.values[~fits]) > 0.8


def test_other_folders_are_not_replaced(pairs: Path, tmp_path: Path, fitted: FitResult) -> None:
    other = tmp_path / "folder"
    other.mkdir()
    (other / "thesis.tex").touch()
    with pytest.raises(UsageError, match="a folder with other things"):
        fit([str(pairs)], other, settings())
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(UsageError, match="is a file"):
        fit([str(pairs)], file, settings())
    with pytest.raises(UsageError, match="there is no folder"):
        fit([str(pairs)], tmp_path / "a" / "b", settings())
    # an evaluator may be replaced
    old = shutil.copytree(fitted.folder, tmp_path / "old")
    manifest = json.loads((old / "manifest.json").read_bytes())
    (old / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    again = fit([str(pairs)], old, settings())
    assert again is not None
    assert contents(old) == contents(fitted.folder)


def test_wrong_settings_are_reported_before_any_work(pairs: Path, tmp_path: Path) -> None:
    for change, reason in (
        ("retrieval.by=vektors", "unknown retriever 'vektors'"),
        ("retrieval.by=bm25(b=x)", "bm25: b=x"),
        ('validation.ranges=["vblue"]', "unknown metric 'vblue'"),
        ('validation.ranges=["distinct"]', "distinct: scores sets"),
        ('validation.ranges=["vbleu","vbleu"]', "is given twice"),
        ('validation.ranges=["vbleu","rejoinder"]', "rejoinder: name the metrics that it blends"),
        ('rater.negatives=["matched","words"]', "rater.negatives: matched: negatives by vector"),
        (
            'unreferenced.hard_negatives=["vectors"]',
            "unreferenced.hard_negatives: vectors: negatives by vector need",
        ),
        ("rater.input=gru(vocab=5)", "input gru has no option 'vocab': did you mean 'vocab_size'"),
    ):
        with pytest.raises(UsageError, match=reason.replace("(", r"\(")):
            inputs = [f"{part}.input=gru(vocab_size=60)" for part in ("rater", "unreferenced")]
            fit([str(pairs)], tmp_path / "evaluator", settings(*inputs, change))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="unknown log format"):
        fit([__file__], tmp_path / "evaluator", settings(), format="telegrams")
    assert list(tmp_path.iterdir()) == []


def test_own_vectors_need_an_evaluator() -> None:
    with pytest.raises(UsageError, match="evaluator"):
        _ = make_retriever("vectors(vectors=evaluator)").depends


def test_leftovers_of_a_killed_run_are_removed(pairs: Path, tmp_path: Path) -> None:
    """A kill during assembly leaves a hidden folder."""
    half = tmp_path / ".evaluator.123456.part"
    half.mkdir()
    (half / "README.md").touch()
    # another run fills a folder for evaluator.seed1
    other = tmp_path / ".evaluator.seed1.123456.part"
    other.mkdir()
    fit([str(pairs)], tmp_path / "evaluator", settings())
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "evaluator"]


def test_two_runs_cannot_share_a_work_folder(pairs: Path, tmp_path: Path) -> None:
    with only_run(tmp_path / ".evaluator.work"), pytest.raises(ResourceError, match="another run"):
        fit([str(pairs)], tmp_path / "evaluator", settings())


def test_a_damaged_part_is_a_data_error(fitted: FitResult, tmp_path: Path) -> None:
    broken = shutil.copytree(fitted.folder, tmp_path / "evaluator")
    path = broken / "vectors" / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    with pytest.raises(DataError, match=r"vectors/vectors\.npy"):
        open_evaluator(broken)


def test_japanese_uses_its_tokenizer(tmp_path: Path) -> None:
    topics = [
        "寿司 味噌汁 うどん 豆腐",
        "電車 温泉 空港 切符",
        "音楽 歌手 楽器 演奏",
        "桜 庭 花 松",
    ]
    rng = np.random.default_rng(1)
    rows = []
    for number in range(120):
        words = topics[number % 4].split()
        said = ["と".join(rng.choice(words, 5)) for _ in range(4)]
        rows += [row(f"d{number}", [], said[0], reply, f"u{number}") for reply in said[1:]]
    path = write(tmp_path / "pairs.parquet", rows)
    found = fit([str(path)], tmp_path / "evaluator", settings(language="ja"))
    assert found is not None
    assert found.manifest.retrieval.by == "vectors(vectors=evaluator,tok=ja-mecab)"
    assert found.manifest.validation["unreferenced"]["auc"] > 0.7
    built = msgspec.json.decode((found.folder / "unreferenced" / "input.json").read_bytes())
    assert "ja-mecab" in built["encoder"]


def test_vectors_of_the_pairs_are_read_together_with_others(pairs: Path, tmp_path: Path) -> None:
    """An evaluator holds its own vectors, wherever it is moved, and names the others."""
    other = tmp_path / "other"
    with new_vectors_folder(other, "test") as writer:
        for number, words in enumerate(TOPICS.values()):
            rows = np.tile(np.eye(4, dtype=np.float32)[number], (len(words), 1))
            writer.add(Batch([word.encode() for word in words], rows))
        writer.finish({}, ["en"])
    both = f"vectors(vectors=evaluator+{other})"
    asked = [f"{part}={both}" for part in ("rater.input", "unreferenced.input", "retrieval.by")]
    found = fit([str(pairs)], tmp_path / "evaluator", settings(*asked))
    assert found is not None
    moved = found.folder.rename(tmp_path / "moved")
    evaluator = open_evaluator(moved)
    assert isinstance(evaluator.scorer.inputs, VectorInput)
    assert evaluator.scorer.inputs.dimensions == 16 + 4
    assert found.manifest.validation["unreferenced"]["auc"] > 0.7
    item = Item("1", "we like the soup", ["we like the bread and butter"])
    assert evaluator.expansion([item]).retrieved[0]
    built = msgspec.json.decode((moved / "unreferenced" / "input.json").read_bytes())
    assert f"vectors=evaluator+{other}" in built["encoder"]


def test_an_encoder_for_another_language_is_refused_before_training(tmp_path: Path) -> None:
    """Also with the right --language: the packaged encoder knows English only."""
    rows = [
        row(
            f"d{n}",
            [],
            f"今日は{n}番の電車に乗りました",
            f"それは大変でしたね、{n}番ですか",
            f"u{n}",
        )
        for n in range(40)
    ]
    path = write(tmp_path / "pairs.parquet", rows)
    with pytest.raises(DataError, match="mostly Japanese"):
        fit([str(path)], tmp_path / "evaluator", read_settings("small", "en"))
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.parquet"]
