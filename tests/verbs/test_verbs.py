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
from rejoinder.io import read_scores
from rejoinder.items import Item
from rejoinder.meta_evaluation.join import join
from rejoinder.meta_evaluation.study import Settings, study


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
def test_meta_is_score_and_meta_in_one(tmp_path: Path, level: str) -> None:
    metrics = ["rouge-l", "self-bleu(n=2)"]
    found = rejoinder.meta(replies(), metrics, level=level, resamples=200)
    (tmp_path / "i").write_text("\n".join(map(json.dumps, replies())))
    asked = [part for metric in metrics for part in ("-m", metric)]
    assert run(["score", str(tmp_path / "i"), *asked, "-o", str(tmp_path / "s")]) == 0
    joined = join(
        rejoinder.load(tmp_path / "i"), read_scores(tmp_path / "s"), items_name="", scores_name=""
    )
    expected = vars(study(joined, level, Settings(resamples=200)))
    assert {name: getattr(found, name) for name in expected} == expected
    assert [result.metric for result in found.results] == metrics[: 1 if level == "item" else 2]


def test_meta_without_ratings_knows_who_is_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No correlation is shown without the right ones: all others are wrong alike."""
    items = [{**each, "ratings": None} for each in replies()]
    for each in items:
        each["system"] = {"x": "human"}.get(each["system"], each["system"])
    found = rejoinder.meta(items, "rouge-l", right="human", resamples=200)
    values = rejoinder.score(items, "rouge-l")["rouge-l"].values
    right = np.array([each["system"] == "human" for each in items])
    # 12 right ones against 24: how often one has more, equal ones count half
    above = (values[right][:, None] > values[~right]).mean()
    equal = (values[right][:, None] == values[~right]).mean()
    assert found.results[0].auc == pytest.approx(above + equal / 2)
    assert found.results[0].without_human is None
    assert found.unrated == 0

    files = [str(tmp_path / name) for name in ("i", "s")]
    (tmp_path / "i").write_text("\n".join(map(json.dumps, items)))
    assert run(["score", files[0], "-m", "rouge-l", "-o", files[1]]) == 0
    capsys.readouterr()
    assert run(["meta", *files, "--right", "human", "--resamples", "200", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["auc"] == found.results[0].auc
    assert run(["meta", *files, "--right", "human", "--resamples", "200"]) == 0
    assert "human against others over replies" in capsys.readouterr().out
    assert run(["meta", *files, "--right", "human", "--drop-bad"]) == 2
    assert "there is no annotator to be left out" in capsys.readouterr().err
    assert run(["meta", *files, "--right", "humane"]) == 2
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


def test_each_function_names_the_other() -> None:
    with pytest.raises(DataError, match=r"bleu judges single replies; use rejoinder\.score"):
        rejoinder.diversity(replies(), "bleu")
    with pytest.raises(DataError, match=r"distinct judges sets of replies; use rejoinder\.div"):
        rejoinder.score(replies(), "distinct")


def test_packages_that_are_verbs_keep_their_names() -> None:
    import rejoinder.fitting.settings as settings
    import rejoinder.meta_evaluation.agreement as module

    assert callable(module.krippendorff_alpha)
    assert settings.PRESETS
    assert list(inspect.signature(rejoinder.meta).parameters)[:2] == ["items", "metrics"]
    assert "output" in inspect.signature(rejoinder.fit).parameters
    assert {"fit", "meta", "Evaluator"} <= set(dir(rejoinder))
    assert rejoinder.agreement(replies(), "rouge-l", resamples=100).rated == 36  # the older name


def test_each_verb_from_a_fresh_start() -> None:
    """Whatever is imported first, the names mean the same."""
    for first in (
        "rejoinder.meta_evaluation.study",
        "rejoinder.fitting.settings",
        "rejoinder.verbs",
        "rejoinder",
    ):
        code = (
            f"import {first}, rejoinder; print(callable(rejoinder.meta), callable(rejoinder.fit))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "True True\n", done.stderr


def test_the_core_needs_no_extra() -> None:
    """Neither torch nor Arrow nor any library of frames, until somebody asks for them."""
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("[1.]\nfitting needs "), done.stderr


def test_files_are_items_too(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, replies())))
    assert rejoinder.load(path) == rejoinder.load(replies())
    by_name = rejoinder.compare(str(path), "rouge-l", resamples=100)
    assert by_name == rejoinder.compare(replies(), "rouge-l", resamples=100)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ([], "there are no items"),
        (["a"], "item 0: expected an item or a dictionary, got str"),
        ({"id": "1", "response": "a"}, "got one item; put it in brackets"),
        (7, "expected items, dictionaries, the name of a file, or a frame .*, got int"),
        ("none.jsonl", "none.jsonl: cannot be read"),
        ([{"id": "1"}], "item 0: the field is missing: .?response"),
        ([{"id": "1", "response": "a"}] * 2, "the id '1' stands twice"),
    ],
)
def test_what_is_no_item_is_named(given: Any, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        rejoinder.score(given, "rouge-l")


@pytest.mark.parametrize("rating", [math.nan, math.inf, 1e16])
def test_ratings_that_are_no_numbers_are_refused(rating: float) -> None:
    for ratings in (rating, [1.0, rating], {"a": rating}):
        for item in (Item("1", "x", ratings=ratings), {"id": "1", "response": "x"}):
            given = item if isinstance(item, Item) else {**item, "ratings": ratings}
            with pytest.raises(DataError, match="item 0: ratings: expected numbers from -1e"):
                rejoinder.score([given], "rouge-l")
