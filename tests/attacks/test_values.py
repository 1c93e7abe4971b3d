"""Values at the edges: each ends as the design says, without a traceback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from attacks.commands import inputs
from attacks.running import refused, time_limit
from rejoinder.cli.main import run


def lines(path: Path, records: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def finished(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command that must succeed; returns its messages."""
    with time_limit(120):
        code = run(arguments)
    messages = capsys.readouterr().err
    assert code == 0, messages
    return messages


EDGES = [
    "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00Z",
]


@pytest.mark.parametrize("date", [*EDGES, "2020-02-30", "yesterday", "", "9" * 400, "1e400"])
@pytest.mark.parametrize("format", ["messages", "twitter", "reddit"])
def test_dates_at_the_edges_of_the_calendar(
    date: str, format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In records they cost a record at most; in options they are refused."""
    first: dict[str, Any] = {"id": "1", "author": "a", "text": "how are you today", "time": date}
    first |= {"created_at": date, "created_utc": date, "body": first["text"], "name": "t1_1"}
    first |= {"user": {"id_str": "a"}, "id_str": "1", "lang": "en"}
    answer = {"in_reply_to_status_id_str": "1", "reply_to": "1", "parent_id": "t1_1"}
    second = first | {"id": "2", "id_str": "2", "name": "t1_2", "author": "b"} | answer
    log = lines(tmp_path / "log.jsonl", [first, second | {"user": {"id_str": "b"}}])
    arguments = ["corpus", log, "--format", format, "-o", str(tmp_path / "pairs.parquet")]
    refused(arguments, capsys, (0, 3))


@pytest.mark.parametrize("date", [*EDGES, "2020-02-30", "yesterday", "", "9" * 400])
def test_dates_of_a_split(date: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for dates in (date, f"{date},2021-01-01"):
        arguments = ["corpus", str(inputs()["log"]), "--format", "tsv", "--split-at", dates]
        refused([*arguments, "-o", str(tmp_path / "pairs.parquet")], capsys, (0, 2, 3))


TABLES: dict[str, pa.Table] = {
    "integers": pa.table({"utterance": [1, 2], "response": [3, 4]}),
    "nulls": pa.table({"utterance": ["a", None], "response": ["b", "c"]}),
    "lists": pa.table({"utterance": [["a"]], "response": [["b"]]}),
    "bytes": pa.table({"utterance": [b"\xff"], "response": [b"a"]}),
    "no response": pa.table({"utterance": ["a"]}),
    "no rows": pa.table({"utterance": pa.array([], "string"), "response": pa.array([], "string")}),
    "two of one name": pa.Table.from_arrays(
        [pa.array(["a"])] * 3, ["utterance", "response", "response"]
    ),
    "two of one other name": pa.Table.from_arrays(
        [pa.array(["a"])] * 4, ["utterance", "response", "x", "x"]
    ),
    "integer context": pa.table({"utterance": ["a"], "response": ["b"], "context": [1]}),
    "integers in contexts": pa.table({"utterance": ["a"], "response": ["b"], "context": [[1]]}),
    "integer split": pa.table({"utterance": ["a"], "response": ["b"], "split": [1]}),
}
VERBS: dict[str, Callable[[str, str], list[str]]] = {
    "fit": lambda pairs, out: ["fit", pairs, "--preset", "tiny", "-o", out],
    "index": lambda pairs, out: ["index", pairs, "--by", "bm25", "-o", out],
    "expand": lambda pairs, out: [
        *("expand", str(inputs()["items"]), "--pool", pairs, "--by", "bm25", "-o", out)
    ],
    "reply": lambda pairs, out: [
        *("reply", str(inputs()["items"]), "--system", "random", "--pool", pairs, "-o", out)
    ],
    "sample": lambda pairs, out: ["sample", pairs, "-n", "1", "-o", out],
    "contexts": lambda pairs, out: ["contexts", pairs, "--split", "", "-n", "1", "-o", out],
    "vectors": lambda pairs, out: ["train", "vectors", pairs, "--min-count", "1", "-o", out],
    "dapt": lambda pairs, out: ["train", "dapt", pairs, "--steps", "1", "-o", out],
    "calibration": lambda pairs, out: ["train", "calibration", pairs, "--pairs", "1", "-o", out],
}
COPIES = {"sample"}
"""Verbs that pass rows on without looking at the texts."""


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("kind", TABLES)
def test_pairs_of_the_wrong_type(
    verb: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = str(tmp_path / "pairs.parquet")
    pq.write_table(TABLES[kind], pairs)
    unread = kind in ("two of one other name", "integer context", "integers in contexts", "nulls")
    may_work = unread or kind == "integer split" or verb in COPIES
    codes = (0, 2, 3, 4) if may_work else (2, 3, 4)
    refused(VERBS[verb](pairs, str(tmp_path / "out")), capsys, codes)


@pytest.mark.parametrize("value", [5e-324, -5e-324, 1e-310, 1e100, -1e100, 0.0])
def test_scores_at_the_edges_of_numbers(
    value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [json.loads(line) for line in inputs()["items"].read_text().splitlines()]
    values = (0.0, value, value / 2, -value)
    scores = [
        {"id": r["id"], "metric": m, "value": values[n % size]}
        for m, size in (("a", 2), ("b", 4))
        for n, r in enumerate(records)
    ]
    items, path = str(inputs()["items"]), lines(tmp_path / "scores.jsonl", scores)
    for arguments in (
        ["report", items, path, "-o", str(tmp_path / "report.html"), "--resamples", "100"],
        ["meta", items, path, "--resamples", "100", "--json"],
        ["compare", items, path, "--resamples", "100", "--json"],
        ["show", items, "0x", "--scores", path],
    ):
        refused(arguments, capsys, (0, 3))


@pytest.mark.parametrize(
    "preset",
    [
        "a = " + "[" * 50_000,
        "a = 'b\0c'",
        "x = 1" + "0" * 5_000,
        "[data]\nmax_pairs = -1",
        "\udcff",
    ],
    ids=["deep", "NUL", "digits", "negative", "no UTF-8"],
)
def test_hostile_presets(preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "preset.toml"
    path.write_bytes(preset.encode("utf-8", "surrogateescape"))
    arguments = ["fit", str(inputs()["pairs"]), "--preset", str(path), "-o", str(tmp_path / "ev")]
    refused(arguments, capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "@items", "-m", "bleu(" * 5_000],
        ["score", "@items", "-m", "bleu(n=" + "9" * 5_000 + ")"],
        ["score", "@items", "-m", "bleu(n=1e400)"],
        ["score", "@items", "-m", "a\0b"],
        ["score", "@items", "-m", "\ud800"],
        ["score", "@items", "-m", "bleu", "--columns", "=,=,"],
        ["score", "@items", "-m", "bleu", "--fail-under", "bleu=nan"],
        ["compare", "@items", "-m", "bleu", "--margin", "nan", "--fail-if", "worse-than=x"],
        ["compare", "@items", "-m", "bleu", "--fail-if", "worse-than=nobody"],
        ["meta", "@items", "@scores", "--min-kappa", "nan"],
        ["reply", "@items", "--system", "random(" * 3_000],
        ["expand", "@items", "--pool", "@pairs", "--by", "bm25(k1=nan)", "-o", "@@out"],
        ["train", "vectors", "@texts", "--x-max", "nan", "-o", "@@out"],
        ["pairs", "plan", "@items", "--share", "nan"],
        ["explain", "recall(d=" * 3_000],
    ],
)
def test_hostile_options(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [
        str(tmp_path / "out") if word == "@@out"
        else str(inputs()[word[1:]]) if word.startswith("@") else word
        for word in arguments
    ]  # fmt: skip
    refused(filled, capsys)
    assert not (tmp_path / "out").exists()


def test_a_recipe_that_runs_itself_through_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(
            f'[[steps]]\nname = "{name}"\nrun = ["run", "{tmp_path}/{other}.toml", "--work",'
            f' "{tmp_path}/work-{other}"]\noutputs = ["{tmp_path}/never"]\n'
        )
    refused(["run", str(tmp_path / "a.toml"), "--work", str(tmp_path / "work-a")], capsys)


@pytest.mark.parametrize(
    "command",
    [
        *(
            f"score @items -m {metric}"
            for metric in (
                "sentence-cosine(model=~~)",
                "bertscore(model=~~)",
                "embedding-average(vectors=~~)",
                "bleu(tok=sentencepiece(model=~~))",
            )
        ),
        "index @pairs --by vectors(vectors=~~)",
        "train dapt @pairs --model ~~",
    ],
)
def test_homes_of_unknown_users(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        str(inputs()[word[1:]]) if word.startswith("@") else word for word in command.split()
    ]
    message = refused([*arguments, "-o", str(tmp_path / "out")], capsys)
    assert "~~" in message
