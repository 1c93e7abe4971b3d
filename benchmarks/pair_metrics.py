"""ROUGE-L, METEOR, chrF, RIBES and WER against their peers, over 6,740 replies of DailyDialog.

    python benchmarks/pair_metrics.py

Ours is timed from items to scores, tokenizing included; the peers get the same texts and
tokens. The ratio is the peer's time over ours: above 1 means that we are faster.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import snowballstemmer
from nltk.translate.meteor_score import single_meteor_score
from nltk.translate.ribes_score import sentence_ribes
from rapidfuzz.distance import Levenshtein
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu import CHRF

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.overlap.meteor import _stem
from table import show

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 3

Peer = Callable[[str, str], float]


class Porter:
    """The stemmer that we use, so that METEOR's peer does the same work."""

    def __init__(self) -> None:
        self.stem = snowballstemmer.stemmer("porter").stemWord


class NoSynonyms:
    def synsets(self, word: str) -> list[Any]:
        return []


class Words:
    """Tokens between spaces, for rouge-score."""

    def tokenize(self, text: str) -> list[str]:
        return text.split()


def peers() -> dict[str, tuple[str, Peer]]:
    """The spec of each metric, with the name and the call of its peer."""
    rouge = RougeScorer(["rougeL"], tokenizer=Words())
    porter, none = Porter(), NoSynonyms()
    chrf, chrf_pp = CHRF(), CHRF(word_order=2)
    return {
        "rouge-l(tok=whitespace)": (
            "rouge-score",
            lambda reply, text: rouge.score(text, reply)["rougeL"].fmeasure,
        ),
        "meteor(perfect=false,tok=whitespace)": (
            "NLTK",
            lambda reply, text: single_meteor_score(
                text.split(), reply.split(), stemmer=porter, wordnet=none
            ),
        ),
        "chrf": ("sacrebleu", lambda reply, text: chrf.sentence_score(reply, [text]).score / 100),
        "chrf(words=2)": (
            "sacrebleu",
            lambda reply, text: chrf_pp.sentence_score(reply, [text]).score / 100,
        ),
        "ribes(perfect=false,tok=whitespace)": (
            "NLTK",
            lambda reply, text: sentence_ribes([text.split()], reply.split()),
        ),
        "wer(tok=whitespace)": (
            "rapidfuzz",
            lambda reply, text: Levenshtein.normalized_similarity(reply.split(), text.split()),
        ),
    }


def run() -> list[dict[str, Any]]:
    pairs = _pairs()
    items = [
        Item(id=str(i), response=reply, references=[Reference(text=text)])
        for i, (reply, text) in enumerate(pairs)
    ]
    return [_compare(spec, name, peer, pairs, items) for spec, (name, peer) in peers().items()]


def _compare(
    spec: str, name: str, peer: Peer, pairs: list[tuple[str, str]], items: list[Item]
) -> dict[str, Any]:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    _score(metric, items[:10])  # the kernels are compiled, or loaded
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(ROUNDS):
        _stem.cache_clear()
        our_time, our_values = _timed(lambda: _score(metric, items))
        peer_time, peer_values = _timed(lambda: np.array([peer(*pair) for pair in pairs]))
        if not np.allclose(our_values, peer_values, rtol=0, atol=1e-9):
            raise AssertionError(f"{spec} and {name} gave different scores")
        ours.append(our_time)
        theirs.append(peer_time)
    return {
        "name": f"{spec.replace('perfect=false,', '').replace('(tok=whitespace)', '')} / {name}",
        "ours_seconds": min(ours),
        "peer_seconds": min(theirs),
        "ratio": min(theirs) / min(ours),
        "required": None,
    }


def _score(metric: ItemMetric, items: list[Item]) -> np.ndarray:
    return np.concatenate([scored.values for _, [scored] in evaluate(items, [metric])])


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.perf_counter()
    values = work()
    return time.perf_counter() - start, values


def _pairs() -> list[tuple[str, str]]:
    data = Path(os.environ.get("REJOINDER_DATA") or ROOT.parent / "shared" / "data")
    folder = data / "dailydialog-multiref"
    replies = (folder / "hred_outputs.txt").read_text("utf-8").splitlines()
    marked = (folder / "single_reference.txt").read_text("utf-8").splitlines()
    references = [line.strip().removeprefix("_go ").removesuffix(" _eos") for line in marked]
    return list(zip(replies, references, strict=True))


if __name__ == "__main__":
    show(run())
