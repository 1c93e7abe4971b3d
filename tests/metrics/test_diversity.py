"""Set metrics by hand: Distinct, entropy, Self-BLEU, recall."""

from __future__ import annotations

import math

import pytest

from rejoinder.items import Item, Reference
from rejoinder.metrics.batch import Batch
from rejoinder.metrics.evaluate import SystemScore, score_sets
from rejoinder.metrics.metric import SetMetric, make_metric


def judge(
    spec: str, *replies: str, references: tuple[str, ...] = (), context: str = "c"
) -> SystemScore:
    """Several replies of one system to one context."""
    items = [
        Item(
            id=str(i),
            response=reply,
            context_id=context,
            references=[Reference(text=text) for text in references],
        )
        for i, reply in enumerate(replies)
    ]
    metric = make_metric(spec)
    assert isinstance(metric, SetMetric)
    [judged] = score_sets(items, [metric])
    return judged


@pytest.mark.parametrize(
    ("spec", "replies", "expected"),
    [
        # a b c of a b a c
        ("distinct(n=1,tok=whitespace)", ("a b", "a c"), 3 / 4),
        # "a b" "b a" "a b" | "b a": 2 of 4; nothing runs from one reply into the next
        ("distinct(tok=whitespace)", ("a b a b", "b a"), 2 / 4),
        # the short reply has no bigram
        ("distinct(n=2,tok=whitespace)", ("a", "a b", "a b"), 1 / 2),
        # "a b a" "b a b" | "a b a"
        ("distinct(n=3,tok=whitespace)", ("a b a b", "a b a"), 2 / 3),
        ("distinct(n=1,tok=whitespace)", ("A", "a"), 1.0),
        ("distinct(n=1,tok=whitespace,lower=true)", ("A", "a"), 1 / 2),
        # a 1/2, b 1/4, c 1/4: ½ ln 2 + ½ ln 4 = 1.5 ln 2
        ("entropy(n=1,tok=whitespace)", ("a b", "a c"), 1.5 * math.log(2)),
        # "a b" 2 of 4, "b a" 2 of 4: ln 2
        ("entropy(n=2,tok=whitespace)", ("a b a b", "b a"), math.log(2)),
        # always the same
        ("entropy(tok=whitespace)", ("a b c d", "a b c d"), 0.0),
        # i see a of 4, either way
        ("self-bleu(n=1,tok=whitespace)", ("i see a dog", "i see a cat"), 3 / 4),
        # each has an equal among the others
        ("self-bleu(tok=whitespace)", ("a b c d", "a b c d"), 1.0),
        # "a b" from either neighbour: 1/2 (a), 2/2 (a and c), 1/2 (c): mean 2/3
        ("self-bleu(n=1,tok=whitespace)", ("a x", "a c", "y c"), 2 / 3),
    ],
)
def test_without_references(spec: str, replies: tuple[str, ...], expected: float) -> None:
    assert judge(spec, *replies).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("spec", ["distinct(n=2,tok=whitespace)", "entropy(n=2,tok=whitespace)"])
def test_nothing_to_count_has_no_value(spec: str) -> None:
    judged = judge(spec, "a", "", "b")
    assert judged.value is None
    assert judged.reason == "no 2-grams: every reply is shorter"
    assert judged.contexts == {"c": "no 2-grams: every reply is shorter"}


def test_replies_without_words_are_not_diverse() -> None:
    judged = judge("self-bleu(tok=whitespace)", "a b", "", " ")
    assert (judged.value, judged.reason) == (None, "a reply without words (2 of 3 replies)")


def test_recall_of_blank_references_has_no_value() -> None:
    judged = judge("recall", "a b", "c", references=("", " \n"))
    assert (judged.value, judged.reason) == (None, "no references")
    # 1 for the one that is there
    assert judge("recall(d=rouge-l)", "a b", references=("", "a b")).value == 1.0


def test_one_reply_has_no_others() -> None:
    judged = judge("self-bleu(tok=whitespace)", "a b")
    assert (judged.value, judged.reason) == (None, "fewer than 2 replies")


