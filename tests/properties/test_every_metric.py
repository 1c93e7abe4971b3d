"""Properties of all registered metrics, and of one without references as the docs show it.

A metric that is added to the registry is tested here without further code. Scores are compared
exactly, up to the metric's ``tolerance``. Metrics with the parameter ``evaluator`` use one that was
fitted to the words of these tests.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import score_with

from fitted import WORDS, small_calibration, small_evaluator
from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.evaluate import evaluate, score_sets
from rejoinder.metrics.metric import ItemMetric, Metric, OverlapMetric, SetMetric, make_metric
from rejoinder.registry import METRICS
from rejoinder.spec import Spec, parameters


@dataclasses.dataclass(frozen=True, kw_only=True)
class TurnLength(ItemMetric):
    """A metric without references, as docs/own-metric.md shows how to write one."""

    name: ClassVar[str] = "turn-length"
    summary: ClassVar[str] = "is the reply longer than the last turn?"
    needs: ClassVar[frozenset[str]] = frozenset({"context"})

    def stats(self, batch: Batch) -> Floats:
        longer = [len(item.response) > len(item.context[-1]) for item in batch.items]
        return np.column_stack([longer, np.ones(len(batch))]).astype(np.float64)


METRICS.add(TurnLength.name, TurnLength)
ALL = [make_metric(name) for name in METRICS.names()]
ITEM_METRICS = [m for m in ALL if isinstance(m, ItemMetric)]
SET_METRICS = [m for m in ALL if isinstance(m, SetMetric)]
REFS = [Spec("max"), Spec("mean"), Spec("top", (("k", 2),))]


SMALL = "small"
"""Placeholder of the evaluator, which is fitted only when a test runs."""


def variants() -> list[ItemMetric]:
    """Return every item metric with every kind of pooling that it has, and with an evaluator if it
    takes one."""
    made = []
    for metric in ITEM_METRICS:
        known = parameters(type(metric))
        if metric.name == "calibrated":
            made.append(make_metric(f'calibrated(model="{small_calibration()}")'))
            continue
        if "refs" in known:
            ways = [*REFS, Spec("all")] if metric.own_multireference else REFS
            pooled = [dataclasses.replace(metric, refs=way) for way in ways]
            if metric.missing_requirement():  # it needs an evaluator
                made += [make_metric(each, evaluator=SMALL) for each in pooled]
                continue
            made += pooled
        if "evaluator" in known:
            made.append(make_metric(cheap(metric), evaluator=SMALL))
    return made


def cheap(metric: ItemMetric) -> Spec:
    """Return the metric with nested metrics whose range is known and that need no network."""
    nested = {"d": Spec("rouge-l"), "ref": Spec("expanded", (("d", Spec("rouge-l")),))}
    changes: dict[str, object] = {k: v for k, v in nested.items() if k in metric.nested}
    if "metrics" in metric.nested:
        changes["metrics"] = (Spec("unreferenced"), nested["ref"])
    return dataclasses.replace(metric, **changes).spec()


def label_of(metric: Metric) -> str:
    """Return the spec without the name of a temporary folder, so that all processes that run the
    tests know them by the same names."""
    return str(metric).replace(str(small_calibration()), "CALIBRATION")


by_name = pytest.mark.parametrize("metric", variants(), ids=label_of, indirect=True)


@pytest.fixture(scope="module")
def metric(request: pytest.FixtureRequest) -> Metric:
    """Return the metric with the fitted evaluator in place of the placeholder."""
    if f"evaluator={SMALL}" not in str(request.param):
        return request.param
    folder = small_evaluator()
    return make_metric(str(request.param).replace(f"evaluator={SMALL}", f'evaluator="{folder}"'))


def has_evaluator(metric: Metric) -> bool:
    return getattr(metric, "evaluator", None) is not None


word = st.sampled_from(WORDS)
text = st.lists(word, max_size=9).map(" ".join)
few_texts = st.sampled_from(
    (
        *("", "the", ".", "猫", "I'm", "mat", "a cat", "the the the cat", "I'm 猫 . cats"),
        *("the cat sat on a mat .", "cats sat on the mat .", "on a mat the cat sat"),
    )
)
"""Networks encode each of them once; new texts for each example would take minutes."""


def texts_for(metric: Metric) -> st.SearchStrategy[str]:
    return few_texts if metric.tolerance else text


def references_of(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Reference]]:
    weight = st.none() | st.floats(-1, 1, allow_subnormal=False)
    return st.lists(st.builds(Reference, texts, weight=weight), max_size=4)


def items_for(metric: Metric) -> st.SearchStrategy[list[Item]]:
    texts = texts_for(metric)
    contexts = st.just([])
    if has_evaluator(metric) or "context" in metric.needs:
        contexts = st.lists(few_texts, max_size=2)
    return st.lists(
        st.builds(
            Item, st.just(""), response=texts, references=references_of(texts), context=contexts
        ),
        min_size=1,
        max_size=6,
    ).map(lambda some: [msgspec.structs.replace(item, id=str(i)) for i, item in enumerate(some)])


def same(found: np.ndarray, expected: np.ndarray, tolerance: float, rtol: float = 0.0) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=tolerance)


def run(
    metric: ItemMetric, given_items: list[Item], batch_size: int = 2048
) -> tuple[np.ndarray, np.ndarray]:
    scored = evaluate(given_items, [metric], batch_size=batch_size, any_language=True)
    results = [r for _, (r,) in scored]
    widest = max(r.rows.shape[1] for r in results)
    rows = [
        r.rows if r.rows.shape[1] == widest else np.zeros((len(r.rows), widest)) for r in results
    ]
    return np.concatenate([r.values for r in results]), np.concatenate(rows)


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_order_of_items_is_irrelevant(metric: ItemMetric, data: st.DataObject) -> None:
    some = data.draw(items_for(metric))
    order = data.draw(st.permutations(range(len(some))))
    values, rows = run(metric, some)
    shuffled, shuffled_rows = run(metric, [some[i] for i in order])
    same(shuffled, values[list(order)], metric.tolerance, rtol=1e-12)
    total = max(metric.tolerance * len(some), 1e-12)
    same(shuffled_rows.sum(axis=0), rows.sum(axis=0), total, rtol=1e-9)


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_order_of_references_is_irrelevant(metric: ItemMetric, data: st.DataObject) -> None:
    some = data.draw(items_for(metric))
    turned = [
        msgspec.structs.replace(i, references=data.draw(st.permutations(i.references)))
        for i in some
    ]
    same(run(metric, turned)[0], run(metric, some)[0], metric.tolerance, rtol=1e-9)


@by_name
@given(data=st.data(), size=st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_batch_size_is_irrelevant(metric: ItemMetric, data: st.DataObject, size: int) -> None:
    some = data.draw(items_for(metric))
    same(run(metric, some, batch_size=size)[0], run(metric, some)[0], metric.tolerance)


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_score_or_a_reason(metric: ItemMetric, data: st.DataObject) -> None:
    """Also for empty and one-token replies: finite, or unscored with a reason."""
    some = data.draw(items_for(metric))
    for _, (result,) in evaluate(some, [metric]):
        for item, value, reason in zip(some, result.values, result.reasons, strict=True):
            assert math.isfinite(value) if reason is None else math.isnan(value)
            if needs_references(metric) and not any(r.text for r in item.references):
                assert reason == "no references"


def needs_references(metric: ItemMetric) -> bool:
    """Return whether an item without references is unscored; an evaluator may add some."""
    return "references" in metric.needs and not has_evaluator(metric)


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_blank_references_do_not_count(metric: ItemMetric, data: st.DataObject) -> None:
    some = data.draw(items_for(metric))
    blanks = [Reference(""), Reference(" \n\u3000", weight=0.5), Reference("\t", weight=-1.0)]
    more = [msgspec.structs.replace(i, references=[*blanks, *i.references]) for i in some]
    same(run(metric, more)[0], run(metric, some)[0], metric.tolerance)
    for _, (result,) in evaluate(more, [metric]):
        for item, reason in zip(some, result.reasons, strict=True):
            if needs_references(metric) and not any(r.text for r in item.references):
                assert reason == "no references"


@by_name
def test_a_score_that_is_not_finite_is_an_error(
    metric: ItemMetric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(metric), "finish", lambda self, rows: np.full(len(rows), np.nan))
    item = Item(id="x", response="a b", references=[Reference("a b")], context=["the cat"])
    with pytest.raises(DataError, match="gave the item 'x' a score that is not finite"):
        run(metric, [item])


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_one_row_gives_the_item_score_and_all_rows_the_corpus(
    metric: ItemMetric, data: st.DataObject
) -> None:
    some = data.draw(items_for(metric))
    values, rows = run(metric, some)
    scored = ~np.isnan(values)
    if not scored.any():
        return
    np.testing.assert_allclose(metric.values(rows[scored]), values[scored])
    total = rows[scored].sum(axis=0)
    (summary,) = score_with(some, metric).corpus.values()
    assert summary is not None
    near = {"abs": metric.tolerance or None}
    assert summary.value == pytest.approx(float(metric.values(total)), **near)
    if not metric.pooling.keeps_rows and "references" in metric.needs:
        assert summary.value == pytest.approx(values[scored].mean(), **near)


@by_name
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_reply_that_equals_a_reference_is_best(metric: ItemMetric, data: st.DataObject) -> None:
    if metric.best is None or metric.refs.name not in ("max", "all"):
        return
    texts = texts_for(metric)
    reply = data.draw(texts.filter(bool))
    if isinstance(metric, OverlapMetric) and len(reply.split()) < metric.tokens_for_best:
        return
    if hasattr(metric, "vectors") and set(reply.split()) == {"猫"}:
        return  # English vectors have none for it
    others = data.draw(references_of(texts))
    lighter = [Reference(r.text, weight=min(r.weight or 0.0, 0.5)) for r in others]
    item = Item(id="1", response=reply, references=[*lighter, Reference(reply, weight=1.0)])
    best = pytest.approx(metric.best, abs=metric.tolerance or None)
    assert run(metric, [item])[0][0] == best


@pytest.mark.parametrize(
    "metric", [m for m in variants() if m.unweighted and not has_evaluator(m)], ids=label_of
)
@given(data=st.data())
@settings(max_examples=50, deadline=None)
def test_unit_weights_make_the_weighted_metric_the_plain_one(
    metric: ItemMetric, data: st.DataObject
) -> None:
    some = data.draw(items_for(metric))
    plain_class = METRICS.find(str(metric.unweighted))
    shared = {f.name: getattr(metric, f.name) for f in dataclasses.fields(plain_class)}
    plain = plain_class(**shared)
    units = [
        Item(id=i.id, response=i.response, references=[Reference(r.text) for r in i.references])
        for i in some
    ]
    same(run(metric, units)[0], run(plain, units)[0], metric.tolerance)


def test_some_metric_is_weighted() -> None:
    assert any(metric.unweighted for metric in ITEM_METRICS)


@pytest.mark.parametrize("metric", [*variants(), *SET_METRICS], ids=label_of, indirect=True)
def test_spec_to_metric_to_spec_is_the_identity(metric: Metric) -> None:
    assert make_metric(str(metric)) == metric
    assert str(make_metric(str(metric))) == str(metric)
    assert make_metric(str(metric)).signature() == metric.signature()


@pytest.mark.parametrize("metric", SET_METRICS, ids=str)
@given(data=st.data(), texts=st.lists(text, min_size=1, max_size=5), refs=references_of(text))
@settings(max_examples=50, deadline=None)
def test_set_metrics(
    metric: SetMetric, data: st.DataObject, texts: list[str], refs: list[Reference]
) -> None:
    """Order of replies is irrelevant; a finite value, or a reason."""

    def measure(replies: list[str]) -> float | None:
        made = [
            Item(id=str(i), response=t, references=refs, context_id="c")
            for i, t in enumerate(replies)
        ]
        (found,) = score_sets(made, [metric])
        assert (found.value is None) == (found.reason is not None)
        return found.value

    value, turned = measure(texts), measure(data.draw(st.permutations(texts)))
    if value is None:
        assert turned is None
    else:
        assert math.isfinite(value)
        assert turned == pytest.approx(value, abs=1e-12)


JAPANESE = "今日はとても天気がいいので、公園まで散歩に行きませんか。"
CHINESE = "今天天气很好，我们一起去公园散步好不好？"


@by_name
@pytest.mark.parametrize(
    ("sentence", "tok"), [(JAPANESE, "ja-mecab"), (CHINESE, "zh-jieba"), (JAPANESE, "char")]
)
def test_japanese_and_chinese_equal_themselves(metric: ItemMetric, sentence: str, tok: str) -> None:
    if metric.best is None:
        return
    if isinstance(metric, OverlapMetric):
        metric = dataclasses.replace(metric, tok=Spec(tok))
    item = Item(id="1", response=sentence, references=[Reference(sentence)])
    best = pytest.approx(metric.best, abs=metric.tolerance or None)
    assert run(metric, [item])[0][0] == best


@by_name
@pytest.mark.parametrize("sentence", [JAPANESE, CHINESE, "お元気ですか"])
@pytest.mark.parametrize("tok", ["13a", "intl"])
def test_the_wrong_tokenizer_is_named(metric: ItemMetric, sentence: str, tok: str) -> None:
    if not isinstance(metric, OverlapMetric):
        return
    metric = dataclasses.replace(metric, tok=Spec(tok))
    item = Item(id="1", response=sentence, references=[Reference(sentence)])
    (reason,) = metric.reasons(Batch.of([item]))
    assert reason.startswith(f"the tokenizer {tok} does not split")
    assert "use tok=" in reason
