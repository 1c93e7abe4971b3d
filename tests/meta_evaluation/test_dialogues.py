"""Whole dialogues: scores from those of turns, ratings, and ``meta --level dialogue``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rejoinder
from rejoinder.cli.main import run
from rejoinder.errors import DataError, UsageError
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.items import Item, Ratings
from rejoinder.meta_evaluation.dialogues import dialogue_units, dialogues_of
from rejoinder.meta_evaluation.join import Joined
from rejoinder.testsets import load


def turn(dialogue: str, number: int | None, ratings: Ratings = None, system: str = "s") -> Item:
    return Item(
        id=f"{dialogue}:{number}:{system}",
        response="x",
        system=system,
        dialogue_id=dialogue,
        turn=number,
        dialogue_ratings=ratings,
    )


def joined(items: list[Item], values: list[float], metric: str = "m") -> Joined:
    return Joined(items, {metric: np.array(values)}, {}, {}, [metric])


ITEMS = [
    turn("a", 4, [3.0, 5.0]),
    turn("a", 2, [3.0, 5.0]),
    turn("a", 6),
    turn("b", 1, 2.0),
    turn("b", 3, 2.0),
    Item(id="alone", response="x"),
]


@pytest.mark.parametrize(
    ("turns", "metric", "scores"),
    [
        # a: turns 2, 4, 6 have .1, .9, .5; b: turns 1, 3 have .2 and no score
        ("mean", "m", [0.5, 0.2]),
        ("min", "m", [0.1, 0.2]),
        ("last", "m", [0.5, 0.2]),
        (
            "min",
            "repetition",
            [0.9, 0.2],
        ),  # where lower is better, the worst turn has the highest score
    ],
)
def test_scores_by_hand(turns: str, metric: str, scores: list[float]) -> None:
    units = dialogue_units(joined(ITEMS, [0.9, 0.1, 0.5, 0.2, np.nan, 1], metric), turns)
    np.testing.assert_allclose(units.scores[metric], scores)
    assert units.human.tolist() == [4, 2]
    assert units.level == "dialogue"


def test_turns_without_numbers_keep_their_order() -> None:
    items = [turn("a", None), turn("b", None), turn("a", None, system="t")]
    assert dialogues_of(items) == [[0], [1], [2]]


def test_learned_weights_are_of_other_dialogues() -> None:
    """The last turn decides the rating: learned weights find it, and noise gains nothing."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 4))
    items = [turn(str(d), t, float(values[d, 3])) for d in range(200) for t in range(4)]
    scores = {}
    for turns in ("mean", "last", "learned"):
        units = dialogue_units(joined(items, values.ravel().tolist()), turns)
        scores[turns] = np.corrcoef(units.scores["m"], units.human)[0, 1]
    assert scores["last"] == pytest.approx(1)
    assert scores["learned"] > 0.95 > scores["mean"] + 0.2
    noise = [turn(str(d), t, float(rng.normal())) for d in range(200) for t in range(1)]
    units = dialogue_units(joined(noise, rng.normal(size=200).tolist()), "learned")
    assert np.corrcoef(units.scores["m"], units.human)[0, 1] < 0.1


@pytest.mark.parametrize(
    ("items", "complaint"),
    [
        ([Item(id="1", response="x", ratings=1.0)], "no item has a 'dialogue_id'"),
        ([turn("a", 1), turn("b", 1)], "no dialogue is rated"),
        ([turn("a", 1, 2.0), turn("a", 2, 3.0)], "the dialogue 'a' have different"),
        ([turn("a", 1, 2.0), turn("a", 1)], "'a' has two replies of s in one turn"),
    ],
)
def test_bad_dialogues(items: list[Item], complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        dialogue_units(joined(items, [0.0] * len(items)))


def test_too_few_dialogues_to_learn_from() -> None:
    with pytest.raises(DataError, match=r"2 dialogues are rated and scored.*20 at least"):
        dialogue_units(joined(ITEMS, [0.9, 0.1, 0.5, 0.2, 0.3, 1]), "learned")


def test_other_levels_have_no_turns() -> None:
    with pytest.raises(UsageError, match="can only be used with level dialogue"):
        rejoinder.meta([{"response": "x"}], "bleu", turns="min")
    with pytest.raises(UsageError, match="turns 'max': expected mean, min, last, learned"):
        rejoinder.meta([{"response": "x"}], "bleu", level="dialogue", turns="max")  # type: ignore[arg-type]


@pytest.mark.usefixtures("data")
def test_meta_of_dialogues(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """ConTurE: 119 dialogues; the mean of people's own ratings of turns agrees with those of the
    dialogues, and repetition disagrees."""
    items = list(load("conture"))
    write_jsonl_file(tmp_path / "items.jsonl", items)
    scores = [{"id": i.id, "metric": "people", "value": i.ratings} for i in items]
    write_jsonl_file(tmp_path / "scores.jsonl", scores)
    command = ["meta", str(tmp_path / "items.jsonl"), str(tmp_path / "scores.jsonl")]
    assert run([*command, "--level", "dialogue", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    (result,) = printed["results"]
    assert (printed["level"], printed["rated"]) == ("dialogue", 119)
    assert (result["level"], result["n"], result["metric"]) == ("dialogue", 119, "people")
    assert result["spearman_ci"][0] < result["spearman"] < result["spearman_ci"][1]
    assert result["spearman"] > 0.2
    assert printed["humans"]["alpha"] is not None
    assert run([*command, "--level", "dialogue", "--turns", "learned"]) == 0
    assert run([*command, "--level", "dialogue", "--drop-unreliable"]) == 2
