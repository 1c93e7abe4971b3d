"""An evaluator in memory scores like the command line, and is loaded once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rejoinder
from evaluators import make_evaluator, open_small, write_pairs
from fitted import CHANGES, chatter, small_evaluator
from fitting.toy import write
from rejoinder.errors import DataError, RejoinderError, UsageError
from rejoinder.evaluator import evaluator as evaluator_module
from rejoinder.items import Item
from rejoinder.retrieve.index_folder import open_pool
from rejoinder.retrieve.leaks import LeakIndex, find_leaks
from rejoinder.verbs.monitor import RejoinderWarning

CONTEXTS = [["hello", "the cat sat on I'm"], ["a mat on the mat"], ["cats cats . sat"]]
REPLIES = ["the cat sat", "a mat I'm on", "."]
METRICS = ["rejoinder(ref=vbleu,rating=false)", "unreferenced", "vbleu"]


def items() -> list[dict[str, Any]]:
    pairs = zip(CONTEXTS, REPLIES, strict=True)
    return [{"id": str(i), "context": c, "response": r} for i, (c, r) in enumerate(pairs)]


def test_scores_equal_those_of_rejoinder_score() -> None:
    evaluator = rejoinder.Evaluator.load(small_evaluator())
    found = evaluator.score(CONTEXTS, REPLIES, metrics=METRICS)
    with pytest.warns(RejoinderWarning, match="these items are outside the domain of small"):
        expected = rejoinder.score(items(), METRICS, evaluator=evaluator)
    assert any("outside the domain" in note for note in expected.notes)
    for metric in METRICS:
        np.testing.assert_array_equal(found[metric].values, expected[metric].values)
        assert found[metric].signature == expected[metric].signature
    assert found.frame(to="pandas")["id"].tolist() == ["0", "1", "2"]
    # one text is one turn; references are given for some
    text = evaluator.score([c[-1] for c in CONTEXTS], REPLIES, metrics="unreferenced")
    assert len(text["unreferenced"].values) == 3
    known = evaluator.score(CONTEXTS, REPLIES, [["the cat sat"], None, "no"], metrics="rouge-l")
    assert known["rouge-l"].unscored == {"1": "no references"}
    assert known["rouge-l"].values[[0, 2]].tolist() == [1.0, 0.0]


def test_a_second_call_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the manifest nor the pool nor a network is read again, and nothing is resampled."""
    evaluator = rejoinder.Evaluator.load(small_evaluator())
    first = evaluator.score(CONTEXTS, REPLIES, metrics=METRICS)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was loaded once more")

    from rejoinder.learn.scorer import Scorer
    from rejoinder.retrieve import index_folder, leaks
    from rejoinder.retrieve.pool import Pool

    monkeypatch.setattr(evaluator_module, "read_manifest", refuse)
    monkeypatch.setattr(index_folder, "open_index", refuse)
    monkeypatch.setattr(Scorer, "open", refuse)
    monkeypatch.setattr(leaks, "LeakIndex", refuse)
    monkeypatch.setattr(Pool, "batches", refuse)
    started = time.perf_counter()
    again = evaluator.score(CONTEXTS, REPLIES, metrics=METRICS)
    assert time.perf_counter() - started < 2
    for metric in METRICS:
        np.testing.assert_array_equal(again[metric].values, first[metric].values)


