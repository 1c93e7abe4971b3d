"""``vbleu``, ``vbertscore`` and ``expanded``: metrics over references that an evaluator adds."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from scoring import score

from evaluators import make_evaluator, open_small
from rejoinder.errors import UsageError
from rejoinder.evaluator import Evaluator, open_evaluator
from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.metrics.records import item_scores

ITEMS = [
    Item("1", "here you go", context=["hi", "some more cheese"], system="a"),
    Item("2", "over the hill", context=["where is it now"], system="a"),
    Item("3", "here you are", context=["zebra"], system="a"),
    Item("4", "here you are", system="a"),
    Item("5", "", context=["where is it now"], system="b"),
]


def with_references(items: list[Item]) -> list[Item]:
    known = {
        "1": [Reference("here we are"), Reference("no", weight=-0.5)],
        "3": [Reference("here you are")],
    }
    return [msgspec.structs.replace(i, references=known.get(i.id, [])) for i in items]


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_small(make_evaluator(tmp_path / "small", k=3))


def metric_of(spec: str, evaluator: Evaluator) -> ItemMetric:
    (metric,) = make_metrics(spec, evaluator=evaluator).item_metrics
    return metric


@pytest.mark.parametrize(
    ("spec", "plain"),
    [
        ("vbleu", "delta-bleu"),
        ("vbleu(n=1,refs=mean)", "delta-bleu(n=1,refs=mean)"),
        ("expanded(d=delta-bleu)", "delta-bleu"),
        ("expanded(d=vbleu)", "delta-bleu"),
        ("expanded(d=bleu(n=1))", "bleu(n=1)"),
        ("expanded(d=rouge-l(refs=mean))", "rouge-l(refs=mean)"),
        ("vbertscore", "vbertscore"),
        ("expanded", "sentence-cosine"),
    ],
)
def test_the_evaluator_inside_gives_the_same_as_expanding_first(
    evaluator: Evaluator, spec: str, plain: str
) -> None:
    items = with_references(ITEMS)
    within = score(items, spec, evaluator)
    expanded = evaluator.expand(items)
    apart = score(expanded, plain)
    np.testing.assert_allclose(within.values, apart.values, atol=1e-5)
    assert within.unscored.keys() == apart.unscored.keys()
    corpora = within.corpus["a"], apart.corpus["a"]
    assert corpora[0] is not None
    assert corpora[1] is not None
    assert corpora[0].value == pytest.approx(corpora[1].value, abs=1e-5)
    assert np.isfinite(within.values[:3]).all()
    assert within.unscored["4"] == "no context and no references"


def test_metrics_without_an_evaluator_see_the_file_only(evaluator: Evaluator) -> None:
    assert len(score(ITEMS, "delta-bleu", evaluator).unscored) == 5
    assert score(ITEMS, "vbleu", evaluator).unscored.keys() == {"3", "4"}


def test_an_expansion_is_made_once_for_all_metrics(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = Evaluator.expansion
    monkeypatch.setattr(
        Evaluator, "expansion", lambda *a, **kw: made.append(a) or original(*a, **kw)
    )
    specs = ["vbleu", "vbleu(n=1)", "expanded(d=bleu)", "unreferenced", "vbleu(n=3,k=3)"]
    metrics = make_metrics(specs, evaluator=evaluator)
    list(evaluate(ITEMS, metrics.item_metrics))
    assert len(made) == 1
    list(evaluate(ITEMS, make_metrics(["vbleu(k=1)"], evaluator=evaluator).item_metrics))
    assert len(made) == 2


def test_leaks_of_the_whole_set_whatever_the_batches(evaluator: Evaluator) -> None:
    """The second item has the utterance of the pair that is nearest to the first one."""
    items = [*with_references(ITEMS[:1]), Item("9", "x", context=["More cheese, please"])]
    metric = metric_of("vbleu", evaluator)
    together = [r.values for _, (r,) in evaluate(items, [metric])]
    apart = [r.values for _, (r,) in evaluate(iter(items), [metric], batch_size=1)]
    np.testing.assert_array_equal(np.concatenate(together), np.concatenate(apart))
    (alone,) = evaluate(items[:1], [metric])
    assert alone[1][0].values[0] > together[0][0]


def test_scores_come_with_the_coverage(evaluator: Evaluator) -> None:
    metrics = make_metrics(["vbleu", "bleu"], evaluator=evaluator)
    for items, results in evaluate(ITEMS, metrics.item_metrics):
        lines = item_scores(metrics.labels, items, results, parts=False)
    by_id = {(line.id, line.metric): line.coverage for line in lines}
    assert by_id["1", "vbleu"] is not None
    assert by_id["1", "vbleu"]["nearest"] > 0
    assert by_id["4", "vbleu"] is None
    assert by_id["1", "bleu"] is None


def test_signatures_name_the_evaluator_not_its_path(evaluator: Evaluator) -> None:
    for spec in ("vbleu", "expanded(d=bleu)", "unreferenced", "ruber(ref=vbleu)"):
        signature = metric_of(spec, evaluator).signature()
        assert f"evaluator:{evaluator}" in signature
        assert str(evaluator.path) not in signature
    assert "|k:3|" in metric_of("vbleu", evaluator).signature()
    assert "|k:7|" in metric_of("vbleu(k=7)", evaluator).signature()
    assert "|k:none|evaluator:none|" in make_metric("vbleu").signature()


def test_labels_stay_as_the_user_wrote_them(evaluator: Evaluator) -> None:
    specs = ["vbleu", "expanded(d=bleu)", "ruber(ref=vbleu)", "bleu"]
    metrics = make_metrics(specs, evaluator=evaluator)
    assert list(metrics.labels.values()) == specs


def test_a_spec_may_name_an_evaluator_of_its_own(evaluator: Evaluator, tmp_path: Path) -> None:
    other = open_evaluator(make_evaluator(tmp_path / "other", k=1))
    metrics = make_metrics(["vbleu", f'vbleu(evaluator="{other.path}")'], evaluator=evaluator)
    assert [m.evaluators() for m in metrics.item_metrics] == [[evaluator], [other]]


@pytest.mark.parametrize(
    "spec",
    [
        "unreferenced",
        "expanded(d=bleu)",
        "rejoinder",
        "rejoinder(norm=set)",
        "ruber",
        "ruber(norm=fixed)",
    ],
)
def test_a_missing_evaluator_is_explained(spec: str) -> None:
    with pytest.raises(
        UsageError, match=r"rejoinder\.fit\(LOGS.*evaluator='evaluator/'$"
    ) as caught:
        make_metrics([spec])
    assert "norm=fixed needs" not in str(caught.value)
    assert len(make_metrics([spec], ready=False)) == 1


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(UsageError) as error:
        make_metrics(["unreferenced", "bleu(x=3)", "expanded"])
    assert len(error.value.messages) == 3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("expanded(d=unreferenced)", "is not a metric over the references"),
        ('expanded(d=vbleu(evaluator="x"))', "the evaluator is a parameter of expanded itself"),
        ("expanded(d=distinct)", "scores sets of replies"),
        ('recall(d=vbleu(evaluator="x"))', "cannot have an evaluator"),
        ("recall(d=expanded)", "cannot have an evaluator"),
        ("vbleu(k=0)", "k=0 is not from 1"),
        ("unreferenced(refs=mean)", "no parameter 'refs'"),
    ],
)
def test_wrong_specs_are_refused(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_metric(spec)


def test_the_language_is_that_of_the_evaluator(tmp_path: Path) -> None:
    rows = [([], "今日は いい 天気", "そう です ね")]
    folder = make_evaluator(tmp_path / "ja", rows, by="bm25(tok=ja-mecab)", language="ja")
    metrics = make_metrics(["bleu", "vbleu"], evaluator=str(folder))
    assert [str(metric.tok) for metric in metrics.item_metrics] == ["ja-mecab"] * 2  # type: ignore[attr-defined]
    assert list(metrics.labels.values()) == ["bleu", "vbleu"]
    english = make_metrics(["bleu"], "en", str(folder))
    assert [str(metric.tok) for metric in english.item_metrics] == ["13a"]  # type: ignore[attr-defined]
    zh = make_metrics(["bleu"], "zh", str(folder))
    assert list(zh.labels.values()) == ["bleu(tok=zh-jieba)"]
