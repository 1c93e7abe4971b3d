"""Systems by number of references: the order that one reference gives, and the one of all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rejoinder.cli.main import run
from rejoinder.errors import DataError
from rejoinder.items import Item, Reference
from rejoinder.meta_evaluation.system_curve import system_curve
from rejoinder.metrics.metric import ItemMetric
from rejoinder.metrics.metric_set import make_metrics


def rouge() -> list[ItemMetric]:
    return make_metrics(["rouge-l(beta=1,tok=whitespace)"]).item_metrics


def item(system: str, response: str, references: list[str], context: str = "c") -> Item:
    return Item(
        id=f"{context}:{system}",
        context_id=context,
        context=["i like tea", "me too"],
        response=response,
        system=system,
        references=[Reference(text) for text in references],
    )


def test_the_order_turns_with_the_number_of_references() -> None:
    """ROUGE-L (β = 1) of the best reference. ``bot`` is exactly the first of three references (1)
    and shares nothing with the others; ``people`` shares 4 of 5 words with the other two (.8).

    With one reference: bot 1 or 0, 0: mean 1/3 over all draws; people 0 or .8, .8: mean 1.6/3.
    With two, {1,2}, {1,3}, {2,3}: bot 1, 1, 0: mean 2/3; people .8 always. With three: bot 1,
    people .8, so that bot is ahead for certain, and with one reference in a third of the draws.
    """
    references = ["a b c d e", "p q r s x", "p q r s y"]
    items = [item("bot", "a b c d e", references), item("people", "p q r s z", references)]
    (points,) = system_curve(items, rouge(), draws=600, seed=0)
    assert [point.references for point in points] == [1, 2, 3]
    assert [point.draws for point in points] == [600, 600, 1]
    one, two, three = points
    # the deviation of a share of 1/3 over 600 draws is .019
    assert one.first["bot"] == pytest.approx(1 / 3, abs=0.08)
    assert one.mean["bot"] == pytest.approx(one.first["bot"])
    assert one.mean["people"] == pytest.approx(0.8 * one.first["people"])
    assert one.first["people"] == pytest.approx(1 - one.first["bot"])
    assert two.first["bot"] == pytest.approx(2 / 3, abs=0.08)
    assert two.mean == pytest.approx({"bot": two.first["bot"], "people": 0.8})
    assert (two.low["people"], two.high["people"]) == pytest.approx((0.8, 0.8))
    assert three.mean == three.low == three.high == pytest.approx({"bot": 1.0, "people": 0.8})
    assert three.first == {"bot": 1.0, "people": 0.0}


def test_the_first_reference_can_be_kept() -> None:
    """The same replies, with the reference that ``bot`` equals in every draw: it is always ahead;
    ``people`` have 0 with one reference, and .8 with each more."""
    references = ["a b c d e", "p q r s x", "p q r s y"]
    items = [item("bot", "a b c d e", references), item("people", "p q r s z", references)]
    (points,) = system_curve(items, rouge(), draws=9, seed=0, keep_first=True)
    assert [point.mean["bot"] for point in points] == pytest.approx([1.0, 1.0, 1.0])
    assert [point.mean["people"] for point in points] == pytest.approx([0.0, 0.8, 0.8])
    assert all(point.first["bot"] == 1.0 for point in points)


def test_systems_with_other_numbers_of_references() -> None:
    """A curve ends where a system has no more references; a reply with fewer uses all it has."""
    few, many = ["x", "y"], ["x", "y", "z"]
    items = [
        item("a", "x", few), item("b", "y", many),
        item("a", "x", ["x"], "d"), item("b", "y", ["x"], "d"),
    ]  # fmt: skip
    (points,) = system_curve(items, rouge(), draws=2, seed=0)
    assert [point.references for point in points] == [1, 2]
    assert points[1].mean["a"] == pytest.approx(1.0)


def test_only_contexts_that_all_systems_answered_count() -> None:
    """The second context lacks ``b``; two replies of ``a`` to the first one count as their mean:
    (1 + 0) / 2. Equal systems: none is ahead."""
    items = [
        item("a", "x", ["x"]),
        item("a", "y", ["x"]),
        item("b", "x x x", ["x"]),  # precision 1/3, recall 1: F = 1/2
        item("a", "x", ["x"], "d"),
    ]
    ((point,),) = system_curve(items, rouge(), draws=3, seed=0)
    assert point.contexts == 1
    assert point.mean == pytest.approx({"a": 0.5, "b": 0.5})
    assert point.first == {"a": 0.0, "b": 0.0}


def test_of_what_should_be_low_the_lowest_is_ahead() -> None:
    """``a`` says something new, ``b`` repeats what it has said before."""
    items = [item("a", "what about milk", ["x"]), item("b", "i like tea", ["x"])]
    repeats = make_metrics(["repetition(n=2)"]).item_metrics
    ((point,),) = system_curve(items, repeats, draws=1, seed=0)
    assert point.mean["a"] < point.mean["b"]
    assert point.first == {"a": 1.0, "b": 0.0}


def test_what_has_no_curve() -> None:
    with pytest.raises(DataError, match="no item has references"):
        system_curve([item("a", "x", [])], rouge(), draws=1, seed=0)
    with pytest.raises(DataError, match="there is one: 'a'"):
        system_curve([item("a", "x", ["x"])], rouge(), draws=1, seed=0)
    apart = [item("a", "x", ["x"], "c"), item("b", "x", ["x"], "d")]
    with pytest.raises(DataError, match="no context has a value for every system"):
        system_curve(apart, rouge(), draws=1, seed=0)


def test_compare_shows_and_draws_the_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    with open("items.jsonl", "w") as stream:
        for number in range(8):
            references = [" ".join(rng.choice(list("abcdef"), 4)) for _ in range(3)]
            for system in ("bot", "people"):
                line = {
                    "id": f"{number}:{system}",
                    "context_id": str(number),
                    "context": ["hello"],
                    "response": " ".join(rng.choice(list("abcdef"), 4)),
                    "system": system,
                    "references": references,
                }
                stream.write(json.dumps(line) + "\n")
    command = ["compare", "items.jsonl", "-m", "rouge-l", "--curve", "--draws", "5"]
    assert run([*command, "--json", "--svg", "curve.svg"]) == 0
    result = json.loads(capsys.readouterr().out)
    ((name, points),) = result["curves"].items()
    assert name == "rouge-l"
    assert [point["references"] for point in points] == [1, 2, 3]
    values = {system["system"]: system["value"] for system in result["results"][0]["systems"]}
    assert points[-1]["mean"] == pytest.approx(values)
    assert "number of references" in Path("curve.svg").read_text()
    assert run(command) == 0
    assert "systems by number of references" in capsys.readouterr().out
    assert run(["compare", "items.jsonl", "--by", "people", "--curve"]) == 2
    assert "add -m METRIC" in capsys.readouterr().err
    wrong = ["compare", "items.jsonl", "-m", "rouge-l", "--svg", "x.svg", "--keep-first"]
    assert run(wrong) == 2
    errors = capsys.readouterr().err
    assert "add --curve" in errors
    assert "--keep-first belongs to --curve" in errors
