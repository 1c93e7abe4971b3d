"""From pairs to an evaluator: whole, the same in every run, whatever happens on the way."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rejoinder.learn.training_data import read_training_data

import rejoinder
from fitting.toy import QUICK, TOPICS, Row, dialogues, row, write
from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.evaluator import Evaluator, open_evaluator
from rejoinder.files.output import only_run
from rejoinder.fitting import assemble, figures, run, stages
from rejoinder.fitting.fit import Fitted, fit
from rejoinder.fitting.ranges import ranges
from rejoinder.fitting.settings import FitSettings, read_settings
from rejoinder.items import Item
from rejoinder.learn.training import Diverged
from rejoinder.meta_evaluation.roc import auc
from rejoinder.progress import Progress
from rejoinder.retrieve.retriever import make_retriever


def settings(*changes: str, language: str = "en") -> FitSettings:
    return read_settings("tiny", language, seed=3, overrides=[*QUICK, *changes])


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def made(rows: list[Row], tmp_path: Path, *changes: str) -> tuple[Evaluator, Fitted]:
    path = write(tmp_path / "pairs.parquet", rows)
    found = fit([str(path)], tmp_path / "evaluator", settings(*changes))
    assert found is not None
    return open_evaluator(found.folder), found


def test_it_learns_to_tell_what_fits(fitted: Fitted) -> None:
    """Everybody keeps to the topic, so a reply of the topic fits and another one does not."""
    validation = fitted.manifest.validation
    # one topic in four: of nine random replies about two are of the same topic
    assert validation["unreferenced"]["recall_at_1"] > 0.25
    assert validation["unreferenced"]["auc"] > 0.75
    assert validation["rater"]["auc"] > 0.75
    for name in ("rater", "unreferenced"):
        assert validation[name]["loss"] < validation[name]["first_loss"]
    evaluator = open_evaluator(fitted.folder)
    right = []
    for at in range(8):  # every pair of neighbours: a single one may be learnt by rng, or not
        turned = [words[at:] + words[:at] for words in TOPICS.values()]
        contexts = [[f"we like the {words[0]} and {words[1]}"] for words in turned]
        replies = [f"we like the {words[2]} and {words[3]}" for words in turned]
        scores = [[evaluator.scorer.score([c], [r])[0] for r in replies] for c in contexts]
        right += (np.argmax(scores, axis=1) == np.arange(4)).tolist()
    assert np.mean(right) >= 0.75


def test_the_manifest_tells_what_it_was_made_of(fitted: Fitted, pairs: Path) -> None:
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
    told = {name.split("/")[0] for name in manifest.parts}
    assert told == {"README.md", "held-out.json", "pool", "rater", "unreferenced", "vectors"}
    for name in ("rater", "unreferenced"):
        assert manifest.settings[name]["training"]["batches_a_step"] == 1
    everything = b"".join(contents(fitted.folder).values())
    for secret in (pairs.parent, fitted.folder.parent):
        assert str(secret).encode() not in everything


def test_the_card_says_what_a_person_should_know(fitted: Fitted) -> None:
    card = (fitted.folder / "README.md").read_text()
    figures = fitted.manifest.validation
    assert f"{figures['unreferenced']['recall_at_1']:.3f}" in card
    assert f"{figures['rater']['auc']:.3f}" in card
    assert "## What it must not be used for" in card
    assert "Another language than English" in card
    assert f"{fitted.manifest.data['counts']['train_taken']:,} of" in card
    assert "No test set was excluded" in card
    assert "SHA-256" in card
    # every setting stands there
    for name in fitted.manifest.settings["unreferenced"]:
        assert name in card


def test_only_what_is_learnt_from_is_in_the_pool(fitted: Fitted, pairs: Path) -> None:
    pool = open_evaluator(fitted.folder).pool
    assert pool.size == fitted.manifest.data["counts"]["train_taken"]
    held_out = read_training_data(pairs, validation_share=0.1).validation
    assert not set(pool.responses(range(pool.size))) & set(held_out.responses)
    told = json.loads((fitted.folder / "held-out.json").read_bytes())
    assert set(told) == set(held_out.utterances)


def test_word_vectors_know_no_word_that_is_held_out(tmp_path: Path) -> None:
    rows = [{**each, "split": "train"} for each in dialogues(20)]
    rows += [
        {
            **row("new", [], "do we like the xylophone", "the xylophone and the soup", "new"),
            "split": s,
        }
        for s in ("validation", "test")
    ]
    path = write(tmp_path / "pairs.parquet", rows)
    work = tmp_path / "work"
    work.mkdir()
    vectors = run.Run([str(path)], work, settings(), None, [], run.FitProgress()).vectors
    assert vectors is not None
    learnt = b"".join(contents(vectors.folder).values())
    assert b"orchard" in learnt
    assert b"xylophone" not in learnt


def test_reading_with_an_encoder_is_shown(tmp_path: Path) -> None:
    """With an empty cache that takes minutes, in which a log file once said nothing."""
    told: dict[str, list[tuple[int, int]]] = {}

    @contextlib.contextmanager
    def pieces(stage: str) -> Iterator[Progress]:
        yield lambda done, total: told.setdefault(stage, []).append((done, total))

    path = write(tmp_path / "pairs.parquet", dialogues(20))
    work = tmp_path / "work"
    work.mkdir()
    read = settings("unreferenced.inputs=vectors(model=minilm)", "unreferenced.training.epochs=1")
    _ = run.Run([str(path)], work, read, None, [], run.FitProgress(pieces)).unreferenced
    done, total = told["unreferenced: reading"][-1]
    assert done == total > 0


def test_the_folder_can_be_moved(fitted: Fitted, tmp_path: Path) -> None:
    """Word vectors, pool and networks find one another wherever they are."""
    items = [Item("1", "we like the soup", ["we like the bread and cheese"])]
    before = open_evaluator(fitted.folder).expand(items)
    (tmp_path / "far").mkdir()
    moved = shutil.copytree(fitted.folder, tmp_path / "far" / "away")
    after = open_evaluator(moved).expand(items)
    assert before == after
    assert len(after[0].references) > 1
    assert all(reference.weight is not None for reference in after[0].references)


def test_the_same_seed_makes_the_same_bytes(fitted: Fitted, pairs: Path, tmp_path: Path) -> None:
    again = fit([str(pairs)], tmp_path / "other-name", settings())
    assert again is not None
    assert contents(again.folder) == contents(fitted.folder)
    assert [path.name for path in tmp_path.iterdir()] == ["other-name"], "nothing is left of it"


def test_a_crash_in_any_stage_changes_nothing(
    fitted: Fitted, pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails once in each stage, before and after its work is written; a seventh time at the end."""
    crashed: list[str] = []
    plain = stages.run_stage

    def crashing(work, name, decides, make, **more):  # type: ignore[no-untyped-def]
        def breaking(folder: Path) -> None:
            for moment in ("before", "after"):
                if moment == "after":
                    make(folder)
                if (seen := f"{name} {moment}") not in crashed:
                    crashed.append(seen)
                    raise KeyboardInterrupt(seen)

        return plain(work, name, decides, breaking, **more)

    monkeypatch.setattr(run, "run_stage", crashing)
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


