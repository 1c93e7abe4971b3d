"""The command line prints what the functions return: JSON of every verb equals ``to_dict()``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from annotate.rating_studies import answer_all
from annotate.rating_studies import join as join_study
from evaluators import write_pairs
from fitted import CHANGES, chatter, small_evaluator
from fitting.toy import write
from planted_server import planted_server
from rejoinder.cli.main import app, run
from rejoinder.verbs import annotate
from rejoinder.wording import for_command_line

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
BOARD = """
[[sets]]
name = "examples"
items = "items.jsonl"
scores = ["scores.jsonl"]
"""


def rate_some(study: Path) -> None:
    """Let two people rate some replies of a study."""
    with annotate.opened(study, None) as store:
        for name in ("ann", "bob"):
            answer_all(store, join_study(store, name), most=20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Inputs of all verbs, and the address of a language model that always answers 1."""
    made = tmp_path_factory.mktemp("core")
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    (made / "items.jsonl").write_bytes(example.read_bytes())
    rejoinder.score(str(made / "items.jsonl"), METRICS, output=made / "scores.jsonl")
    write_pairs(made / "pairs.parquet", PAIRS)
    write(made / "chatter.parquet", chatter())
    rejoinder.datasets.export("judge-attacks-en", output=made / "attacks.jsonl")
    rejoinder.score(str(made / "attacks.jsonl"), "repetition", output=made / "attacked.jsonl")
    lines = [f"how is number {n}\tnumber {n} is very well, thanks" for n in range(60)]
    (made / "logs.tsv").write_text("\n".join(lines))
    rejoinder.corpus(made / "logs.tsv", format="tsv", salt="x", output=made / "logs.parquet")
    rejoinder.pairs.simulate(made / "simulated", contexts=2, references=5, tests=2)
    (made / "recipe.toml").write_text(RECIPE)
    (made / "board.toml").write_text(BOARD)
    annotate.init(made / "study", template="gupta-ratings", items=made / "items.jsonl")
    rate_some(made / "study")
    for name, rated in (("rated", True), ("expanded", False)):
        lines = []
        for n in range(4):
            judged = {"ratings": [n, 3 - n % 2]} if rated else {"weight": n % 3 / 3}
            item = {"id": n, "response": "x", "references": [{"text": "a", **judged}]}
            lines.append(json.dumps(item))
        (made / f"{name}.jsonl").write_text("\n".join(lines))
    with planted_server(say=lambda body: "1") as server:
        (made / "address").write_text(server.url)
        yield made


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


def compare_curve() -> tuple[list[str], Call]:
    return [
        "compare", "items.jsonl", "-m", "rouge-l", "--curve", "--draws", "2"
    ], lambda: rejoinder.compare("items.jsonl", "rouge-l", curve=True, draws=2)  # fmt: skip


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


def meta_as_judges() -> tuple[list[str], Call]:
    return [
        "meta",
        "items.jsonl",
        "scores.jsonl",
        "--as-judges",
        "--again",
        "scores.jsonl",
    ], lambda: rejoinder.meta(
        "items.jsonl", scores="scores.jsonl", as_judges=True, again="scores.jsonl"
    )


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


def expand_by_llm() -> tuple[list[str], Call]:
    by = f"llm(url={Path('address').read_text()},model=m,retries=0)"
    return [
        "expand", "items.jsonl", "--by", by, "--k", "2", "-o", "w1.jsonl",
    ], lambda: rejoinder.expand("items.jsonl", by=by, k=2, output="w2.jsonl")  # fmt: skip


def reply() -> tuple[list[str], Call]:
    return ["reply", "items.jsonl", "-s", "c-bm25", "--pool", "pairs.parquet", "-o", "r.jsonl"], (
        lambda: rejoinder.reply("items.jsonl", "c-bm25", pool="pairs.parquet")
    )


def index() -> tuple[list[str], Call]:
    return ["index", "pairs.parquet", "--by", "bm25", "-o", "i1"], lambda: rejoinder.index(
        "pairs.parquet", by="bm25", output="i2"
    )


def estimate() -> tuple[list[str], Call]:
    return [
        "estimate", "items.jsonl", "scores.jsonl", "-m", "rouge-l", "--target", "replies",
    ], lambda: rejoinder.estimate(
        "items.jsonl", "scores.jsonl", metrics="rouge-l", target="replies"
    )  # fmt: skip


def leaderboard() -> tuple[list[str], Call]:
    return ["leaderboard", "board.toml", "--resamples", "200"], lambda: rejoinder.leaderboard(
        "board.toml", resamples=200
    )


def calibrate() -> tuple[list[str], Call]:
    return [
        "calibrate", "items.jsonl", "scores.jsonl", "-m", "rouge-l", "--draws", "2", "-o", "cal",
    ], lambda: rejoinder.calibrate(
        "items.jsonl", "scores.jsonl", metrics="rouge-l", draws=2, output="cal"
    )  # fmt: skip


def plan() -> tuple[list[str], Call]:
    return [
        "plan", "items.jsonl", "scores.jsonl", "--budget", "12", "--width", "1",
        "--power", "0.8", "--difference", "0.5", "-o", "next.jsonl",
    ], lambda: rejoinder.plan(
        "items.jsonl", "scores.jsonl", budget=12, width=1, power=0.8, difference=0.5, output="next"
    )  # fmt: skip


def meta_references() -> tuple[list[str], Call]:
    return [
        "meta",
        "--references",
        "rated.jsonl",
        "expanded.jsonl",
    ], lambda: rejoinder.meta_references("rated.jsonl", "expanded.jsonl")


