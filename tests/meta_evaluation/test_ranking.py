"""Comparing systems: ranks, tests, groups, and contexts that are not shared."""

from __future__ import annotations

import io

import msgspec
import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

import rejoinder
from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.meta_evaluation.ranking import compare_systems
from rejoinder.metrics.base import make_metric
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.request import requests
from rejoinder.reporting.tables import pairs_table

VOCABULARY = list("abcdefghijklmnop")


def bots(contexts: int, errors: dict[str, float], seed: int = 0) -> list[Item]:
    """Replies that are a reference with some words replaced; fewer errors, better bot."""
    rng = np.random.default_rng(seed)
    items = []
    for c in range(contexts):
        truth = rng.choice(VOCABULARY, 8)
        for system, rate in errors.items():
            words = np.where(rng.random(8) < rate, rng.choice(VOCABULARY, 8), truth)
            items.append(
                Item(
                    id=f"{c}:{system}",
                    context_id=str(c),
                    response=" ".join(words),
                    system=system,
                    references=[Reference(" ".join(truth))],
                )
            )
    return items


def test_better_bots_rank_higher_and_twins_share_a_group() -> None:
    items = bots(120, {"bad": 0.8, "good": 0.1, "twin": 0.1})
    for metric in ("bleu(n=2)", "rouge-l", "bleu(n=2,refs=mean)"):
        (ranking,) = rejoinder.compare(items, [metric], resamples=500)
        assert {row.system for row in ranking.systems[:2]} == {"good", "twin"}
        assert [row.group for row in ranking.systems] == ["a", "a", "b"]
        assert all(row.low <= row.value <= row.high for row in ranking.systems)
        assert ranking.contexts == 120
        assert ranking.left_out == 0


def test_value_is_the_corpus_value() -> None:
    items = bots(30, {"a": 0.3, "b": 0.5})
    (ranking,) = rejoinder.compare(items, ["bleu(n=2)"], resamples=100)
    corpus = rejoinder.score(items, ["bleu(n=2)"])["bleu(n=2)"].corpus
    for row in ranking.systems:
        estimate = corpus[row.system]
        assert estimate is not None
        assert row.value == pytest.approx(estimate.value)
        # the streamed Poisson bootstrap and the paired one agree on the interval
        assert estimate.low == pytest.approx(row.low, abs=0.05)
        assert estimate.high == pytest.approx(row.high, abs=0.05)


def test_identical_systems_cannot_be_told_apart() -> None:
    items = bots(40, {"a": 0.3})
    copies = [
        Item(
            id=i.id + "'",
            context_id=i.context_id,
            response=i.response,
            system="b",
            references=i.references,
        )
        for i in items
    ]
    (ranking,) = rejoinder.compare([*items, *copies], ["bleu(n=2)"], resamples=300)
    (pair,) = ranking.pairs
    assert (pair.difference, pair.p_bootstrap, pair.p_randomisation) == (0.0, 1.0, 1.0)
    assert [row.group for row in ranking.systems] == ["a", "a"]


def test_only_shared_contexts_count() -> None:
    items = [i for i in bots(20, {"a": 0.2, "b": 0.4}) if i.id not in ("3:a", "7:b")]
    items[0] = Item(id="0:a", context_id="0", response="x", system="a")  # no references
    (ranking,) = rejoinder.compare(items, ["rouge-l"], resamples=100)
    assert (ranking.contexts, ranking.left_out) == (17, 3)


def test_nothing_to_compare() -> None:
    with pytest.raises(DataError, match="found one system only"):
        rejoinder.compare(bots(5, {"a": 0.1}), ["rouge-l"])
    apart = [
        Item(
            id=f"{s}{c}", context_id=f"{s}{c}", response="x", system=s, references=[Reference("x")]
        )
        for s in "ab"
        for c in range(3)
    ]
    with pytest.raises(DataError, match="0 contexts were answered by all of a, b"):
        rejoinder.compare(apart, ["rouge-l"])


