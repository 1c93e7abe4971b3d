"""``rejoinder reply --system 'openai(…)'`` against a server on loopback with planted failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

import rejoinder
from planted_server import (
    cut,
    drip,
    planted_server,
    raw,
    slow,
    status,
    text,
    unused_url,
)
from support import COMMAND, Run

KEY = "sk-planted-0123456789abcdef"


def contexts(*turns: str) -> bytes:
    lines = (json.dumps({"id": str(n), "context": [turn]}) for n, turn in enumerate(turns, 1))
    return "\n".join(lines).encode()


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A cache and a key of its own."""
    return {"REJOINDER_CACHE": str(tmp_path / "cache"), "OPENAI_API_KEY": KEY}


FAILURES = {
    "too many": [status(429, "slow down", Retry_After="1")],
    "broken": [status(500), status(503, "starting")],
    "cut": [cut, cut],
    "late": [slow(3)],
    "drips": [drip(3)],
    "never": [slow(3)] * 9,
    "no json": [raw(b"<html>Hello</html>")],
    "other json": [raw(b'{"choices": [{"text": "completion"}]}')],
    "empty": [text("")],
    "cut short": [text("", finish_reason="length")],
    "null": [text(None)],
    "refused": [text(None, message={"content": None, "refusal": "I cannot."})],
    "thinks": [text("<think>Hm.</think>\n\nFine!")],
    "thinks on": [text("<think>Hm, let me")],
    "too long": [status(400, "the context is too long")],
    "always broken": [status(500, "out of memory")] * 9,
}


def test_every_context_is_answered_or_has_its_reason(
    run: Run, tmp_path: Path, env: dict[str, str]
) -> None:
    stdin = contexts("hello there", *FAILURES, *(f"question {n}" for n in range(20)))
    with planted_server(FAILURES) as server:
        spec = f"openai(url={server.url},model=m,timeout=1,retries=2,concurrency=6)"
        arguments = ["reply", "-", "-s", spec, "-o", "out.jsonl", "--json"]
        done = run(*arguments, stdin=stdin, env=env)
        assert done.returncode == 0, done.stderr
        (outcome,) = json.loads(done.stdout)["systems"]
        assert outcome["system"] == f"openai(url={server.url},model=m)"
        reasons = outcome["without_reply"]
        assert reasons == {
            "no answer within 1 s after 3 tries": 1,
            "the answer is not JSON": 1,
            "the answer is no chat completion: Object missing required field `message` - at"
            " `$.choices[0]`": 1,
            "the reply is empty": 2,
            "the reply is empty (finish_reason length)": 1,
            "the model refused to reply": 1,
            "the reply ends while the model is thinking; a larger max_tokens may help": 1,
            "the server said 400 Bad Request: the context is too long": 1,
            "the server said 500 Internal Server Error: out of memory after 3 tries": 1,
        }
        assert outcome["replies"] + sum(reasons.values()) == 1 + len(FAILURES) + 20
        items = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        said = {item["context"][-1]: item["response"] for item in items}
        for turn in ("too many", "broken", "cut", "late", "drips"):
            assert said[turn] == f"You said: {turn} (12345)"
        assert said["thinks"] == "Fine!"
        assert server.most_under_way <= 6
        assert max(server.answered.values()) == 1, "an answered chat was asked again"
        assert b"37 requests, about " in done.stderr.splitlines()[0]
        # 429 with Retry-After 1: not asked again before a second has passed
        assert server.asked["too many"] == 2
        # a second run asks only what had no answer: answers, also empty ones, are in the cache
        before = server.asked.copy()
        again = run(*arguments, stdin=stdin, env=env)
        assert again.returncode == 0, again.stderr
        asked = server.asked - before
        assert set(asked) == {"never", "no json", "other json", "too long", "always broken"}
        # and what it was given on the way is the same
        more = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
        assert said.items() <= {item["context"][-1]: item["response"] for item in more}.items()


