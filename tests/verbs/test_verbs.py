"""The functions of the package are the verbs of the command line."""

from __future__ import annotations

import inspect
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rejoinder
from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.files.jsonl import read_scores
from rejoinder.items import Item
from rejoinder.meta_evaluation.evaluation import MetaSettings, evaluate_metrics
from rejoinder.meta_evaluation.join import join


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
def test_meta_of_metrics_equals_meta_of_their_scores(tmp_path: Path, level: str) -> None:
    metrics = ["rouge-l", "self-bleu(n=2)"]
    found = rejoinder.meta(replies(), metrics, level=level, resamples=200)
    (tmp_path / "i").write_text("\n".join(map(json.dumps, replies())))
    asked = [part for metric in metrics for part in ("-m", metric)]
    assert run(["score", str(tmp_path / "i"), *asked, "-o", str(tmp_path / "s")]) == 0
    joined = join(
        rejoinder.load(tmp_path / "i"), read_scores(tmp_path / "s"), items_name="", scores_name=""
    )
    expected = vars(evaluate_metrics(joined, level, MetaSettings(resamples=200)))
    assert {name: getattr(found, name) for name in expected} == expected
    assert [result.metric for result in found.results] == metrics[: 1 if level == "item" else 2]


def test_meta_without_ratings_compares_correct_systems_with_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No correlation is shown without the correct replies: all others have the same label."""
    items = [{**each, "ratings": None} for each in replies()]
    for each in items:
        each["system"] = {"x": "human"}.get(each["system"], each["system"])
    found = rejoinder.meta(items, "rouge-l", correct="human", resamples=200)
    values = rejoinder.score(items, "rouge-l")["rouge-l"].values
    right = np.array([each["system"] == "human" for each in items])
    # AUC: how often one of 12 correct replies scores higher than one of 24 others, ties count half
    above = (values[right][:, None] > values[~right]).mean()
    equal = (values[right][:, None] == values[~right]).mean()
    assert found.results[0].auc == pytest.approx(above + equal / 2)
    assert found.results[0].without_human is None
    assert found.unrated == 0

    files = [str(tmp_path / name) for name in ("i", "s")]
    (tmp_path / "i").write_text("\n".join(map(json.dumps, items)))
    assert run(["score", files[0], "-m", "rouge-l", "-o", files[1]]) == 0
    capsys.readouterr()
    assert run(["meta", *files, "--correct", "human", "--resamples", "200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["auc"] == found.results[0].auc
    assert run(["meta", *files, "--correct", "human", "--resamples", "200"]) == 0
    assert "human against others over replies" in capsys.readouterr().out
    assert run(["meta", *files, "--correct", "human", "--drop-unreliable"]) == 2
    assert "no annotator can be dropped" in capsys.readouterr().err
    assert run(["meta", *files, "--correct", "humane"]) == 2
    assert "did you mean human" in capsys.readouterr().err.replace("'", "")


def test_meta_needs_ratings() -> None:
    with pytest.raises(DataError, match="no item has ratings"):
        rejoinder.meta([{"id": "1", "response": "a", "references": ["a"]}], "rouge-l")


def test_diversity_judges_systems_and_contexts() -> None:
    judged = rejoinder.diversity(replies(), ["distinct(n=1)", "self-bleu(n=1)"])
    assert [(str(j.metric), j.system) for j in judged] == [
        (metric, system) for metric in ("distinct(n=1)", "self-bleu(n=1)") for system in "xyz"
    ]
    assert all(j.value is not None and len(j.contexts) == 6 for j in judged)


def test_diversity_refuses_metrics_of_single_replies() -> None:
    with pytest.raises(DataError, match=r"bleu scores single replies; use rejoinder\.score"):
        rejoinder.diversity(replies(), "bleu")


def test_score_also_takes_metrics_of_sets() -> None:
    result = rejoinder.score(replies(), ["rouge-l", "distinct"])
    assert list(result) == ["rouge-l"]
    assert [each.system for each in result.sets] == ["x", "y", "z"]


def test_verbs_are_functions_of_the_package() -> None:
    import rejoinder.fitting.settings as settings
    import rejoinder.meta_evaluation.agreement as module

    assert callable(module.krippendorff_alpha)
    assert settings.PRESETS
    assert list(inspect.signature(rejoinder.meta).parameters)[:2] == ["items", "metrics"]
    assert "output" in inspect.signature(rejoinder.fit).parameters
    assert {"fit", "meta", "Evaluator"} <= set(dir(rejoinder))
    assert callable(rejoinder.datasets.export)
    assert callable(rejoinder.pairs.plan)
    assert callable(rejoinder.train.vectors)
    for name in rejoinder.__all__:
        assert getattr(rejoinder, name) is not None
    assert "resamples" in (rejoinder.score.__doc__ or "")
    assert rejoinder.fit.__doc__ != rejoinder.meta.__doc__


def test_names_do_not_depend_on_what_was_imported_first() -> None:
    for first in (
        "rejoinder.meta_evaluation.evaluation",
        "rejoinder.fitting.settings",
        "rejoinder.verbs",
        "rejoinder",
    ):
        code = (
            f"import {first}, rejoinder; print(callable(rejoinder.meta), callable(rejoinder.fit))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "True True\n", done.stderr


def test_the_core_needs_no_extra(tmp_path: Path) -> None:
    """Neither torch nor Arrow nor a library of frames is imported until it is needed."""
    code = """
import sys
extras = ["torch", "pyarrow", "pandas", "polars", "datasets", "duckdb", "transformers", "narwhals"]
import rejoinder
assert not {"numpy", *extras} & set(sys.modules)

class Refuse:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in extras:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refuse())
items = rejoinder.load([{"id": "1", "response": "a", "references": ["a"], "ratings": 1}])
print(rejoinder.score(items, "rouge-l")["rouge-l"].values)
try:
    rejoinder.fit("x.parquet", output="y")
except rejoinder.errors.MissingExtra as error:
    print(error)
"""
    (tmp_path / "x.parquet").touch()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout.startswith("[1.]\nfitting needs torch"), done.stderr


def test_a_file_name_is_accepted_in_place_of_items(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, replies())))
    assert rejoinder.load(path) == rejoinder.load(replies())
    by_name = rejoinder.compare(str(path), "rouge-l", resamples=100)
    assert by_name == rejoinder.compare(replies(), "rouge-l", resamples=100)


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ([], "there are no items"),
        (["a"], "item 0: expected an item or a dictionary, got str"),
        ({"id": "1", "response": "a"}, "got one item; put it in brackets"),
        (7, "expected items, dictionaries, the name of a file, or a frame .*, got int"),
        ("none.jsonl", "none.jsonl: cannot be read"),
        ([{"id": "1"}], "item 0: the field is missing: .?response"),
        ([{"id": "1", "response": "a"}] * 2, "the id '1' occurs twice"),
    ],
)
def test_inputs_that_are_no_items_are_refused(items: Any, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        rejoinder.score(items, "rouge-l")


@pytest.mark.parametrize("rating", [math.nan, math.inf, 1e16])
def test_ratings_that_are_not_finite_are_refused(rating: float) -> None:
    for ratings in (rating, [1.0, rating], {"a": rating}):
        for item in (Item("1", "x", ratings=ratings), {"id": "1", "response": "x"}):
            changed = item if isinstance(item, Item) else {**item, "ratings": ratings}
            with pytest.raises(DataError, match="item 0: ratings: expected numbers from -1e"):
                rejoinder.score([changed], "rouge-l")
