"""Scores as arguments of verbs: results of ``score`` and files."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from fitted import small_evaluator
from rejoinder.errors import DataError, UsageError
from rejoinder.verbs.monitor import RejoinderWarning
from rejoinder.verbs.scores import warn_of_other_evaluator


@pytest.fixture(scope="module")
def items() -> Any:
    with as_file(files("rejoinder").joinpath("examples", "replies-en.jsonl")) as path:
        return rejoinder.load(path)


@pytest.fixture(scope="module")
def scores(items: Any) -> rejoinder.ScoreResult:
    return rejoinder.score(items, ["rouge-l", "distinct"])


def test_a_result_of_score_is_taken_like_its_file(
    items: Any, scores: rejoinder.ScoreResult, tmp_path: Path
) -> None:
    path = tmp_path / "s.jsonl"
    rejoinder.score(items, ["rouge-l", "distinct"], output=path)
    for verb in (rejoinder.meta, rejoinder.compare):
        expected = verb(items, scores=path, resamples=100).to_dict()
        assert verb(items, scores, resamples=100).to_dict() == expected
        assert verb(items, scores=scores, resamples=100).to_dict() == expected
        assert verb(items, str(path), resamples=100).to_dict() == expected


def test_a_report_takes_items_and_scores_in_memory(
    items: Any, scores: rejoinder.ScoreResult, tmp_path: Path
) -> None:
    made = rejoinder.report(items, scores, output=tmp_path / "r.html", resamples=100)
    assert (tmp_path / "r.html").read_bytes() == made.html
    assert b"rejoinder report ITEMS SCORES" in made.html


def test_scores_that_were_only_written_are_refused(items: Any, tmp_path: Path) -> None:
    written = rejoinder.score(items, "rouge-l", output=tmp_path / "s.jsonl")
    with pytest.raises(UsageError, match="went to a file only"):
        rejoinder.compare(items, written)


def test_scores_are_not_written_into_a_table(items: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"replace \.csv by \.jsonl"):
        rejoinder.score(items, "rouge-l", output=tmp_path / "s.csv")


def test_an_unknown_metric_of_a_result_has_a_hint(scores: rejoinder.ScoreResult) -> None:
    with pytest.raises(KeyError, match="did you mean 'rouge-l'"):
        scores["rougel"]
    assert scores.get("rougel") is None


def test_swapped_files_are_recognised(items: Any, tmp_path: Path) -> None:
    rejoinder.score(items, "rouge-l", output=tmp_path / "s.jsonl")
    with pytest.raises(UsageError, match="looks like scores: the items come first"):
        rejoinder.compare(tmp_path / "s.jsonl", scores=tmp_path / "i.jsonl")


def test_scores_of_another_evaluator_are_a_warning() -> None:
    from rejoinder.evaluator import open_evaluator
    from rejoinder.verbs.monitor import Monitor

    folder = str(small_evaluator())
    own = f"rejoinder|evaluator:moved@{open_evaluator(folder).digest}|version:1"
    warn_of_other_evaluator({"rejoinder": own, "bleu": "bleu|n:2"}, folder, "s", Monitor())
    with pytest.warns(RejoinderWarning, match="s: rejoinder was scored with ev@a8be12, not with"):
        warn_of_other_evaluator(
            {"rejoinder": "rejoinder|evaluator:ev@a8be12|version:1"}, folder, "s", Monitor()
        )


def test_the_reason_in_the_scores_is_kept() -> None:
    items = [
        {"id": f"{i}{s}", "context_id": str(i), "system": s, "response": "a b"}
        for i in range(3)
        for s in "ab"
    ]
    items = [*items[:-1], items[-1] | {"references": ["a b"]}]
    with pytest.raises(DataError, match="no references"):
        rejoinder.compare(items, rejoinder.score(items, "rouge-l"))


def test_items_without_systems_are_told_that_the_field_is_missing() -> None:
    items = [{"id": str(i), "response": "a b", "references": ["a b"]} for i in range(3)]
    with pytest.raises(DataError, match="the field 'system' is missing"):
        rejoinder.compare(items, "rouge-l")