def test_a_killed_run_goes_on(run: Run, tmp_path: Path, env: dict[str, str]) -> None:
    turns = [f"question {n}" for n in range(40)]
    with planted_server() as server:
        server.delay = 0.1
        spec = f"openai(url={server.url},model=m,concurrency=3)"
        arguments = ["reply", "contexts.jsonl", "-s", spec, "-o", "out.jsonl"]
        (tmp_path / "contexts.jsonl").write_bytes(contexts(*turns))
        process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=tmp_path, env={**os.environ, **env}, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + 60
        while sum(server.answered.values()) < 12 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        time.sleep(0.3)  # answers that were under way
        assert not (tmp_path / "out.jsonl").exists()
        before = sum(server.answered.values())
        assert 12 <= before < 40
        done = run(*arguments, env=env)
        assert done.returncode == 0, done.stderr
        assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 40
        # only the three under way when it was killed may be asked twice
        assert set(server.asked) == set(turns)
        assert sum(server.asked.values()) <= 40 + 3
        assert b"answers are in the cache" in done.stderr
        total = sum(server.asked.values())
        first = (tmp_path / "out.jsonl").read_bytes()
        done = run(*arguments, env=env)
        assert sum(server.asked.values()) == total, "a second run asks nothing"
        assert (tmp_path / "out.jsonl").read_bytes() == first


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_does_not_wait_for_answers(
    tmp_path: Path, env: dict[str, str], number: int, code: int
) -> None:
    with planted_server({"a": [slow(8)]}) as server:
        (tmp_path / "contexts.jsonl").write_bytes(contexts("a"))
        spec = f"openai(url={server.url},model=m)"
        process = subprocess.Popen(
            [*COMMAND, "reply", "contexts.jsonl", "-s", spec, "-o", "out.jsonl"],
            cwd=tmp_path,
            env={**os.environ, **env},
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        while not server.asked and time.monotonic() < deadline:
            time.sleep(0.02)
        began = time.monotonic()
        process.send_signal(number)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == code
        assert time.monotonic() - began < 6
        assert b"Traceback" not in messages
        assert not (tmp_path / "out.jsonl").exists()


def test_several_replies(run: Run, env: dict[str, str]) -> None:
    with planted_server({"same": [text("Yes.")] * 9}) as server:
        spec = f'openai(url={server.url},model=m,system="Be brief.",temperature=0.7,top_p=0.9)'
        done = run("reply", "-", "-s", spec, "-n", "3", stdin=contexts("hi", "same"), env=env)
        assert done.returncode == 0, done.stderr
        items = [json.loads(line) for line in done.stdout.splitlines()]
        assert [item["response"] for item in items] == [
            "You said: hi (12345)", "You said: hi (12346)", "You said: hi (12347)", "Yes.",
        ]  # fmt: skip
        assert items[0]["system"] == items[0]["id"].removeprefix("1:").removesuffix(":1")
        assert b"2 of several replies left out: the same as another reply" in done.stderr
        sent = server.bodies[0]
        assert sent == {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "hi"},
            ],
            "temperature": 0.7,
            "top_p": 0.9,
            "max_tokens": 256,
            "seed": 12345,
        }
        # without randomness one reply is enough
        spec = f"openai(url={server.url},model=m,temperature=0)"
        before = sum(server.asked.values())
        run("reply", "-", "-s", spec, "-n", "3", stdin=contexts("hi"), env=env)
        assert sum(server.asked.values()) == before + 1


