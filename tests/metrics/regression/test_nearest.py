"""``am`` and ``ws``: by hand, against pooling, and items that they cannot score."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring import score_with

import rejoinder
from rejoinder.errors import UsageError
from rejoinder.items import Item, Reference
from rejoinder.metrics.metric import make_metric
from rejoinder.metrics.metric_set import make_metrics

REPLY = "a b c d"
# edits of 4 words: 1, 2, 3 and 4; similarities ¾, ½, ¼ and 0
NEAR, MIDDLE, FAR, NOTHING = "a b c x", "a b x y", "a x y z", "p q r s"
WER, SIGNED = "wer(tok=whitespace)", "wer(signed=true,tok=whitespace)"


def scored(*pairs: tuple[str, float | None]) -> list[Reference]:
    return [Reference(text, weight=weight) for text, weight in pairs]


def score(spec: str, references: list[Reference], reply: str = REPLY) -> float:
    return rejoinder.score_one(spec, reply, references)


def why(spec: str, references: list[Reference], reply: str = REPLY) -> str:
    item = Item("1", reply, references=references)
    return rejoinder.score([item], spec, resamples=100)[spec].unscored["1"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (f"am(d={WER})", (3 / 4 + 1 / 2 + 1 / 4) / 3),
        (f"am(d={WER},m=1)", 3 / 4),
        (f"am(d={WER},m=9)", (3 / 4 + 1 / 2 + 1 / 4 + 0) / 4),  # there are only 4
        (f"am(d={SIGNED})", (1 / 2 + 0 - 1 / 2) / 3),
        # common subsequences of 3, 2 and 1 of 4 words: the same numbers, so the same mean
        (f"am(d={WER},d2=rouge-l(tok=whitespace))", (3 / 4 + 1 / 2 + 1 / 4) / 3),
    ],
)
def test_am(spec: str, expected: float) -> None:
    known = scored((FAR, None), (NEAR, 0.1), (NOTHING, 1.0), (MIDDLE, None))
    assert score(spec, known) == pytest.approx(expected, abs=1e-12)


def test_am_over_several_metrics_takes_their_mean() -> None:
    """Of "a c" and "a b c d": 2 edits of 4 words, ½; the common subsequence has 2 words, P = 1,
    R = ½, F = ⅔. The mean is 7/12."""
    known = [Reference("a c")]
    assert score(f"am(d={WER},d2=rouge-l(tok=whitespace))", known) == pytest.approx(7 / 12)


def test_am_leaves_bad_references_out() -> None:
    known = scored((REPLY + " e", -1.0), (NEAR, 0.0), (MIDDLE, 0.2))
    assert score(f"am(d={WER})", known) == pytest.approx(1 / 2)
    assert why("am", scored((NEAR, 0.0), (FAR, -1.0))) == "no reference has a weight above 0"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # e = (w + 1) / 2: .8, .4 and 1 for similarities ¾, ½, ¼
        (f"ws(d={WER})", (0.8 * 3 / 4 + 0.4 * 1 / 2 + 1.0 * 1 / 4) / 3),
        (f"ws(d={WER},m=2)", (0.8 * 3 / 4 + 0.4 * 1 / 2) / 2),
        (f"ws(d={SIGNED})", (0.8 * 1 / 2 + 0.4 * 0 - 1.0 * 1 / 2) / 3),
    ],
)
def test_ws(spec: str, expected: float) -> None:
    known = scored((FAR, 1.0), (NEAR, 0.6), (NOTHING, -1.0), (MIDDLE, -0.2))
    assert score(spec, known) == pytest.approx(expected, abs=1e-12)


def test_equal_similarities_share_the_last_places() -> None:
    """Three references of similarity ½ with e = 1, .5 and 0 compete for one place beside the one
    of ¾ with e = 1: (¾ + ½ · .5) / 2."""
    tied = ("a b x y", 1.0), ("a b u v", 0.0), ("a b p q", -1.0)
    for order in (tied, tied[::-1]):
        found = score(f"ws(d={WER},m=2)", scored(*order, (NEAR, 1.0)))
        assert found == pytest.approx((3 / 4 + 1 / 2 * 0.5) / 2, abs=1e-12)


def test_the_reply_itself_is_left_out() -> None:
    """White space apart; all of its copies."""
    known = scored((REPLY, 1.0), ("a  b c d ", 1.0), (MIDDLE, 1.0))
    for name in ("am", "ws"):
        assert score(f"{name}(d={WER})", known) == pytest.approx(1 / 2)
        with_itself = score(f"{name}(d={WER},loo=false)", known)
        assert with_itself == pytest.approx((1 + 1 + 1 / 2) / 3)
        assert why(name, scored((REPLY, 1.0))) == "no reference but the reply itself"


def test_ws_needs_every_score() -> None:
    known = scored((NEAR, 0.5), (MIDDLE, None))
    assert why("ws", known) == "a reference has no weight"
    assert why("ws", []) == "no references"
    # a blank reference is not there, with or without a weight
    blank = scored(("  ", None), (NEAR, 1.0), ("", None))
    assert score(f"ws(d={WER})", blank) == pytest.approx(3 / 4)


def test_one_reference() -> None:
    assert score(f"ws(d={WER})", scored((NEAR, 0.0))) == pytest.approx(3 / 8)
    assert score(f"am(d={WER})", scored((NEAR, None))) == pytest.approx(3 / 4)


texts = st.lists(st.sampled_from("abcde"), min_size=1, max_size=5).map(" ".join)
references = st.lists(st.builds(Reference, texts, weight=st.floats(-1, 1)), min_size=1, max_size=6)


@given(reply=texts, known=references, m=st.integers(1, 4))
def test_am_is_pooling_over_the_best(reply: str, known: list[Reference], m: int) -> None:
    """Without leaving out, ``am`` is what ``refs=top(m)`` of the metric gives."""
    item = Item("1", reply, references=known)
    am, plain = f"am(d={WER},m={m},loo=false)", f"wer(refs=top({m}),tok=whitespace)"
    found = rejoinder.score([item], [am, plain], resamples=100)
    np.testing.assert_allclose(found[am].values, found[plain].values, rtol=0, atol=1e-12)
    assert found[am].unscored == found[plain].unscored


@pytest.mark.parametrize("d", ["sentence-cosine", "embedding-average", "bertscore"])
def test_vectors_are_compared_as_the_metric_does(d: str) -> None:
    """Cosines of sentences are a matrix product here; a blank reply is 0."""
    known = [Reference(t) for t in ("the cat sat", "a mat", "on the mat .", "cats sat")]
    items = [
        Item(str(n), reply, references=known[: n + 1], context_id="c")
        for n, reply in enumerate(("a cat", "  ", "the mat sat on a cat", "a cat"))
    ]
    am, plain = f"am(d={d},loo=false)", f"{d}(refs=top(3))"
    found = rejoinder.score(items, [am, plain], resamples=100)
    np.testing.assert_allclose(found[am].values, found[plain].values, rtol=0, atol=1e-5)
    assert found[am].values[1] == 0


@given(reply=texts, known=references, data=st.data())
def test_the_order_of_references_is_irrelevant(
    reply: str, known: list[Reference], data: st.DataObject
) -> None:
    turned = data.draw(st.permutations(known))
    specs = [f"ws(d={WER})", f"am(d={WER})", f"svr(d={WER},share=never)"]
    one, other = (
        rejoinder.score([Item("1", reply, references=list(some))], specs, resamples=100)
        for some in (known, turned)
    )
    for spec in specs:
        assert one[spec].unscored == other[spec].unscored
        np.testing.assert_allclose(one[spec].values, other[spec].values, rtol=0, atol=1e-5)


def test_items_of_a_context_do_not_influence_one_another() -> None:
    """Each item is scored by its own references, although similarities are computed together."""
    lists = [scored((NEAR, 1.0), (FAR, -1.0)), scored((MIDDLE, 0.5)), scored((NEAR, 0.0))]
    items = [Item(str(n), REPLY, references=known, context_id="c") for n, known in enumerate(lists)]
    spec = f"ws(d={WER})"
    together = rejoinder.score(items, spec, resamples=100)[spec].values
    alone = [score(spec, known) for known in lists]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


def test_unreadable_texts() -> None:
    """A text that the tokenizer can't split is not compared; a reply of that kind is unscored."""
    japanese = "今日はとても天気がいいので、公園まで散歩に行きませんか。"
    known = scored((japanese, 1.0), (NEAR, 1.0), (MIDDLE, 1.0), (FAR, -1.0))
    for name in ("am(d=wer)", "ws(d=wer)", "svr(d=wer)"):
        assert score(name, known) == pytest.approx(score(name, known[1:]), abs=1e-9)
    items = [
        Item("1", japanese[:-2], references=known[1:], context_id="c"),
        Item("2", REPLY, references=known[1:], context_id="c"),
    ]
    for name in ("am(d=wer)", "ws(d=wer)", "svr(d=wer)"):
        found = rejoinder.score(items, name, resamples=100)[name]
        assert "does not split" in found.unscored["1"]
        assert not np.isnan(found.values[1])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("am(m=0)", "m=0 is not from 1"),
        ("am(d=distinct)", "scores sets of replies"),
        ("am(d=unreferenced)", "does not compare a reply with one reference"),
        ("ws(d=vcosine)", "cannot have an evaluator"),
        ("svr(d=svr)", "does not compare a reply with one reference"),
        ("ws(d=wer,d2=wer)", "the same metric is given twice"),
        ("svr(c=0)", "c=0 is not above 0"),
        ("svr(gamma=-1)", "gamma=-1 is not above 0"),
        ("svr(share=some)", "share=some is not one of auto, never, always"),
        ("svr(min_references=0)", "min_references=0 is not from 1"),
        ("svr(dd=wer)", "svr has no parameter 'dd'"),
    ],
)
def test_wrong_parameters(spec: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_metric(spec)


def test_spec_and_signature() -> None:
    for spec in ("am(d=bleu)", "ws(m=5,d2=bleu)", "svr(gamma=0.5,share=never,d=wer,d2=rouge-l)"):
        metric = make_metric(spec)
        assert make_metric(str(metric)) == metric
        assert make_metric(str(metric)).signature() == metric.signature()
    assert "|d2:(rouge-l|" in make_metric("svr(d2=rouge-l)").signature()
    assert "|d2:none|" in make_metric("svr").signature()
    assert "|gamma:scale|" in make_metric("svr").signature()


def test_a_language_applies_to_nested_metrics() -> None:
    known = scored(("お元気ですか", 1.0), ("元気です", -0.5), ("はい", 0.5))
    item = Item("1", "お元気でしたか", references=known)
    (metric,) = make_metrics("ws(d2=bleu)", language="ja").item_metrics
    assert metric.signature().count("tok:ja-mecab") == 2
    assert not score_with([item], metric).unscored


def test_many_references_to_one_item_take_little_memory() -> None:
    """Replies are compared with references, not references with one another."""
    references = [Reference(f"a b c{i} d{i % 7}") for i in range(20_000)]
    item = Item("1", "a b c7 x", references=references)
    (metric,) = make_metrics(f"am(d={WER})").item_metrics
    # of 4 words one differs from "a b c7 d0", and two from most others
    assert score_with([item], metric).values == pytest.approx([(0.75 + 0.5 + 0.5) / 3])
