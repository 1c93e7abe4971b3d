"""``mean``: any metrics on one scale; ranks, z-scores, reasons, specs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from scoring import score

import rejoinder
from fitted import WORDS, small_evaluator
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.ensemble.mean import SCALES, Mean
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import WholeItemMetric, make_metric
from rejoinder.metrics.metric_set import make_metrics
from rejoinder.registry import METRICS
from rejoinder.spec import Spec, parse

ITEMS = [
    Item(id="1", response="the cat sat", references=[Reference("the cat sat")]),
    Item(id="2", response="a cat", references=[Reference("the cat sat")]),
    Item(id="3", response="on a mat", references=[Reference("the cat sat")]),
    Item(id="4", response="a dog", references=[]),
]


@dataclass(frozen=True, kw_only=True)
class LettersTooMany(WholeItemMetric):
    """A metric of which less is better."""

    name: ClassVar[str] = "letters-too-many"
    summary: ClassVar[str] = "length of the reply"
    needs: ClassVar[frozenset[str]] = frozenset()
    higher_is_better: ClassVar[bool] = False

    def stats(self, batch: Batch) -> Floats:
        lengths = [len(item.response) for item in batch.items]
        return np.column_stack([lengths, np.ones(len(batch))])


@pytest.fixture(autouse=True, scope="module")
def _registered() -> Iterator[None]:
    METRICS.add(LettersTooMany.name, LettersTooMany)
    yield
    del METRICS._added[LettersTooMany.name]


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
some_items = st.lists(st.tuples(texts, texts), min_size=1, max_size=7).map(
    lambda pairs: [
        Item(id=str(i), response=reply, references=[Reference(reference)])
        for i, (reply, reference) in enumerate(pairs)
    ]
)


def test_ranks_by_hand() -> None:
    """bleu(n=1) is 1, .61 · ½ (brevity e^-½, one of two words), and 0; wer is 1, 1/3 and 0.

    So both rank the replies alike: (rank - ½) / 3 is 5/6, 3/6 and 1/6. The fourth has no reference.
    """
    scores = score(ITEMS, "mean(bleu(n=1,smooth=none),wer)")
    assert scores.values[:3] == pytest.approx([5 / 6, 3 / 6, 1 / 6])
    assert scores.unscored == {"4": "bleu: no references"}


def test_z_and_none_by_hand() -> None:
    wer = np.array([1, 1 / 3, 0])
    bleu = np.array([1, np.exp(-0.5) / 2, 0])
    z = ((bleu - bleu.mean()) / bleu.std() + (wer - wer.mean()) / wer.std()) / 2
    found = score(ITEMS[:3], "mean(bleu(n=1,smooth=none),wer,scale=z)").values
    assert found == pytest.approx(z)
    found = score(ITEMS[:3], "mean(bleu(n=1,smooth=none),wer,scale=none)").values
    assert found == pytest.approx((bleu + wer) / 2)


@given(some_items)
@settings(max_examples=30, deadline=None)
def test_the_mean_of_one_metric_ranks_as_the_metric(some: list[Item]) -> None:
    for spec in ("chrf", "wer", LettersTooMany.name):
        sign = -1 if spec == LettersTooMany.name else 1
        expected = rankdata(sign * score(some, spec).values.round(9))
        for scale in ("rank", "z", "none"):
            found = score(some, f"mean({spec},scale={scale})").values
            np.testing.assert_array_equal(rankdata(found.round(9)), expected)


@given(some_items, st.permutations(["chrf", "wer", "bleu(n=1)"]))
@settings(max_examples=20, deadline=None)
def test_order_of_metrics_and_nesting(some: list[Item], order: list[str]) -> None:
    """Means of z-scores: the order does not matter; equal parts do not change it."""
    plain = score(some, "mean(chrf,wer,bleu(n=1),scale=z)").values
    turned = score(some, f"mean({','.join(order)},scale=z)").values
    np.testing.assert_allclose(turned, plain, atol=1e-9)
    ranks = score(some, "mean(chrf,wer)").values
    assert ((ranks > 0) & (ranks < 1)).all()
    assert ranks.mean() == pytest.approx(0.5)
    nested = score(some, "mean(mean(chrf,wer,scale=none),scale=rank)").values
    flat = score(some, "mean(chrf,wer,scale=none)").values
    np.testing.assert_array_equal(rankdata(nested.round(9)), rankdata(flat.round(9)))


def test_parts_and_equal_values() -> None:
    made = make_metric("mean(chrf,wer,scale=z)")
    assert isinstance(made, Mean)
    ((_, (result,)),) = evaluate([ITEMS[0], ITEMS[0]], [made])
    assert result.values.tolist() == [0, 0]
    parts = made.ingredients(result.rows)
    assert {name: part.tolist() for name, part in parts.items()} == {"chrf": [0, 0], "wer": [0, 0]}
    numbered = make_metric("mean(bleu(n=1),bleu(n=2),wer)")
    assert isinstance(numbered, Mean)
    assert numbered.labels == ("bleu-1", "bleu-2", "wer")


def test_with_an_evaluator() -> None:
    """Stored ranges; and the default takes the evaluator of the run in all its parts."""
    evaluator = small_evaluator()
    contexts = [["the cat sat"], ["a mat"], ["cats sat on"]]
    some = [Item(id=str(i), context=c, response="the cat sat") for i, c in enumerate(contexts)]
    (made,) = make_metrics("mean(unreferenced,rejoinder,scale=range)", evaluator=evaluator)
    _, metric = made
    assert isinstance(metric, Mean)
    # that of the mean, of unreferenced, of rejoinder, and of unreferenced in rejoinder
    assert str(metric).count("evaluator=") == 4
    found = score(some, metric).values
    assert ((found >= 0) & (found <= 1)).all()
    assert not metric.needs_whole_set
    with pytest.raises(UsageError, match="knows no range of chrf"):
        make_metrics("mean(chrf,scale=range)", evaluator=evaluator)
    with pytest.raises(UsageError, match="with scale=range needs an evaluator"):
        make_metrics("mean(chrf,scale=range)")


@pytest.mark.parametrize(
    "text",
    [
        "mean(bleu,wer)",
        "mean(likelihood(model=/a/b,of=reply),mean(bleu(n=2),wer,scale=z),scale=none)",
        "mean(bleu)",
    ],
)
def test_specs(text: str) -> None:
    assert str(parse(text)) == text
    made = make_metric(text)
    assert str(made) == text
    assert make_metric(str(made)) == made
    assert make_metric(made.spec()) == made


def test_signature_and_language() -> None:
    made = make_metric("mean(bleu(n=2),wer)", language="ja")
    assert str(made) == "mean(bleu(n=2,tok=ja-mecab),wer(tok=ja-mecab))"
    signature = made.signature()
    for part in ("|metrics:(bleu|n:2|", "|tok:ja-mecab", ")(wer|", ")|scale:rank|"):
        assert part in signature
    (label,) = [label for label, _ in make_metrics("mean(bleu,wer)", language="ja")]
    assert label == "mean(bleu(tok=ja-mecab),wer(tok=ja-mecab))"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("mean(bleu,bleu)", "bleu is there twice"),
        ("mean(distinct)", "scores sets of replies"),
        ("mean(bleu,scale=log)", "scale=log is not one of " + ", ".join(SCALES)),
        ("mean(nothing)", "unknown metric 'nothing'"),
        ("mean(scale=z,bleu)", "expected '=' after 'bleu'"),
        ("mean(bleu wer)", "expected ',' or '\\)'"),
        ("mean(metrics=bleu)", "metrics=bleu is not several specs"),
        ("ruber(ref=mean(bleu,wer))", "normalised over a set itself"),
    ],
)
def test_wrong_specs(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        make_metric(text)


def test_python_values() -> None:
    by_class = rejoinder.Mean(metrics=(rejoinder.Bleu(n=2), Spec("wer")))
    assert str(by_class) == "mean(bleu(n=2),wer)"
    with pytest.raises(ValueError, match="no metrics to average"):
        rejoinder.Mean(metrics=())
