"""``vbleu``, ``vbertscore`` and ``expanded``: metrics over what an evaluator adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from evaluators import make_evaluator, open_small
from rejoinder.errors import UsageError
from rejoinder.evaluator import Evaluator, open_evaluator
from rejoinder.items import Item
from rejoinder.metrics.base import ItemMetric, make_metric
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.records import item_scores
from rejoinder.metrics.request import requests
from rejoinder.verbs import load

ITEMS = [
    Item("1", "here you go", context=["hi", "some more cheese"], system="a"),
    Item("2", "over the hill", context=["where is it now"], system="a"),
    Item("3", "here you are", context=["zebra"], system="a"),
    Item("4", "here you are", system="a"),
    Item("5", "", context=["where is it now"], system="b"),
]


def with_references(items: list[Item]) -> list[dict[str, Any]]:
    known = {"1": ["here we are", {"text": "no", "weight": -0.5}], "3": ["here you are"]}
    return [
        {"id": i.id, "response": i.response, "context": i.context, "system": i.system}
        | {"references": known.get(i.id, [])}
        for i in items
    ]


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_small(make_evaluator(tmp_path / "small", k=3))


def metric_of(spec: str, evaluator: Evaluator) -> ItemMetric:
    (request,) = requests([spec], evaluator=str(evaluator.path)).items
    assert isinstance(request.metric, ItemMetric)
    return request.metric


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
def test_the_same_as_expanding_first(evaluator: Evaluator, spec: str, plain: str) -> None:
    items = list(load(with_references(ITEMS)))
    within = rejoinder.score(items, spec, evaluator=evaluator.path, resamples=100)[spec]
    expanded = evaluator.expand(items)
    apart = rejoinder.score(expanded, plain, resamples=100)[plain]
    np.testing.assert_allclose(within.values, apart.values, atol=1e-5)
    assert within.unscored == apart.unscored
    assert within.corpus["a"].value == pytest.approx(apart.corpus["a"].value, abs=1e-5)
    assert np.isfinite(within.values[:3]).all()
    assert within.unscored["4"] == "no references"


def test_metrics_without_an_evaluator_see_the_file_only(evaluator: Evaluator) -> None:
    found = rejoinder.score(ITEMS, ["vbleu", "delta-bleu"], evaluator=evaluator.path, resamples=100)
    assert len(found["delta-bleu"].unscored) == 5
    assert found["vbleu"].unscored.keys() == {"3", "4"}


def test_an_expansion_is_made_once_for_all_metrics(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    original = Evaluator.expansion
    monkeypatch.setattr(
        Evaluator, "expansion", lambda *a, **kw: made.append(a) or original(*a, **kw)
    )
    specs = ["vbleu", "vbleu(n=1)", "expanded(d=bleu)", "unreferenced", "vbleu(n=3,k=3)"]
    asked = requests(specs, evaluator=str(evaluator.path))
    list(evaluate(ITEMS, asked.item_metrics))
    assert len(made) == 1
    list(evaluate(ITEMS, requests(["vbleu(k=1)"], evaluator=str(evaluator.path)).item_metrics))
    assert len(made) == 2


def test_leaks_of_the_whole_set_whatever_the_batches(evaluator: Evaluator) -> None:
    """The second item has the utterance of the pair that is nearest to the first one."""
    known = list(load(with_references(ITEMS[:1])))
    items = [*known, Item("9", "x", context=["More cheese, please"])]
    metric = metric_of("vbleu", evaluator)
    together = [r.values for _, (r,) in evaluate(items, [metric])]
    apart = [r.values for _, (r,) in evaluate(iter(items), [metric], batch_size=1)]
    np.testing.assert_array_equal(np.concatenate(together), np.concatenate(apart))
    (alone,) = evaluate(items[:1], [metric])
    assert alone[1][0].values[0] > together[0][0]


def test_scores_tell_the_coverage(evaluator: Evaluator) -> None:
    asked = requests(["vbleu", "bleu"], evaluator=str(evaluator.path))
    for items, results in evaluate(ITEMS, asked.item_metrics):
        lines = item_scores(asked.items, items, results, parts=False)
    by_id = {(line.id, line.metric): line.coverage for line in lines}
    assert by_id["1", "vbleu"] is not None
    assert by_id["1", "vbleu"]["nearest"] > 0
    assert by_id["4", "vbleu"] is None
    assert by_id["1", "bleu"] is None


def test_signatures_name_the_evaluator_not_its_path(evaluator: Evaluator) -> None:
    for spec in ("vbleu", "expanded(d=bleu)", "unreferenced", "ruber(ref=vbleu,norm=set)"):
        signature = metric_of(spec, evaluator).signature()
        assert f"evaluator:{evaluator}" in signature
        assert str(evaluator.path) not in signature
    assert "|k:3|" in metric_of("vbleu", evaluator).signature()
    assert "|k:7|" in metric_of("vbleu(k=7)", evaluator).signature()
    assert "|k:none|evaluator:none|" in make_metric("vbleu").signature()


def test_labels_stay_as_the_user_wrote_them(evaluator: Evaluator) -> None:
    specs = ["vbleu", "expanded(d=bleu)", "ruber(ref=vbleu,norm=set)", "bleu"]
    asked = requests(specs, evaluator=str(evaluator.path))
    assert [request.label for request in asked.items] == specs


def test_a_spec_may_name_an_evaluator_of_its_own(evaluator: Evaluator, tmp_path: Path) -> None:
    other = open_evaluator(make_evaluator(tmp_path / "other", k=1))
    asked = requests(["vbleu", f'vbleu(evaluator="{other.path}")'], evaluator=str(evaluator.path))
    assert [m.evaluators() for m in asked.item_metrics] == [[evaluator], [other]]


@pytest.mark.parametrize("spec", ["unreferenced", "expanded(d=bleu)", "ruber", "ruber(norm=set)"])
def test_without_an_evaluator_it_is_told_how_to_get_one(spec: str) -> None:
    with pytest.raises(UsageError, match=r"rejoinder fit LOGS.*--evaluator evaluator/"):
        requests([spec])
    assert requests([spec], ready=False).items


def test_all_that_is_lacking_is_told_at_once() -> None:
    with pytest.raises(UsageError) as error:
        requests(["unreferenced", "bleu(x=3)", "expanded"])
    assert len(error.value.messages) == 3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("expanded(d=unreferenced)", "is not a metric over the references"),
        ('expanded(d=vbleu(evaluator="x"))', "an evaluator is given to expanded itself"),
        ("expanded(d=distinct)", "judges sets of replies"),
        ('recall(d=vbleu(evaluator="x"))', "can't have an evaluator"),
        ("recall(d=expanded)", "can't have an evaluator"),
        ("vbleu(k=0)", "k=0 is not from 1"),
        ("unreferenced(refs=mean)", "no parameter 'refs'"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_metric(spec)


def test_the_language_is_that_of_the_evaluator(tmp_path: Path) -> None:
    rows = [([], "今日は いい 天気", "そう です ね")]
    folder = make_evaluator(tmp_path / "ja", rows, by="bm25(tok=ja-mecab)", language="ja")
    asked = requests(["bleu", "vbleu"], evaluator=str(folder))
    assert [str(metric.tok) for metric in asked.item_metrics] == ["ja-mecab"] * 2  # type: ignore[attr-defined]
    assert [request.label for request in asked.items] == ["bleu", "vbleu"]
    given = requests(["bleu"], "en", str(folder))
    assert [str(metric.tok) for metric in given.item_metrics] == ["13a"]  # type: ignore[attr-defined]
    zh = requests(["bleu"], "zh", str(folder))
    assert [request.label for request in zh.items] == ["bleu(tok=zh-jieba)"]


def test_the_functions_of_the_package_ask_it_too(evaluator: Evaluator) -> None:
    items = [
        Item(f"{i}{system}", f"{reply} {i}", context=[turn], system=system, ratings=float(i + rank))
        for i, turn in enumerate(["some more cheese", "no cheese", "where is it", "what music"])
        for rank, (system, reply) in enumerate({"a": "here you", "b": "no", "c": "yes"}.items())
    ]
    found = rejoinder.agreement(items, "unreferenced", evaluator=evaluator.path, resamples=100)
    assert {third.by for third in found.by_coverage} == {"nearest"}  # bm25 has no vectors
    (ranking,) = rejoinder.compare(items, "unreferenced", evaluator=str(evaluator.path))
    assert ranking.metric.evaluators() == [evaluator]