def test_other_settings_repeat_only_what_they_change(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "evaluator"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(assemble, "card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings())
    work = tmp_path / ".evaluator.work"
    before = {path.name for path in work.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings("unreferenced.context_turns=1", "retrieval.k=3"))
    added = {path.name.split("-")[0] for path in work.iterdir() if path.name not in before}
    assert added == {"unreferenced", "figures"}
    before = {path.name for path in work.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "card", stop)
        with pytest.raises(KeyboardInterrupt):
            fit([str(pairs)], output, settings("rater.training.gradient_accumulation_steps=2"))
    added = {path.name.split("-")[0] for path in work.iterdir() if path.name not in before}
    assert added == {"rater", "figures"}


def test_processes_multiply_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes make the steps of one that accumulates two batches."""
    part = settings("rater.training.gradient_accumulation_steps=3").rater
    assert assemble.batches_a_step(part) == 3
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert assemble.batches_a_step(part) == 6


def test_no_utterance_with_several_responses(tmp_path: Path) -> None:
    """There is no rater, it is said, and the evaluator works: the scorer rates."""
    rows = [each for each in dialogues(80) if each["context"] == []]
    first = list({each["utterance_id"]: each for each in rows}.values())
    evaluator, found = made(first, tmp_path)
    assert evaluator.rater is None
    assert not (found.folder / "rater").exists()
    (note,) = found.manifest.notes
    assert note.startswith("there is no rater (")
    assert "rated by the unreferenced scorer" in note
    assert note in (found.folder / "README.md").read_text()
    assert "rater" not in found.manifest.validation
    (item,) = evaluator.expand([Item("1", "we like soup", ["we like the bread and garlic"])])
    assert item.references
    contexts = [item.context] * len(item.references)
    scores = evaluator.scorer.score(contexts, [each.text for each in item.references])
    weights = [each.weight for each in item.references]
    assert weights == pytest.approx((2 * scores - 1).tolist(), abs=1e-5)


def test_a_rater_that_learned_nothing_is_not_kept(tmp_path: Path) -> None:
    """Each step makes it worse, so the best weights are those that it began with."""
    changes = ["rater.training.learning_rate=100.0", "rater.training.steps=2", "rater.training.warmup_ratio=0.0"]
    quick = ["unreferenced.training.steps=3", "vectors.epochs=2"]
    evaluator, found = made(dialogues(24), tmp_path, *changes, *quick)
    assert evaluator.rater is None
    assert "rater" not in found.manifest.validation
    note = found.manifest.notes[0]  # others are of ranges, for so few pairs
    assert note.startswith("there is no rater (it learned nothing that helps on held-out")


def test_a_rater_near_chance_is_left_out(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of the ranges: they are those of the evaluator as it is."""
    monkeypatch.setattr(figures, "_rater_figures", lambda *_: {"utterances": 12, "auc": 0.5412})
    found = fit([str(pairs)], tmp_path / "evaluator", settings())
    assert found is not None
    evaluator = open_evaluator(found.folder)
    assert evaluator.rater is None
    assert not (found.folder / "rater").exists()
    assert "rater" not in found.manifest.validation
    (note,) = found.manifest.notes
    assert "12 held-out utterances its AUC is 0.541, below 0.55" in note
    assert "rated by the unreferenced scorer" in note
    assert note in " ".join((found.folder / "README.md").read_text().split())
    data = read_training_data(pairs, validation_share=0.1, max_validation_pairs=200)
    items = figures.HeldOut(data.validation, seed=3).items(20)
    asked = ["unreferenced", "vbleu"]
    assert found.manifest.ranges == ranges(found.folder, items, asked, "en")[0]


def test_fewer_pairs_than_a_batch(tmp_path: Path) -> None:
    evaluator, found = made(dialogues(4), tmp_path)
    assert found.manifest.data["counts"]["train_taken"] < 64
    scores = evaluator.scorer.score([["we like soup"]], ["we like bread"])
    assert np.isfinite(scores).all()


def test_a_loss_that_is_no_number(pairs: Path, tmp_path: Path) -> None:
    """Stops with the step, keeps the best weights, and leaves no half evaluator."""
    with pytest.raises(Diverged, match="at step") as caught:
        fit([str(pairs)], tmp_path / "evaluator", settings("unreferenced.training.learning_rate=1e30"))
    kept = Path(str(caught.value).split(" are in ")[1])
    assert kept.is_file()
    assert not (tmp_path / "evaluator").exists()
    # the rater is kept, and a lower rate goes on from there
    again = fit([str(pairs)], tmp_path / "evaluator", settings())
    assert again is not None


@pytest.mark.parametrize("form", ["gru(pieces=60,embedding=8,hidden=8)", "vectors(model=minilm)"])
def test_other_forms(inputs: str, tmp_path: Path) -> None:
    changes = [f"{part}.inputs={form}" for part in ("rater", "unreferenced")]
    quick = ["rater.training.steps=3", "unreferenced.training.steps=3", "retrieval.by=bm25"]
    evaluator, found = made(dialogues(24), tmp_path, *changes, *quick)
    assert "vectors/manifest.json" not in found.manifest.parts, "nobody reads word vectors"
    (item,) = evaluator.expand([Item("1", "we like soup", ["we like the bread and garlic"])])
    assert item.references


@pytest.mark.parametrize(("preset", "model"), [("small", "minilm"), ("medium", "mpnet.bf16")])
def test_presets_with_an_encoder(preset: str, model: str, tmp_path: Path) -> None:
    """All that they say of English but the sizes, which are for more than 160 pairs."""
    path = write(tmp_path / "pairs.parquet", dialogues(40))
    changes = ["data.validation_share=0.3"]
    for part in ("rater", "unreferenced"):
        changes += [f"{part}.batch=32", f"{part}.training.epochs=6"]
    asked = read_settings(preset, "en", seed=3, overrides=changes)
    found = fit([str(path)], tmp_path / "evaluator", asked)
    assert found is not None
    assert make_retriever(found.manifest.retrieval.by) == make_retriever(asked.retrieval.by)
    assert {"unreferenced", "vcosine"} <= set(found.manifest.ranges)
    form = open_evaluator(found.folder).scorer.form
    assert inputs.depends["model"].startswith(f"{model}@")

    said = [[f"we like the {w[i]} and {w[i + 1]}" for i in (0, 2)] for w in TOPICS.values()]
    items = [
        Item(f"{asks}-{answers}", said[answers][1], context=["Hello!", said[asks][0]])
        for asks in range(4)
        for answers in range(4)
    ]
    fits = np.eye(4, dtype=bool).ravel()
    metrics = ["unreferenced", "vcosine", "ruber"]
    for scores in rejoinder.score(items, metrics, evaluator=found.folder, resamples=100).values():
        assert auc(scores.values[fits], scores.values[~fits]) > 0.8


def test_nobodys_files_are_lost(pairs: Path, tmp_path: Path, fitted: Fitted) -> None:
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


def test_what_is_wrong_is_said_before_any_work(pairs: Path, tmp_path: Path) -> None:
    for change, reason in (
        ("retrieval.by=vektors", "unknown retriever 'vektors'"),
        ("retrieval.by=bm25(b=x)", "bm25: b=x"),
        ('validation.ranges=["vblue"]', "unknown metric 'vblue'"),
        ('validation.ranges=["distinct"]', "distinct: judges sets"),
        ('validation.ranges=["vbleu","vbleu"]', "asked for twice"),
        ('validation.ranges=["vbleu","ruber"]', "ruber: name the metrics that it blends"),
        ('rater.negatives=["matched","words"]', "rater.negatives: matched: negatives by vector"),
        ('unreferenced.hard_negatives=["vectors"]', "unreferenced.hard_negatives: vectors: negatives by vector need"),
        ("rater.inputs=gru(piece=5)", "form gru has no setting 'piece': did you mean 'pieces'"),
    ):
        with pytest.raises(UsageError, match=reason.replace("(", r"\(")):
            forms = [f"{part}.inputs=gru(pieces=60)" for part in ("rater", "unreferenced")]
            fit([str(pairs)], tmp_path / "evaluator", settings(*forms, change))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="unknown log format"):
        fit([__file__], tmp_path / "evaluator", settings(), format="telegrams")
    assert list(tmp_path.iterdir()) == []


def test_own_vectors_are_an_evaluators_own() -> None:
    with pytest.raises(UsageError, match="those of an evaluator"):
        _ = make_retriever("vectors(vectors=evaluator)").depends


def test_what_was_half_assembled_is_cleared_away(pairs: Path, tmp_path: Path) -> None:
    """A kill while the folder was filled leaves a hidden one, of another process."""
    half = tmp_path / ".evaluator.123456.part"
    half.mkdir()
    (half / "README.md").touch()
    # another run fills a folder for evaluator.seed1
    other = tmp_path / ".evaluator.seed1.123456.part"
    other.mkdir()
    fit([str(pairs)], tmp_path / "evaluator", settings())
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "evaluator"]


def test_two_runs_at_once(pairs: Path, tmp_path: Path) -> None:
    with only_run(tmp_path / ".evaluator.work"), pytest.raises(ResourceError, match="another run"):
        fit([str(pairs)], tmp_path / "evaluator", settings())


def test_a_damaged_part_is_noticed(fitted: Fitted, tmp_path: Path) -> None:
    broken = shutil.copytree(fitted.folder, tmp_path / "evaluator")
    path = broken / "vectors" / "vectors.npy"
    path.write_bytes(path.read_bytes()[:-4] + b"oops")
    with pytest.raises(DataError, match=r"vectors/vectors\.npy"):
        open_evaluator(broken)


def test_japanese(tmp_path: Path) -> None:
    """Words are what the language's tokenizer takes for words."""
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
    built = msgspec.json.decode((found.folder / "unreferenced" / "inputs.json").read_bytes())
    assert "ja-mecab" in built["by"]
