"""``judge`` with a real small language model, served by llama.cpp on loopback.

Between the two stands a proxy that plants every failure, and counts. The model is SmolLM2-135M; its
ratings are not judged here, only that each item has one or a reason, and that nothing is asked
twice, also after kill -9.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import rejoinder
import serve_model
from planted_server import Action, cut, killed, planted_server, raw, slow, status, text
from rejoinder.items import Item
from support import Run

TURNS = [
    "Hello! How are you today?",
    "What is your favourite season?",
    "I lost my keys this morning.",
    "Can you recommend a good book?",
    "My sister is getting married.",
    "Do you think it will rain?",
    "Where is the station?",
    "I have a terrible headache.",
    "The film was too long for me.",
    "Shall we go for a walk?",
]
ITEMS = [Item(str(n), "Yes, of course.", [turn]) for n, turn in enumerate(TURNS)]
REFUSAL = text(None, message={"role": "assistant", "content": None, "refusal": "I can't."})


@pytest.fixture(scope="module")
def model() -> Iterator[str]:
    """The address of the real server."""
    serve_model.need_server()
    with serve_model.serving() as address:
        yield address


@pytest.mark.xdist_group("smollm2")
def test_every_failure_and_a_kill(run: Run, tmp_path: Path, model: str) -> None:
    rater = rejoinder.Judge(references=False).rater
    asked = [rater._messages(item)[-1].content for item in ITEMS]
    plan: dict[str, list[Action]] = {
        asked[1]: [status(429, "slow down", Retry_After="1"), status(500)],
        asked[2]: [cut, status(503, "Loading model")],
        asked[3]: [slow(25)],
        asked[4]: [raw(b"<html>Bad gateway</html>")] * 9,
        asked[5]: [text("とても良い返答です。")] * 3,
        asked[6]: [REFUSAL] * 3,
        asked[7]: [text("")] * 3,
    }
    lines = [
        json.dumps({"id": each.id, "context": each.context, "response": each.response})
        for each in ITEMS
    ]
    (tmp_path / "items.jsonl").write_text("\n".join(lines))
    env = {"REJOINDER_CACHE": str(tmp_path / "cache")}
    with planted_server(plan) as server:
        server.upstream = model
        spec = f"judge(url={server.url},model=smollm2,concurrency=2,timeout=20)"
        arguments = ["score", "items.jsonl", "-m", spec, "--parts", "-o", "scores.jsonl"]
        before = killed(arguments, server, 3, tmp_path)
        assert 3 <= before < len(ITEMS) and not (tmp_path / "scores.jsonl").exists()
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        first = (tmp_path / "scores.jsonl").read_bytes()
        scores = {line["id"]: line for line in map(json.loads, first.splitlines())}
        for name, line in scores.items():
            if name == "4":
                assert line["unscored"] == "the answer is not JSON"
            elif name in "567" and line["value"] is None:
                assert line["unscored"]  # also the second answer could not be read
            else:
                # llama.cpp writes by the schema, and gives probabilities
                assert 1 <= line["value"] <= 5 and line["parts"]["mass"] > 0
        assert b"3 answers could not be read and were asked for again" in done.stderr
        # but for the two that may have been under way when it was killed
        assert sum(server.answered.values()) <= len(server.answered) + 2
        # each failure that passes took a further request
        assert [server.asked[asked[n]] - len(plan[asked[n]]) >= 1 for n in (1, 2, 3)] == [True] * 3
        requests = sum(server.asked.values())
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        # what failed is asked once more, all that was answered is not
        assert sum(server.asked.values()) == requests + 1
        assert (tmp_path / "scores.jsonl").read_bytes() == first