def meta_attack() -> tuple[list[str], Call]:
    return [
        "meta", "attacks.jsonl", "attacked.jsonl", "--attack", "--resamples", "100"
    ], lambda: rejoinder.meta_attack("attacks.jsonl", "attacked.jsonl", resamples=100)  # fmt: skip


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


def datasets_export_attacks() -> tuple[list[str], Call]:
    name, some = "judge-attacks-ja", ("--contexts", "3", "--seed", "1", "-o", "a1.jsonl")
    return ["datasets", "export", name, *some], lambda: rejoinder.datasets.export(
        name, contexts=3, seed=1, output="a2.jsonl"
    )


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


def pairs_judge() -> tuple[list[str], Call]:
    judge = f"judge-pairs(url={Path('address').read_text()},model=m,logprobs=false)"
    return [
        "pairs", "judge", "simulated/candidates.jsonl", "-m", judge, "-n", "3", "-o", "j.jsonl",
    ], lambda: rejoinder.pairs.judge("simulated/candidates.jsonl", judge, count=3)  # fmt: skip


def pairs_rank() -> tuple[list[str], Call]:
    both = "items.jsonl", "answers.jsonl"
    items = [json.loads(line) for line in Path("items.jsonl").read_text().splitlines()]
    first: dict[str, dict[str, Any]] = {}
    lines = []
    for item in items:
        other = first.setdefault(item.get("context_id") or str(item["context"]), item)
        if other["system"] != item["system"]:
            lines.append({"a": other["id"], "b": item["id"], "winner": "a", "annotator": "ann"})
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return ["pairs", "rank", *both, "--resamples", "100"], lambda: rejoinder.pairs.rank(
        *both, resamples=100
    )


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


def train_system() -> tuple[list[str], Call]:
    changes = ["training.epochs=1", "vocabulary.size=80"]
    sets = [part for change in changes for part in ("--set", change)]
    return [
        "train", "system", "seq2seq", "chatter.parquet", "--preset", "tiny", *sets, "-o", "bots/a",
    ], lambda: rejoinder.train.system(
        "seq2seq", "chatter.parquet", preset="tiny", overrides=changes, output="bots/b"
    )  # fmt: skip


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


def annotate_templates() -> tuple[list[str], Call]:
    return ["annotate", "templates", "-l", "ja"], lambda: annotate.templates("ja")


def annotate_init() -> tuple[list[str], Call]:
    options = {"template": "gupta-ratings", "items": "items.jsonl"}
    return [
        "annotate", "init", "study-a", "-t", "gupta-ratings", "--items", "items.jsonl",
    ], lambda: annotate.init("study-b", **options)  # fmt: skip


def annotate_status() -> tuple[list[str], Call]:
    return ["annotate", "status", "study"], lambda: annotate.status("study")


def annotate_export() -> tuple[list[str], Call]:
    return ["annotate", "export", "study", "-o", "rated.jsonl"], lambda: annotate.export("study")


CASES = {
    name: case
    for case in (
        score, score_with_an_evaluator, compare, compare_curve, compare_scores,
        compare_people, meta, meta_as_judges,
        calibrate, estimate, leaderboard, meta_references, meta_attack, corpus, fit, expand, reply,
        index,
        show, show_all, sample, contexts, plan, expand_by_llm,
        join, explain, ls, recipe, datasets_list, datasets_export, datasets_export_attacks,
        pairs_plan, pairs_fit, pairs_judge, pairs_rank, pairs_curve, pairs_simulate,
        train_vectors, train_system, train_calibration,
        annotate_templates, annotate_init, annotate_status, annotate_export,
    )
    for name in [case.__name__]
}  # fmt: skip
ELSEWHERE = {
    "annotate serve": "runs until it is stopped: tests/annotate/test_verbs.py",
    "annotate invite": "makes new secret links: tests/annotate/test_verbs.py",
    "annotate import": "adds answers once: tests/annotate/imports/test_add.py",
    "annotate rehearse": "depends on the time: tests/annotate/test_rehearse.py",
    "annotate forget": "can be done once: tests/annotate/test_verbs.py",
    "report": "has no JSON: the page is the result (test_the_report_is_the_page)",
    "demo": "takes minutes: tests/cli/test_demo.py",
    "train dapt": "takes a network: tests/learn/test_dapt.py",
}


@pytest.mark.filterwarnings("ignore::rejoinder.verbs.monitor.RejoinderWarning")
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
    with for_command_line():  # notes name flags there, parameters in Python
        found = call()
    assert _comparable(json.loads(printed)) == _comparable(json.loads(json.dumps(found.to_dict())))
    assert re.search("<(table|div|iframe|svg)", found._repr_html_())


def _comparable(value: Any) -> Any:
    """Leave out times, dates, and digests of files that hold them."""
    if isinstance(value, dict):
        varying = {"seconds", "created", "sha256", "size", "output", "time"}
        varying |= {"folder", "seconds_left"}
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


def test_every_verb_is_covered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    verbs = {command.name for command in app.registered_commands}
    for group in app.registered_groups:
        assert group.typer_instance is not None
        verbs |= {f"{group.name} {c.name}" for c in group.typer_instance.registered_commands}
    covered = {" ".join(_words(case()[0], verbs)) for case in CASES.values()}
    assert covered | set(ELSEWHERE) == verbs


def _words(arguments: list[str], verbs: set[Any]) -> list[str]:
    return arguments[:1] if arguments[0] in verbs else arguments[:2]
