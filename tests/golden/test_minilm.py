"""Published correlations of all-MiniLM-L6-v2 with people on the 500 rated replies of DailyDialog.

The numbers come from other programs over the same weights, so the last digits may differ: ranks
of nearly equal scores turn over.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rejoinder.items import Item
from rejoinder.meta_evaluation.correlate import correlate
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric import ItemMetric, make_metric
from rejoinder.testsets import load

CLOSE = 0.002


@pytest.fixture(scope="module")
def rated(data: Path) -> dict[str, list[Item]]:
    return {kind: list(load("dailydialog-multiref", kind)) for kind in ("single", "multi")}


@pytest.mark.parametrize(
    ("spec", "references", "spearman", "pearson"),
    [
        ("sentence-cosine", "multi", 0.4352, 0.4646),
        ("bertscore(layer=6)", "multi", 0.3941, 0.4182),
        ("bertscore(layer=6,part=p)", "multi", 0.4377, 0.4404),
        ("sentence-cosine", "single", 0.3174, 0.3525),
        ("bertscore(layer=6)", "single", 0.2909, 0.3269),
        # with unit weights, the weighted metric is the plain one
        ("vbertscore(layer=6)", "multi", 0.3941, 0.4182),
    ],
)
def test_agreement_with_people(
    rated: dict[str, list[Item]], spec: str, references: str, spearman: float, pearson: float
) -> None:
    metric = make_metric(spec)
    assert isinstance(metric, ItemMetric)
    items = rated[references]
    values = np.concatenate([scored.values for _, (scored,) in evaluate(items, [metric])])
    found = correlate(values, np.array([item.rating() for item in items], float), resamples=0)
    assert found.n == 500
    assert found.spearman.value == pytest.approx(spearman, abs=CLOSE)
    assert found.pearson.value == pytest.approx(pearson, abs=CLOSE)
