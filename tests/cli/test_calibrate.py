"""``calibrate`` on real command lines: the folder as a metric, and what goes wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fitted import small_evaluator
from rejoinder.cli.main import run
from rejoinder.files.jsonl import read_scores, write_jsonl_file
from rejoinder.items import Item

WORDS = ("the", "cat", "sat", "on", "a", "mat", "cats", ".")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """60 rated replies to 20 contexts: the more words of the reference, the better the rating."""
    monkeypatch.chdir(tmp_path)
    write_jsonl_file("items.jsonl", replies())
    assert run(["score", "items.jsonl", "-m", "rouge-l", "-m", "wer", "-o", "scores.jsonl"]) == 0
    return tmp_path


def replies(rate: int | None = None) -> list[Item]:
    rng = np.random.default_rng(1)
    items = []
    for context in range(20):
        reference = rng.choice(WORDS, 6).tolist()
        for system in ("x", "y", "z"):
            kept = int(rng.integers(0, 7))
            words = [*reference[:kept], *["other"] * (6 - kept)]
            noise = rng.integers(-1, 2, 3)
            ratings = {
                name: float(np.clip(1 + kept * 2 // 3 + off, 1, 5))
                for name, off in zip(("ann", "bob", "eve"), noise.tolist(), strict=True)
            }
            given = dict.fromkeys(ratings, float(rate)) if rate is not None else ratings
            items.append(
                Item(
                    id=f"{context}{system}",
                    response=" ".join(words),
                    context=[f"say {context}"],
                    system=system,
                    references=[{"text": " ".join(reference)}],  # type: ignore[list-item]
                    ratings=given,
                )
            )
    return items


def calibrated(*arguments: str) -> dict[str, object]:
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "-o", "cal", *arguments]) == 0
    return json.loads(Path("cal/manifest.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "method"),
    [
        ([], "blend"),
        (["-m", "rouge-l"], "isotonic"),
        (["-m", "wer", "--method", "ordinal"], "ordinal"),
    ],
)
def test_a_calibration_is_a_metric(
    folder: Path, arguments: list[str], method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    manifest = calibrated(*arguments, "--draws", "2", "--svg", "curve.svg")
    assert manifest["method"] == method
    assert "overfits" not in capfd.readouterr().err
    spec = "calibrated(model=cal)"
    assert run(["score", "items.jsonl", "-m", spec, "-o", "out.jsonl", "--parts"]) == 0
    ratings = {item.id: item.rating() for item in replies()}
    scores = [score for _, score in read_scores("out.jsonl")]
    assert len(scores) == 60
    inside = 0
    for score in scores:
        assert score.value is not None
        assert score.interval is not None
        assert 1 <= score.interval[0] <= score.interval[1] <= 5
        # means of three ratings: the ends are thirds
        assert all(abs(3 * end - round(3 * end)) < 1e-9 for end in score.interval)
        rating = ratings[score.id]
        assert rating is not None
        inside += score.interval[0] <= rating + 1e-9 <= score.interval[1] + 2e-9
    assert inside / 60 >= 0.85
    known = np.array([ratings[score.id] for score in scores])
    assert np.corrcoef([score.value for score in scores], known)[0, 1] > 0.8  # type: ignore[list-item]
    assert run(["meta", "items.jsonl", "out.jsonl"]) == 0
    assert "<svg" in Path("curve.svg").read_text()


def test_the_same_ratings_give_the_same_bytes(folder: Path) -> None:
    calibrated()
    before = {path.name: path.read_bytes() for path in Path("cal").iterdir()}
    calibrated()
    assert {path.name: path.read_bytes() for path in Path("cal").iterdir()} == before
    assert set(before) == {"manifest.json", "model.json", "README.md"}


def test_a_metric_with_an_evaluator(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    calibrated("-m", "rouge-l", "--draws", "0")
    assert capfd.readouterr().err.endswith("-m 'calibrated(model=cal)'\n")
    evaluator = str(small_evaluator())
    asked = ["-m", "unreferenced", "--evaluator", evaluator]
    assert run(["score", "items.jsonl", *asked, "-o", "scores.jsonl"]) == 0
    calibrated("--draws", "0")
    assert capfd.readouterr().err.endswith("-m 'calibrated(model=cal)' --evaluator DIR\n")
    spec = ["-m", "calibrated(model=cal)", "-o", "out.jsonl"]
    assert run(["score", "items.jsonl", *spec, "--evaluator", evaluator]) == 0
    _, score = next(iter(read_scores("out.jsonl")))
    assert score.interval is not None
    assert run(["score", "items.jsonl", *spec]) == 2  # which evaluator?


def test_other_scores_are_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A changed parameter, and scores of a program without signatures."""
    calibrated("-m", "rouge-l", "--draws", "0")
    change(lambda manifest: manifest["metrics"][0].update(metric="rouge-l(beta=1.2)"))
    assert run(["score", "items.jsonl", "-m", "calibrated(model=cal)"]) == 3
    assert "was made from scores of rouge-l(beta=1.2) with the signature" in capfd.readouterr().err