def test_expanding(tmp_path: Path) -> None:
    folder = make_evaluator(tmp_path / "e")
    opened = open_small(folder)
    evaluator = rejoinder.Evaluator.load(folder)
    frame = pd.DataFrame([{"id": "1", "context": ["do you like tea"], "response": "x"}])
    (found,) = evaluator.expand(frame)
    assert found == opened.expand([Item("1", "x", ["do you like tea"])])[0]
    assert len(found.references) == 3  # two of the pool, and the parrot
    out = evaluator.expand(frame, k=1).frame()
    assert isinstance(out, pd.DataFrame)
    assert [reference["source"] for reference in out["references"][0]] == ["retrieved", "parrot"]
    # what the pool has of this very context is left out
    (leaked,) = evaluator.expand([Item("1", "x", ["do you like cheese"])])
    assert "yes i do" not in [reference.text for reference in leaked.references]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((CONTEXTS, REPLIES[:2]), "lists of the same length; got 2 replies, 3 contexts"),
        ((CONTEXTS, REPLIES, ["a"]), "got 3 replies, 1 references, 3 contexts"),
        ((CONTEXTS, "the cat"), "replies: expected a list with an entry for each reply"),
        (([], []), "there are no replies"),
        (([[1]], ["a"]), r"reply 0: context\[0\]: expected text, got a whole number"),
        (([5], ["a"]), "reply 0: context: expected a list, got a whole number"),
        ((["a"], [None]), "reply 0: response: expected text, got null"),
        ((["a"], ["a"], None, "distinct"), "distinct scores sets of replies"),
        ((["a"], ["a"], None, "rubr"), "did you mean 'ruber'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], complaint: str) -> None:
    with pytest.raises(RejoinderError, match=complaint):
        rejoinder.Evaluator.load(small_evaluator()).score(*arguments)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not an evaluator: there is no such folder"):
        rejoinder.Evaluator.load(tmp_path / "none")


def test_fitting_a_frame(tmp_path: Path) -> None:
    """A frame of pairs, a file of them: the same evaluator, but for the name of what it read."""
    rows = chatter()
    path = write(tmp_path / "pairs.parquet", rows)
    changes = {
        key: msgspec.json.decode(value) for key, _, value in (c.partition("=") for c in CHANGES)
    }
    test = [{"id": "1", "context": ["the cat sat"], "response": "x"}]
    made = rejoinder.fit(
        path, output=tmp_path / "a", preset="tiny", overrides=changes, exclude=test
    )
    frame = pa.parquet.read_table(path).to_pandas()
    again = rejoinder.fit(
        frame, output=tmp_path / "b", preset="tiny", overrides=changes, exclude=test
    )
    assert made.manifest.preset == "tiny"
    assert made.manifest.settings["retrieval"]["k"] == 3
    for name in ("unreferenced", "pool"):
        same = [
            (made.manifest.parts[part].sha256, again.manifest.parts[part].sha256)
            for part in made.manifest.parts
            if part.startswith(f"{name}/") and not part.endswith("manifest.json")
        ]
        assert same
        assert all(a == b for a, b in same)
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", "pairs.parquet"}
    assert made.score([["the mat"]], ["a cat"], metrics="unreferenced")["unreferenced"].values > 0
    assert made.replaced is None
    assert "replaced" not in made.to_dict()
    with pytest.warns(RejoinderWarning, match=f"replaced the evaluator {again}"):
        other = rejoinder.fit(path, output=tmp_path / "b", preset="tiny", overrides=changes)
    assert other.to_dict()["replaced"] == other.replaced == str(again)


def test_inputs_that_are_no_pairs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column utterance and no column response; it has a"):
        rejoinder.fit(pd.DataFrame({"a": [1]}), output=tmp_path / "e")
    with pytest.raises(DataError, match="expected names of files, or a frame of pairs, got int"):
        rejoinder.fit(3, output=tmp_path / "e")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="there is no such file"):
        rejoinder.fit("none.parquet", output=tmp_path / "e")
    with pytest.raises(UsageError, match="unknown preset 'smal': did you mean 'small'"):
        rejoinder.fit("none.parquet", output=tmp_path / "e", preset="smal")


TEXTS = st.text(st.sampled_from("ab c"), min_size=0, max_size=40)
LONG = st.integers(0, 5).map(lambda n: "the quick brown fox jumps over the lazy dogs"[n:] + "!" * n)


@given(st.lists(TEXTS | LONG, min_size=1, max_size=8), st.lists(TEXTS | LONG, max_size=5))
def test_the_leak_index_finds_the_same_rows_as_a_scan(
    utterances: list[str], turns: list[str]
) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        rows = [([], utterance, "x") for utterance in utterances]
        with open_pool(write_pairs(Path(folder) / "pairs.parquet", rows)) as pool:
            expected, _ = find_leaks(pool, turns)
            assert LeakIndex(pool).find(turns).tolist() == expected.tolist()
