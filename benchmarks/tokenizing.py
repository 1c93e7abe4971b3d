"""Our 13a on a batch against sacreBLEU's, text by text, on the replies of DailyDialog.

    python benchmarks/tokenizing.py

The ratio is the peer's time over ours: above 1 means that we are faster.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

from rejoinder.text.tokenizers.mteval13a import Mteval13a
from table import show

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 7


def run() -> list[dict[str, Any]]:
    texts = _texts()
    ours: list[float] = []
    peers: list[float] = []
    for _ in range(ROUNDS):
        our_time, our_tokens = _timed(lambda: Mteval13a().tokenize(texts))
        Tokenizer13a.__call__.cache_clear()
        TokenizerRegexp.__call__.cache_clear()
        peer = Tokenizer13a()
        peer_time, peer_tokens = _timed(lambda peer=peer: [peer(text).split() for text in texts])
        if our_tokens != peer_tokens:
            raise AssertionError("13a and sacreBLEU's 13a gave different tokens")
        ours.append(our_time)
        peers.append(peer_time)
    return [
        {
            "name": f"the 13a tokenizer, {len(texts):,} texts: sacrebleu's",
            "ours_seconds": min(ours),
            "peer_seconds": min(peers),
            "ratio": min(peers) / min(ours),
            "required": 1.0,
        }
    ]


def _texts() -> list[str]:
    data = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")
    return [
        line
        for name in ("hred_outputs.txt", "single_reference.txt")
        for line in (data / "dailydialog-multiref" / name).read_text("utf-8").splitlines()
    ]


def _timed(work: Callable[[], list[list[str]]]) -> tuple[float, list[list[str]]]:
    start = time.perf_counter()
    tokens = work()
    return time.perf_counter() - start, tokens


if __name__ == "__main__":
    show(run())