def change(edit: object) -> None:
    path = Path("cal/manifest.json")
    manifest = json.loads(path.read_text())
    edit(manifest)  # type: ignore[operator]
    path.write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        (lambda: Path("cal/model.json").write_text("{}"), "model.json is not the file that was"),
        (lambda: Path("cal/README.md").unlink(), "README.md is missing"),
        (lambda: Path("cal/manifest.json").unlink(), "it has no manifest.json"),
        (lambda: shutil.rmtree("cal"), "there is no such folder"),
        (lambda: change(lambda m: m.update(kind="evaluator")), "not a calibration, but 'eval"),
        (lambda: change(lambda m: m.update(format=2)), "which reads format 1"),
        (lambda: change(lambda m: m.update(parts={})), "does not know model.json"),
        (lambda: change(lambda m: m["scale"].update(low=9)), "the scale of ratings must rise"),
        (lambda: change(lambda m: m["metrics"].append(m["metrics"][0])), "another number"),
        (lambda: change(lambda m: m["metrics"][0].update(metric="nope")), "unknown metric"),
    ],
)
def test_tampered_folders(
    folder: Path, tamper: object, complaint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    calibrated("-m", "rouge-l", "--draws", "0")
    tamper()  # type: ignore[operator]
    assert run(["score", "items.jsonl", "-m", "calibrated(model=cal)"]) in (2, 3)
    assert complaint in capfd.readouterr().err


@pytest.mark.parametrize(
    ("items", "arguments", "code", "complaint"),
    [
        (replies(3), [], 3, "all 60 ratings are 3"),
        (replies()[:12], [], 3, "folds"),
        (replies()[:9], [], 3, "needs at least 10"),
        (replies(), ["--folds", "21"], 3, "have 20 contexts, fewer than 21 folds"),
        (replies(), ["--method", "isotonic"], 2, "calibrates one metric, and there are rouge-l"),
        (replies(), ["-m", "bleu"], 2, "the scores have no metric 'bleu'"),
        (replies(), ["-m", "wer", "--prior", "wer"], 2, "can only be used with"),
        (replies(), ["--prior", "bleu"], 2, "the scores have no metric 'bleu'"),
        (replies(), ["--scale", "2:5"], 3, "not on the scale from 2 to 5"),
        (replies(), ["--scale", "x"], 2, "expected LOW:HIGH"),
        (replies(), ["--coverage", "1"], 2, "range"),
        (replies(), ["-o", "items.jsonl"], 2, "is a file"),
    ],
)
def test_bad_input(
    folder: Path,
    items: list[Item],
    arguments: list[str],
    code: int,
    complaint: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if items != replies():
        write_jsonl_file("items.jsonl", items)
        scored = ["score", "items.jsonl", "-m", "rouge-l", "-m", "wer"]
        assert run([*scored, "-o", "scores.jsonl"]) == 0
    assert run(["calibrate", "items.jsonl", "scores.jsonl", *arguments]) == code
    message = capfd.readouterr().err
    assert complaint in message
    assert "Traceback" not in message


def test_two_folds(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of two folds each is predicted from the other, which is divided again for its intervals."""
    for method in ("ordinal", "isotonic"):
        made = calibrated("-m", "rouge-l", "--method", method, "--folds", "2", "--draws", "0")
        assert len(made["folds"]) == 2 if "folds" in made else made["settings"]["folds"] == 2
        shutil.rmtree("cal")
    few = [item for item in replies() if item.context in (["say 0"], ["say 1"], ["say 2"])]
    extra = [
        msgspec.structs.replace(item, id=f"again {item.id}", response=f"{item.response} again")
        for item in few
    ]
    write_jsonl_file("items.jsonl", [*few, *extra])
    assert run(["score", "items.jsonl", "-m", "rouge-l", "-o", "scores.jsonl"]) == 0
    capfd.readouterr()
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "--folds", "2", "-o", "cal"]) == 3
    assert "one of two folds has a single context" in capfd.readouterr().err
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "--folds", "3", "-o", "cal"]) == 0


def test_ratings_on_different_scales(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are said, and never mixed."""
    mixed = [
        Item(
            item.id, item.response, item.context, item.system, item.references,
            {**item.ratings, "percent": 20 * item.ratings["ann"]},
        )
        for item in replies()
        if isinstance(item.ratings, dict)
    ]  # fmt: skip
    write_jsonl_file("items.jsonl", mixed)
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "--draws", "0"]) == 3
    message = capfd.readouterr().err
    assert "ratings on different scales can't be averaged" in message and "--scale" in message
    whole = ["calibrate", "items.jsonl", "scores.jsonl", "--draws", "0", "--scale", "0:100"]
    assert run(whole) == 0


def test_rated_items_that_no_metric_scored(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """They are counted; scores that lack an item are refused."""
    lines = Path("scores.jsonl").read_text().splitlines()
    first = json.loads(lines[0]) | {"value": None, "unscored": "no references"}
    Path("scores.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]))
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "--draws", "0"]) == 0
    assert "1 rated replies are unscored" in capfd.readouterr().err
    Path("scores.jsonl").write_text("\n".join(lines[1:]))
    assert run(["calibrate", "items.jsonl", "scores.jsonl"]) == 3
    assert "have no score by rouge-l" in capfd.readouterr().err


def test_one_person_is_enough(folder: Path) -> None:
    """No agreement between people is needed, and none is claimed."""
    one = [{"id": i.id, "response": i.response, "ratings": {"ann": i.ratings["ann"]}} for i in
           replies() if isinstance(i.ratings, dict)]  # fmt: skip
    write_jsonl_file("items.jsonl", one)
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "--draws", "2"]) == 0


def test_a_folder_with_other_things_is_kept(folder: Path) -> None:
    (folder / "cal").mkdir()
    (folder / "cal" / "thesis.tex").write_text("x")
    assert run(["calibrate", "items.jsonl", "scores.jsonl", "-o", "cal", "--draws", "0"]) == 2
    assert (folder / "cal" / "thesis.tex").read_text() == "x"
