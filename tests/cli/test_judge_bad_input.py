"""Judges and bad input on the command line: rubrics, servers, budgets, windows and caches."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from planted_server import Action, planted_server, raw, status, unused_url
from rejoinder.files.cache import _checksum
from rejoinder.items import Item
from support import Run

SETTINGS = "logprobs=false,structured=false"
TURNS = ["How are you?", "Where is it?", "What is that?"]
RUBRIC = """---
tone: nice
delimiters: quotes
---
# System
You rate {reply}.
# Question
{contxt} is it good?
# Questions
Is it?
"""


def planned(actions: list[Action]) -> dict[str, list[Action]]:
    """The same for the question about each of the items."""
    rater = rejoinder.Judge().rater
    questions = [rater._messages(Item("i", "Fine.", [turn]))[-1].content for turn in TURNS]
    return dict.fromkeys(questions, actions)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "items.jsonl", [{"context": [turn], "response": "Fine."} for turn in TURNS])
    return tmp_path


def write(path: Path, items: list[dict[str, Any]]) -> None:
    lines = [json.dumps({"id": str(n)} | item) + "\n" for n, item in enumerate(items)]
    path.write_text("".join(lines))


def scoring(spec: str) -> list[str]:
    return ["score", "items.jsonl", "-m", spec, "-o", "scores.jsonl"]


def env(folder: Path) -> dict[str, str]:
    return {"REJOINDER_CACHE": str(folder / "cache"), "OPENAI_API_KEY": ""}


def said(done: Any) -> str:
    return " ".join(done.stderr.decode().split())


def scores(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]


def test_all_problems_of_a_rubric_at_once(run: Run, folder: Path) -> None:
    (folder / "bad.md").write_text(RUBRIC)
    spec = "judge(url=http://127.0.0.1:9/v1,model=m,rubric=./bad.md)"
    done = run(*scoring(spec), env=env(folder))
    assert done.returncode == 2
    problems = [
        line for line in done.stderr.decode().splitlines() if line.startswith("rejoinder: rubric")
    ]
    assert len(problems) == 8
    for part in (
        "unknown setting 'tone'",
        "it has no scale; begin the file with '---', 'scale: 1-5', '---'",
        "delimiters 'quotes' is not one of tags, json, none",
        "unknown section '# Questions': did you mean 'Question'?",
        "# System: only {scale} may be used there, not {reply}",
        "# Question: unknown slot {contxt}: did you mean 'context'?",
        "# Question: the slot {reply} is missing",
        "# Question: the slot {scale} is missing",
    ):
        assert part in said(done)
    assert not (folder / "scores.jsonl").exists()


def test_a_scale_that_the_model_never_answers_on(run: Run, folder: Path) -> None:
    """Each reply is unscored with the text of the answer, and was asked about twice."""
    with planted_server(say=lambda body: "9") as server:
        done = run(*scoring(f"judge(url={server.url},model=m,{SETTINGS})"), env=env(folder))
        assert sum(server.asked.values()) == 6
    assert done.returncode == 0, done.stderr
    assert [line["unscored"] for line in scores(folder)] == [
        "the answer is not on the scale: '9'"
    ] * 3
    assert "3 unscored: the answer is not on the scale" in said(done)
    assert "3 answers could not be read and were asked for again; 0 could be read then" in said(
        done
    )


def test_a_server_that_is_down_wrong_or_wants_a_key(run: Run, folder: Path) -> None:
    def refused(spec: str) -> str:
        done = run(*scoring(spec), env=env(folder))
        assert done.returncode == 4, done.stderr
        assert b"Traceback" not in done.stderr and not (folder / "scores.jsonl").exists()
        return said(done)

    url = unused_url()
    assert f"rejoinder: {url}: cannot be reached" in refused(f"judge(url={url},model=m)")
    with planted_server() as server:
        wrong = refused(f"judge(url={server.url}/elsewhere,model=m)")
        assert "has no model 'm', or is not the address of an OpenAI-compatible server" in wrong
        server.key = "right"
        wanted = refused(f"judge(url={server.url},model=m)")
        assert "wants a key: set the environment variable OPENAI_API_KEY" in wanted
        named = f"judge(url={server.url},model=m,key_variable=MY_KEY)"
        assert "the environment variable MY_KEY has no key; set it" in refused(named)
        done = run(*scoring(named), env=env(folder) | {"MY_KEY": "sk-secret"})
        assert done.returncode == 4 and "secret" not in said(done)
        assert "rejects the key in the environment variable MY_KEY" in said(done)
    with planted_server({}, say=lambda body: "4") as server:
        server.plan = planned([raw(b"<html>a page</html>")] * 9)
        done = run(*scoring(f"judge(url={server.url},model=m,{SETTINGS})"), env=env(folder))
        assert [line["unscored"] for line in scores(folder)] == ["the answer is not JSON"] * 3
        (folder / "scores.jsonl").unlink()
        server.plan = planned([status(500)] * 99)
        broken = refused(f"judge(url={server.url},model=m,{SETTINGS},retries=0)")
        assert "none of 3 requests was answered: the server said 500" in broken


def test_a_budget_that_is_too_small(run: Run, folder: Path) -> None:
    with planted_server(say=lambda body: "4") as server:
        spec = f"judge(url={server.url},model=m,{SETTINGS},concurrency=1)"
        done = run(*scoring(spec), "--most-requests", "2", env=env(folder))
        assert done.returncode == 0, done.stderr
        assert "the budget allows 2 requests" in said(done)
        found = scores(folder)
        assert [line["value"] for line in found] == [4.0, 4.0, None]
        assert found[2]["unscored"] == "budget: 2 requests were sent"
        # what was done is kept: the rest takes one request
        done = run(*scoring(spec), "--most-requests", "1", env=env(folder))
        assert [line["value"] for line in scores(folder)] == [4.0] * 3
        assert sum(server.asked.values()) == 3
        other = spec.replace("model=m", "model=n")
        done = run(*scoring(other), "--most-tokens", "10", env=env(folder))
        assert [line["unscored"] for line in scores(folder)] == [
            "budget: 10 tokens do not suffice"
        ] * 3
        assert sum(server.asked.values()) == 3


def test_a_context_longer_than_the_window(run: Run, folder: Path) -> None:
    long = {"context": [f"turn {n} " + "x " * 200 for n in range(20)], "response": "Fine."}
    write(folder / "items.jsonl", [long, {"context": ["How are you?"], "response": "Fine."}])
    with planted_server(say=lambda body: "4") as server:
        spec = f"judge(url={server.url},model=m,{SETTINGS},window=800)"
        done = run(*scoring(spec), env=env(folder))
        first = server.bodies[0]["messages"][-1]["content"]
    assert done.returncode == 0, done.stderr
    assert "1 contexts are longer than window=800: their beginning was left out" in said(done)
    assert "turn 19" in first and "turn 1 " not in first and len(first) / 4 < 800


def test_a_cache_of_another_version(run: Run, folder: Path) -> None:
    with planted_server(say=lambda body: "4") as server:
        arguments = scoring(f"judge(url={server.url},model=m,{SETTINGS})")
        assert run(*arguments, env=env(folder)).returncode == 0
        first = [line["value"] for line in scores(folder)]
        (file,) = (folder / "cache").glob("answers*.sqlite")
        with sqlite3.connect(file) as database:
            keys = [key for (key,) in database.execute("SELECT key FROM entries")]
            for key in keys:
                other = b'{"reply": "4", "format": 2}'
                database.execute(
                    "UPDATE entries SET data = ?, checksum = ? WHERE key = ?",
                    (other, _checksum(key, other), key),
                )
        database.close()
        done = run(*arguments, env=env(folder))
        assert done.returncode == 0, done.stderr
        assert sum(server.asked.values()) == 6, "what cannot be read is asked again"
        assert [line["value"] for line in scores(folder)] == first == [4.0] * 3
        with sqlite3.connect(file) as database:
            database.execute("DROP TABLE entries")
            database.execute("CREATE TABLE entries (name TEXT, answer TEXT)")
        database.close()
        done = run(*arguments, env=env(folder))
        assert done.returncode == 0, done.stderr
        assert "cache: " in said(done) and b"Traceback" not in done.stderr
        assert [line["value"] for line in scores(folder)] == first
        assert sum(server.asked.values()) == 9


def test_two_runs_on_one_cache_at_the_same_time(folder: Path) -> None:
    """Both end with the same bytes, whoever got an answer first."""
    write(folder / "items.jsonl", [{"context": [f"Turn {n}"], "response": "x"} for n in range(20)])
    answers = iter("12345" * 40)
    with planted_server(say=lambda body: next(answers)) as server:
        server.delay = 0.05
        spec = f"judge(url={server.url},model=m,{SETTINGS},concurrency=2)"
        code = "from rejoinder.cli.main import main; main()"
        runs = [
            subprocess.Popen(
                [sys.executable, "-c", code, "score", "items.jsonl", "-m", spec, "-o", name],
                cwd=folder,
                env=os.environ | env(folder),
                stderr=subprocess.PIPE,
            )
            for name in ("a.jsonl", "b.jsonl")
        ]
        errors = [each.communicate(timeout=120)[1] for each in runs]
        assert [each.returncode for each in runs] == [0, 0], errors
        assert 20 <= sum(server.asked.values()) <= 40
    first, second = ((folder / name).read_bytes() for name in ("a.jsonl", "b.jsonl"))
    assert first == second and first.count(b'"value"') == 20
