"""Metric classes describe themselves, for ``help(rejoinder.Bleu)``."""

from __future__ import annotations

import pytest

from rejoinder.metrics.metric import Metric
from rejoinder.registry import METRICS


@pytest.mark.parametrize("name", list(METRICS.builtin))
def test_the_docstring_of_a_metric_has_its_summary(name: str) -> None:
    metric: type[Metric] = METRICS.find(name)
    text = metric.__doc__ or ""
    assert text.lower().startswith(metric.summary.lower())
    assert f"rejoinder.explain({name!r})" in text


def test_a_docstring_of_ones_own_is_kept() -> None:
    class Own(Metric):
        """Count the commas."""

        name = "own"
        summary = "commas"

    assert Own.__doc__ == "Count the commas."
