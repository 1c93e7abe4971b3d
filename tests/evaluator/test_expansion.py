"""Items with retrieved references and their ratings, computed by hand.

For "more cheese ?" bm25 finds, of ROWS, "more cheese please" before the three other pairs with
cheese; for the latter the shorter utterances come first, and of equal ones the lower row.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluators import ROWS, make_evaluator, open_small, rater_of, scorer_of, shared
from rejoinder.evaluator import Evaluator
from rejoinder.items import Item, Reference


@pytest.fixture
def evaluator(tmp_path: Path) -> Evaluator:
    return open_small(make_evaluator(tmp_path / "small"))


def item(
    *references: Any, context: tuple[str, ...] = ("hi", "some more cheese"), **more: Any
) -> Item:
    known = [Reference(r) if isinstance(r, str) else r for r in references]
    return Item(
        **{"id": "1", "response": "x", "context": list(context), "references": known} | more
    )


def test_own_references_first_then_the_nearest_then_the_parrot(evaluator: Evaluator) -> None:
    own = Reference("here we are", weight=0.25, source="mine")
    (expanded,) = evaluator.expand([item(own)])
    first, *found, parrot = expanded.references
    assert first == own
    assert [r.source for r in found] == ["retrieved", "retrieved"]
    assert found[0].text == "here you are"
    assert found[0].score is not None
    assert found[1].score is not None
    assert found[0].score > found[1].score > 0
    assert (parrot.text, parrot.source, parrot.score) == ("some more cheese", "parrot", None)


def test_the_rater_compares_with_the_known_reply(evaluator: Evaluator) -> None:
    (expanded,) = evaluator.expand([item("here we are")], k=1)
    _, found, parrot = expanded.references
    # "here you are" shares 2 of its 3 words: 2 · 3/5 - 1; the parrot none
    assert found.weight == pytest.approx(0.2)
    assert parrot.weight == pytest.approx(2 * 1 / 5 - 1)
    assert rater_of(evaluator).inputs_seen == [
        (["hi", "some more cheese"], "here we are", ["more cheese please"], "here you are"),
        (["hi", "some more cheese"], "here we are", [], "some more cheese"),
    ]
    assert not scorer_of(evaluator).inputs_seen


def test_the_rater_gets_the_turns_before_a_retrieved_utterance(evaluator: Evaluator) -> None:
    evaluator.expand([item("no", context=("some music",))], k=1)
    assert rater_of(evaluator).inputs_seen[0][2] == ["hello", "do you like music"]


def test_the_mean_over_the_first_four_known_replies(evaluator: Evaluator) -> None:
    known = ["here", "you", "are", "cheese", "here you are not"]
    (expanded,) = evaluator.expand([item(*known)], k=1)
    # each of the first three shares one word of three with "here you are", the fourth none
    assert expanded.references[5].weight == pytest.approx(
        (3 * (2 * 2 / 5 - 1) + (2 * 1 / 5 - 1)) / 4
    )


def test_only_good_references_of_the_item_are_compared_with(evaluator: Evaluator) -> None:
    evaluator.expand(
        [
            item(
                Reference("bad", weight=-0.5),
                Reference("none", weight=0.0),
                Reference("over there", source="retrieved"),
                Reference("hm", source="parrot"),
                Reference(" "),
                Reference("good", weight=0.5),
                Reference("good"),
            )
        ]
    )
    assert {known for _, known, _, _ in rater_of(evaluator).inputs_seen} == {"good"}


def test_without_a_known_reply_the_scorer_rates(evaluator: Evaluator) -> None:
    (expanded,) = evaluator.expand([item(Reference("bad", weight=-1.0))], k=2)
    _, *found = expanded.references
    assert not rater_of(evaluator).inputs_seen
    assert [r.weight for r in found] == pytest.approx(
        [2 * shared("some more cheese", r.text) - 1 for r in found]
    )


def test_without_a_rater_the_scorer_rates(tmp_path: Path) -> None:
    evaluator = open_small(make_evaluator(tmp_path / "small", rater=False, parrot=False))
    (expanded,) = evaluator.expand([item("here we are")])
    _, *found = expanded.references
    assert [r.weight for r in found] == pytest.approx(
        [2 * shared("some more cheese", r.text) - 1 for r in found]
    )
    assert [r.source for r in found] == ["retrieved", "retrieved"]


def test_references_of_the_item_are_not_added_again(evaluator: Evaluator) -> None:
    (expanded,) = evaluator.expand([item("here you are")])
    assert [r.text for r in expanded.references].count("here you are") == 1
    assert len(expanded.references) == 4  # the next best takes its place


def test_pairs_with_utterances_of_the_test_set_are_left_out(evaluator: Evaluator) -> None:
    """Not for the item that has the utterance, nor for the others."""
    leak = item(context=("More CHEESE, please!",), id="2")
    for expanded in evaluator.expand([item("here we are"), leak]):
        assert "here you are" not in [r.text for r in expanded.references]


def test_equal_inputs_are_rated_once(evaluator: Evaluator) -> None:
    evaluator.expand([item("here we are", id=str(i), response=f"reply {i}") for i in range(5)])
    assert len(rater_of(evaluator).inputs_seen) == 3


def test_items_with_one_context_are_expanded_as_each_alone(evaluator: Evaluator) -> None:
    """They share what was retrieved only if their references, and so the ratings, are the same."""
    bad = Reference("here we are", weight=-1.0)
    known = [[], ["here we are"], ["here you are"], ["here we are"], [bad], ["here you are", "no"]]
    items = [item(*references, id=str(n)) for n, references in enumerate(known)]
    # the same last turn after another one: the scorer and the parrot see another context
    items += [item(context=("bye", "some more cheese"), id="6"), item(id="7")]
    together = evaluator.expand(items)
    assert together == [evaluator.expand([each])[0] for each in items]
    assert together[1].references == together[3].references
    assert len({str(each.references) for each in together}) == 5  # 1 and 3, and 0, 6 and 7


@pytest.mark.parametrize("context", [(), ("",), (" ", "\n")])
def test_an_item_without_context_stays_as_it_is(
    evaluator: Evaluator, context: tuple[str, ...]
) -> None:
    lonely = item("here we are", context=context)
    assert evaluator.expand([lonely]) == [lonely]


def test_nothing_similar(evaluator: Evaluator) -> None:
    strange = item("hm", context=("zebra zebra",))
    assert evaluator.expand([strange]) == [strange]


def test_blank_replies_of_the_pool_are_no_references(tmp_path: Path) -> None:
    rows = [*ROWS, ([], "some more cheese please", " ")]
    evaluator = open_small(make_evaluator(tmp_path / "small", rows))
    (expanded,) = evaluator.expand([item("here we are")])
    assert all(r.text.strip() for r in expanded.references)


def test_ratings_stay_within_their_bounds(evaluator: Evaluator) -> None:
    vars(rater_of(evaluator))["rate"] = lambda *asked: np.full(len(asked[0]), 1.1)
    (expanded,) = evaluator.expand([item("here we are")])
    assert {r.weight for r in expanded.references[1:]} == {1.0}