def test_a_budget_keeps_what_was_done(run: Run, env: dict[str, str]) -> None:
    stdin = contexts(*(f"question {n}" for n in range(10)))
    with planted_server({"question 0": [status(500)]}) as server:
        spec = f"openai(url={server.url},model=m,most_requests=4)"
        arguments = ["reply", "-", "-s", spec, "-o", "out.jsonl", "--json"]
        done = run(*arguments, stdin=stdin, env=env)
        assert done.returncode == 0, done.stderr
        assert b"10 requests, about " in done.stderr
        assert b"; the budget allows 4 requests" in done.stderr
        (outcome,) = json.loads(done.stdout)["systems"]
        # of four requests one failed: the try again counts, too
        assert outcome["replies"] == 3
        assert outcome["without_reply"] == {"budget: 4 requests were sent": 7}
        assert sum(server.asked.values()) == 4
        run(*arguments, stdin=stdin, env=env)
        done = run(*arguments, stdin=stdin, env=env)
        assert json.loads(done.stdout)["systems"][0]["replies"] == 10
        # tokens: 256 for a reply and about 11 for the question
        spec = f"openai(url={server.url},model=m,most_tokens=560,concurrency=1,send_seed=false)"
        done = run("reply", "-", "-s", spec, stdin=stdin, env=env)
        # after each answer the server's count, 12, takes the place of the estimate: (560-267)/12
        assert done.stdout.count(b"\n") == 10
        spec = f"openai(url={server.url},model=m,most_tokens=200,seed=1)"
        done = run("reply", "-", "-s", spec, stdin=stdin, env=env)
        assert b"10 contexts without a reply: budget: 200 tokens do not suffice" in done.stderr


def everything(done: subprocess.CompletedProcess[bytes], folder: Path) -> bytes:
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return b"\n".join([done.stdout, done.stderr, *files])


def test_the_key_is_written_nowhere(run: Run, tmp_path: Path, env: dict[str, str]) -> None:
    plan = {
        "echo": [status(400, f"your key {KEY} is fine, your question is not")],
        "echo in a reply": [text(f"Your key is {KEY}")],
    }
    stdin = contexts("hello", *plan)
    with planted_server(plan) as server:
        spec = f"openai(url={server.url},model=m)"
        server.key = KEY
        done = run("reply", "-", "-s", spec, "-o", "out.jsonl", stdin=stdin, env=env)
        assert done.returncode == 0, done.stderr
        assert server.keys == {f"Bearer {KEY}"}
        assert b"your key [key] is fine" in done.stderr
        assert KEY.encode() not in everything(done, tmp_path)
        # a rejected key: exit 4, one line; the server repeats the key, the message does not
        server.key = "another"
        done = run("reply", "-", "-s", spec, stdin=contexts("new"), env=env)
        assert done.returncode == 4
        message = done.stderr.splitlines()[-1].decode()
        assert message.startswith(
            f"rejoinder: {server.url}: rejects the key in the environment variable OPENAI_API_KEY"
        )
        assert KEY.encode() not in everything(done, tmp_path)
        # no key
        done = run(
            "reply", "-", "-s", spec, stdin=contexts("new"), env=env | {"OPENAI_API_KEY": ""}
        )
        assert done.returncode == 4
        assert b"wants a key: set the environment variable OPENAI_API_KEY" in done.stderr
        # another variable
        named = f"openai(url={server.url},model=m,key_variable=BOT_KEY)"
        done = run("reply", "-", "-s", named, stdin=contexts("new"), env=env)
        assert done.returncode == 4
        assert done.stderr == b"rejoinder: the environment variable BOT_KEY has no key; set it\n"
        done = run("reply", "-", "-s", named, stdin=contexts("n"), env=env | {"BOT_KEY": "another"})
        assert done.returncode == 0, done.stderr
        assert b"key_variable" not in done.stdout


def test_secrets_in_a_spec_are_refused(run: Run, env: dict[str, str]) -> None:
    for spec in (
        "openai(url=http://me:hunter2secret@127.0.0.1/v1,model=m)",
        "openai(url=http://127.0.0.1/v1?key=hunter2secret,model=m)",
        'openai(url="http://127.0.0.1/v1?key=hunter2secret",model=m)',
        "openai(url=http://127.0.0.1/v1,model=m,key_variable=hunter2secret)",
        f'openai(url=http://127.0.0.1/v1,model=m,system="use {KEY}")',
        f'command(run="bot --key {KEY}")',
    ):
        done = run("reply", "-", "-s", spec, stdin=contexts("a"), env=env)
        assert done.returncode == 2, spec
        assert done.stderr.count(b"\n") == 1
        assert KEY.encode() not in done.stderr
        if "?key=hunter2secret," not in spec:  # the syntax of specs, repeated to show the place
            assert b"hunter2secret" not in done.stderr


