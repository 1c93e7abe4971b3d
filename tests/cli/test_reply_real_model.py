"""``rejoinder reply`` with a real small language model, served by llama.cpp on loopback.

Between the two stands a proxy that plants failures. The model is SmolLM2-135M-Instruct; its replies
are not judged here, only that each context has one of its own, and that nothing is asked twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import serve_model
from planted_server import cut, planted_server, slow, status, text
from support import Run

TURNS = [
    "Hello! How are you today?",
    "What is your favourite season?",
    "I lost my keys this morning.",
    "Can you recommend a good book?",
    "My sister is getting married next week.",
    "Do you think it will rain?",
]
PLAN = {
    TURNS[0]: [status(503, "Loading model")],
    TURNS[1]: [status(429, "slow down", Retry_After="1"), cut],
    TURNS[2]: [status(500), cut],
    TURNS[3]: [slow(12)],
    TURNS[5]: [text("")],
}


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of the real server."""
    serve_model.need_server()
    with serve_model.serving() as address:
        yield address


@pytest.mark.xdist_group("smollm2")
def test_a_real_model_behind_a_server_that_fails(run: Run, tmp_path: Path, model: str) -> None:
    lines = [json.dumps({"id": str(n), "context": [turn]}) for n, turn in enumerate(TURNS)]
    (tmp_path / "contexts.jsonl").write_text("\n".join(lines))
    env = {"REJOINDER_CACHE": str(tmp_path / "cache")}
    with planted_server(PLAN) as server:
        server.upstream = model
        spec = (
            f'openai(url={server.url},model=smollm2,system="You are a friend.",max_tokens=12,'
            "temperature=0.8,concurrency=2,timeout=10)"
        )
        arguments = ["reply", "contexts.jsonl", "-s", spec, "-n", "2", "-o", "out.jsonl", "--json"]
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        (outcome,) = json.loads(done.stdout)["systems"]
        assert outcome["without_reply"] == {}
        items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        # twelve replies were asked for; one was planted empty
        assert outcome["replies"] == len(items) == 11
        assert b"1 of several replies left out: the reply is empty" in done.stderr
        for n, turn in enumerate(TURNS):
            own = {item["response"] for item in items if item["context_id"] == str(n)}
            assert len(own) == (1 if turn == TURNS[5] else 2), turn
        assert len({item["response"] for item in items}) == 11
        assert max(server.answered.values()) == 1
        assert sum(server.answered.values()) == 11
        # 12 replies, and a further request for each failure that passed
        planted = sum(len(actions) for actions in PLAN.values())
        assert sum(server.asked.values()) == 12 + planted - 1
        first = (tmp_path / "out.jsonl").read_bytes()
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert sum(server.asked.values()) == 12 + planted - 1, "a second run asks nothing"
        assert (tmp_path / "out.jsonl").read_bytes() == first
