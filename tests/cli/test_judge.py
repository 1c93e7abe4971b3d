"""``rejoinder score -m judge(…)``: killed, resumed, and within a budget."""

from __future__ import annotations

import json
from pathlib import Path

from planted_server import Server, killed, planted_server
from support import Run

SETTINGS = "logprobs=false,structured=false"


def asking(server: Server, more: str = SETTINGS) -> str:
    return f"judge(url={server.url},model=m,{more})"


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path, run: Run) -> None:
    lines = [
        json.dumps({"id": str(n), "context": [f"Turn {n}"], "response": "x"}) for n in range(30)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    with planted_server(say=lambda body: "4") as server:
        arguments = ["score", "items.jsonl", "-m", asking(server, SETTINGS + ",concurrency=2")]
        arguments += ["-o", "out.jsonl"]
        before = killed(arguments, server, 8, tmp_path)
        assert not (tmp_path / "out.jsonl").exists()
        assert 8 <= before < 30
        done = run(*arguments, env={"REJOINDER_CACHE": str(tmp_path / "cache")})
        assert done.returncode == 0, done.stderr
        # those that were under way when it was killed may not have been stored
        assert sum(server.answered.values()) <= 30 + 2
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 30


def test_killed_comparisons_go_on_where_they_were(tmp_path: Path, run: Run) -> None:
    lines = [
        json.dumps({"id": str(n), "context": ["Hi"], "response": f"reply {n}"}) for n in range(9)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    with planted_server(say=lambda body: "1") as server:
        judge = f"judge-pairs(url={server.url},model=m,{SETTINGS},concurrency=2)"
        arguments = ["pairs", "judge", "items.jsonl", "-m", judge, "--budget", "40"]
        arguments += ["--rounds", "5", "-o", "out.jsonl"]
        before = killed(arguments, server, 15, tmp_path)
        assert not (tmp_path / "out.jsonl").exists()
        assert 15 <= before < 40
        env = {"REJOINDER_CACHE": str(tmp_path / "cache")}
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert len(server.answered) == 40 and sum(server.answered.values()) <= 40 + 2
        said = done.stderr.decode()
        assert "20 pairs in both orders: 40 requests, in 5 rounds" in said
        assert "20 pairs, 20 answers, of which 20 are ties" in said
        assert "warning: judge-pairs: the model preferred the reply that stood first in all" in said
        first = (tmp_path / "out.jsonl").read_bytes()
        asked = sum(server.asked.values())
        done = run(*arguments, env=env)
        assert b"0 requests sent, 40 answers from the cache" in done.stderr
        assert (tmp_path / "out.jsonl").read_bytes() == first
        assert sum(server.asked.values()) == asked
    done = run("pairs", "fit", "items.jsonl", "out.jsonl", "-o", "rated.jsonl")
    assert done.returncode == 0, done.stderr


def test_killed_writing_of_references_goes_on_where_it_was(tmp_path: Path, run: Run) -> None:
    lines = [
        json.dumps({"id": str(n), "context": [f"Turn {n}"], "response": "x"}) for n in range(30)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    with planted_server(say=lambda body: "1. Yes, I do.\n2. Not at all.") as server:
        spec = f"llm(url={server.url},model=m,structured=false,concurrency=2)"
        arguments = ["expand", "items.jsonl", "--by", spec, "--k", "2", "-o", "out.jsonl"]
        before = killed(arguments, server, 8, tmp_path)
        assert not (tmp_path / "out.jsonl").exists()
        assert 8 <= before < 30
        done = run(*arguments, env={"REJOINDER_CACHE": str(tmp_path / "cache")})
        assert done.returncode == 0, done.stderr
        assert len(server.answered) == 30 and sum(server.answered.values()) <= 30 + 2
        written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [len(item["references"]) for item in written] == [2] * 30
        assert b"llm by m to http" in done.stderr and b"answers are in the cache" in done.stderr


def test_the_cost_is_said_before_the_first_request_and_the_budget_holds(
    tmp_path: Path, run: Run
) -> None:
    lines = [
        json.dumps({"id": str(n), "context": [f"Turn {n}"], "response": "x"}) for n in range(6)
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    env = {"REJOINDER_CACHE": str(tmp_path / "cache")}
    with planted_server(say=lambda body: "4") as server:
        arguments = ["score", "items.jsonl", "-m", asking(server), "-o", "out.jsonl"]
        done = run(*arguments, "--most-requests", "4", env=env)
        assert done.returncode == 0, done.stderr
        errors = done.stderr.decode()
        assert f"judge by m to {server.url}: 6 requests, about" in errors
        assert "the budget allows 4 requests" in errors
        assert "2 unscored: budget: 4 requests were sent" in errors
        scores = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert [line["value"] for line in scores].count(4.0) == 4
        assert sum(server.asked.values()) == 4
        # what was done is kept
        done = run(*arguments, "--most-tokens", "100000", env=env)
        assert b"2 requests, about" in done.stderr and b"4 answers are in the cache" in done.stderr
        assert sum(server.asked.values()) == 6
    done = run("score", "items.jsonl", "-m", "bleu", "--most-requests", "3")
    assert done.returncode == 2
    assert b"--most-requests 3: no metric asks a language model" in done.stderr
