"""Dialogue systems: the AIML interpreter against python-aiml.

Rows: (1) reading ALICE's 98,794 categories (98,256 for python-aiml, which keeps patterns that
differ in capitals apart), (2) answering 1,000 turns of DailyDialog with them. Both programs
choose the first alternative of <random>; each takes its turn in a process of its own, and the best
of five runs counts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from table import show

INPUTS = 1000
ROUNDS = 5
DATA = Path(os.environ.get("REJOINDER_DATA") or Path(__file__).parents[2] / "shared" / "data")


def inputs() -> list[str]:
    lines = (DATA / "dailydialog" / "test.txt").read_text("utf-8").splitlines()
    turns = sorted({turn.strip() for line in lines for turn in line.split("__eou__")} - {""})
    return random.Random(1).sample(turns, INPUTS)


def ours() -> Callable[[str], object]:
    from rejoinder.systems.aiml.rules import load
    from rejoinder.systems.aiml.session import Session

    rules = load("alice")
    assert rules.graph.size
    return lambda text: Session(rules).respond(text)


def peer() -> Callable[[str], object]:
    import aiml

    from rejoinder.systems.aiml.rules import locate

    kernel = aiml.Kernel()
    kernel.verbose(False)
    for path in sorted(locate("alice").glob("*.aiml")):
        kernel.learn(str(path))
    random.shuffle = lambda choices: None  # type: ignore[assignment]

    def answer(text: str) -> object:
        kernel._deleteSession("a")
        return kernel.respond(text, "a")

    return answer


def measure(name: str) -> None:
    """Print the seconds of reading and of answering."""
    texts = inputs()
    began = time.perf_counter()
    answer = {"ours": ours, "peer": peer}[name]()
    read = time.perf_counter()
    for text in texts:
        answer(text)
    print(json.dumps([read - began, time.perf_counter() - read]))


def run(name: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, __file__, name],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    seconds: list[float] = json.loads(done.stdout)
    return seconds


def main() -> None:
    runs = [(run("ours"), run("peer")) for _ in range(ROUNDS)]
    own, other = ([min(x) for x in zip(*each, strict=True)] for each in zip(*runs, strict=True))
    names = ("aiml, ALICE's rules read / python-aiml", f"aiml, {INPUTS:,} turns / python-aiml")
    show(
        {
            "name": name,
            "ours_seconds": mine,
            "peer_seconds": theirs,
            "ratio": theirs / mine,
            "required": 1.2,
        }
        for name, mine, theirs in zip(names, own, other, strict=True)
    )


if __name__ == "__main__":
    if sys.argv[1:]:
        measure(sys.argv[1])
    else:
        main()
