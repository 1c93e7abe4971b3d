"""BLEU against NLTK and sacrebleu, the weighted form against a plain loop."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu, sentence_bleu
from sacrebleu.metrics.bleu import BLEU

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.testsets import load

NLTK = SmoothingFunction()
METHODS = {"epsilon": NLTK.method1, "add-k": NLTK.method2, "nist": NLTK.method3}


@pytest.fixture(scope="module")
def replies(data: Path) -> list[Item]:
    return list(load("dailydialog-hred", "multi"))


def run(spec: str, items: list[Item]) -> tuple[np.ndarray, float]:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    results = [result for _, (result,) in evaluate(items, [metric])]
    values = np.concatenate([result.values for result in results])
    if np.isnan(values).all():
        return values, math.nan
    total = np.sum([result.rows.sum(axis=0) for result in results], axis=0)
    return values, float(metric.values(total))


@pytest.mark.parametrize("smooth", METHODS)
@pytest.mark.parametrize("n", [2, 4])
def test_nltk(replies: list[Item], smooth: str, n: int) -> None:
    ours, corpus = run(f"bleu(n={n},tok=whitespace,smooth={smooth})", replies)
    weights = (1 / n,) * n
    hypotheses = [item.response.split() for item in replies]
    references = [[r.text.split() for r in item.references] for item in replies]
    theirs = [
        sentence_bleu(r, h, weights=weights, smoothing_function=METHODS[smooth])
        for r, h in zip(references, hypotheses, strict=True)
    ]
    assert np.abs(ours - theirs).max() < 1e-9
    whole = corpus_bleu(references, hypotheses, weights=weights, smoothing_function=METHODS[smooth])
    assert abs(corpus - whole) < 1e-9


@pytest.mark.parametrize(
    ("smooth", "method", "value"),
    [
        ("none", "none", None),
        ("epsilon", "floor", 0.1),
        ("nist", "exp", None),
        ("add-k", "add-k", 1),
    ],
)
@pytest.mark.parametrize("n", [2, 4])
def test_sacrebleu(
    replies: list[Item], smooth: str, method: str, value: float | None, n: int
) -> None:
    """Sentences with effective order, the corpus without; 13a on both sides."""
    long_enough = [item for item in replies if len(item.response.split()) >= n]
    theirs = BLEU(max_ngram_order=n, smooth_method=method, smooth_value=value, effective_order=True)
    # sacrebleu adds k even to an order without n-grams: leave such replies out
    items = long_enough if smooth == "add-k" else replies
    ours, _ = run(f"bleu(n={n},smooth={smooth},short=skip)", items)
    expected = [
        theirs.sentence_score(i.response, [r.text for r in i.references]).score / 100 for i in items
    ]
    assert np.abs(ours - expected).max() < 1e-9
    whole = BLEU(max_ngram_order=n, smooth_method=method, smooth_value=value)
    most = max(len(item.references) for item in items)
    streams = [
        [i.references[k].text if k < len(i.references) else None for i in items]
        for k in range(most)
    ]
    expected_corpus = whole.corpus_score([i.response for i in items], streams).score / 100
    _, corpus = run(f"bleu(n={n},smooth={smooth},short=zero)", items)
    assert abs(corpus - expected_corpus) < 1e-9


PIECES = ["a", "it's", "5", "3.5", "12,", ".", ",", "-", "well-", "&amp;", "(b)"]
SPACES = [" ", "  ", "\n", " \n", "\r\n", "\t", "\x0b", "\x1c", "\x85", "\xa0", "\u2028"]
odd_text = st.lists(
    st.tuples(st.sampled_from(PIECES), st.sampled_from([*SPACES, ""])).map("".join), max_size=8
).map("".join)


@pytest.mark.parametrize("tok", ["13a", "intl"])
@given(reply=odd_text, references=st.lists(odd_text.filter(str.strip), min_size=1, max_size=3))
@example(reply="I am 5. ", references=["I am 5."])
@example(reply="I am 5.", references=["I am 5.\n"])
@example(reply="well-\n", references=["well -", "well-"])
@settings(deadline=None)
def test_sacrebleu_on_odd_white_space(tok: str, reply: str, references: list[str]) -> None:
    peer = BLEU(max_ngram_order=2, tokenize=tok, effective_order=True)
    item = Item(id="1", response=reply, references=[Reference(text) for text in references])
    (value,), _ = run(f"bleu(n=2,smooth=nist,short=skip,tok={tok})", [item])
    expected = peer.sentence_score(reply, references).score / 100
    assert value == pytest.approx(expected, abs=1e-9)


def plain_delta_bleu(reply: list[str], references: list[tuple[list[str], float]], n: int) -> float:
    """Galley et al. 2015, equation by equation, for one item; epsilon smoothing."""
    logs = 0.0
    for order in range(1, n + 1):
        grams = Counter(zip(*(reply[i:] for i in range(order)), strict=False))
        found = 0.0
        for gram, count in grams.items():
            options = []
            for words, weight in references:
                there = Counter(zip(*(words[i:] for i in range(order)), strict=False))[gram]
                if there:
                    options.append(weight * min(count, there))
            found += max(options, default=0.0)
        heaviest = max(weight for _, weight in references)
        possible = heaviest * max(1, sum(grams.values()))
        if order == 1 and found <= 0:
            return 0.0
        logs += math.log((found if found > 0 else 0.1 * heaviest) / possible) / n
    closest = min((abs(len(w) - len(reply)), len(w)) for w, _ in references)[1]
    penalty = 1.0 if len(reply) > closest else math.exp(1 - closest / len(reply))
    return penalty * math.exp(logs)


words = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8)
weighted = st.lists(
    st.tuples(words.filter(bool), st.floats(-1, 1, allow_subnormal=False)), min_size=1, max_size=5
)


@given(words, weighted, st.integers(1, 4))
def test_delta_bleu(reply: list[str], references: list[tuple[list[str], float]], n: int) -> None:
    item = Item(
        id="1",
        response=" ".join(reply),
        references=[Reference(" ".join(w), weight=x) for w, x in references],
    )
    (value,), _ = run(f"delta-bleu(n={n},tok=whitespace)", [item])
    if max(x for _, x in references) <= 0:
        assert math.isnan(value)
    elif not reply:
        assert value == 0
    else:
        assert value == pytest.approx(plain_delta_bleu(reply, references, n), abs=1e-12)


@given(words.filter(bool), weighted)
def test_delta_bleu_of_single_references_is_scaled_bleu(
    reply: list[str], references: list[tuple[list[str], float]]
) -> None:
    text = " ".join(reply)
    item = Item(
        id="1",
        response=text,
        references=[Reference(" ".join(w), weight=x) for w, x in references],
    )
    scaled = []
    for w, x in references:
        (plain,), _ = run(
            "bleu(n=2,tok=whitespace)",
            [Item(id="1", response=text, references=[Reference(" ".join(w))])],
        )
        scaled.append(x * plain)
    for refs, expected in (("max", max(scaled)), ("mean", np.mean(scaled))):
        (value,), _ = run(f"delta-bleu(n=2,tok=whitespace,refs={refs})", [item])
        if max(x for _, x in references) > 0:
            assert value == pytest.approx(expected, abs=1e-12)


def test_delta_bleu_on_real_replies(replies: list[Item]) -> None:
    rng = np.random.default_rng(1)
    items = [
        Item(
            id=item.id,
            response=item.response,
            references=[
                Reference(r.text, weight=float(rng.uniform(-1, 1))) for r in item.references
            ],
        )
        for item in replies[:1500]
    ]
    ours, _ = run("delta-bleu(n=2,tok=whitespace)", items)
    for value, item in zip(ours, items, strict=True):
        if max(r.weight or 0 for r in item.references) <= 0:
            assert math.isnan(value)
            continue
        pairs = [(r.text.split(), r.weight or 0.0) for r in item.references]
        assert value == pytest.approx(plain_delta_bleu(item.response.split(), pairs, 2), abs=1e-12)
