"""``ruber``: two metrics, brought to the same range and blended, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import rejoinder
from evaluators import make_evaluator, open_small
from rejoinder.errors import UsageError
from rejoinder.evaluator import Evaluator
from rejoinder.items import Item, Reference
from rejoinder.metrics.base import ItemMetric, make_metric
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.ranges import plain_spec
from rejoinder.metrics.records import item_scores
from rejoinder.metrics.request import requests

ITEMS = [
    Item("1", "a b c d", context=["b e"], references=[Reference("a b c d")]),
    Item("2", "a b", context=["a b"], references=[Reference("a c")]),
    Item("3", "a", context=["a"], references=[Reference("c")]),
]
# rouge-l(beta=1): 1, ½, 0; unreferenced, see CountingScorer: 2/6, 3/4, 2/3
ROUGE = np.array([1.0, 0.5, 0.0])
LEARNED = np.array([1 / 3, 3 / 4, 2 / 3])


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    ranges = {"rouge-l(beta=1)": (0.25, 0.75), "unreferenced": (0.0, 0.5), "wer": (0.0, 2.0)}
    return open_small(make_evaluator(tmp_path / "small", ranges=ranges, language="en"))


def score(spec: str, evaluator: Evaluator | None, items: list[Item] = ITEMS) -> list[float]:
    folder = None if evaluator is None else evaluator.path
    return rejoinder.score(items, spec, evaluator=folder, resamples=100)[spec].values.tolist()


BLENDS = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: math.sqrt(a * b),
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("blend", BLENDS)
def test_fixed_ranges(evaluator: Evaluator, blend: str) -> None:
    """(v - low) / (high - low), cut: 1, ½, 0 and ⅔, 1, 1."""
    expected = [BLENDS[blend](a, b) for a, b in ((1, 2 / 3), (0.5, 1), (0, 1))]
    spec = f"ruber(ref=rouge-l(beta=1),blend={blend},scale=plain)"
    assert score(spec, evaluator) == pytest.approx(expected)
    # nobody else's scores matter
    assert score(spec, evaluator, ITEMS[1:2]) == pytest.approx(expected[1:2])


@pytest.mark.parametrize("blend", BLENDS)
def test_ranges_of_the_set(evaluator: Evaluator, blend: str) -> None:
    """1, ½, 0 stay; 1/3, 3/4, 2/3 become 0, 1, 4/5."""
    expected = [BLENDS[blend](a, b) for a, b in ((1, 0), (0.5, 1), (0, 0.8))]
    spec = f"ruber(ref=rouge-l(beta=1),blend={blend},norm=set,scale=plain)"
    assert score(spec, evaluator) == pytest.approx(expected)


@pytest.mark.parametrize("blend", BLENDS)
def test_odds(evaluator: Evaluator, blend: str) -> None:
    """Of the set: ln(1/2), ln 3, ln 2 become 0, 1 and 2 ln 2 / ln 6. Fixed: the range from 0 to ½
    is cut to .001 and has -ln 999 and 0; ⅓ has -ln 2, the others lie above."""
    third = 2 * math.log(2) / math.log(6)
    expected = [BLENDS[blend](a, b) for a, b in ((1, 0), (0.5, 1), (0, third))]
    spec = f"ruber(ref=rouge-l(beta=1),blend={blend},norm=set)"
    assert score(spec, evaluator) == pytest.approx(expected)
    first = 1 - math.log(2) / math.log(999)
    expected = [BLENDS[blend](a, b) for a, b in ((1, first), (0.5, 1), (0, 1))]
    assert score(f"ruber(ref=rouge-l(beta=1),blend={blend})", evaluator) == pytest.approx(expected)


def test_only_probabilities_have_odds(evaluator: Evaluator) -> None:
    """rouge-l and wer also lie from 0 to 1 here, but say nothing of chance."""
    for norm in ("fixed", "set"):
        specs = [
            f"ruber(ref=rouge-l(beta=1),unref=wer,norm={norm},scale={scale})"
            for scale in ("odds", "plain")
        ]
        assert score(specs[0], evaluator) == score(specs[1], evaluator)
    with pytest.raises(UsageError, match="scale=log is not one of odds, plain"):
        make_metric("ruber(scale=log)")


def test_a_blend_of_blends(evaluator: Evaluator) -> None:
    """The inner one has 1, ½, 0 and ⅔, 1, 1 (see above), and no range but 0 to 1."""
    inner = "ruber(ref=rouge-l(beta=1),scale=plain)"
    inside = [(1 + 2 / 3) / 2, 0.75, 0.5]
    found = score(f"ruber(ref=rouge-l(beta=1),unref={inner})", evaluator)
    outside = [1, 0.5, 0]
    assert found == pytest.approx([(a + b) / 2 for a, b in zip(outside, inside, strict=True)])


def test_the_set_comes_in_one_batch(evaluator: Evaluator) -> None:
    spec = "ruber(ref=rouge-l(beta=1),norm=set,scale=plain)"
    asked = requests([spec, "rouge-l"], evaluator=str(evaluator.path))
    batches = list(evaluate(iter(ITEMS), asked.item_metrics, batch_size=1))
    assert [len(items) for items, _ in batches] == [3]
    assert batches[0][1][0].values.tolist() == pytest.approx([0.5, 0.75, 0.4])


def test_equal_scores_have_no_range(evaluator: Evaluator) -> None:
    same = [ITEMS[0], Item("9", "a b c d", context=["b e"], references=ITEMS[0].references)]
    assert score("ruber(ref=rouge-l(beta=1),norm=set)", evaluator, same) == [0.5, 0.5]
    assert score("ruber(ref=rouge-l(beta=1),norm=set)", evaluator, same[:1]) == [0.5]


def test_any_two_metrics_without_an_evaluator() -> None:
    """Less is better for wer: 0, ½, 1 are turned round."""
    assert score("ruber(ref=rouge-l(beta=1),unref=wer,norm=set)", None) == pytest.approx(
        [1, 0.5, 0]
    )


def test_what_one_side_cannot_score(evaluator: Evaluator) -> None:
    items = [
        *ITEMS,
        Item("no reference", "a", context=["a"]),
        Item("no context", "a", references=[Reference("a")]),
        Item("nothing", "a"),
    ]
    for norm in ("fixed", "set"):
        spec = f"ruber(ref=rouge-l(beta=1),norm={norm})"
        found = rejoinder.score(items, spec, evaluator=evaluator.path, resamples=100)[spec]
        assert found.unscored == {
            "no reference": "no references",
            "no context": "no context",
            "nothing": "no references",
        }
        assert found.values[:3].tolist() == pytest.approx(score(spec, evaluator))
        (corpus,) = found.corpus.values()
        assert corpus is not None
        assert corpus.value == pytest.approx(found.values[:3].mean())


def test_nothing_can_be_scored(evaluator: Evaluator) -> None:
    assert np.isnan(score("ruber(ref=rouge-l(beta=1))", evaluator, [Item("1", "a")])).all()


def test_parts_are_both_sides(evaluator: Evaluator) -> None:
    asked = requests(["ruber(ref=rouge-l(beta=1))"], evaluator=str(evaluator.path))
    ((items, results),) = evaluate(ITEMS, asked.item_metrics)
    lines = item_scores(asked.items, items, results, parts=True)
    assert lines[1].parts == pytest.approx({"ref": 0.5, "unref": 1.0})
    assert lines[0].coverage is None or "nearest" in lines[0].coverage


def test_a_range_that_is_not_known(evaluator: Evaluator) -> None:
    said = r"small knows no range of bleu\(n=1\).*norm=set.*rouge-l\(beta=1\), unreferenced, wer"
    with pytest.raises(UsageError, match=said):  # before anything is scored
        requests(["ruber(ref=bleu(n=1))"], evaluator=str(evaluator.path))


def test_ranges_are_those_of_the_plain_metric(tmp_path: Path) -> None:
    """Neither the evaluator nor the tokenizer of its language stands in their names."""
    ranges = {"vbleu": (0.0, 1.0), "unreferenced": (0.0, 1.0), "expanded(d=bleu)": (0.0, 1.0)}
    rows = [([], "猫", "犬")]
    folder = make_evaluator(
        tmp_path / "ja", rows, by="bm25(tok=char)", ranges=ranges, language="ja"
    )
    evaluator = open_small(folder)
    item = Item("1", "犬が好き", context=["猫"], references=[Reference("犬が好き")])
    for spec in ("ruber(ref=vbleu)", "ruber(ref=expanded(d=bleu))"):
        (value,) = score(spec, evaluator, [item])
        assert 0 <= value <= 1
    with pytest.raises(UsageError, match=r"no range of vbleu\(tok=char\)"):
        score("ruber(ref=vbleu(tok=char))", evaluator, [item])


@pytest.mark.parametrize(
    ("known", "language", "chosen"),
    [
        (["vbleu", "vcosine"], "en", "vcosine"),
        (["vbleu"], "en", "vbleu"),
        (["vbleu"], "ja", "vbleu(tok=ja-mecab)"),
        ([], "en", "vcosine"),
    ],
)
def test_the_usual_reference(tmp_path: Path, known: list[str], language: str, chosen: str) -> None:
    ranges = dict.fromkeys(["unreferenced", *known], (0.0, 1.0))
    by = {"en": "bm25", "ja": "bm25(tok=ja-mecab)"}[language]
    folder = make_evaluator(tmp_path / "small", by=by, ranges=ranges, language=language)
    vars(open_small(folder))["encode"] = lambda texts: np.zeros((len(texts), 2))
    (request,) = requests(["ruber"], evaluator=str(folder), ready=False).items
    assert request.label == "ruber"
    side = request.metric.sides[0]  # type: ignore[attr-defined]
    assert side.evaluators() == request.metric.evaluators()
    assert str(plain_spec(side, None)) == chosen
    assert f"ref:({side.name}|" in request.metric.signature()
    if known:
        assert requests(["ruber"], evaluator=str(folder)).items
    else:
        with pytest.raises(UsageError, match="knows no range of vcosine"):
            requests(["ruber"], evaluator=str(folder))


def test_inner_metrics_are_scored_once(evaluator: Evaluator) -> None:
    specs = ["unreferenced", "ruber(ref=rouge-l(beta=1))", "ruber(ref=wer)"]
    list(evaluate(ITEMS, requests(specs, evaluator=str(evaluator.path)).item_metrics))
    assert len(evaluator.scorer.asked) == 3


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("ruber(blend=mean)", "blend=mean is not one of arithmetic, geometric, min, max"),
        ("ruber(norm=none)", "norm=none is not one of fixed, set"),
        ("ruber(ref=distinct)", "ref=distinct judges sets of replies"),
        ("ruber(unref=ruber(norm=set))", "take norm=fixed there"),
        ("ruber(ref=blue)", "did you mean 'bleu'"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_metric(spec)


def test_spec_and_back() -> None:
    metric = make_metric("ruber(ref=vbleu(n=1),blend=min)")
    assert isinstance(metric, ItemMetric)
    assert make_metric(str(metric)) == metric
