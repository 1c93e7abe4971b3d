"""Arguments of the wrong type or out of range: a usage error in plain words, no Python error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import RejoinderError, UsageError

ITEMS: list[dict[str, Any]] = [
    {
        "id": str(n),
        "response": f"yes {n}",
        "references": ["yes 1"],
        "context": [str(n // 2)],
        "system": "ab"[n % 2],
    }
    for n in range(6)
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": None}, "expected a metric, such as 'bleu(n=2)' or Bleu(n=2), got None"),
        ({"metrics": [None]}, "expected a metric, such as 'bleu(n=2)' or Bleu(n=2), got None"),
        ({"metrics": 3}, "expected a metric, such as 'bleu(n=2)' or Bleu(n=2), got 3"),
        ({"metrics": b"bleu"}, "expected a metric, such as 'bleu(n=2)' or Bleu(n=2), got b'bleu'"),
        ({"columns": "response=x"}, "columns: expected fields with their columns"),
        ({"columns": ["response"]}, "columns: expected fields with their columns"),
        ({"columns": {"response": 5}}, "columns: expected fields with their columns"),
        ({"language": 5}, "unknown language 5: expected a code of ISO 639-1"),
        ({"evaluator": 5}, "evaluator=5: expected an evaluator, or its folder"),
        ({"evaluator": ""}, "evaluator='': expected an evaluator, or its folder"),
        ({"resamples": -5}, "resamples=-5: expected a whole number from 0 to"),
        ({"intervals": True, "seed": -1}, "seed=-1: expected a whole number from 0 to 2^63 - 1"),
    ],
)
def test_score_refuses_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        rejoinder.score(ITEMS, **({"metrics": "bleu"} | arguments))
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"margin": "1"}, "margin='1': expected a number of at least 0"),
        ({"baseline": 5}, "baseline=5: expected the name of a system"),
        ({"draws": 0}, "draws=0: expected a whole number of at least 1"),
        ({"resamples": 0}, "resamples=0: expected a whole number from 1 to"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0 to 2^63 - 1"),
    ],
)
def test_compare_refuses_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        rejoinder.compare(ITEMS, "bleu", **arguments)
    assert str(error.value).startswith(message)


def test_a_class_is_its_metric_with_all_defaults() -> None:
    result = rejoinder.score(ITEMS, rejoinder.Bleu)
    assert list(result) == ["bleu"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n": "2"}, 'bleu: n="2" is not a whole number'),
        ({"n": 2.5}, "bleu: n=2.5 is not a whole number"),
        ({"n": True}, "bleu: n=true is not a whole number"),
        ({"n": None}, "bleu: n=None is not a whole number"),
        ({"tok": 3}, "bleu: tok=3 is not a spec"),
        ({"lower": 1, "smooth": 2}, "bleu: smooth=2 is not a word\nbleu: lower=1 is not true or"),
    ],
)
def test_parameters_of_metrics_have_their_types(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        rejoinder.Bleu(**parameters)
    assert str(error.value).startswith(message)


def test_parameters_are_converted_as_in_a_spec() -> None:
    made: Any = rejoinder.Bleu
    assert str(made(n=np.int64(2), tok="char", smooth_value=1)) == (
        "bleu(n=2,smooth_value=1.0,tok=char)"
    )
    assert str(made(refs="top(k=2)")) == "bleu(refs=top(2))"


def test_results_refuse_wrong_arguments() -> None:
    result = rejoinder.score(ITEMS, "bleu")
    wrong: Any
    for wrong in (None, 0.5, {"bleu": "x"}):
        with pytest.raises(UsageError, match="fail_under"):
            result.fail_under(wrong)
    for wrong in ("duckdb", 5, ["pandas"]):
        with pytest.raises(UsageError, match="is not one of pandas, polars, pyarrow, datasets"):
            result.frame(wrong)


@pytest.mark.parametrize("folder", [None, 5, "", "/nope", Path("/nope")])
def test_an_evaluator_needs_its_folder(folder: Any) -> None:
    with pytest.raises(RejoinderError):
        rejoinder.Evaluator(folder)


@pytest.mark.parametrize("verb", ["compare", "estimate", "calibrate", "plan", "report"])
def test_metrics_in_the_place_of_scores(verb: str, tmp_path: Path) -> None:
    options = {"report": {"output": tmp_path / "r.html"}, "plan": {"budget": 2}}.get(verb, {})
    with pytest.raises(UsageError, match=r"the name of a file, or the result of rejoinder.score"):
        getattr(rejoinder, verb)(ITEMS, scores=["rouge-l"], **options)


def test_expand_refuses_wrong_numbers(tmp_path: Path) -> None:
    for k in (0, 1001, "5", True):
        with pytest.raises(UsageError, match="expected a whole number from 1 to 1000"):
            rejoinder.expand("i.jsonl", pool="p.parquet", k=k, output=tmp_path / "x.jsonl")
    with pytest.raises(UsageError, match="expected a whole number from 1 to 10,000,000"):
        rejoinder.plan(ITEMS, budget=0)
