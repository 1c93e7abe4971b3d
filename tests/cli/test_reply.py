"""``rejoinder reply`` as a user starts it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import Run

CONTEXTS = """\
{"id": "1:a", "context_id": "1", "context": ["hello", "how was your trip to Kyoto"], "response": "x", "references": ["Great!"], "ratings": 4, "system": "a"}
{"id": "1:b", "context_id": "1", "context": ["hello", "how was your trip to Kyoto"], "response": "y", "system": "b"}
{"id": "2:a", "context": ["do you like rice cakes"]}
{"id": "3:a", "context": []}
{"context": ["zzz"]}
"""  # noqa: E501
PAIRS = [
    ("How was your trip to Kyoto?", "the leaked answer"),
    ("How was the trip?", "Long, but good."),
    ("Do you like cakes?", "Yes, all of them."),
    ("Do you like tea?", "I don't know."),
    ("Is it far?", "I don't know"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "contexts.jsonl").write_text(CONTEXTS)
    utterances, responses = zip(*PAIRS, strict=True)
    pairs = pa.table({"utterance": utterances, "response": responses})
    pq.write_table(pairs, tmp_path / "pairs.parquet")
    return tmp_path


def test_systems_reply_as_items(run: Run, folder: Path) -> None:
    systems = ["-s", "ir-status", "-s", "parrot", "-s", "random", "-s", "dull(top=1)"]
    done = run(
        "reply", "contexts.jsonl", *systems, "--pool", "pairs.parquet", "-o", "out.jsonl",
        "--seed", "7", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["contexts"] == 4
    assert summary["leaks"] == 1
    assert summary["systems"][0] == {
        "system": "ir-status",
        "replies": 2,
        "without_reply": {
            "the context has no turn": 1,
            "no word of the utterance occurs in the pool": 1,
        },
    }
    names = [row["system"] for row in summary["systems"]]
    assert names == ["ir-status", "parrot", "random(seed=7)", "dull(top=1,seed=7)"]
    items = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert items[0] == {
        "id": "1:ir-status",
        "response": "Long, but good.",
        "context": ["hello", "how was your trip to Kyoto"],
        "system": "ir-status",
        "references": [{"text": "Great!"}],
        "context_id": "1",
    }
    assert items[1]["id"] == "2:a:ir-status"
    assert items[1]["response"] == "Yes, all of them."
    said = {item["id"]: item["response"] for item in items}
    assert said["1:parrot"] == "how was your trip to Kyoto"
    assert said["42c692ad5a6d:dull(top=1,seed=7)"] in ("I don't know.", "I don't know")
    assert all(text != "the leaked answer" for text in said.values())
    # what comes out goes in again: same contexts, and a metric can score it
    again = run("reply", "out.jsonl", "-s", "parrot")
    assert again.stdout.count(b"\n") == 3
    assert run("score", "out.jsonl", "-m", "bleu(n=1)", "-o", "s.jsonl").returncode == 0


def test_several_replies_to_a_context(run: Run, folder: Path) -> None:
    arguments = ["--pool", "pairs.parquet", "-n", "3"]
    done = run("reply", "contexts.jsonl", "-s", "ir-status", *arguments)
    assert done.returncode == 0, done.stderr
    items = [json.loads(line) for line in done.stdout.splitlines()]
    assert [item["id"] for item in items if item["context_id"] == "2:a"] == [
        "2:a:ir-status:1",
        "2:a:ir-status:2",
    ]
    assert b"ir-status: 1 contexts without a reply: the context has no turn" in done.stderr
    assert b"1 pairs of the pool left out" in done.stderr


def test_replies_as_references(run: Run, folder: Path) -> None:
    """Controls for retrieved references: the parrot and the most frequent response."""
    items = CONTEXTS.splitlines()[:2]
    (folder / "items.jsonl").write_text("\n".join(items))
    done = run(
        "reply", "items.jsonl", "-s", "ir-status", "-s", "parrot", "-n", "2", "--as-references",
        "--pool", "pairs.parquet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    parrot = {"text": "how was your trip to Kyoto", "source": "parrot"}
    retrieved = {"text": "Long, but good.", "source": "ir-status"}
    assert found[0]["references"] == [{"text": "Great!"}, retrieved, parrot]
    assert found[1]["references"] == [retrieved, parrot]
    for new, old in zip(found, map(json.loads, items), strict=True):
        assert {**new, "references": 0} == {**old, "references": 0}
    done = run("reply", "contexts.jsonl", "-s", "parrot", "--as-references")
    assert done.returncode == 3
    assert b"contexts.jsonl:3: the field is missing" in done.stderr
    done = run("reply", "-", "-s", "parrot", "--as-references")
    assert b"give a file, not a pipe" in done.stderr


def test_leaks_can_be_kept(run: Run, folder: Path) -> None:
    done = run("reply", "contexts.jsonl", "-s", "c-bm25", "--pool", "pairs.parquet", "--keep-leaks")
    assert json.loads(done.stdout.splitlines()[0])["response"] == "the leaked answer"


@pytest.mark.parametrize(
    ("arguments", "code", "complaints"),
    [
        (
            ["-s", "c-bm52", "-s", "dull(top=0)", "-s", "random", "-s", "random"],
            2,
            [
                "did you mean 'c-bm25'",
                "top=0",
                "'random' is given twice",
                "random: add --pool PAIRS",
            ],
        ),
        (["-s", "parrot", "--json"], 2, ["add -o FILE"]),
        (["-s", "dull", "--pool", "none.parquet"], 3, ["none.parquet: cannot be read"]),
        (["-s", "dull", "--pool", "contexts.jsonl"], 3, ["contexts.jsonl: not a Parquet file"]),
        (["-s", "parrot", "-o", "contexts.jsonl"], 2, ["would overwrite the input"]),
    ],
)
def test_bad_arguments(
    run: Run, folder: Path, arguments: list[str], code: int, complaints: list[str]
) -> None:
    done = run("reply", "contexts.jsonl", *arguments)
    assert done.returncode == code, done.stderr
    messages = done.stderr.decode()
    assert messages.count("\n") == len(complaints)
    for complaint in complaints:
        assert complaint in messages


def test_bad_contexts(run: Run, folder: Path) -> None:
    done = run("reply", "-", "-s", "parrot", stdin=b'{"context": ["a"]}\n{"context": 1}\n')
    assert done.returncode == 3
    assert done.stderr.startswith(b"rejoinder: stdin:2: context: expected a list")
    assert not done.stdout
