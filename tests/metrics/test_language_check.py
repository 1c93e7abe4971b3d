"""Texts in languages that an encoder or evaluator does not know are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators import make_evaluator, open_small
from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.metrics.evaluate import evaluate, score_sets
from rejoinder.metrics.metric import ItemMetric, SetMetric, make_metric
from rejoinder.metrics.metric_set import make_metrics

JAPANESE = [
    Item(
        "1",
        "今日はいい天気ですね。",
        context=["こんにちは。"],
        references=[Reference("そうですね。")],
    ),
    Item(
        "2", "映画が好きです。", context=["趣味は何ですか。"], references=[Reference("音楽です。")]
    ),
]
ENGLISH = [Item("1", "I like it .", context=["and you ?"], references=[Reference("me too .")])]


def metric_of(spec: str) -> ItemMetric:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    return metric


@pytest.mark.parametrize("spec", ["sentence-cosine", "bertscore", "am(d=sentence-cosine)"])
def test_an_english_encoder_refuses_japanese(spec: str) -> None:
    message = (
        rf"{metric_of(spec).name}: .*Japanese.*the encoder .* knows only English.*any_language=True"
    )
    with pytest.raises(DataError, match=message):
        list(evaluate(JAPANESE, [metric_of(spec)]))
    assert list(evaluate(ENGLISH, [metric_of(spec)]))


def test_any_language_warns_once_and_scores() -> None:
    notes: list[str] = []
    metrics = [metric_of("sentence-cosine"), metric_of("sentence-cosine(pool=cls)")]
    scored = evaluate(JAPANESE, metrics, batch_size=1, any_language=True, on_note=notes.append)
    assert len(list(scored)) == 2
    assert len(notes) == 1
    assert "Japanese" in notes[0]
    assert "these scores mean little" in notes[0]


def test_word_vectors_and_nested_metrics_are_checked() -> None:
    for spec in ("embedding-average(tok=ja-mecab)", "vector-pool(against=query,tok=char)"):
        with pytest.raises(DataError, match=r"the word vectors .* knows only English"):
            list(evaluate(JAPANESE, [metric_of(spec)]))
    recall = make_metric("recall(d=sentence-cosine)")
    assert isinstance(recall, SetMetric)
    with pytest.raises(DataError, match=r"recall: .*Japanese"):
        score_sets(JAPANESE, [recall])


def test_metrics_over_words_know_all_languages() -> None:
    assert list(evaluate(JAPANESE, [metric_of("bleu(tok=ja-mecab)"), metric_of("chrf")]))


def test_an_evaluator_knows_its_language(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small", language="en"))
    metrics = make_metrics("unreferenced", evaluator=evaluator).item_metrics
    with pytest.raises(DataError, match=r"unreferenced: .* the evaluator small knows only English"):
        list(evaluate(JAPANESE, metrics))
    assert list(evaluate(ENGLISH, metrics))
