"""The streaming summary: totals, intervals, unscored items."""

from __future__ import annotations

import numpy as np
import pytest

from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.summary import Summarizer, Summary


def items(n: int, replies_a_context: int = 1) -> list[Item]:
    rng = np.random.default_rng(0)
    words = list("abcdefgh")
    return [
        Item(
            id=str(i),
            context_id=str(i // replies_a_context),
            response=" ".join(rng.choice(words, 6)),
            references=[Reference(" ".join(rng.choice(words, 6)))],
        )
        for i in range(n)
    ]


def summarize(some: list[Item], spec: str, batch_size: int = 64, **options: int) -> Summary:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    summarizer = Summarizer([metric], **options)
    for _ in summarizer.watch(evaluate(some, [metric], batch_size=batch_size)):
        pass
    (summary,) = summarizer.summaries()
    return summary


def test_interval_of_a_mean_is_the_textbook_one() -> None:
    summary = summarize(items(400), "rouge-l(tok=whitespace)", resamples=2000)
    assert summary.mean is not None
    assert summary.mean.low is not None
    assert summary.mean.high is not None
    (values,) = [
        result.values for _, (result,) in evaluate(items(400), [summary.metric], batch_size=400)
    ]
    half = 1.96 * values.std(ddof=1) / 20
    assert summary.mean.value == pytest.approx(values.mean())
    assert summary.mean.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert summary.mean.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_replies_to_one_context_are_drawn_together() -> None:
    """Five copies of each reply say no more than one: the interval must not shrink."""
    single = items(100)
    copies = [
        Item(
            id=f"{i.id}.{k}", context_id=i.context_id, response=i.response, references=i.references
        )
        for i in single
        for k in range(5)
    ]
    one, five = summarize(single, "bleu(n=2)"), summarize(copies, "bleu(n=2)")
    assert one.mean is not None
    assert five.mean is not None
    assert five.mean.low == pytest.approx(one.mean.low)
    assert five.mean.high == pytest.approx(one.mean.high)


def test_batches_do_not_matter() -> None:
    some = items(100)
    first, second = (summarize(some, "chrf", batch_size=size) for size in (7, 100))
    assert first.corpus is not None
    assert second.corpus is not None
    assert first.corpus.value == pytest.approx(second.corpus.value)
    assert first.corpus.low == pytest.approx(second.corpus.low)


def test_unscored_items_are_counted_by_reason() -> None:
    some = items(20)
    without = [Item(id=f"x{i}", response="a b") for i in range(3)]
    mixed, plain = summarize([*some, *without], "rouge-l"), summarize(some, "rouge-l")
    assert mixed.unscored == {"no references": 3}
    assert mixed.scored == 20
    assert mixed.mean == plain.mean
    nothing = summarize(without, "rouge-l")
    assert (nothing.scored, nothing.corpus, nothing.mean) == (0, None, None)


def test_two_contexts_in_one_batch_have_an_interval() -> None:
    summary = summarize(items(6, replies_a_context=3), "rouge-l")
    assert summary.mean is not None
    assert summary.mean.low is not None


def test_one_context_has_no_interval() -> None:
    summary = summarize(items(3, replies_a_context=3), "rouge-l")
    assert summary.mean is not None
    assert (summary.mean.low, summary.mean.high) == (None, None)


def test_long_texts_make_short_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rejoinder.metrics.evaluate.MAX_CHARACTERS", 25)
    metric = make_metric("rouge-l")
    assert isinstance(metric, ItemMetric)
    some = items(10)  # replies of 11 letters, so that the third goes beyond 25
    sizes = [len(batch) for batch, _ in evaluate(some, [metric])]
    assert sizes == [3, 3, 3, 1]


def test_the_number_of_resamples_drawn_at_a_time_is_irrelevant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to the last digits, which depend on the order in which products are summed."""
    whole = summarize(items(50), "bleu(n=2)", resamples=500)
    monkeypatch.setattr("rejoinder.metrics.bootstrap.NUMBERS_AT_ONCE", 64)
    parts = summarize(items(50), "bleu(n=2)", resamples=500)
    for one, other in ((whole.corpus, parts.corpus), (whole.mean, parts.mean)):
        assert one is not None
        assert other is not None
        assert (one.value, one.low, one.high) == pytest.approx(
            (other.value, other.low, other.high), rel=1e-12
        )


def test_without_resamples_there_are_no_intervals() -> None:
    plain, resampled = (summarize(items(20), "bleu(n=2)", resamples=n) for n in (0, 50))
    assert plain.mean is not None
    assert plain.corpus is not None
    assert resampled.mean is not None
    assert resampled.corpus is not None
    assert (plain.mean.value, plain.mean.low, plain.mean.high) == (resampled.mean.value, None, None)
    assert (plain.corpus.value, plain.corpus.low) == (resampled.corpus.value, None)
    assert resampled.mean.low is not None


def test_blank_replies_are_counted_by_system() -> None:
    metric = make_metric("rouge-l")
    assert isinstance(metric, ItemMetric)
    some = [
        Item("1", " ", system="a", references=[Reference("x")]),
        Item("2", "", system="a"),
        Item("3", "x", system="b", references=[Reference("x")]),
    ]
    summarizer = Summarizer([metric], resamples=0)
    list(summarizer.watch(evaluate(some, [metric])))
    assert {s.system: s.blank for s in summarizer.summaries()} == {"a": 2, "b": 0}
    assert summarizer.notes() == [
        "2 replies are blank (a 2); blank replies are not left out, but scored like others"
    ]


def test_memory_is_bounded_for_many_systems() -> None:
    """Each system needs contexts · (statistics + 2) numbers; those beyond the limit get none."""
    metric = make_metric("rouge-l")
    assert isinstance(metric, ItemMetric)
    some = [
        Item(f"{s}{c}", "a b", system=str(s), context_id=str(c), references=[Reference("a c")])
        for s in range(10)
        for c in range(2)
    ]
    summarizer = Summarizer([metric], resamples=100)
    list(summarizer.watch(evaluate(some, [metric])))
    size = 2 * (4 + 2)  # 2 contexts; F, precision, recall and 1
    bounded = Summarizer([metric], resamples=100, max_numbers=4 * size + 1)
    list(bounded.watch(evaluate(some, [metric])))
    intervals = [s.mean is not None and s.mean.low is not None for s in bounded.summaries()]
    assert intervals == [True] * 4 + [False] * 6
    assert "6 of 10 systems have no confidence intervals" in bounded.notes()[0]
    assert [s.mean and s.mean.value for s in bounded.summaries()] == [
        s.mean and s.mean.value for s in summarizer.summaries()
    ]
