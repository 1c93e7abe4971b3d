"""Mistakes in metrics that are not part of Rejoinder: one line that names the metric."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import rejoinder
from rejoinder.errors import Terminated, UsageError
from rejoinder.metrics.batch import Batch, Floats
from rejoinder.metrics.metric import ItemMetric, SetMetric
from rejoinder.registry import METRICS

REPLIES = ["a b", "c", "d e", "f", "g"]


@dataclass(frozen=True, kw_only=True)
class Share(ItemMetric):
    name: ClassVar[str] = "share"
    summary: ClassVar[str] = "what the test says"
    statistics: ClassVar[Callable[[int], Any]]
    finished: ClassVar[Callable[[Floats], Any] | None] = None

    def stats(self, batch: Batch) -> Floats:
        rows: Floats = type(self).statistics(len(batch))
        return rows

    def finish(self, rows: Floats) -> Floats:
        if (finished := type(self).finished) is None:
            return super().finish(rows)
        values: Floats = finished(rows)
        return values


@dataclass(frozen=True, kw_only=True)
class Size(SetMetric):
    name: ClassVar[str] = "size"
    summary: ClassVar[str] = "what the test says"
    value: ClassVar[Any]

    def measure(self, batch: Batch) -> float:
        value: float = self.value
        return value


def run(metric: ItemMetric | SetMetric) -> rejoinder.ScoreResult:
    return rejoinder.score(metrics=metric, replies=REPLIES, references=[["x"]] * 5)


def divide(n: int) -> float:
    return 1 / (n - n)


@pytest.mark.parametrize(
    ("statistics", "message"),
    [
        (lambda n: np.ones((3, 2)), "stats returned 3 rows for 5 items; expected [5, d] numbers"),
        (
            lambda n: np.ones(n),
            "stats returned an array of shape [5] for 5 items; expected [5, d] numbers",
        ),
        (lambda n: None, "stats returned None for 5 items; expected [5, d] numbers"),
        (lambda n: [[1, 1], [1]], "stats returned a list for 5 items; expected [5, d] numbers"),
        (
            lambda n: np.full((n, 2), "x"),
            "stats returned an array of <U1 for 5 items; expected [5, d] numbers",
        ),
    ],
)
def test_wrong_statistics_are_described(
    statistics: Callable[[int], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Share, "statistics", staticmethod(statistics), raising=False)
    with pytest.raises(UsageError) as error:
        run(Share())
    assert str(error.value) == f"share: {message}"


def test_an_error_in_a_metric_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "statistics", staticmethod(divide), raising=False)
    with pytest.raises(UsageError) as error:
        run(Share())
    assert str(error.value) == "share raised ZeroDivisionError: division by zero"


@pytest.mark.parametrize(
    ("leave", "message"),
    [(lambda n: sys.exit(), "SystemExit"), (lambda n: sys.exit("no data"), "SystemExit: no data")],
)
def test_an_exit_in_a_metric_names_it(
    leave: Callable[[int], Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Share, "statistics", staticmethod(leave), raising=False)
    with pytest.raises(UsageError) as error:
        run(Share())
    assert str(error.value) == f"share raised {message}"


def test_a_signal_in_a_metric_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(n: int) -> None:
        raise Terminated(143)

    monkeypatch.setattr(Share, "statistics", staticmethod(stop), raising=False)
    with pytest.raises(Terminated) as stopped:
        run(Share())
    assert stopped.value.code == 143


def test_values_of_the_wrong_shape_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "statistics", lambda n: np.ones((n, 2)), raising=False)
    monkeypatch.setattr(Share, "finished", staticmethod(lambda rows: rows))
    with pytest.raises(UsageError, match=r"share: finish returned an array of shape \[5, 2\]"):
        run(Share())


def test_lists_of_numbers_are_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Share, "statistics", lambda n: [[0.5, 1]] * n, raising=False)
    assert run(Share())["share"].values.tolist() == [0.5] * 5


@pytest.mark.parametrize("value", [None, "x", [1, 2], float("nan")])
def test_a_set_metric_must_return_a_number(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Size, "value", value, raising=False)
    with pytest.raises(UsageError, match=r"size: measure returned .*expected a finite number"):
        run(Size())


def test_a_mistake_in_a_built_in_metric_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Any, batch: Batch) -> Floats:
        raise ZeroDivisionError

    monkeypatch.setattr(rejoinder.Bleu, "stats", fail)
    with pytest.raises(ZeroDivisionError):
        run(rejoinder.Bleu())


def test_an_error_while_a_metric_is_made_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Picky(Share):
        name: ClassVar[str] = "picky"

        def __post_init__(self) -> None:
            super().__post_init__()
            divide(1)

    monkeypatch.setitem(METRICS._added, "picky", Picky)
    with pytest.raises(UsageError, match="picky raised ZeroDivisionError"):
        rejoinder.score(metrics="picky", replies=REPLIES, references=[["x"]] * 5)
