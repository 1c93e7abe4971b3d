"""Overlap metrics against their peers, on the 6,740 HRED replies to DailyDialog.

Every row is a ratio of two times measured in the same run, with compiled kernels warm: the
peer's time over ours, so larger is better. Tokenizing is part of both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from nltk.translate.bleu_score import brevity_penalty, closest_ref_length
from nltk.util import ngrams
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.testsets import load
from table import show


def best_of(times: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def ours(spec: str, items: list[Item]) -> Callable[[], list[float]]:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)

    def work() -> list[float]:
        return [float(v) for _, (r,) in evaluate(items, [metric]) for v in r.values]

    work()
    return work


def bleu_over_five_references(items: list[Item]) -> dict[str, Any]:
    peer = BLEU(max_ngram_order=2, smooth_method="floor", effective_order=True)
    texts = [(item.response, [r.text for r in item.references]) for item in items]

    def theirs() -> list[float]:
        # sacrebleu caches tokenized texts; ours does not, so clear the cache
        for tokenizer in (Tokenizer13a, TokenizerRegexp):
            tokenizer.__call__.cache_clear()
        return [peer.sentence_score(reply, references).score / 100 for reply, references in texts]

    mine = ours("bleu(n=2,short=skip)", items)
    np.testing.assert_allclose(mine(), theirs(), atol=1e-9)
    name = "bleu(n=2), 5 references: sacrebleu sentence_score"
    return row(name, best_of(5, mine), best_of(2, theirs), 10)


def plain_delta_bleu(reply: list[str], references: list[list[str]], weights: list[float]) -> float:
    """The equation of Galley et al. as one would write it over NLTK's n-grams."""
    from collections import Counter
    from math import exp, log

    logs = 0.0
    for n in (1, 2):
        counts = Counter(ngrams(reply, n))
        there = [Counter(ngrams(words, n)) for words in references]
        matches = 0.0
        for gram, count in counts.items():
            options = [
                w * min(count, c[gram]) for c, w in zip(there, weights, strict=True) if c[gram]
            ]
            matches += max(options, default=0.0)
        if n == 1 and matches <= 0:
            return 0.0
        most = max(weights)
        smoothed = matches if matches > 0 else 0.1 * most
        logs += 0.5 * log(smoothed / (most * max(1, sum(counts.values()))))
    length = len(reply)
    return float(brevity_penalty(closest_ref_length(references, length), length) * exp(logs))


def delta_bleu_over_17_references(items: list[Item]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    pool = [r.text for item in items for r in item.references]
    weighted = []
    for item in items:
        extra = [pool[i] for i in rng.integers(0, len(pool), 17 - len(item.references))]
        texts = [*(r.text for r in item.references), *extra]
        weights = [1.0, *rng.uniform(-1, 1, 16)]
        references = [Reference(t, weight=float(w)) for t, w in zip(texts, weights, strict=True)]
        weighted.append(Item(id=item.id, response=item.response, references=references))

    def theirs() -> list[float]:
        return [
            plain_delta_bleu(
                item.response.split(),
                [r.text.split() for r in item.references],
                [r.weight or 0.0 for r in item.references],
            )
            for item in weighted
        ]

    mine = ours("delta-bleu(n=2,tok=whitespace)", weighted)
    np.testing.assert_allclose(mine(), theirs(), atol=1e-9)
    return row(
        "delta-bleu(n=2), 17 references, loop over NLTK", best_of(5, mine), best_of(1, theirs), 10
    )


def row(name: str, mine: float, theirs: float, required: float | None) -> dict[str, Any]:
    return {
        "name": name,
        "ours_seconds": mine,
        "peer_seconds": theirs,
        "ratio": theirs / mine,
        "required": required,
    }


def run() -> list[dict[str, Any]]:
    items = list(load("dailydialog-hred", "multi"))
    return [bleu_over_five_references(items), delta_bleu_over_17_references(items)]


if __name__ == "__main__":
    show(run())
