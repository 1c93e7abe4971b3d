"""Scores of all metrics with an evaluator are those of release 0.1, under their new names.

``evaluator_scores.json`` was written by the code before ``ruber`` became the published metric and
``rejoinder`` got its name. The evaluator is fitted again here, so that training is covered as well.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from fitted import small_evaluator
from rejoinder.evaluator import Evaluator, open_evaluator, write_manifest
from rejoinder.items import Item
from rejoinder.metrics.evaluate import evaluate
from rejoinder.metrics.metric_set import make_metrics

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parent / "evaluator_scores.json").read_text("utf-8")
)
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Evaluator:
    folder = tmp_path_factory.mktemp("golden") / "golden"
    shutil.copytree(small_evaluator(), folder)
    ranges = {spec: (low, high) for spec, (low, high) in GOLDEN["ranges"].items()}
    manifest = open_evaluator(folder).manifest
    write_manifest(folder, msgspec.structs.replace(manifest, ranges=ranges))
    return open_evaluator(folder)


@pytest.mark.parametrize("spec", GOLDEN["scores"])
def test_scores_are_unchanged(evaluator: Evaluator, spec: str) -> None:
    items = msgspec.convert(GOLDEN["items"], list[Item])
    metrics = make_metrics(spec, evaluator=evaluator).item_metrics
    found = np.concatenate([result.values for _, (result,) in evaluate(items, metrics)])
    expected = [np.nan if value is None else value for value in GOLDEN["scores"][spec]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