def test_a_reply_that_the_tokenizer_cannot_split_stops_the_set() -> None:
    judged = judge(
        "distinct(n=1,tok=whitespace)", "a b", "今日はいい天気ですから散歩に行きましょう"
    )
    assert judged.value is None
    assert judged.reason is not None
    assert judged.reason.endswith("(1 of 2 replies)")


def test_pooled_or_averaged_over_contexts() -> None:
    items = [
        Item(id="1", response="a b", context_id="x"),
        Item(id="2", response="a b", context_id="x"),
        Item(id="3", response="a c", context_id="y"),
        Item(id="4", response="d e", context_id="y"),
    ]
    metrics = [make_metric(f"{name}(n=1,tok=whitespace)") for name in ("distinct", "self-bleu")]
    distinct, self_bleu = score_sets(items, [m for m in metrics if isinstance(m, SetMetric)])
    # 2 of 4 and 4 of 4; together a b c d e of 8
    assert distinct.contexts == {"x": 0.5, "y": 1.0}
    assert distinct.value == 5 / 8
    # 1 and 0 (no word in common), and their mean
    assert self_bleu.contexts == {"x": 1.0, "y": 0.0}
    assert self_bleu.value == 0.5


def test_self_bleu_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = ("a b c", "a b", "c d e f", "b c d", "a")
    whole = judge("self-bleu(n=2,tok=whitespace)", *replies).value
    monkeypatch.setattr("rejoinder.metrics.diversity.self_bleu.MAX_REFERENCES", 3)
    assert judge("self-bleu(n=2,tok=whitespace)", *replies).value == whole


ROUGE = "recall(d=rouge-l(tok=whitespace))"


@pytest.mark.parametrize(
    ("replies", "references", "expected"),
    [
        # "i see" reaches 2 · 1 · ½ / 1.5 = 2/3 for the first reference, "no" 1 for the second
        (("i see", "no"), ("i see a dog", "no"), 5 / 6),
        # one reference is not reached by anything
        (("i see", "i see"), ("i see", "no"), 1 / 2),
        # a reference that is there twice counts once
        (("a",), ("a", "b", "b"), 1 / 2),
    ],
)
def test_recall(replies: tuple[str, ...], references: tuple[str, ...], expected: float) -> None:
    assert judge(ROUGE, *replies, references=references).value == pytest.approx(expected)


def test_recall_by_default_uses_bleu_2() -> None:
    # default tokenizer; identical to one of two references, no word of the other
    judged = judge("recall", "i see a dog .", references=("i see a dog .", "no !"))
    assert judged.value == pytest.approx(1 / 2)
    assert "d:(bleu|n:2|" in make_metric("recall").signature()


def test_recall_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    replies, references = ("a b", "c", "d e f"), ("a", "b c", "e f", "a b c d")
    whole = judge(ROUGE, *replies, references=references).value
    monkeypatch.setattr("rejoinder.metrics.diversity.recall.MAX_PAIRS", 4)
    assert judge(ROUGE, *replies, references=references).value == whole


def test_recall_needs_references() -> None:
    assert judge(ROUGE, "a b").reason == "no references"


def test_recall_leaves_out_references_that_cannot_be_compared() -> None:
    unsplit = "今日はいい天気ですから散歩に行きましょう"
    # of the two references only "a" can be compared: 1
    assert judge(ROUGE, "a", references=("a", unsplit)).value == 1.0
    judged = judge(ROUGE, "a", references=(unsplit,))
    assert judged.value is None
    assert judged.reason is not None
    assert "does not split" in judged.reason


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("distinct(n=0)", "n=0 is not from 1 to 16"),
        ("self-bleu(smooth=much)", "smooth=much is not one of"),
        ("recall(d=distinct)", "d=distinct scores sets of replies"),
        ("recall(d=blue)", "unknown metric .blue."),
    ],
)
def test_wrong_parameters(spec: str, message: str) -> None:
    with pytest.raises(Exception, match=message):
        make_metric(spec)


def test_counts_of_long_ngrams() -> None:
    metric = make_metric("distinct(n=5,tok=whitespace)")
    batch = Batch.of([Item(id="1", response="a b c d e f"), Item(id="2", response="b c d e f")])
    # abcde, bcdef twice
    assert sorted(metric.counts(batch).tolist()) == [1, 2]  # type: ignore[attr-defined]
