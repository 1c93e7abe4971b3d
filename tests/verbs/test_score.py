"""Scoring from Python: plain lists, metric objects, intervals, streamed output, limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import DataError, GateFailed, UsageError
from rejoinder.metrics.summary import Summarizer, Summary
from rejoinder.verbs import score as module
from rejoinder.verbs.monitor import RejoinderWarning

REPLIES = ["fine thanks", "no idea", ""]
REFERENCES = [["fine thanks"], ["no clue", "no idea at all"], ["x"]]
CONTEXTS = [["how are you"], ["what now"], ["hello"]]


def test_plain_lists_and_metric_objects() -> None:
    """The first line that people of this field type."""
    result = rejoinder.score(
        replies=REPLIES,
        references=REFERENCES,
        contexts=CONTEXTS,
        metrics=["bleu(n=2)", rejoinder.RougeL()],
    )
    assert list(result) == ["bleu(n=2)", "rouge-l"]
    assert result["rouge-l"].values[0] == 1.0
    assert result[rejoinder.RougeL()].values[0] == 1.0
    assert list(result.frame(to="pandas").columns) == ["id", "system", "bleu(n=2)", "rouge-l"]
    same = rejoinder.score(replies=REPLIES, references=REFERENCES, metrics=rejoinder.Bleu(n=2))
    np.testing.assert_array_equal(same["bleu(n=2)"].values, result["bleu(n=2)"].values)


@pytest.mark.parametrize("name", ["Bleu", "RougeL", "Chrf", "Distinct", "BertScore", "Rejoinder"])
def test_metric_classes_are_in_the_package(name: str) -> None:
    from rejoinder.metrics.metric import Metric

    assert issubclass(getattr(rejoinder, name), Metric)
    assert name in dir(rejoinder)


def test_nothing_is_resampled_without_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = []

    class Watched(Summarizer):
        def summaries(self) -> list[Summary]:
            numbers.append(self.resamples)
            return super().summaries()

    monkeypatch.setattr(module, "Summarizer", Watched)
    items = [
        {"id": str(i), "response": "a b", "references": ["a c"], "context_id": str(i)}
        for i in range(4)
    ]
    plain = rejoinder.score(items, "rouge-l")["rouge-l"].mean["(unnamed)"]
    wide = rejoinder.score(items, "rouge-l", intervals=True)["rouge-l"].mean["(unnamed)"]
    rejoinder.score(items, "rouge-l", resamples=200)
    assert numbers == [0, 1000, 200]
    assert plain is not None
    assert wide is not None
    assert (plain.value, plain.low) == (0.5, None)
    assert (wide.value, wide.low) == (0.5, 0.5)


def test_scores_are_streamed_to_the_output(tmp_path: Path) -> None:
    result = rejoinder.score(
        replies=REPLIES, references=REFERENCES, metrics="rouge-l", output=tmp_path / "s.jsonl"
    )
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    # "no idea" and "no idea at all": P = 2/2, R = 2/4
    assert [line["value"] for line in lines[:2]] == [1.0, pytest.approx(2 / 3)]
    assert result["rouge-l"].values.size == 0  # they are in the file
    assert result["rouge-l"].corpus["(unnamed)"] is not None
    kept = rejoinder.score(
        replies=REPLIES, references=REFERENCES, metrics="rouge-l",
        output=tmp_path / "s.jsonl", keep=True,
    )  # fmt: skip
    assert kept["rouge-l"].values.size == 3


def test_blank_replies_are_counted() -> None:
    result = rejoinder.score(replies=["a", " ", ""], references=["a", "b", "c"], metrics="rouge-l")
    assert result.blank_replies == {"(unnamed)": 2}
    assert result.to_dict()["blank_replies"] == {"(unnamed)": 2}
    assert any("2 replies are blank" in note for note in result.notes)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"metrics": "bleu"}, "there is nothing to score"),
        ({"items": [], "replies": ["a"], "metrics": "bleu"}, "either items, or replies"),
        ({"replies": ["a"], "references": [["a"], ["b"]], "metrics": "bleu"}, "references"),
        ({"replies": ["a"], "references": [["a"]]}, "which metrics"),
        ({"replies": ["a"], "metrics": "blue"}, "did you mean 'bleu'"),
        ({"replies": ["a"], "metrics": "rouge-l", "strict": True}, "training data"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], complaint: str) -> None:
    with pytest.raises((UsageError, DataError), match=complaint):
        rejoinder.score(**arguments)


def test_a_limit_fails_systems_below_it() -> None:
    items = [
        {"id": f"{i}{s}", "context_id": "c", "system": s, "response": r, "references": ["a b"]}
        for i in range(2)
        for s, r in (("good", "a b"), ("bad", "x y"))
    ]
    result = rejoinder.score(items, ["rouge-l", "self-bleu(n=1)"])
    result.fail_under({"rouge-l": 0.0, "self-bleu(n=1)": 1.0})
    with pytest.raises(GateFailed, match=r"^rouge-l of bad: 0\.0000 is below the limit 0\.5$"):
        result.fail_under({"rouge-l": 0.5})
    # lower is better
    with pytest.raises(GateFailed, match=r"self-bleu.*of good: 1.0000 is above the limit 0.5"):
        result.fail_under({"self-bleu(n=1)": 0.5})
    with pytest.raises(UsageError, match="no scores of bleu"):
        result.fail_under({"bleu": 0.5})


def test_a_result_shows_itself_in_a_notebook() -> None:
    result = rejoinder.score(
        replies=REPLIES, references=REFERENCES, metrics=["bleu(n=2)", "rouge-l"]
    )
    assert ">bleu(n=2)</th>" in result._repr_html_()
    items = rejoinder.load([{"id": "<b>", "response": "a"}, {"id": "2", "response": "a"}])
    assert "&lt;b&gt;" in items._repr_html_()


def test_one_reply_alone() -> None:
    assert rejoinder.score_one("rouge-l", "a b", ["a b"]) == 1.0
    assert rejoinder.score_one(rejoinder.RougeL(), "a b", ["a b"]) == 1.0
    with pytest.raises(DataError, match="no references"):
        rejoinder.score_one("rouge-l", "a b")


def test_a_metric_that_scores_nothing_is_a_warning() -> None:
    """All values would be missing, and a program would not notice."""
    with pytest.warns(RejoinderWarning, match="rouge-l: no reply could be scored: no references"):
        result = rejoinder.score(replies=["a", "b"], metrics=["rouge-l"])
    assert np.isnan(result["rouge-l"].values).all()
    rejoinder.score(replies=["a", "b"], references=[["a"], []], metrics=["rouge-l"])


def test_a_result_is_printed_as_a_table() -> None:
    items = [
        {"id": "1", "system": "a", "response": "x y", "references": ["x y"]},
        {"id": "2", "system": "b", "response": "x z", "references": ["x y"]},
        {"id": "3", "system": "b", "response": "x z"},
    ]
    lines = str(rejoinder.score(items, ["rouge-l"])).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["metric", "system", "mean", "scored", "unscored"],
        ["rouge-l", "a", "1", "1", "0"],
        ["rouge-l", "b", "0.5", "1", "1"],  # one of two words in both
    ]
    many = rejoinder.ls()
    assert str(many).startswith("LsResult\nkind ")
    assert str(many).endswith(f"… {len(many.columns()['name']) - 20} more rows: frame() has all")
