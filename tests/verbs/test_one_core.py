"""The command line prints what the functions return: JSON of every verb equals ``to_dict()``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from evaluators import write_pairs
from fitted import CHANGES, chatter, small_evaluator
from fitting.toy import write
from rejoinder.cli.main import app, run

Call = Callable[[], Any]
METRICS = ["rouge-l", "bleu(n=2)", "distinct(n=1)"]
SPECS = [part for metric in METRICS for part in ("-m", metric)]
PAIRS = [
    (["hello"], "do you like tea", "yes i do"),
    ([], "do you like coffee", "not at all"),
    (["hi"], "where is the station", "over there"),
]
RECIPE = """
[[steps]]
name = "score"
run = ["score", "items.jsonl", "-m", "rouge-l", "-o", "${work}/s.jsonl"]
inputs = ["items.jsonl"]
outputs = ["${work}/s.jsonl"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs of all verbs."""
    made = tmp_path_factory.mktemp("core")
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    (made / "items.jsonl").write_bytes(example.read_bytes())
    rejoinder.score(str(made / "items.jsonl"), METRICS, output=made / "scores.jsonl")
    write_pairs(made / "pairs.parquet", PAIRS)
    write(made / "chatter.parquet", chatter())
    lines = [f"how is number {n}\tnumber {n} is very well, thanks" for n in range(60)]
    (made / "logs.tsv").write_text("\n".join(lines))
    rejoinder.corpus(made / "logs.tsv", format="tsv", salt="x", output=made / "logs.parquet")
    rejoinder.pairs.simulate(made / "simulated", contexts=2, references=5, tests=2)
    (made / "recipe.toml").write_text(RECIPE)
    return made


def score() -> tuple[list[str], Call]:
    return ["score", "items.jsonl", *SPECS, "-o", "s.jsonl"], lambda: rejoinder.score(
        "items.jsonl", METRICS, intervals=True
    )


def score_with_an_evaluator() -> tuple[list[str], Call]:
    evaluator = str(small_evaluator())
    return [
        "score", "items.jsonl", "-m", "unreferenced", "--evaluator", evaluator, "-o", "s.jsonl",
    ], lambda: rejoinder.score(
        "items.jsonl", "unreferenced", evaluator=evaluator, intervals=True
    )  # fmt: skip


def compare() -> tuple[list[str], Call]:
    return ["compare", "items.jsonl", *SPECS], lambda: rejoinder.compare("items.jsonl", METRICS)


def compare_scores() -> tuple[list[str], Call]:
    return ["compare", "items.jsonl", "scores.jsonl"], lambda: rejoinder.compare(
        "items.jsonl", scores="scores.jsonl"
    )


def compare_people() -> tuple[list[str], Call]:
    return ["compare", "items.jsonl", "--by", "people"], lambda: rejoinder.compare(
        "items.jsonl", by="people"
    )


def meta() -> tuple[list[str], Call]:
    return [
        "meta",
        "items.jsonl",
        "scores.jsonl",
        "--curve",
        "--draws",
        "2",
    ], lambda: rejoinder.meta("items.jsonl", scores="scores.jsonl", curve=True, draws=2)


def corpus() -> tuple[list[str], Call]:
    return [
        "corpus",
        "logs.tsv",
        "-f",
        "tsv",
        "--salt",
        "x",
        "-o",
        "c.parquet",
    ], lambda: rejoinder.corpus("logs.tsv", format="tsv", salt="x", output="d.parquet")


def fit() -> tuple[list[str], Call]:
    settings = [word for change in CHANGES for word in ("--set", change)]
    return [
        "fit",
        "chatter.parquet",
        "--preset",
        "tiny",
        *settings,
        "-o",
        "e",
    ], lambda: rejoinder.fit("chatter.parquet", preset="tiny", overrides=CHANGES, output="f")


def expand() -> tuple[list[str], Call]:
    return [
        "expand", "items.jsonl", "--pool", "pairs.parquet", "--by", "bm25", "-o", "x.jsonl",
    ], lambda: rejoinder.expand(
        "items.jsonl", pool="pairs.parquet", by="bm25", output="y.jsonl"
    )  # fmt: skip


def reply() -> tuple[list[str], Call]:
    return ["reply", "items.jsonl", "-s", "c-bm25", "--pool", "pairs.parquet", "-o", "r.jsonl"], (
        lambda: rejoinder.reply("items.jsonl", "c-bm25", pool="pairs.parquet")
    )


def index() -> tuple[list[str], Call]:
    return ["index", "pairs.parquet", "--by", "bm25", "-o", "i1"], lambda: rejoinder.index(
        "pairs.parquet", by="bm25", output="i2"
    )


def show() -> tuple[list[str], Call]:
    return [
        "show",
        "items.jsonl",
        "en-01:careful",
        "--scores",
        "scores.jsonl",
    ], lambda: rejoinder.show("items.jsonl", "en-01:careful", scores="scores.jsonl")


def show_all() -> tuple[list[str], Call]:
    return ["show", "items.jsonl"], lambda: rejoinder.show("items.jsonl")


def sample() -> tuple[list[str], Call]:
    return ["sample", "logs.parquet", "-n", "2", "-o", "p1.parquet"], lambda: rejoinder.sample(
        "logs.parquet", count=2, output="p2.parquet"
    )


def contexts() -> tuple[list[str], Call]:
    return [
        "contexts",
        "logs.parquet",
        "--split",
        "train",
        "-n",
        "2",
        "-o",
        "c.jsonl",
    ], lambda: rejoinder.contexts("logs.parquet", split="train", count=2)


def join() -> tuple[list[str], Call]:
    return ["join", "items.jsonl", "-o", "j1.jsonl"], lambda: rejoinder.join(
        ["items.jsonl"], output="j2.jsonl"
    )


def explain() -> tuple[list[str], Call]:
    return ["explain", "bleu(n=2)"], lambda: rejoinder.explain("bleu(n=2)")


def ls() -> tuple[list[str], Call]:
    return ["ls"], rejoinder.ls


def recipe() -> tuple[list[str], Call]:
    return ["run", "recipe.toml", "--dry-run"], lambda: rejoinder.run("recipe.toml", dry_run=True)


def datasets_list() -> tuple[list[str], Call]:
    return ["datasets", "list"], rejoinder.datasets.list


def datasets_export() -> tuple[list[str], Call]:
    return [
        "datasets",
        "export",
        "grade-convai2",
        "-o",
        "g.jsonl",
    ], lambda: rejoinder.datasets.export("grade-convai2")


def pairs_plan() -> tuple[list[str], Call]:
    return [
        "pairs",
        "plan",
        "simulated/candidates.jsonl",
        "-n",
        "3",
        "-o",
        "plan.jsonl",
    ], lambda: rejoinder.pairs.plan("simulated/candidates.jsonl", count=3)


def pairs_fit() -> tuple[list[str], Call]:
    both = "simulated/candidates.jsonl", "simulated/answers.jsonl"
    return ["pairs", "fit", *both, "-o", "fit.jsonl"], lambda: rejoinder.pairs.fit(*both)


def pairs_curve() -> tuple[list[str], Call]:
    both = "simulated/candidates.jsonl", "simulated/answers.jsonl"
    return ["pairs", "curve", *both, "--draws", "2"], lambda: rejoinder.pairs.curve(*both, draws=2)


def pairs_simulate() -> tuple[list[str], Call]:
    return ["pairs", "simulate", "--contexts", "2", "-o", "sim1"], lambda: rejoinder.pairs.simulate(
        "sim2", contexts=2
    )


def train_vectors() -> tuple[list[str], Call]:
    options = ["--dimensions", "3", "--min-count", "1", "--epochs", "1", "--threads", "1"]
    return [
        "train",
        "vectors",
        "pairs.parquet",
        *options,
        "-o",
        "v1",
    ], lambda: rejoinder.train.vectors(
        "pairs.parquet", dimensions=3, min_count=1, epochs=1, threads=1, output="v2"
    )


def train_calibration() -> tuple[list[str], Call]:
    return [
        "train",
        "calibration",
        "items.jsonl",
        "--pairs",
        "5",
        "-o",
        "c1.json",
    ], lambda: rejoinder.train.calibration("items.jsonl", pairs=5, output="c2.json")


CASES = {
    name: case
    for case in (
        score, score_with_an_evaluator, compare, compare_scores, compare_people, meta, corpus, fit,
        expand, reply, index, show, show_all, sample, contexts, join, explain, ls, recipe,
        datasets_list, datasets_export, pairs_plan, pairs_fit, pairs_curve, pairs_simulate,
        train_vectors, train_calibration,
    )
    for name in [case.__name__]
}  # fmt: skip
ELSEWHERE = {
    "report": "has no JSON: the page is the result (test_the_report_is_the_page)",
    "demo": "takes minutes: tests/cli/test_demo.py",
    "train dapt": "takes a network: tests/learn/test_dapt.py",
}


@pytest.mark.parametrize("name", CASES)
def test_json_of_the_command_line_equals_to_dict(
    name: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    request: pytest.FixtureRequest,
) -> None:
    if name == "datasets_export":
        request.getfixturevalue("data")
    monkeypatch.chdir(folder)
    arguments, call = CASES[name]()
    capfdbinary.readouterr()
    code = run([*arguments, "--json"])
    printed, messages = capfdbinary.readouterr()
    assert code == 0, messages.decode()
    found = call()
    assert _comparable(json.loads(printed)) == _comparable(json.loads(json.dumps(found.to_dict())))
    assert re.search("<(table|div|iframe|svg)", found._repr_html_())


def _comparable(value: Any) -> Any:
    """Leave out times, dates, and digests of files that hold them."""
    if isinstance(value, dict):
        varying = {"seconds", "created", "sha256", "size", "output", "time"}
        return {k: _comparable(v) for k, v in value.items() if k not in varying}
    return [_comparable(each) for each in value] if isinstance(value, list) else value


def test_the_report_is_the_page(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(["report", "items.jsonl", "scores.jsonl", "-o", "a.html"]) == 0
    made = rejoinder.report("items.jsonl", "scores.jsonl", output="b.html")
    pages = [(folder / name).read_text() for name in ("a.html", "b.html")]
    assert pages[0] == pages[1].replace("b.html", "a.html")
    assert made.html.decode() == pages[1]
    assert made.to_dict() == {"path": "b.html", "bytes": len(made.html)}


def test_every_verb_is_covered() -> None:
    verbs = {command.name for command in app.registered_commands}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        verbs |= {f"{group.name} {c.name}" for c in group.typer_instance.registered_commands}
    covered = {" ".join(_words(case()[0], verbs)) for case in CASES.values()}
    assert covered | set(ELSEWHERE) == verbs


def _words(arguments: list[str], verbs: set[Any]) -> list[str]:
    return arguments[:1] if arguments[0] in verbs else arguments[:2]
