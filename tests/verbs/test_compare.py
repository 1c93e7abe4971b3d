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
