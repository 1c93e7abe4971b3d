"""``plan`` on real command lines: what it writes, and what goes wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import rejoinder
from rejoinder.cli.main import run
from rejoinder.files.item_file import read_items
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.items import Item
from rejoinder.verbs.monitor import RejoinderWarning


def replies(contexts: int = 40, rated: int = 0, people: tuple[str, ...] = ("ann",)) -> list[Item]:
    """Replies of two systems, of which x is better; the first contexts are rated."""
    rng = np.random.default_rng(3)
    items = []
    for n in range(contexts):
        hard = rng.normal(0, 0.7)
        for system, quality in (("x", 3.6), ("y", 3.0)):
            value = float(np.clip(np.rint(quality + hard + rng.normal(0, 0.8)), 1, 5))
            ratings = dict.fromkeys(people, value) if n < rated else None
            context = [f"question {n}"]
            items.append(Item(f"{n}{system}", f"reply {n}", context, system, ratings=ratings))
    return items


def scores(items: list[Item], **changes: Any) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    return [
        {"id": item.id, "metric": "m", "value": float(rng.normal())} | changes for item in items
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("items.jsonl", replies())
    write("scores.jsonl", scores(replies()))
    return tmp_path


def write(name: str, records: list[Any]) -> None:
    write_jsonl_file(name, records)


def planned(capfd: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capfd.readouterr()
    code = run(["plan", *arguments, "--json"])
    out, err = capfd.readouterr()
    assert code == 0, err
    found: dict[str, Any] = json.loads(out)
    return found


def test_a_plan_without_ratings(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "items.jsonl", "scores.jsonl", "--budget", "20", "-o", "next.jsonl"]) == 0
    out, err = capfd.readouterr()
    assert "ratings  width" in out and "(assumed)" in err
    assert "20 replies, 20 ratings, for the difference of x, y; 10 of 40 contexts" in err
    chosen = list(read_items("next.jsonl"))
    assert Counter(item.system for item in chosen) == {"x": 10, "y": 10}
    assert {item.inclusion_probability for item in chosen} == {0.25}
    assert [a.context == b.context for a, b in zip(chosen[::2], chosen[1::2], strict=True)]


def test_a_larger_budget_begins_with_the_same_replies(folder: Path) -> None:
    for budget in ("20", "30"):
        assert run(["plan", "items.jsonl", "--budget", budget, "-o", f"{budget}.jsonl"]) == 0
    few, many = (list(read_items(f"{budget}.jsonl")) for budget in (20, 30))
    assert [item.id for item in many][:20] == [item.id for item in few]
    assert {item.inclusion_probability for item in many} == {0.375}
    assert run(["plan", "items.jsonl", "--budget", "20", "--seed", "1", "-o", "other.jsonl"]) == 0
    assert {each.id for each in read_items("other.jsonl")} != {each.id for each in few}


def test_rated_replies_get_new_probabilities(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    items = replies(rated=40)
    plan = rejoinder.plan(replies(), budget=20)
    first = {item.id for item in plan.items}
    once = [
        Item(
            each.id, each.response, each.context, each.system,
            ratings=each.ratings if each.id in first else None,
            inclusion_probability=0.25 if each.id in first else None,
        )
        for each in items
    ]  # fmt: skip
    write("rated.jsonl", once)
    arguments = ["rated.jsonl", "--budget", "20", "-o", "next.jsonl"]
    assert run(["plan", *arguments]) == 0
    assert "have other inclusion probabilities" in capfd.readouterr().err
    assert run(["plan", *arguments, "--all", "all.jsonl"]) == 0
    assert "inclusion probabilities" not in capfd.readouterr().err
    following = list(read_items("next.jsonl"))
    assert not first & {item.id for item in following}
    everything = list(read_items("all.jsonl"))
    assert len(everything) == 80
    chances = {item.id: item.inclusion_probability for item in everything}
    assert (
        {chances[name] for name in first} == {0.5} == {i.inclusion_probability for i in following}
    )
    assert sum(chance is not None for chance in chances.values()) == 20


def test_as_many_as_a_width_and_a_power_need(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = planned(capfd, "items.jsonl", "--width", "1", "--power", "0.8", "--difference", "0.7")
    # assumed deviation √2 of differences, no correlation: 2 t √(2 / n) ≤ 1 from n = 34 on
    assert found["needed_for_width"] == {"units": 34, "ratings": 68, "more": 68}
    # d = .7 / √2 = .495 takes 35 pairs; 34 suffice for .5 (Cohen)
    assert found["needed_for_power"] == {"units": 35, "ratings": 70, "more": 70}
    assert (found["ratings"], len(found["next"]), found["budget"]) == (70, 70, None)
    certain = planned(capfd, "items.jsonl", "--width", "1", "--sd", "0.5")
    assert certain["needed_for_width"]["units"] < 15
    better = planned(capfd, "items.jsonl", "--width", "1", "--correlation", "0.6")
    assert better["needed_for_width"]["units"] < 34


def test_an_assumed_deviation_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "items.jsonl", "--width", "1", "-o", "next.jsonl"]) == 0
    message = capfd.readouterr().err
    assert "a standard deviation of 1.41 is assumed for differences" in message
    assert "--sd" in message
    for more in (["--width", "1", "--sd", "1"], ["--budget", "8"]):
        assert run(["plan", "items.jsonl", "-o", "next.jsonl", *more]) == 0
        assert "is assumed for" not in capfd.readouterr().err


def test_the_ratings_so_far_say_how_much_they_vary(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write("rated.jsonl", replies(rated=30))
    found = planned(capfd, "rated.jsonl", "scores.jsonl", "--budget", "4", "--svg", "curve.svg")
    assert (found["spread"]["known_from"], found["rated"]) == (30, 60)
    assert 0.8 < found["spread"]["sd"] < 1.6
    (look,) = found["looks"]
    assert (look["a"], look["b"]) == ("x", "y")
    assert look["anytime_ci"][0] < look["ci"][0] < look["estimate"] < look["ci"][1]
    assert Path("curve.svg").read_text().startswith("<svg")


def test_means_and_rankings(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = planned(capfd, "items.jsonl", "--budget", "7", "--for", "mean")
    assert Counter(each["system"] for each in found["next"]).most_common() in (
        [("x", 4), ("y", 3)],
        [("y", 4), ("x", 3)],
    )
    found = planned(capfd, "items.jsonl", "--budget", "7", "--for", "ranking")
    assert Counter(each["system"] for each in found["next"]) == {"x": 3, "y": 3}
    found = planned(capfd, "items.jsonl", "--budget", "5", "--system", "y")
    assert (found["question"], found["systems"]) == ("mean", ["y"])


def test_in_python(folder: Path) -> None:
    plan = rejoinder.plan("items.jsonl", "scores.jsonl", budget=10, output="next.jsonl")
    assert [item.id for item in plan.items] == [item.id for item in read_items("next.jsonl")]
    assert set(plan.frame(to="pandas").columns) == {
        *("units", "ratings", "width", "anytime_width", "power")
    }
    assert len(plan.items.frame(to="pandas")) == 10
    assert "<svg" in plan.plot()._repr_svg_()
    assert not plan.decided


def test_uneven_plans_say_how_probable_each_reply_was(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = planned(capfd, "items.jsonl", "scores.jsonl", "--budget", "20", "--uneven", "0.5")
    chances = {each["inclusion_probability"] for each in found["next"]}
    assert len(chances) == 10 and 0.1 < min(chances) < 0.25 < max(chances) < 0.7


BAD: dict[str, tuple[int, list[str], str]] = {
    "a budget of nothing": (2, ["items.jsonl", "--budget", "0"], "greater than or equal to 1"),
    "no aim": (2, ["items.jsonl", "scores.jsonl"], "nothing says how many: give --budget"),
    "less than a context": (3, ["items.jsonl", "--budget", "1"], "a budget of 1 does not suffice"),
    "scores of other items": (
        3, ["few.jsonl", "scores.jsonl", "--budget", "4"],
        "scores.jsonl:5: the item '2x' is not in few.jsonl",
    ),
    "scores that lack items": (
        3, ["items.jsonl", "few-scores.jsonl", "--budget", "4"], "76 of 80 items",
    ),
    "unscored items only": (
        3, ["items.jsonl", "unscored.jsonl", "--budget", "4"], "no item has a score by m",
    ),
    "power without a difference": (
        2, ["items.jsonl", "--power", "0.8"], "--power 0.8 needs --difference",
    ),
    "an unknown system": (
        2, ["items.jsonl", "--budget", "4", "--system", "xx"], "--system xx: ",
    ),
    "a difference of three": (
        2, ["three.jsonl", "--budget", "4", "--for", "difference"], "here are x, y, z",
    ),
    "a difference of one": (
        2, ["items.jsonl", "--budget", "4", "--for", "difference", "--system", "x"],
        "here is only 'x'",
    ),
    "swapped files": (
        2, ["scores.jsonl", "items.jsonl", "--budget", "4"], "the items come first",
    ),
    "the input as output": (
        2, ["items.jsonl", "--budget", "4", "-o", "items.jsonl"], "would overwrite the input",
    ),
    "two things on stdout": (
        2, ["items.jsonl", "--budget", "4", "-o", "-", "--json"], "--json prints to stdout",
    ),
    "metrics without scores": (
        2, ["items.jsonl", "--budget", "4", "-m", "bleu"], "can only be used with scores",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input(what: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, arguments, message = BAD[what]
    write("few.jsonl", replies(2))
    write("few-scores.jsonl", scores(replies(2)))
    write("unscored.jsonl", scores(replies(), value=None, unscored="no references"))
    write("three.jsonl", [*replies(), Item("z", "r", ["question 1"], "z")])
    assert run(["plan", *arguments]) == code
    assert message in capfd.readouterr().err
    assert not Path("next.jsonl").exists()


def test_all_ratings_equal(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is known about how much ratings vary: it is assumed, and nothing is decided."""
    same = [
        Item(i.id, i.response, i.context, i.system, ratings=i.ratings and 3.0)
        for i in replies(rated=20)
    ]
    write("same.jsonl", same)
    found = planned(capfd, "same.jsonl", "--budget", "8")
    assert found["spread"] == {
        "sd": pytest.approx(2**0.5),
        "correlation": 0,
        "known_from": 0,
        "within_dialogues": 0,
    }
    assert [look["decided"] for look in found["looks"]] == [False]
    assert len(found["next"]) == 8


