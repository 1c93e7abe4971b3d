"""Verbs that ask an evaluator, as a user types them; the evaluator was really fitted."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fitted import small_evaluator
from rejoinder.cli import main
from rejoinder.errors import DataError
from rejoinder.evaluator import open_evaluator, write_manifest
from rejoinder.verbs.source import open_items
from support import Run

Start = Callable[..., tuple[int, str, str]]

CONTEXTS = ["the cat sat on I'm", "a mat on the mat", "cats cats . sat", "I'm on a cats mat"]


def seen() -> str:
    """An utterance that the evaluator has learned from."""
    pool = open_evaluator(small_evaluator()).pool
    return max(pool.utterances(range(pool.size)), key=len)


def items() -> list[dict[str, Any]]:
    """Four contexts, three systems, ratings; the last context is in the logs of the evaluator."""
    replies = {"a": "the cat sat", "b": "I'm on cats", "c": "."}
    return [
        {
            "id": f"{number}:{system}",
            "context": ["hello", turn],
            "response": f"{reply} {turn.split()[number % 3]}",
            "system": system,
            "context_id": str(number),
            "references": ["the mat sat on a cat"] if number % 2 else [],
            "ratings": {"ann": (number * 3 + rank * 2) % 5, "bob": rank},
        }
        for number, turn in enumerate([*CONTEXTS, seen()])
        for rank, (system, reply) in enumerate(replies.items())
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the items, in which commands run; the evaluator is beside them."""
    lines = [json.dumps(item) + "\n" for item in items()]
    (tmp_path / "items.jsonl").write_text("".join(lines))
    (tmp_path / "clean.jsonl").write_text("".join(lines[:-3]))
    (tmp_path / "small").symlink_to(small_evaluator())
    return tmp_path


@pytest.fixture
def start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Start:
    """Run a command in this process: exit code, stdout, stderr."""
    monkeypatch.chdir(folder)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main.run(list(arguments))
        said = capfd.readouterr()
        return code, said.out, said.err

    return command


