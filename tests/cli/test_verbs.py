"""The contract: verbs, options, formats and order that other programs rely on."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from support import COMMAND, Run


@pytest.fixture
def judged(run: Run, tmp_path: Path, data: Path) -> Path:
    done = run(
        "datasets", "export", "dailydialog-multiref", "--references", "single", "-o", "items.jsonl"
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_only_some_systems_are_exported(run: Run, judged: Path) -> None:
    done = run(
        "datasets", "export", "dailydialog-multiref", "--system", "human", "--system", "hredf"
    )
    systems = [json.loads(line)["system"] for line in done.stdout.splitlines()]
    assert sorted(set(systems)) == ["hredf", "human"]
    assert len(systems) == 200


def test_datasets_score_meta(run: Run, judged: Path) -> None:
    metrics = ["bleu(n=2,smooth=epsilon,tok=whitespace)", "rouge-l", "bleu(n=1,tok=whitespace)"]
    asked = [part for metric in metrics for part in ("-m", metric)]
    done = run("score", "items.jsonl", *asked, "-o", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (judged / "scores.jsonl").read_text().splitlines()]
    assert len(lines) == 1500
    assert [line["metric"] for line in lines[:3]] == metrics
    assert {line["id"] for line in lines[:3]} == {"73_4:human"}
    assert all("|version:" in line["signature"] for line in lines)
    done = run("meta", "items.jsonl", "scores.jsonl", "--json")
    found = json.loads(done.stdout)
    assert [row["metric"] for row in found["results"]] == metrics
    first = found["results"][0]
    assert (first["level"], first["n"], first["unscored"]) == ("item", 500, 0)
    assert round(first["spearman"], 4) == 0.0250
    assert round(first["pearson"], 4) == 0.1803
    assert first["pearson_ci"][0] < first["pearson"] < first["pearson_ci"][1]
    for name in ("spearman", "pearson", "kendall"):
        assert {name, f"{name}_p", f"{name}_ci"} <= set(first)
    again = run("meta", "items.jsonl", "scores.jsonl", "--json")
    assert again.stdout == done.stdout
    by_system = json.loads(
        run("meta", "items.jsonl", "scores.jsonl", "--level", "system", "--json").stdout
    )
    assert [row["n"] for row in by_system["results"]] == [5, 5, 5]


def test_score_streams_from_stdin_to_stdout(run: Run) -> None:
    item = {"id": "1", "response": "a b c", "references": ["a b c"]}
    done = run("score", "-", "-m", "bleu(n=2)", stdin=json.dumps(item).encode())
    assert json.loads(done.stdout)["value"] == 1.0
    assert b"bleu|n:2|" in done.stderr


def test_compressed_in_and_out(run: Run, tmp_path: Path) -> None:
    item = json.dumps({"id": "1", "response": "a b", "references": ["a b"]}).encode()
    (tmp_path / "items.jsonl.gz").write_bytes(gzip.compress(item))
    assert run("score", "items.jsonl.gz", "-m", "chrf", "-o", "s.jsonl.gz").returncode == 0
    assert json.loads(gzip.decompress((tmp_path / "s.jsonl.gz").read_bytes()))["metric"] == "chrf"
    assert run("score", "items.jsonl.gz", "-m", "chrf", "-o", "s.jsonl.zst").returncode == 0


def test_set_metrics_in_scores_and_meta(run: Run, tmp_path: Path) -> None:
    items = [
        {
            "id": f"{c}{s}{k}",
            "context_id": str(c),
            "system": s,
            "response": f"{s} says {k} to {c}",
            "references": ["a says 1"],
            "ratings": c + len(s),
        }
        for c in range(3)
        for s in ("a", "bb", "ccc")
        for k in range(2)
    ]
    (tmp_path / "i.jsonl").write_text("\n".join(map(json.dumps, items)))
    asked = [
        "-m",
        "distinct(n=1)",
        "-m",
        "recall(d=rouge-l)",
        "-m",
        "self-bleu(n=2)",
        "-m",
        "rouge-l",
    ]
    assert run("score", "i.jsonl", *asked, "-o", "s.jsonl").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    levels = [line.get("level", "item") for line in lines]
    # 18 items by one item metric; 3 set metrics, each 9 sets and 3 systems
    assert [levels.count(level) for level in ("item", "context", "system")] == [18, 27, 9]
    done = run("meta", "i.jsonl", "s.jsonl", "--json")
    found = json.loads(done.stdout)
    assert [row["metric"] for row in found["results"]] == ["rouge-l"]
    assert set(found["refused"]) == {"distinct(n=1)", "recall(d=rouge-l)", "self-bleu(n=2)"}
    for level, n in (("system", 3), ("context", 9)):
        found = json.loads(run("meta", "i.jsonl", "s.jsonl", "--level", level, "--json").stdout)
        assert [row["n"] for row in found["results"]] == [n] * 4


def test_compare_json(run: Run, judged: Path) -> None:
    done = run("compare", "items.jsonl", "-m", "bleu(n=2)", "--json", "--resamples", "200")
    (result,) = json.loads(done.stdout)["results"]
    assert len(result["systems"]) == 5
    assert len(result["pairs"]) == 10
    values = [row["value"] for row in result["systems"]]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("verb", ["score", "compare", "meta", "ls", "datasets"])
def test_tables_fit_80_columns(run: Run, judged: Path, verb: str) -> None:
    arguments = {
        "score": [
            "score",
            "items.jsonl",
            "-m",
            "bleu(n=2,tok=whitespace)",
            "-m",
            "chrf",
            "-o",
            "s",
        ],
        "compare": ["compare", "items.jsonl", "-m", "bleu(n=2,tok=whitespace)"],
        "meta": ["meta", "items.jsonl", "s", "--curve", "--draws", "2"],
        "ls": ["ls"],
        "datasets": ["datasets", "list"],
    }
    if verb == "meta":
        assert run(*arguments["score"]).returncode == 0
    done = run(*arguments[verb])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80


def test_ls_json_names_the_contract(run: Run) -> None:
    listed = json.loads(run("ls", "--json").stdout)
    metrics = {row["name"]: row for row in listed["metrics"]}
    expected = "bleu delta-bleu rouge-l meteor chrf ribes wer distinct entropy self-bleu recall"
    assert set(expected.split()) <= set(metrics)
    assert metrics["delta-bleu"]["needs"] == ["references", "weights"]
    assert metrics["bleu"]["parameters"]["smooth"] == "epsilon"
    tokenizers = {row["name"] for row in listed["tokenizers"]}
    names = "whitespace 13a intl char ja-mecab zh-jieba sentencepiece"
    assert " ".join(sorted(tokenizers)) == " ".join(sorted(names.split()))


def test_explain_prints_the_definition(run: Run) -> None:
    text = run("explain", "bleu(n=3)").stdout.decode()
    assert "Papineni" in text
    assert "n = 3" in text
    assert "bleu|n:3|" in text


def test_third_party_metrics_and_tokenizers(run: Run, tmp_path: Path) -> None:
    """A package adds both through entry points: a folder with metadata is enough."""
    (tmp_path / "plug.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "import numpy as np\n"
        "from rejoinder.metrics.metric import ItemMetric\n"
        "from rejoinder.text.tokenizers.tokenizer import Tokenizer\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Length(ItemMetric):\n"
        "    name: ClassVar[str] = 'reply-length'\n"
        "    summary: ClassVar[str] = 'letters in the reply'\n"
        "    scale: float = 1.0\n"
        "    def stats(self, batch):\n"
        "        sizes = [len(batch.table.texts[i]) for i in batch.reply]\n"
        "        return np.column_stack([sizes, np.ones(len(batch))]) * [self.scale, 1]\n"
        "    def finish(self, rows):\n"
        "        return rows[..., 0] / rows[..., 1]\n"
        "@dataclass(frozen=True)\n"
        "class Halves(Tokenizer):\n"
        "    def tokenize(self, texts):\n"
        "        return [[t[: len(t) // 2], t[len(t) // 2 :]] for t in texts]\n"
        "    def signature(self):\n"
        "        return 'halves'\n"
    )
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[rejoinder.metrics]\nreply-length = plug:Length\n"
        "[rejoinder.tokenizers]\nhalves = plug:Halves\n"
    )
    item = json.dumps({"id": "1", "response": "abcd", "references": ["abxx"]}).encode()
    done = run(
        "score", "-", "-m", "reply-length(scale=2.0)", "-m", "bleu(n=1,tok=halves)",
        stdin=item, env={"PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["value"] for line in done.stdout.splitlines()] == [8.0, 0.5]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Peak memory of 20,000 and of 200,000 items differs by what their ids cost, no more."""
    peaks = []
    for count in (20_000, 200_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w") as stream:
            for i in range(count):
                words = f"reply number {i} of many , word{i % 997} word{i % 89}"
                line = {"id": str(i), "response": words, "references": [words[3:], "word1 word2"]}
                stream.write(json.dumps(line) + "\n")
        code = (
            "import resource, sys\nfrom rejoinder.cli.main import run\n"
            f"code = run(['score', {str(path)!r}, '-m', 'bleu(n=2)', '-m', 'rouge-l',"
            " '-o', '/dev/null'])\n"
            "sys.stderr.write(f'PEAK {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}')\n"
            "sys.exit(code)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stderr.rpartition("PEAK ")[2]) / 1024)
    # 16 bytes an id and the arrays that find duplicates: 180,000 more items, below 25 MB
    assert peaks[1] - peaks[0] < 25, peaks


@pytest.mark.parametrize(("no_color", "colours"), [("", True), ("1", False)])
def test_no_color_is_respected_on_a_terminal(tmp_path: Path, no_color: str, colours: bool) -> None:
    """A table's head is bold on a terminal; NO_COLOR keeps bold and drops colour, so ask for help,
    which is coloured."""
    reader, writer = os.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    env.pop("NO_COLOR", None)
    if no_color:
        env["NO_COLOR"] = no_color
    process = subprocess.Popen([*COMMAND, "--help"], stdout=writer, stderr=writer, env=env)
    os.close(writer)
    output = b""
    with contextlib.suppress(OSError):  # the other end is closed: the program has ended
        while part := os.read(reader, 65536):
            output += part
    os.close(reader)
    assert process.wait(timeout=60) == 0
    assert (re.search(rb"\x1b\[(\d+;)*3[0-7]m", output) is not None) == colours


def test_no_escapes_outside_a_terminal(run: Run) -> None:
    item = json.dumps({"id": "1", "response": "a b", "references": ["a b"]}).encode()
    done = run("score", "-", "-m", "bleu", stdin=item)
    assert b"\x1b[" not in done.stderr + done.stdout


def test_version_and_help(run: Run) -> None:
    from rejoinder import __version__

    assert run("--version").stdout.decode() == f"rejoinder {__version__}\n"
    for verb in ("score", "compare", "meta", "datasets", "ls", "explain", "demo"):
        done = run(verb, "--help")
        assert done.returncode == 0
        assert max(map(len, done.stdout.decode().splitlines())) <= 80


def test_the_installed_command_is_the_same_program() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="rejoinder")
    assert script.value == "rejoinder.cli.main:main"


def test_parts_statistic_human_system_and_curve(run: Run, judged: Path) -> None:
    asked = ["-m", "bleu(n=2)", "-m", "rouge-l", "--parts"]
    assert run("score", "items.jsonl", *asked, "-o", "s.jsonl").returncode == 0
    first, second = (judged / "s.jsonl").read_text().splitlines()[:2]
    assert set(json.loads(first)["parts"]) == {"p1", "p2", "bp"}
    assert set(json.loads(second)["parts"]) == {"precision", "recall"}
    options = ["--statistic", "kendall", "--human-system", "hredf", "--curve", "--draws", "2"]
    options += ["--svg", "curve.svg"]
    found = json.loads(run("meta", "items.jsonl", "s.jsonl", *options, "--json").stdout)
    assert found["differences"][0]["statistic"] == "kendall"
    assert found["differences"][0]["williams"] is None
    assert found["results"][0]["without_human"]["n"] == 400
    assert [point["references"] for point in found["curves"]["rouge-l"]] == [1]
    drawn = ET.parse(judged / "curve.svg").getroot()
    assert any(e.text == "Kendall correlation" for e in drawn.iter())
    done = run("meta", "items.jsonl", "s.jsonl", "--curve", "--level", "system")
    assert done.returncode == 2


def test_dash_is_stdout(run: Run) -> None:
    item = json.dumps({"id": "1", "response": "a b", "references": ["a b"]}).encode()
    done = run("score", "-", "-m", "chrf", "-o", "-", stdin=item)
    assert json.loads(done.stdout)["value"] == 1.0
    assert run("score", "-", "-m", "chrf", "-o", "-", "--json", stdin=item).returncode == 2


def test_markup_and_control_characters_in_names_are_printed(run: Run, tmp_path: Path) -> None:
    names = ["[red]x[/red]", "[/x]", "a\nb\x1b[31m", "n" * 300]
    items = [
        {
            "id": f"{c}{s}",
            "context_id": str(c),
            "system": s,
            "response": f"a {c}",
            "references": ["a 1"],
        }
        for c in range(4)
        for s in names
    ]
    (tmp_path / "i.jsonl").write_text("\n".join(map(json.dumps, items)))
    for verb in (
        ["score", "i.jsonl", "-m", "chrf", "-o", "s"],
        ["compare", "i.jsonl", "-m", "chrf"],
    ):
        done = run(*verb)
        assert done.returncode == 0, done.stderr
        text = done.stdout.decode()
        assert "[red]x[/red]" in text
        assert "[/x]" in text
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80


def test_equal_metrics_are_refused_however_they_are_written(run: Run) -> None:
    done = run("score", "-", "-m", "bleu", "-m", "bleu(n=4)")
    assert done.returncode == 2
    assert b"'bleu(n=4)' is given twice" in done.stderr


def test_bad_references_are_none_for_metrics_without_weights(run: Run, tmp_path: Path) -> None:
    bad = {"text": "I don't know.", "weight": -0.5}
    items = [
        {"id": "1", "response": "I don't know.", "references": [bad, "Yes, please."]},
        {"id": "2", "response": "I don't know.", "references": [bad]},
    ]
    (tmp_path / "i.jsonl").write_text("\n".join(map(json.dumps, items)))
    assert run("score", "i.jsonl", "-m", "chrf", "-m", "delta-bleu", "-o", "s").returncode == 0
    lines = [json.loads(line) for line in (tmp_path / "s").read_text().splitlines()]
    assert lines[0]["value"] < 0.3
    assert lines[2]["unscored"] == lines[3]["unscored"] == "no reference has a weight above 0"


def test_a_broken_plugin_does_not_stand_in_the_way(run: Run, tmp_path: Path) -> None:
    info = tmp_path / "plug-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rejoinder.metrics]\nbroken = nowhere:Nothing\n")
    env = {"PYTHONPATH": str(tmp_path)}
    done = run("ls", "--json", env=env)
    assert done.returncode == 0
    assert "bleu" in {row["name"] for row in json.loads(done.stdout)["metrics"]}
    assert b"the metric 'broken' of plug cannot be loaded" in done.stderr
    assert run("score", "-", "-m", "broken", env=env).returncode == 2


