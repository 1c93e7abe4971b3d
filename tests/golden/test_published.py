"""Published tables, to the fourth decimal (Gupta et al. 2019)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rejoinder.meta_evaluation.correlate import correlate
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.testsets import load


def scores(spec: str, name: str, references: str) -> tuple[np.ndarray, np.ndarray]:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    values, ratings = [], []
    for items, (result,) in evaluate(load(name, references), [metric]):
        values.append(result.values)
        ratings += [item.rating() for item in items]
    return np.concatenate(values), np.array(ratings, dtype=float)


@pytest.mark.parametrize(
    ("n", "spearman", "pearson"), [(1, 0.0241, 0.1183), (2, 0.0250, 0.1803), (4, 0.0345, 0.1380)]
)
def test_table_4_one_reference(data: Path, n: int, spearman: float, pearson: float) -> None:
    values, ratings = scores(f"bleu(n={n},tok=whitespace)", "dailydialog-multiref", "single")
    found = correlate(values, ratings, resamples=0)
    assert found.n == 500
    assert found.spearman.value is not None
    assert found.pearson.value is not None
    assert round(found.spearman.value, 4) == spearman
    assert round(found.pearson.value, 4) == pearson


def test_rouge_l_of_tables_4_and_6(data: Path) -> None:
    """The papers' ROUGE-L weighs recall with beta = 1.2, which their text does not say."""
    spec = "rouge-l(beta=1.2,tok=whitespace)"
    found = correlate(*scores(spec, "dailydialog-multiref", "single"), resamples=0)
    assert round(found.spearman.value or 0, 4) == 0.0715
    assert round(found.pearson.value or 0, 4) == 0.1408
    values, _ = scores(spec, "dailydialog-hred", "single")
    assert round(float(values.mean()), 4) == 0.1998


@pytest.mark.parametrize(("n", "mean"), [(2, 0.0604), (4, 0.0301)])
def test_table_6_hred_one_reference(data: Path, n: int, mean: float) -> None:
    values, _ = scores(f"bleu(n={n},tok=whitespace)", "dailydialog-hred", "single")
    assert len(values) == 6740
    assert round(float(values.mean()), 4) == mean


@pytest.mark.parametrize(
    ("refs", "spearman", "pearson"), [("max", 0.1953, 0.2554), ("all", 0.2051, 0.2295)]
)
def test_released_references(data: Path, refs: str, spearman: float, pearson: float) -> None:
    """The paper's own several-reference set is not in the release: these are the 4 that are."""
    spec = f"bleu(n=2,tok=whitespace,refs={refs})"
    found = correlate(*scores(spec, "dailydialog-multiref", "multi"), resamples=0)
    assert round(found.spearman.value or 0, 4) == spearman
    assert round(found.pearson.value or 0, 4) == pearson


@pytest.mark.parametrize(("n", "mean"), [(2, 0.1215), (4, 0.0567)])
def test_hred_best_of_five(data: Path, n: int, mean: float) -> None:
    spec = f"bleu(n={n},tok=whitespace,refs=max)"
    values, _ = scores(spec, "dailydialog-hred", "multi")
    assert round(float(values.mean()), 4) == mean