def test_endpoints_that_cannot_be_used(run: Run, env: dict[str, str]) -> None:
    url = unused_url()
    done = run("reply", "-", "-s", f"openai(url={url},model=m)", stdin=contexts("a", "b"), env=env)
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith(
        f"rejoinder: {url}: cannot be reached: ".encode()
    )
    assert not done.stdout
    with planted_server({"gone": [status(404, "no model 'm'")]}) as server:
        wrong = server.url.replace("/v1", "/v2")
        for spec, turn in ((f"openai(url={wrong},model=m)", "a"),
                           (f"openai(url={server.url},model=m)", "gone")):  # fmt: skip
            done = run("reply", "-", "-s", spec, stdin=contexts(turn), env=env)
            assert done.returncode == 4
            assert b"has no model 'm', or is not the address of" in done.stderr
    turns = [f"question {n}" for n in range(30)]
    plan = {turn: [status(500, "no GPU")] * 9 for turn in turns}
    with planted_server(plan) as server:
        spec = f"openai(url={server.url},model=m,retries=0)"
        done = run("reply", "-", "-s", spec, stdin=contexts(*turns), env=env)
        assert done.returncode == 4
        assert b"none of 10 requests was answered: the server said 500" in done.stderr
        assert sum(server.asked.values()) < 16
        # the same after an answer: the others have their reason, and are not asked
        done = run("reply", "-", "-s", spec, stdin=contexts("hello", *turns), env=env)
        assert done.returncode == 0
        assert b"1 replies to 31 contexts" in done.stderr
        assert b"not asked: 10 requests before it failed" in done.stderr


def test_replies_in_another_language(run: Run, env: dict[str, str]) -> None:
    with planted_server(say=lambda body: "今日は天気がいいですね。散歩に行きましょう。") as server:
        stdin = contexts("How was your trip to the mountains last weekend?", "Do you like tea?")
        spec = f"openai(url={server.url},model=m)"
        done = run("reply", "-", "-s", spec, stdin=stdin, env=env)
        assert done.returncode == 0
        assert (
            f"warning: {spec}: 100% of 2 replies are in another language than the contexts"
            " (English), mostly Japanese"
        ) in done.stderr.decode()


def test_bad_parameters_are_reported_at_once(run: Run) -> None:
    done = run(
        "reply", "-", "-s", "openai(model=m)", "-s", "openai(url=ftp://a,model=m)",
        "-s", "openai(url=http://a/v1,model=m,temperature=-1)",
        "-s", "openai(url=http://a/v1,model=m,concurrency=0)",
        "-s", "openai(url=http://a/v1,model=m,most_tokens=-1)", stdin=contexts("a"),
    )  # fmt: skip
    assert done.returncode == 2
    messages = done.stderr.decode().splitlines()
    assert len(messages) == 5
    for message, part in zip(
        messages,
        ["needs url=…", "url='ftp://a' is no address", "temperature=-1.0", "concurrency=0", "-1"],
        strict=True,
    ):
        assert part in message


def test_the_same_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate is no warning there; what is left out is one."""
    monkeypatch.setenv("REJOINDER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "contexts.jsonl").write_bytes(contexts("a", "b"))
    with planted_server() as server:
        spec = f"openai(url={server.url},model=m)"
        result = rejoinder.reply(tmp_path / "contexts.jsonl", spec)
        assert [item.response for item in result.items] == [
            "You said: a (12345)", "You said: b (12345)",
        ]  # fmt: skip


def test_requests_a_second(run: Run, env: dict[str, str]) -> None:
    with planted_server() as server:
        spec = f"openai(url={server.url},model=m,requests_per_second=10,concurrency=10)"
        done = run("reply", "-", "-s", spec, stdin=contexts(*map(str, range(12))), env=env)
        assert done.returncode == 0, done.stderr
        # a request may be delayed on its way, so only the whole is measured: 11 intervals
        assert server.times[-1] - server.times[0] >= 0.95