def test_ratings_on_different_scales(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mixed = [
        Item(
            i.id, i.response, i.context, i.system,
            ratings={"ann": 1 + n % 5, "bob": 20 * (1 + n % 5)},
        )
        for n, i in enumerate(replies(rated=20))
    ]  # fmt: skip
    write("mixed.jsonl", mixed)
    assert run(["plan", "mixed.jsonl", "--budget", "8"]) == 3
    message = capfd.readouterr().err
    assert "ratings on different scales can't be averaged" in message
    assert "--scale" not in message  # plan has no such option


def test_ratings_of_one_person(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write("one.jsonl", replies(rated=20, people=("ann",)))
    found = planned(capfd, "one.jsonl", "scores.jsonl", "--budget", "8", "--ratings-per-reply", "2")
    # the rated replies lack a second rating, the others lack two
    assert found["ratings"] == 8 and 4 <= len(found["next"]) <= 8


def test_everything_is_rated(folder: Path) -> None:
    with pytest.warns(RejoinderWarning, match="are rated already"):
        result = rejoinder.plan(replies(rated=40), budget=8)
    assert result.to_dict()["notes"] == result.notes
    assert any("are rated already" in note for note in result.notes)
    assert result.items == [] and result.to_dict()["next"] == []


def test_not_even_all_replies_suffice(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["plan", "items.jsonl", "--width", "0.01", "-o", "next.jsonl"]) == 0
    assert "not even ratings of all replies suffice" in capfd.readouterr().err
    assert len(list(read_items("next.jsonl"))) == 80


def test_replies_that_lack_some_ratings(folder: Path) -> None:
    """40 contexts of two systems, each reply with one of three ratings: 160 are missing. The curve
    counts replies, so that a width that one rating each suffices for needs none more."""
    with pytest.warns(RejoinderWarning, match="not even ratings of all replies suffice"):
        result = rejoinder.plan(replies(rated=40), width=0.01, ratings_per_reply=3)
    assert (len(result.items), result.ratings) == (80, 160)
    wide = rejoinder.plan(replies(rated=40), width=50, ratings_per_reply=3)
    assert wide.needed_for_width is not None
    assert (wide.needed_for_width.more, wide.ratings) == (0, 0)


def test_no_reply_of_an_uneven_set_is_lost(folder: Path) -> None:
    uneven = [item for n, item in enumerate(replies(30)) if item.system == "y" or n < 6]
    with pytest.warns(RejoinderWarning, match="all that are left are chosen"):
        result = rejoinder.plan(uneven, width=0.001, question="mean", sd=1)
    assert Counter(item.system for item in result.items) == {"x": 3, "y": 30}


def test_a_width_never_asks_for_a_part_of_a_reply(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each reply costs 50 ratings, and what a width needs ends with a whole one."""
    write("rated.jsonl", replies(rated=12, people=tuple(f"p{n}" for n in range(49))))
    found = planned(capfd, "rated.jsonl", "--width", "0.8", "--ratings-per-reply", "50")
    assert found["needed_for_width"]["more"] == found["ratings"] > 0


def test_ratings_from_before_the_first_plan(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They have no probability yet, and an averaged rating may be 0."""
    before = [
        msgspec.structs.replace(item, ratings=0.0) if n < 2 else item
        for n, item in enumerate(replies())
    ]
    write("before.jsonl", before)
    assert run(["plan", "before.jsonl", "--budget", "4", "-o", "next.jsonl"]) == 0
    assert "other inclusion probabilities" in capfd.readouterr().err
    # ratings of a system that the plan is not about keep theirs
    other = [item for item in before if item.system == "y" or item.ratings is not None]
    other = [i for i in other if i.system == "x" or i.ratings is None]
    write("other.jsonl", other)
    arguments = ["other.jsonl", "--budget", "4", "--system", "y", "-o", "next.jsonl"]
    assert run(["plan", *arguments]) == 0
    assert "other inclusion probabilities" not in capfd.readouterr().err
