"""``vcosine``: cosines to references less penalties, by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scoring

from evaluators import make_evaluator, open_small
from rejoinder.errors import UsageError
from rejoinder.evaluator import Evaluator
from rejoinder.items import Item, Reference

ANGLES = {"here": 0, "there": 60, "where": 90, "yes i do": 0, "no not really": 60}
"""Degrees of the vectors of texts on a circle: cosines are those of the differences."""
CHEESE = ["do you like cheese and music"]


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    found = open_small(make_evaluator(tmp_path / "small", k=2, parrot=False))

    def encode(texts: list[str]) -> np.ndarray:
        angles = np.radians([ANGLES.get(text, np.nan) for text in texts])
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return np.nan_to_num(points).astype(np.float32)

    vars(found)["encode"] = encode
    return found


def item(reply: str, *references: Reference, context: list[str] | None = None) -> Item:
    return Item("1", reply, context=context or [], references=list(references))


def score(spec: str, evaluator: Evaluator, *items: Item) -> list[float]:
    return [float(value) for value in scoring.score(items, spec, evaluator).values]


def test_references_of_the_item_have_no_penalty(evaluator: Evaluator) -> None:
    """cos 60° and cos 90°: log(exp(15 · .5) + exp(0)) / 15."""
    references = Reference("there"), Reference("where")
    soft = math.log(math.exp(7.5) + 1) / 15
    assert score("vcosine", evaluator, item("here", *references)) == pytest.approx([soft])
    assert score("vcosine(refs=max)", evaluator, item("here", *references)) == pytest.approx([0.5])


def test_penalties_of_retrieved_references(evaluator: Evaluator) -> None:
    """Similarity of contexts .6, rating .5: 1 - .2 - .1 · .4 - .1 · .5 = .71, more than cos 60°; a
    less similar or worse one is less."""
    near = Reference("here", weight=0.5, source="retrieved", score=0.6)
    given = Reference("there")
    assert score("vcosine", evaluator, item("here", near)) == pytest.approx([0.71])
    both = item("here", given, near)
    soft = math.log(math.exp(15 * 0.71) + math.exp(15 * 0.5)) / 15
    assert score("vcosine", evaluator, both) == pytest.approx([soft])
    assert score("vcosine(refs=max)", evaluator, both) == pytest.approx([0.71])
    found = score("vcosine(refs=max,distance_penalty=0.6,rating_penalty=0.4)", evaluator, both)
    assert found == pytest.approx([0.5])  # 1 - .2 - .24 - .2 = .36
    found = score("vcosine(refs=mean)", evaluator, both)
    assert found == pytest.approx([0.605])
    found = score("vcosine(refs=max,retrieved_penalty=0)", evaluator, both)
    assert found == pytest.approx([0.91])


def test_unknown_and_unbounded_similarities_cost_nothing(evaluator: Evaluator) -> None:
    """BM25's similarities are unbounded; scores of other sources are not similarities."""
    for value, reference in (
        (0.8, Reference("here", source="retrieved", score=17.0)),
        (0.8, Reference("here", source="retrieved")),
        (0.8, Reference("here", source="parrot")),
        (1.0, Reference("here", source="people", score=0.2)),
    ):
        assert score("vcosine", evaluator, item("here", reference)) == pytest.approx([value])


def test_bad_references_are_left_out(evaluator: Evaluator) -> None:
    bad = Reference("here", weight=-0.1)
    assert score("vcosine", evaluator, item("here", bad, Reference("where"))) == pytest.approx(
        [0.0], abs=1e-6
    )
    found = Reference("here", weight=-0.1, source="retrieved", score=1.0)  # a rating may err
    assert score("vcosine", evaluator, item("here", found)) == pytest.approx([1 - 0.2 - 0.1 * 1.1])
    parrot = Reference("here", weight=-0.1, source="parrot")  # the last turn is no answer to itself
    assert score("vcosine", evaluator, item("here", parrot, Reference("there"))) == pytest.approx(
        [0.5]
    )
    unscored = scoring.score([item("here", bad)], "vcosine", evaluator).unscored
    assert unscored == {"1": "no reference has a weight above 0"}


def test_retrieved_references_count(evaluator: Evaluator) -> None:
    """The nearest two pairs by BM25 are those of cheese and of music. Both have other contexts, so
    the rater counts shared words: "yes i do" with "yes i do well", 2 · (1 + 3) / (2 + 3) - 1 = .6,
    and "no not really" none: 2 · 1 / (2 + 3) - 1 = -.6."""
    ANGLES["yes i do well"] = 90
    asked = item("here", Reference("yes i do well"), context=CHEESE)
    values = 0.0, 1 - 0.2 - 0.1 * (1 - 0.6), 0.5 - 0.2 - 0.1 * (1 + 0.6)
    soft = math.log(sum(math.exp(15 * value) for value in values)) / 15
    assert score("vcosine", evaluator, asked) == pytest.approx([soft])


def test_texts_without_a_vector(evaluator: Evaluator) -> None:
    """A reply without a vector is unscored, a reference without one is left out."""
    asked = [
        Item("1", "hm", references=[Reference("here")]),
        Item("2", "here", references=[Reference("hm")]),
        Item("3", "here", references=[Reference("hm"), Reference("there")]),
        Item("4", " ", references=[Reference("here")]),
    ]
    found = scoring.score(asked, "vcosine", evaluator)
    assert found.unscored == {
        "1": "no word of the reply has a vector",
        "2": "no word of any reference has a vector",
    }
    assert found.values[2:].tolist() == pytest.approx([0.5, 0.0])


def test_requirements_and_limits_of_parameters(evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match="needs an evaluator"):
        scoring.score([item("here", Reference("here"))], "vcosine")
    vars(evaluator)["encode"] = None
    with pytest.raises(UsageError, match="needs vectors, which its evaluator does not have"):
        score("vcosine", evaluator, item("here", Reference("here")))
    for spec, reason in (
        ("vcosine(distance_penalty=-1)", "distance_penalty=-1"),
        ("vcosine(rating_penalty=3)", "rating_penalty=3"),
        ("vcosine(retrieved_penalty=3)", "retrieved_penalty=3"),
        ("vcosine(refs=soft(b=0))", r"refs=soft\(0\)"),
        ("vcosine(refs=soft(b=true))", r"refs=soft\(b=true\)"),
        ("vcosine(refs=soft)", "refs=soft is not max, mean, top"),
    ):
        with pytest.raises(UsageError, match=reason):
            score(spec, evaluator, item("here", Reference("here")))
