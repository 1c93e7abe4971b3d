"""The client of language models: cache, budget, keys and limits."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planted_server import cut, planted_server, raw, status, text
from rejoinder.files.cache import Cache
from rejoinder.llm.answers import Answers
from rejoinder.llm.backoff import MAX_WAIT, read_retry_after, wait_before
from rejoinder.llm.budget import Budget, estimate_tokens
from rejoinder.llm.chat import Answer, Chat, Failure, Message, decode
from rejoinder.llm.client import Client
from rejoinder.llm.endpoint import Endpoint
from rejoinder.llm.errors import EndpointError
from rejoinder.llm.limits import Limits
from rejoinder.llm.pace import Pace
from rejoinder.llm.secrets import read_key, refuse_secrets
from support import in_a_thread


def chat(content: str, draw: int = 0, **parameters: Any) -> Chat:
    return Chat((Message("user", content),), {"max_tokens": 20} | parameters, draw)


def client(url: str, folder: Path | None, **settings: Any) -> Client:
    answers = Answers(Cache(folder, kind="answers"))
    return Client(Endpoint(url, "m"), answers=answers, **settings)


def test_the_same_chat_is_asked_once(tmp_path: Path) -> None:
    with planted_server() as server:
        own = client(server.url, tmp_path)
        results = own.ask([chat("a"), chat("b"), chat("a"), chat("a", draw=1)])
        assert [type(result) for result in results] == [Answer] * 4
        assert results[0] == results[2]
        assert server.asked == {"a": 2, "b": 1}
        assert own.spending.requests == 3
        assert own.spending.tokens == 3 * 12, "what the server counts takes the estimate's place"
        progress: list[tuple[int, int]] = []
        again = client(server.url, tmp_path)
        assert (
            again.ask([chat("a"), chat("b")], on_progress=lambda *p: progress.append(p))
            == (results[:2])
        )
        assert progress == [(2, 2)]
        assert again.spending.requests == 0
        assert sum(server.asked.values()) == 3


ENDPOINT = Endpoint("http://127.0.0.1:8000/v1", "m", "KEY_OF_MINE")


@pytest.mark.parametrize(
    ("endpoint", "other"),
    [
        (Endpoint("http://127.0.0.1:8001/v1", "m"), chat("a", seed=1)),
        (Endpoint("http://127.0.0.1:8000/v1", "n"), chat("a", seed=1)),
        (ENDPOINT, chat("b", seed=1)),
        (ENDPOINT, chat("a", seed=2)),
        (ENDPOINT, chat("a", seed=1, temperature=0.5)),
        (ENDPOINT, chat("a", draw=1, seed=1)),
        (ENDPOINT, Chat((Message("assistant", "a"),), {"max_tokens": 20, "seed": 1})),
    ],
)
def test_whatever_decides_an_answer_is_in_its_key(endpoint: Endpoint, other: Chat) -> None:
    assert other.key(endpoint) != chat("a", seed=1).key(ENDPOINT)


def test_what_decides_nothing_is_not_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = chat("a", seed=1, top_p=0.5).key(ENDPOINT)
    monkeypatch.setenv("KEY_OF_MINE", "sk-0123456789")
    for url in ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"):
        other = Chat((Message("user", "a"),), {"top_p": 0.5, "seed": 1, "max_tokens": 20})
        assert other.key(Endpoint(url, "m")) == before


def test_failures_are_not_stored(tmp_path: Path) -> None:
    with planted_server({"a": [status(400, "bad"), status(400, "bad")]}) as server:
        own = client(server.url, tmp_path)
        assert own.ask([chat("a")]) == [Failure("the server said 400 Bad Request: bad")]
        assert own.ask([chat("a")]) == [Failure("the server said 400 Bad Request: bad")]
        assert isinstance(own.ask([chat("a")])[0], Answer)


def test_a_server_that_answers_nothing_at_all(tmp_path: Path) -> None:
    chats = [chat("a"), chat("b"), chat("c")]
    plan = {turn: [status(500, "no GPU")] * 2 for turn in "abc"}
    with planted_server(plan) as server:
        own = client(server.url, tmp_path, limits=Limits(retries=0))
        with pytest.raises(EndpointError, match="none of 3 requests was answered: the server said"):
            own.ask(chats)
        # what is in the cache is not given up because the rest fails
        assert isinstance(own.ask([chat("d")])[0], Answer)
        results = own.ask([*chats, chat("d")])
        assert [type(result) for result in results] == [Failure, Failure, Failure, Answer]


def test_failures_of_single_chats_do_not_stop_a_second_run(tmp_path: Path) -> None:
    """Contexts that the server refuses are all that is left; each has its own reason."""
    chats = [chat(f"{n}") for n in range(30)]
    plan = {f"{n}": [status(400, f"bad {n}")] * 2 for n in range(1, 16)}
    with planted_server(plan) as server:
        own = client(server.url, tmp_path)
        for _ in range(2):
            results = own.ask(chats)
            reasons = {result.reason for result in results if isinstance(result, Failure)}
            assert reasons == {f"the server said 400 Bad Request: bad {n}" for n in range(1, 16)}
        assert sum(server.asked.values()) == 30 + 15


def test_two_runs_on_one_cache_at_the_same_time(tmp_path: Path) -> None:
    """Each run gets an answer to each chat, and both get the same ones."""
    numbers = iter(range(1000))
    lock = threading.Lock()

    def say(body: Any) -> str:
        with lock:
            return f"answer {next(numbers)}"

    code = (
        "import sys\nfrom pathlib import Path\n"
        "from rejoinder.files.cache import Cache\n"
        "from rejoinder.llm.answers import Answers\nfrom rejoinder.llm.client import Client\n"
        "from rejoinder.llm.chat import Chat, Message\n"
        "from rejoinder.llm.endpoint import Endpoint\n"
        "answers = Answers(Cache(Path(sys.argv[2]), kind='answers'))\n"
        "chats = [Chat((Message('user', str(n)),)) for n in range(40)]\n"
        "results = Client(Endpoint(sys.argv[1], 'm'), answers=answers).ask(chats)\n"
        "print([r.text for r in results])\n"
    )
    with planted_server(say=say) as server:
        server.delay = 0.05
        command = [sys.executable, "-c", code, server.url, str(tmp_path)]
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        outputs = [run.communicate(timeout=120)[0] for run in runs]
        assert [run.returncode for run in runs] == [0, 0]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"answer") == 40


def test_a_notebook_has_a_loop_of_its_own(tmp_path: Path) -> None:
    async def cell() -> list[Any]:
        return client(server.url, tmp_path).ask([chat("a")])

    with planted_server() as server:
        (result,) = in_a_thread(cell())
        assert isinstance(result, Answer)


def test_a_first_request_that_is_cut_is_repeated(tmp_path: Path) -> None:
    with planted_server({"a": [cut, status(500), status(408)]}) as server:
        (result,) = client(server.url, tmp_path).ask([chat("a")])
        assert isinstance(result, Answer)
        assert server.asked == {"a": 4}


def test_a_server_that_wants_a_long_pause(tmp_path: Path) -> None:
    with planted_server({"a": [status(429, Retry_After="3600")]}) as server:
        _, result = client(server.url, tmp_path).ask([chat("b"), chat("a")])
        assert result == Failure("the server said 429 Too Many Requests, and asks to wait 3,600 s")


def test_retry_after_stops_all_requests(tmp_path: Path) -> None:
    turns = ["first", *(f"{n}" for n in range(12))]
    with planted_server({"3": [status(429, Retry_After="2")]}) as server:
        server.delay = 0.05
        began = time.monotonic()
        results = client(server.url, tmp_path, limits=Limits(concurrency=2)).ask(
            [chat(turn) for turn in turns]
        )
        assert all(isinstance(result, Answer) for result in results)
        gaps = [b - a for a, b in zip(server.times, server.times[1:], strict=False)]
        assert max(gaps) >= 1.9, "somebody asked during the pause"
        assert time.monotonic() - began >= 2


def test_a_key_does_not_follow_a_redirect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    with planted_server() as other:
        plan = {"a": [status(307, Location=f"{other.url}/chat/completions")]}
        with planted_server(plan) as server, pytest.raises(EndpointError, match="307"):
            client(server.url, tmp_path).ask([chat("a")])
        assert not other.asked


NESTED = b'{"choices": [{"message": {}, "logprobs": ' + b"[" * 100_000


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (raw(b" " * (33 * 2**20)), "the answer has more than 32 MB"),
        (raw(b"\xff\xfe"), "the answer is not JSON"),
        (
            raw(b'{"choices": [{"message": {}, "logprobs": ' + b"[" * 10**5),
            "the answer is not JSON",
        ),
        (raw(b"[1]"), "the answer is no chat completion: Expected `object`, got `array`"),
        (raw(b""), "the answer is not JSON"),
        (lambda handler: handler.send(200, b"plain", Content_Encoding="gzip"), "the connection"),
    ],
)
def test_strange_answers_have_a_reason(tmp_path: Path, action: Any, reason: str) -> None:
    with planted_server({"b": [action]}) as server:
        own = client(server.url, tmp_path, limits=Limits(retries=0))
        _, result = own.ask([chat("a"), chat("b")])
        assert isinstance(result, Failure)
        assert result.reason.startswith(reason)


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    notes: list[str] = []
    with planted_server() as server:
        own = client(server.url, tmp_path / "file")
        (result,) = own.ask([chat("a")], on_note=notes.append)
        assert isinstance(result, Answer)
    assert len(notes) == 1
    assert notes[0].endswith("; continuing without it")


def test_an_account_without_money_ends_the_run(tmp_path: Path) -> None:
    with planted_server({"b": [status(429, "insufficient_quota")]}) as server:
        own = client(server.url, tmp_path, limits=Limits(concurrency=1))
        with pytest.raises(EndpointError, match="the account has nothing left to spend"):
            own.ask([chat("a"), chat("b"), chat("c")])
        assert own.estimate([chat("a"), chat("b")]).cached == 1, "what was answered is kept"


def test_a_budget_of_tokens(tmp_path: Path) -> None:
    # 'aaaaaaaa' is 2 tokens, 8 for the message, 20 for the answer: 30; the server counts 12
    assert estimate_tokens(chat("aaaaaaaa")) == 30
    assert estimate_tokens(chat("日本語")) == 31
    with planted_server() as server:
        own = client(server.url, tmp_path, budget=Budget(max_tokens=50))
        results = own.ask([chat(f"aaaaaaa{n}") for n in range(5)])
        # 12 and 12 are spent, 30 more fit into neither 50 - 24 = 26
        assert [type(result) for result in results] == [Answer, Answer, Failure, Failure, Failure]
        assert results[-1] == Failure("budget: 50 tokens do not suffice")
        assert own.spending.tokens == 24


@given(st.integers(1, 200), st.integers())
def test_waits_grow_and_stay_within_limits(attempt: int, seed: int) -> None:
    wait = wait_before(attempt, random.Random(seed))
    assert min(0.25 * 2 ** (attempt - 1), MAX_WAIT / 2) <= wait <= MAX_WAIT
    assert wait == wait_before(attempt, random.Random(seed))


@given(st.text() | st.floats().map(str) | st.just("Sat, 31 Feb 2026 99:00:20 GMT"))
def test_any_retry_after_is_read_or_ignored(value: str) -> None:
    seconds = read_retry_after(value)
    assert seconds is None or seconds >= 0


@given(st.binary() | st.recursive(st.none() | st.text(), lambda x: st.lists(x)).map(str).map(
    str.encode
))  # fmt: skip
def test_any_answer_is_read_or_has_its_reason(body: bytes) -> None:
    assert isinstance(decode(body, 0.0), Failure)


def test_answers_of_other_servers() -> None:
    parts = (
        b'{"choices": [{"message": {"content": [{"type": "text", "text": "a"}, {"text": "b"}]}}]}'
    )
    assert decode(parts, 1.0) == Answer("ab", time=1.0)
    assert decode(b'{"choices": []}', 0.0) == Failure(
        "the answer is no chat completion: it has no choices"
    )


def test_the_pace() -> None:
    async def work() -> float:
        pace = Pace(50)
        start = asyncio.get_running_loop().time()
        await asyncio.gather(*(pace.wait() for _ in range(6)))
        return asyncio.get_running_loop().time() - start

    assert in_a_thread(work()) >= 5 / 50 - 0.005


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-1234567890 \n")
    assert read_key("OPENAI_API_KEY") == "sk-1234567890"
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(EndpointError, match="OPENAI_API_KEY is no key: it has blanks"):
        read_key("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert read_key("OPENAI_API_KEY") is None
    monkeypatch.setenv("MY_TOKEN", "abcdefgh")
    with pytest.raises(ValueError, match="the value of the environment variable MY_TOKEN"):
        refuse_secrets("bot(x=abcdefgh)")


@pytest.mark.parametrize(
    ("url", "local", "encrypted"),
    [
        ("http://127.0.0.1:8000/v1", True, True),
        ("http://localhost/v1", True, True),
        ("http://[::1]:80/v1", True, True),
        ("http://10.0.0.7/v1", False, False),
        ("https://api.example/v1", False, True),
        ("http://localhost.example/v1", False, False),
    ],
)
def test_where_a_server_is(url: str, local: bool, encrypted: bool) -> None:
    endpoint = Endpoint(url, "m")
    assert (endpoint.is_local, endpoint.is_encrypted) == (local, encrypted)


@pytest.mark.parametrize(
    "url",
    ["", "x", "127.0.0.1:8000", "ftp://a", "http://", "http://a:x/v1", "http://[::1/v1",
     "http://a b/v1", "http://a@b/v1", "http://a/v1?x", "http://a/v1#x"],
)  # fmt: skip
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        Endpoint(url, "m")


def test_a_key_is_not_sent_unencrypted_without_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setattr(Endpoint, "is_local", False)
    notes: list[str] = []
    with planted_server({"a": [text("x")]}) as server:
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        client(server.url, tmp_path).ask([chat("a")], on_note=notes.append)
    assert notes == ["the key is sent over http, which is not encrypted; use https"]