def test_same_seed_same_result() -> None:
    items = bots(20, {"a": 0.2, "b": 0.4})
    first, second = (rejoinder.compare(items, ["chrf"], resamples=200) for _ in range(2))
    assert first == second


def test_set_metrics_that_average_over_contexts_can_be_ranked() -> None:
    rng = np.random.default_rng(5)
    items = [
        Item(
            id=f"{c}:{s}:{k}",
            context_id=str(c),
            system=s,
            response=" ".join(rng.choice(VOCABULARY[:size], 6)),
        )
        for c in range(25)
        for s, size in (("varied", 16), ("same", 2))
        for k in range(3)
    ]
    asked = requests(["self-bleu(n=2)", "distinct"])
    rankings, refused = compare_systems(asked, evaluate(items, []), resamples=200, seed=1)
    assert [row.system for row in rankings[0].systems] == ["varied", "same"]
    assert [row.group for row in rankings[0].systems] == ["a", "b"]
    why = "it does not add up over contexts, so they can't be resampled"
    assert refused == {make_metric("distinct"): why}
    assert rejoinder.compare(items, ["self-bleu(n=2)", "distinct"], resamples=200, seed=1) == (
        rankings
    )
    with pytest.raises(DataError, match=r"^distinct: it does not add up over contexts"):
        rejoinder.compare(items, "distinct")


def test_a_metric_that_cannot_be_compared_does_not_lose_the_others() -> None:
    items = [msgspec.structs.replace(i, references=[]) for i in bots(5, {"a": 0.2, "b": 0.4})]
    items += bots(9, {"a": 0.2, "b": 0.4})[10:]
    japanese = "今日はとても天気がいいですね"
    items = [msgspec.structs.replace(i, response=japanese) for i in items]
    asked = requests(["bleu", "chrf"])
    batches = evaluate(items, asked.item_metrics, strict=False)
    rankings, refused = compare_systems(asked, batches, resamples=100, seed=1)
    assert [str(ranking.metric) for ranking in rankings] == ["chrf"]
    assert rankings[0].contexts == 4
    assert refused == {
        make_metric("bleu"): "no item could be scored: the tokenizer 13a does not split Japanese"
        " text; use tok=ja-mecab or tok=char"
    }


def test_the_commonest_reason_is_named() -> None:
    items = bots(5, {"a": 0.2, "b": 0.4})
    items = [msgspec.structs.replace(i, references=[]) if i.context_id != "0" else i for i in items]
    with pytest.raises(
        DataError,
        match=r"^rouge-l: 1 contexts were answered by all of a, b and could be scored;"
        r" comparing needs at least 2 \(8 unscored: no references\)$",
    ):
        rejoinder.compare(items, "rouge-l")


def test_few_of_many_names_stand_in_a_message() -> None:
    items = [
        Item(
            id=str(k), context_id=str(k), response="x", system=f"s{k}", references=[Reference("x")]
        )
        for k in range(300)
    ]
    with pytest.raises(DataError, match="all of s0, s1, s2, s3, s4 and 295 more and could be"):
        rejoinder.compare(items, "rouge-l")


def test_many_systems_share_their_swaps() -> None:
    """All pairs at once give what each pair gives alone."""
    items = bots(30, {f"s{k}": k / 20 for k in range(12)})
    (ranking,) = rejoinder.compare(items, ["bleu(n=2)"], resamples=200)
    assert len(ranking.pairs) == 66
    for pair in ranking.pairs[::13]:
        both = [i for i in items if i.system in (pair.better, pair.worse)]
        (alone,) = rejoinder.compare(both, ["bleu(n=2)"], resamples=200)
        assert alone.pairs[0].p_randomisation == pair.p_randomisation
    lines = render(pairs_table(ranking)).splitlines()
    assert sum(" s" in line for line in lines) == 30
    assert lines[-1].strip() == "… 36 more pairs: --json"


def render(table: Table) -> str:
    out = Console(width=80, file=io.StringIO())
    with out.capture() as captured:
        out.print(table)
    return captured.get()
