"""Scores become ratings and weights; what has no score becomes neither."""

from __future__ import annotations

import pytest

from duels import candidates, compared
from rejoinder.items import Item, Reference
from rejoinder.pairwise.candidate_scores import score_candidates
from rejoinder.pairwise.output_records import (
    SOURCE,
    AttachmentReport,
    attach_references,
    question_records,
    rated_candidates,
)
from rejoinder.pairwise.plan import Question

ITEMS = [*candidates("xyz"), *candidates("w", system="(unnamed)"), *candidates("12", "d")]
# x beats y and w, y beats w: rates 1, 1/2, 0; nobody looked at z, 1 and 2
DUELS = [("x", "y", "a"), ("x", "w", "a"), ("y", "w", "a")]


def test_rates_become_ratings() -> None:
    found = score_candidates(compared(ITEMS, DUELS), "rate")
    lines = list(rated_candidates(ITEMS, found))
    assert [line.get("ratings") for line in lines] == [1, 0.5, None, 0, None, None]
    assert lines[0]["pairs"].keys() == {"rate", "error", "votes", "component"}
    assert lines[0]["pairs"]["votes"] == 2
    assert "pairs" not in lines[2]


def test_records_have_strengths_and_rates() -> None:
    found = score_candidates(compared(ITEMS, DUELS), "bradley-terry")
    first, second, *_ = rated_candidates(ITEMS, found)
    assert first["pairs"]["strength"] > second["pairs"]["strength"] == pytest.approx(0, abs=1e-9)
    assert 0.5 < first["ratings"] < 1
    assert first["ratings"] == first["pairs"]["rate"]
    assert found.prior_bounded == 2


def test_components_and_circular_triads_are_counted() -> None:
    items = [*candidates("stuvw"), *candidates("xyz", "d")]
    circle = [("x", "y", "a"), ("y", "z", "a"), ("z", "x", "a")]
    found = score_candidates(compared(items, [("s", "t", "a"), ("u", "v", "tie"), *circle]), "rate")
    assert (found.contexts, found.disconnected) == (2, ["c"])
    assert (found.circular_triads, found.triads, found.prior_bounded) == (1, 1, 1)
    assert found.component.tolist() == [0, 0, 1, 1, -1, 0, 0, 0]


def test_each_annotators_rates() -> None:
    comparisons = compared(ITEMS, [("x", "y", "a", "ann"), ("x", "y", "b", "bob")])
    each = {
        name: score_candidates(comparisons.subset(comparisons.annotator == number), "rate")
        for number, name in enumerate(comparisons.annotators)
    }
    lines = list(rated_candidates(ITEMS, score_candidates(comparisons, "rate"), each))
    assert lines[0]["ratings"] == {"ann": 1, "bob": 0}
    assert lines[0]["pairs"]["rate"] == 0.5
    assert "ratings" not in lines[2]


def test_candidates_become_references_with_weights() -> None:
    found = score_candidates(compared(ITEMS, DUELS), "rate")
    tested = [
        Item("t", "tested", context_id="c", references=[Reference("old")]),
        Item("y", "reply y", context_id="c"),
        Item("u", "elsewhere", context_id="e"),
    ]
    account = AttachmentReport()
    first, own, elsewhere = attach_references(tested, ITEMS, found, account)
    # 2 e - 1
    assert first.references == [
        Reference("reply x", 1.0, "s"),
        Reference("reply y", 0.0, "s"),
        Reference("reply w", -1.0, SOURCE),
    ]
    # an item is no reference of its own
    assert [reference.text for reference in own.references] == ["reply x", "reply w"]
    assert elsewhere.references == []
    assert account == AttachmentReport(3, 5, 1, 1, {"z"})


def test_question_records() -> None:
    asked = [(Question("c", 1, 0, 0.1), None), (Question("c", 0, 2, 0.1), "ann")]
    bare, named = question_records(ITEMS, asked)
    assert bare == {"context_id": "c", "a": "y", "b": "x"}
    assert named == {"context_id": "c", "a": "x", "b": "z", "annotator": "ann"}
    full, _ = question_records(ITEMS, asked, texts=True)
    assert (full["context"], full["response_a"], full["response_b"]) == ([], "reply y", "reply x")
