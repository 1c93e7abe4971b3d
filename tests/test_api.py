"""The functions of the package are the verbs of the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.io import read_scores
from rejoinder.items import Item
from rejoinder.meta.join import join
from rejoinder.meta.study import Settings, study


def replies() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    return [
        {
            "id": f"{c}{s}{k}",
            "context_id": str(c),
            "system": s,
            "response": " ".join(rng.choice(list("abcde"), 5)),
            "references": ["a b c d e"],
            "ratings": int(rng.integers(1, 6)),
        }
        for c in range(6)
        for s in ("x", "y", "z")
        for k in range(2)
    ]


@pytest.mark.parametrize("level", ["item", "context", "system"])
def test_agreement_is_score_and_meta_in_one(tmp_path: Path, level: str) -> None:
    metrics = ["rouge-l", "self-bleu(n=2)"]
    found = rejoinder.agreement(replies(), metrics, level=level, resamples=200)
    (tmp_path / "i").write_text("\n".join(map(json.dumps, replies())))
    asked = [part for metric in metrics for part in ("-m", metric)]
    assert run(["score", str(tmp_path / "i"), *asked, "-o", str(tmp_path / "s")]) == 0
    joined = join(
        rejoinder.load(tmp_path / "i"), read_scores(tmp_path / "s"), items_name="", scores_name=""
    )
    assert found == study(joined, level, Settings(resamples=200))
    assert [result.metric for result in found.results] == metrics[: 1 if level == "item" else 2]


def test_agreement_needs_ratings() -> None:
    with pytest.raises(DataError, match="no item has ratings"):
        rejoinder.agreement([{"id": "1", "response": "a", "references": ["a"]}], "rouge-l")


def test_diversity_judges_systems_and_contexts() -> None:
    judged = rejoinder.diversity(replies(), ["distinct(n=1)", "self-bleu(n=1)"])
    assert [(str(j.metric), j.system) for j in judged] == [
        (metric, system) for metric in ("distinct(n=1)", "self-bleu(n=1)") for system in "xyz"
    ]
    assert all(j.value is not None and len(j.contexts) == 6 for j in judged)


def test_each_function_names_the_other() -> None:
    with pytest.raises(DataError, match=r"bleu judges single replies; use rejoinder\.score"):
        rejoinder.diversity(replies(), "bleu")
    with pytest.raises(DataError, match=r"distinct judges sets of replies; use rejoinder\.div"):
        rejoinder.score(replies(), "distinct")


def test_the_package_of_statistics_keeps_its_name() -> None:
    import rejoinder.meta.agreement as module

    assert callable(rejoinder.agreement)
    assert callable(module.krippendorff_alpha)
    assert {"agreement", "diversity"} <= set(dir(rejoinder))


@pytest.mark.parametrize("rating", [math.nan, math.inf, 1e16])
def test_ratings_that_are_no_numbers_are_refused(rating: float) -> None:
    for ratings in (rating, [1.0, rating], {"a": rating}):
        for item in (Item("1", "x", ratings=ratings), {"id": "1", "response": "x"}):
            given = item if isinstance(item, Item) else {**item, "ratings": ratings}
            with pytest.raises(DataError, match="item 0: ratings: expected numbers from -1e"):
                rejoinder.score([given], "rouge-l")