def test_ls_tells_metrics_of_items_of_sets_and_tokenizers_apart(run: Run) -> None:
    listed = json.loads(run("ls", "--json").stdout)
    kinds = {row["name"]: row["kind"] for row in listed["metrics"] + listed["tokenizers"]}
    assert (kinds["bleu"], kinds["distinct"], kinds["13a"]) == ("item", "set", "tokenizer")


@pytest.mark.parametrize("metric", ["bleu", "rouge-l", "meteor", "chrf", "ribes", "wer"])
def test_parts_where_nothing_or_little_can_be_scored(run: Run, metric: str) -> None:
    bare = b'{"id": "1", "response": "a b"}\n'
    good = b'{"id": "2", "response": "a b", "references": ["a b"]}\n'
    env = {"PYTHONWARNINGS": "error"}
    for stdin, parts in ((bare, [False]), (bare + good, [False, True])):
        done = run("score", "-", "-m", metric, "--parts", stdin=stdin, env=env)
        assert done.returncode == 0, done.stderr
        assert ["parts" in json.loads(line) for line in done.stdout.splitlines()] == parts


def test_python_m() -> None:
    done = subprocess.run([sys.executable, "-m", "rejoinder", "ls"], capture_output=True)
    assert done.returncode == 0
    assert b"bleu" in done.stdout