def scores(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def name() -> str:
    evaluator = open_evaluator(small_evaluator())
    return f"{evaluator.name}@{evaluator.digest}"


METRICS = ["vbleu", "unreferenced", "ruber(ref=vbleu)", "expanded(d=rouge-l)", "rouge-l"]
ASKED = [part for metric in METRICS for part in ("-m", metric)]


def test_score(start: Start, folder: Path) -> None:
    code, out, err = start("score", "items.jsonl", "--evaluator", "small", *ASKED, "-o", "s.jsonl")
    assert code == 0, err
    lines = scores(folder / "s.jsonl")
    assert [line["metric"] for line in lines[:5]] == METRICS
    for line in lines:
        if line["metric"] == "rouge-l":
            assert "coverage" not in line
        else:
            assert -1 <= line["coverage"]["nearest"] <= 1
            assert -1 <= line["coverage"]["agreement"] <= 1
            assert f"evaluator:{name()}|" in line["signature"]
    assert "rouge-l" in out
    assert f"warning: 1 of 5 contexts was seen (1 word for word, 0 nearly) by {name()}" in err
    assert err.count("coverage by") == 1
    assert f"coverage by {name()}: nearest 0." in err


def test_score_as_json(start: Start) -> None:
    code, out, _ = start(
        "score", "items.jsonl", "--evaluator", "small", "-m", "vbleu", "-o", "s", "--json"
    )
    assert code == 0
    found = json.loads(out)
    (coverage,), (contamination,) = found["coverage"], found["contamination"]
    assert coverage["evaluator"] == contamination["evaluator"] == name()
    assert coverage["nearest"] is not None
    counts = {key: contamination[key] for key in ("contexts", "exact", "near", "replies")}
    assert counts == {"contexts": 5, "exact": 1, "near": 0, "replies": 15}
    plain = json.loads(start("score", "items.jsonl", "-m", "rouge-l", "-o", "s", "--json")[1])
    assert plain["coverage"] == plain["contamination"] == []


def test_strict_refuses_contexts_of_the_training_data(start: Start, folder: Path) -> None:
    asked = ("--evaluator", "small", "-m", "vbleu", "--strict", "-o", "s.jsonl")
    code, _, err = start("score", "items.jsonl", *asked)
    assert code == 3
    assert err.startswith("rejoinder: items.jsonl: 1 of 5 contexts was seen")
    assert "fit an evaluator with --exclude ITEMS" in err
    assert not (folder / "s.jsonl").exists()
    code, _, err = start("score", "clean.jsonl", *asked)
    assert code == 0
    assert f"none of 4 contexts was seen by {name()} in its training or validation data" in err
    code, _, err = start(
        "compare", "items.jsonl", "--evaluator", "small", "-m", "vbleu", "--strict"
    )
    assert code == 3


def test_items_from_stdin(run: Run, folder: Path) -> None:
    """They are read twice, so they are kept in a file as long as that takes."""
    done = run(
        *("score", "-", "--evaluator", "small", "-m", "vbleu"),
        stdin=(folder / "items.jsonl").read_bytes(),
    )
    assert done.returncode == 0, done.stderr
    again = run("score", "items.jsonl", "--evaluator", "small", "-m", "vbleu")
    assert done.stdout == again.stdout
    assert len(done.stdout.splitlines()) == 15
    named = run(
        *("score", "/dev/stdin", "--evaluator", "small", "-m", "vbleu"),
        stdin=(folder / "items.jsonl").read_bytes(),
    )
    assert named.stdout == again.stdout, named.stderr
    bad = run("score", "-", "--evaluator", "small", "-m", "vbleu", stdin=b'{"id": "1"}\n')
    assert bad.returncode == 3
    assert b"stdin:1: the field is missing: response" in bad.stderr


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_pipe_is_read_twice(tmp_path: Path, ending: str) -> None:
    """As the shell makes one for ``rejoinder score <(…)``."""
    pipe = tmp_path / f"pipe{ending}"
    content = b"".join(b'{"id": "%d", "response": "x"}\n' % n for n in range(9))
    os.mkfifo(pipe)
    packed = gzip.compress(content) if ending else content
    writer = threading.Thread(target=pipe.write_bytes, args=(packed,), daemon=True)
    writer.start()
    with open_items(pipe, twice=True) as source:
        assert len(list(source.read())) == 9
        if writer.is_alive():
            writer.join(10)
        assert len(list(source.read())) == 9
    assert source.name == str(pipe), "complaints name what was given"


def test_a_folder_in_place_of_a_file_is_refused(tmp_path: Path) -> None:
    with (
        open_items(tmp_path, twice=True) as source,
        pytest.raises(DataError, match=r"cannot be read: (it is a folder|is a directory)"),
    ):
        list(source.read())


def test_a_warning_for_items_of_another_domain(start: Start, folder: Path) -> None:
    shutil.copytree(small_evaluator(), folder / "proud")
    manifest = open_evaluator(folder / "proud").manifest
    usual = {"0.1": 0.999999, "0.5": 1.0}
    write_manifest(folder / "proud", msgspec.structs.replace(manifest, coverage=usual))
    code, _, err = start(
        "score", "items.jsonl", "--evaluator", "proud", "-m", "unreferenced", "-o", "s"
    )
    assert code == 0
    assert "warning: these items are outside the domain of proud@" in err
    usual = {"0.1": -1.0, "0.5": 0.0}
    write_manifest(folder / "proud", msgspec.structs.replace(manifest, coverage=usual))
    _, _, err = start(
        "score", "items.jsonl", "--evaluator", "proud", "-m", "unreferenced", "-o", "s"
    )
    assert "outside" not in err


def test_compare(start: Start) -> None:
    code, out, err = start(
        "compare", "items.jsonl", "--evaluator", "small", "-m", "vbleu", "--json"
    )
    assert code == 0, err
    (found,) = json.loads(out)["results"]
    assert found["metric"] == "vbleu"
    assert [row["system"] for row in found["systems"]]
    assert f"evaluator:{name()}" in found["signature"]
    assert "contexts was seen" in err
    assert "coverage by" in err


def test_meta_by_coverage_and_with_the_guard(start: Start) -> None:
    asked = ("--evaluator", "small", "-m", "unreferenced", "-m", "rouge-l", "-o", "s.jsonl")
    assert start("score", "items.jsonl", *asked)[0] == 0
    code, out, _ = start("meta", "items.jsonl", "s.jsonl", "--evaluator", "small", "--json")
    assert code == 0
    found = json.loads(out)
    (contamination,) = found["contamination"]
    assert (contamination["evaluator"], contamination["exact"]) == (name(), 1)
    thirds = found["by_coverage"]
    assert {(t["metric"], t["by"]) for t in thirds} == {
        ("unreferenced", "nearest"),
        ("unreferenced", "agreement"),
    }
    assert sum(t["n"] for t in thirds if t["by"] == "nearest") == 15
    assert thirds[0].keys() >= {"third", "from", "to", "spearman", "pearson", "kendall"}
    code, out, err = start("meta", "items.jsonl", "s.jsonl", "--evaluator", "small")
    assert code == 0
    assert "Agreement with people by similarity of the nearest utterances" in out
    assert "warning: 1 of 5 contexts was seen" in err
    code, _, err = start("meta", "items.jsonl", "s.jsonl", "--evaluator", "small", "--strict")
    assert code == 3
    plain = json.loads(start("meta", "items.jsonl", "s.jsonl", "--json")[1])
    assert plain["contamination"] == []


def test_the_curve_over_references_asks_the_evaluator(start: Start) -> None:
    asked = ("--evaluator", "small", "-m", "vbleu", "-o", "s.jsonl")
    assert start("score", "items.jsonl", *asked)[0] == 0
    curve = ("meta", "items.jsonl", "s.jsonl", "--curve", "--draws", "2", "--json")
    code, out, err = start(*curve, "--evaluator", "small")
    assert code == 0, err
    assert len(json.loads(out)["curves"]["vbleu"]) == 1


def test_expand_rates(start: Start, folder: Path) -> None:
    code, _, err = start("expand", "items.jsonl", "--evaluator", "small", "-o", "expanded.jsonl")
    assert code == 0, err
    rows = scores(folder / "expanded.jsonl")
    added = [r for row in rows for r in row["references"] if isinstance(r, dict) and "source" in r]
    assert {r["source"] for r in added} == {"retrieved", "parrot"}
    assert all(-1 <= r["weight"] <= 1 for r in added)
    assert len([r for r in rows[0]["references"] if r.get("source") == "retrieved"]) == 3
    # what was expanded first and scored then has the scores that score --evaluator gives
    assert start("score", "expanded.jsonl", "-m", "vbleu", "-o", "apart.jsonl")[0] == 0
    asked = ("--evaluator", "small", "-m", "vbleu", "-o", "within.jsonl")
    assert start("score", "items.jsonl", *asked)[0] == 0
    apart, within = (
        [line["value"] for line in scores(folder / f)] for f in ("apart.jsonl", "within.jsonl")
    )
    assert apart == pytest.approx(within, abs=1e-4)
    assert any(apart)


def test_expand_from_the_pool_alone_does_not_rate(start: Start, folder: Path) -> None:
    asked = ("--k", "2", "--no-parrot", "-o", "expanded.jsonl")
    assert start("expand", "items.jsonl", "--pool", "small/pool", *asked)[0] == 0
    row = scores(folder / "expanded.jsonl")[0]
    assert [reference.keys() for reference in row["references"]] == [
        {"text", "source", "score"}
    ] * 2
    code, *_ = start("expand", "items.jsonl", "--evaluator", "small", *asked)
    assert code == 0
    row = scores(folder / "expanded.jsonl")[0]
    assert [r["source"] for r in row["references"]] == ["retrieved"] * 2
    assert all("weight" in reference for reference in row["references"])


def test_the_pool_of_an_evaluator_is_a_pool(start: Start, folder: Path) -> None:
    asked = ("--system", "c-bm25", "--evaluator", "small", "-o", "replies.jsonl")
    code, _, err = start("reply", "items.jsonl", *asked)
    assert code == 0, err
    pool = open_evaluator(small_evaluator()).pool
    known = set(pool.responses(range(pool.size)))
    replies = [row["response"] for row in scores(folder / "replies.jsonl")]
    assert replies
    assert set(replies) <= known
    arguments = ("--k", "1", "--no-parrot", "-o", "expanded.jsonl")
    assert start("expand", "items.jsonl", "--pool", "small", *arguments)[0] == 0
    assert "weight" not in scores(folder / "expanded.jsonl")[0]["references"][0]


def test_show_tells_weights_and_coverage(start: Start) -> None:
    assert start("expand", "items.jsonl", "--evaluator", "small", "-o", "expanded.jsonl")[0] == 0
    asked = ("--evaluator", "small", "-m", "vbleu", "-m", "rouge-l", "-o", "s.jsonl")
    assert start("score", "items.jsonl", *asked)[0] == 0
    code, out, _ = start("show", "expanded.jsonl", "1:a", "--scores", "s.jsonl")
    assert code == 0
    for word in ("weight", "retrieved", "parrot", "nearest", "agreement"):
        assert word in out
    shown = json.loads(start("show", "expanded.jsonl", "1:a", "--scores", "s.jsonl", "--json")[1])
    assert shown["scores"][0]["coverage"].keys() == {"nearest", "agreement"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("score", "items.jsonl", "-m", "unreferenced"), 2, "make one from your logs"),
        (("compare", "items.jsonl", "-m", "ruber"), 2, "needs an evaluator"),
        (("score", "items.jsonl", "-m", "vbleu", "--evaluator", "nowhere"), 3, "no such folder"),
        (("score", "items.jsonl", "-m", "bleu", "--strict"), 2, "--strict checks the items"),
        (("compare", "items.jsonl", "-m", "bleu", "--strict"), 2, "--strict checks the items"),
        (("meta", "items.jsonl", "s", "--strict"), 2, "--strict checks the items"),
        (("meta", "items.jsonl", "s", "--evaluator", "nowhere"), 3, "s: cannot be read"),
        (("score", "items.jsonl", "-m", "rejoinder(ref=bleu,rating=false)", "--evaluator",
          "small"), 2, "bleu"),
        (("expand", "items.jsonl", "-o", "x"), 2, "Give --evaluator DIR or --pool PAIRS"),
        (("expand", "items.jsonl", "-o", "x", "--evaluator", "small", "--by", "bm25"), 2,
         "leave out --pool, --by, --split"),
        (("expand", "items.jsonl", "-o", "x", "--evaluator", "small", "--pool", "p"), 2,
         "leave out --pool"),
    ],
)  # fmt: skip
def test_wrong_usage(start: Start, arguments: tuple[str, ...], code: int, said: str) -> None:
    found, _, err = start(*arguments)
    assert (found, said in err) == (code, True), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "part", ["unreferenced/model.safetensors", "rater/input.json", "pool/pairs.arrow"]
)
def test_a_damaged_part(start: Start, folder: Path, part: str) -> None:
    shutil.copytree(small_evaluator(), folder / "hurt")
    content = (folder / "hurt" / part).read_bytes()
    (folder / "hurt" / part).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    code, _, err = start("score", "items.jsonl", "-m", "vbleu", "--evaluator", "hurt", "-o", "s")
    assert code == 3
    assert f"hurt: the evaluator is damaged, or has a part of another one: {part}" in err


