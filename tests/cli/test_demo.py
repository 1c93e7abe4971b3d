"""``rejoinder demo`` as a newcomer starts it, with tiny settings: real chats, real weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoinder.items import Item
from support import COMMAND, Run

CHATS = 250
TINY = ["demo", "--logs", "chats.json", "--pairs", "200", "--contexts", "12", "--output", "d"]
SYSTEMS = {"human", "c-bm25", "ir-status", "random", "dull"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the first chats of the package, which are read in no time."""
    import chitchat_dataset

    folder = tmp_path_factory.mktemp("demo")
    chats = json.loads(Path(chitchat_dataset.__file__).with_name("dataset.json").read_bytes())
    first = dict(list(chats.items())[:CHATS])
    (folder / "chats.json").write_text(json.dumps(first))
    return folder


@pytest.fixture(scope="module")
def killed(folder: Path) -> Iterator[tuple[str, str]]:
    """A demo that is stopped while it fits, then started again: what each of them said."""
    plain = {**os.environ, "REJOINDER_DATA": ""}
    process = subprocess.Popen(
        [*COMMAND, *TINY], cwd=folder, env=plain, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 200
    work = folder / "d" / ".evaluator.work"
    while time.monotonic() < deadline and process.poll() is None and not work.exists():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, first = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, first
    again = subprocess.run(
        [*COMMAND, *TINY], cwd=folder, env=plain, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0, again.stderr
    yield first, again.stdout + again.stderr


def test_a_demo_that_was_killed_goes_on(killed: tuple[str, str], folder: Path) -> None:
    first, second = killed
    assert "3/16 fit" in first
    assert "4/16" not in first
    assert "1/16 corpus … as before\n2/16 human … as before" in second
    assert "The report: d/report.html" in second
    assert not list((folder / "d").glob(".*.work"))


def test_the_demo_compares_no_reply_with_itself(killed: tuple[str, str], folder: Path) -> None:
    made = folder / "d"
    lines = {p.stem: p.read_text().splitlines() for p in made.glob("*.jsonl")}
    items = [json.loads(line) for line in lines["items"]]
    assert len(items) == 12 * 5
    assert {item["system"] for item in items} == SYSTEMS
    # no reply has a reference, so none is compared with itself
    assert not any(item.get("references") for item in items)
    human = {i["context_id"]: i["response"] for i in items if i["system"] == "human"}
    single = [json.loads(line) for line in lines["single"]]
    assert {item["system"] for item in single} == SYSTEMS - {"human"}
    assert all([r["text"] for r in i["references"]] == [human[i["context_id"]]] for i in single)
    # what is judged by BLEU is what is judged by the evaluator
    said = {item["id"]: item["response"] for item in items}
    assert all(said[item["id"]] == item["response"] for item in single)
    # bots do not say what the evaluator compares them with: other dialogues, other pairs
    expanded = [json.loads(line) for line in lines["expanded"]]
    found = {r["text"] for item in expanded for r in item["references"]}
    assert found
    bots = [i["response"] for i in items if i["system"] in ("c-bm25", "ir-status")]
    assert sum(len(text.split()) > 4 and text in found for text in bots) == 0
    scores = [json.loads(line) for line in lines["scores"]]
    assert {s["metric"] for s in scores} == {"bleu(n=2)", "vbleu", "vbertscore", "rejoinder"}
    page = (made / "report.html").read_text()
    assert "Four bots and people" in page


def test_the_second_run_does_nothing(killed: tuple[str, str], folder: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (folder / "d").rglob("*.jsonl")}
    started = time.monotonic()
    done = subprocess.run(
        [*COMMAND, *TINY],
        cwd=folder,
        env={**os.environ, "REJOINDER_DATA": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert time.monotonic() - started < 20
    assert done.returncode == 0, done.stderr
    steps = [line for line in done.stderr.splitlines() if line[:1].isdigit()]
    assert len(steps) == 16
    assert all(line.endswith("… as before") for line in steps)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "is the reference" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines() if "(1)" in line]


def test_a_package_that_is_missing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'chitchat_dataset' else find(name, *a)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("demo", env={"PYTHONPATH": path})
    assert done.returncode == 4
    assert b"the demo needs chitchat-dataset, not installed; run: pip install" in done.stderr
    assert done.stderr.count(b"\n") == 1


def pairs(folder: Path) -> str:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [
        {
            "dialogue_id": f"dialogue-{n}",
            "turn": 1,
            "context": ["hi"],
            "utterance": "how are you" if n else "what",
            "response": f"fine thanks {n}",
            "split": "test" if n < 6 else "train",
        }
        for n in range(8)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "pairs.parquet")
    return "pairs.parquet"


def test_contexts_are_drawn_from_one_split(run: Run, tmp_path: Path) -> None:
    name = pairs(tmp_path)
    done = run("contexts", name, "-n", "3", "--min-words", "3", "-o", "human.jsonl")
    assert done.returncode == 0, done.stderr
    assert b"3 of 5 test contexts and replies of 3 words or more" in done.stderr
    import rejoinder

    items = rejoinder.load(tmp_path / "human.jsonl")
    assert len(items) == 3
    number = items[0].response.split()[-1]
    assert items[0] == Item(
        f"dialogue-{number}"[:12] + "-1:human",
        f"fine thanks {number}",
        ["hi", "how are you"],
        "human",
        context_id=f"dialogue-{number}"[:12] + "-1",
    )
    run("contexts", name, "-n", "3", "--min-words", "3", "--as-references", "-o", "asked.jsonl")
    asked = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert [a["references"][0]["text"] for a in asked] == [item.response for item in items]
    assert [a["context_id"] for a in asked] == [item.context_id for item in items]
    assert all("response" not in a for a in asked)
    none = run("contexts", name, "--split", "dev")
    assert none.returncode == 3
    assert b"pairs.parquet: has no pair of the split 'dev'" in none.stderr
    other = run("contexts", "human.jsonl")
    assert other.returncode == 3
    assert b"human.jsonl: not a Parquet file" in other.stderr


def test_files_are_joined_whole_or_not_at_all(run: Run, tmp_path: Path) -> None:
    for name, system in (("a", "x"), ("b", "y")):
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"id": "1:{system}", "response": "", "new": 1}}\n'
        )
    done = run("join", "a.jsonl", "b.jsonl", "-o", "both.jsonl")
    assert done.returncode == 0, done.stderr
    both = [json.loads(line) for line in (tmp_path / "both.jsonl").read_text().splitlines()]
    assert [(record["id"], record["new"]) for record in both] == [("1:x", 1), ("1:y", 1)]
    twice = run("join", "a.jsonl", "both.jsonl", "-o", "more.jsonl")
    assert twice.returncode == 3
    assert b"both.jsonl:1: '1:x' is already in a.jsonl:1" in twice.stderr
    assert not (tmp_path / "more.jsonl").exists()
    scores = (
        '{"id": "1", "metric": "bleu", "value": 1}\n{"id": "1", "metric": "chrf", "value": 1}\n'
    )
    (tmp_path / "s.jsonl").write_text(scores)
    assert run("join", "s.jsonl", "-o", "t.jsonl").returncode == 0
    assert (tmp_path / "t.jsonl").read_text().count("\n") == 2
