"""Comparing systems from Python: by metrics, by a file of scores, by people, and as a gate."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from rejoinder.errors import DataError, GateFailed, UsageError

CAREFUL, GENERIC, OFF_TOPIC = "careful", "generic", "off-topic"


@pytest.fixture(scope="module")
def items() -> Any:
    with as_file(files("rejoinder").joinpath("examples", "replies-en.jsonl")) as path:
        return rejoinder.load(path)


def test_by_people(items: Any) -> None:
    (ranking,) = rejoinder.compare(items, by="people")
    assert ranking.by == "people"
    assert [each.system for each in ranking.systems] == [CAREFUL, GENERIC, OFF_TOPIC]
    ratings = [sum(i.ratings.values()) / 3 for i in items if i.system == CAREFUL]
    assert ranking.systems[0].value == pytest.approx(sum(ratings) / len(ratings))
    assert ranking.systems[0].group != ranking.systems[2].group


def test_by_a_file_of_scores(items: Any, tmp_path: Path) -> None:
    metrics = ["rouge-l", "chrf", "distinct"]
    rejoinder.score(items, metrics, output=tmp_path / "s.jsonl")
    found = rejoinder.compare(items, scores=tmp_path / "s.jsonl")
    assert [ranking.by for ranking in found] == ["rouge-l", "chrf"]
    assert list(found.refused) == ["distinct"]
    scored = rejoinder.compare(items, "rouge-l")[0]
    # the corpus value of rouge-l is the mean of its items
    assert [(s.system, round(s.value, 10)) for s in found[0].systems] == [
        (s.system, round(s.value, 10)) for s in scored.systems
    ]
    assert found[0].signature == scored.signature
    assert found.plot().startswith("<svg")
    assert "<table" in found._repr_html_()


def test_refusals_are_in_the_result(items: Any) -> None:
    found = rejoinder.compare(items, ["rouge-l", "distinct"], resamples=100)
    assert "does not add up over contexts" in found.refused["distinct"]
    assert found.to_dict()["refused"] == found.refused


def test_a_gate_fails_systems_that_are_worse_than_the_baseline(items: Any) -> None:
    found = rejoinder.compare(items, by="people", baseline=GENERIC)
    with pytest.raises(GateFailed, match=r"people: off-topic is worse than generic by 1\.6667"):
        found.fail_if_worse()
    rejoinder.compare(items, by="people", baseline=OFF_TOPIC).fail_if_worse()
    # off-topic is 1.67 points worse than generic, with an interval from 1.25 to 2.11
    rejoinder.compare(items, by="people", baseline=GENERIC, margin=1.5).fail_if_worse()
    with pytest.raises(GateFailed):
        rejoinder.compare(items, by="people", baseline=GENERIC, margin=0.5).fail_if_worse()
    with pytest.raises(UsageError, match="did you mean 'generic'"):
        rejoinder.compare(items, by="people", baseline="genericc")
    with pytest.raises(UsageError, match="worse than which system"):
        rejoinder.compare(items, by="people").fail_if_worse()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "compare by what"),
        ({"by": "others"}, "expected 'people'"),
        ({"by": "people", "metrics": "rouge-l"}, "give no metrics or scores"),
    ],
)
def test_wrong_arguments_are_refused(items: Any, arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        rejoinder.compare(items, **arguments)


def test_items_without_ratings_are_not_compared_by_people() -> None:
    items = [
        {"id": f"{i}{s}", "context_id": str(i), "system": s, "response": "a"}
        for i in range(3)
        for s in "ab"
    ]
    with pytest.raises(DataError, match="rating"):
        rejoinder.compare(items, by="people")


def rated(system: str, ratings: dict[str, int] | None) -> list[dict[str, Any]]:
    items = [
        {"id": f"{i}{system}", "context_id": str(i), "system": system, "response": "a"}
        for i in range(3)
    ]
    return items if ratings is None else [item | {"ratings": ratings} for item in items]


@pytest.mark.parametrize("baseline", ["a", "c"])
def test_a_gate_fails_if_a_system_has_no_score(baseline: str) -> None:
    items = rated("a", {"x": 1}) + rated("b", {"x": 1}) + rated("c", None)
    found = rejoinder.compare(items, by="people", baseline=baseline)
    with pytest.raises(GateFailed, match="people: c: not compared: no score"):
        found.fail_if_worse()


def test_strict_without_an_evaluator_is_refused_for_scores(items: Any) -> None:
    with pytest.raises(UsageError, match="strict=True checks the items"):
        rejoinder.compare(items, rejoinder.score(items, "rouge-l"), strict=True)


@pytest.mark.parametrize("limit", [float("nan"), None, float("-inf")])
def test_a_limit_that_is_no_number_is_refused(items: Any, limit: Any) -> None:
    with pytest.raises(UsageError, match="rouge-l"):
        rejoinder.score(items, "rouge-l").fail_under({"rouge-l": limit})


def test_a_limit_may_be_spelt_differently(items: Any) -> None:
    with pytest.raises(GateFailed, match=r"is below the limit 0\.9"):
        rejoinder.score(items, "bleu(n=2)").fail_under({"bleu( n = 2 )": 0.9})