@pytest.mark.parametrize("part", ["rater", "unreferenced"])
def test_a_foreign_part_whose_digests_fit(start: Start, folder: Path, part: str) -> None:
    """The digests fit, but the rater is a scorer: that is found when it is opened."""
    shutil.copytree(small_evaluator(), folder / "mixed")
    other = {"rater": "unreferenced", "unreferenced": "rater"}[part]
    shutil.rmtree(folder / "mixed" / part)
    shutil.copytree(folder / "mixed" / other, folder / "mixed" / part)
    write_manifest(folder / "mixed", open_evaluator(small_evaluator()).manifest)
    code, _, err = start(
        *("score", "items.jsonl", "-m", "vbleu", "-m", "unreferenced"),
        *("--evaluator", "mixed", "-o", "s"),
    )
    assert code == 3
    assert "mixed" in err
    assert err.splitlines()[-1].startswith("rejoinder: ")
    assert "Traceback" not in err


def test_a_newer_evaluator(start: Start, folder: Path) -> None:
    (folder / "new").mkdir()
    (folder / "new" / "manifest.json").write_text('{"kind": "evaluator", "format": 99}')
    code, _, err = start("score", "items.jsonl", "-m", "vbleu", "--evaluator", "new")
    assert code == 3
    assert "update rejoinder" in err
