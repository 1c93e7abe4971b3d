"""``estimate`` on real command lines: its JSON, its words, and what goes wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from rejoinder.cli.main import run
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.items import Item

Change = Callable[[Item], Item]


def replies(change: Change = lambda item: item) -> list[Item]:
    """100 contexts with replies of three systems, every third of which two people rated from 1 to
    5; x is the best."""
    rng = np.random.default_rng(5)
    items = []
    for number in range(100):
        hard = rng.normal()
        for place, system in enumerate("xyz"):
            quality = 3.4 - 0.6 * place + 0.5 * hard + rng.normal()
            rate = (number + place) % 3 == 0
            noise = rng.normal(0, 0.4, 2)
            ratings = {
                name: float(np.clip(np.rint(quality + off), 1, 5))
                for name, off in zip(("ann", "bob"), noise, strict=True)
            }
            item = Item(
                id=f"{number}{system}",
                response=f"{quality + rng.normal(0, 0.5):.3f}",
                context=[f"say {number}"],
                system=system,
                ratings=ratings if rate else None,
            )
            items.append(change(item))
    return items


def write(items: list[Item], metrics: tuple[str, ...] = ("m",)) -> None:
    """The metric's scores are the numbers that the replies consist of."""
    write_jsonl_file("items.jsonl", items)
    rng = np.random.default_rng(8)
    scores = []
    for name in metrics:
        for item in items:
            value = float(item.response) if name == "m" else float(rng.normal())
            scores.append({"id": item.id, "metric": name, "value": value})
    write_jsonl_file("scores.jsonl", scores)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write(replies())
    return tmp_path


def estimated(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["estimate", "items.jsonl", "scores.jsonl", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def failed(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> str:
    """Return the message of a run that ends with this code and no traceback."""
    assert run(["estimate", "items.jsonl", "scores.jsonl", *arguments]) == code
    output = capsys.readouterr()
    assert "Traceback" not in output.err
    return output.err


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = estimated(capsys)
    assert [each["system"] for each in found["systems"]] == ["x", "y", "z"]
    for each in found["systems"]:
        assert each["ci"][0] < each["mean"] < each["ci"][1]
        people = each["people_only"]
        assert people["ci"][1] - people["ci"][0] > each["ci"][1] - each["ci"][0]
        assert each["metric_only"]["mean"] is not None
        assert each["ratings"] in (33, 34)
        assert each["effective_ratings"] > 40
    assert [(pair["a"], pair["b"]) for pair in found["pairs"]] == [
        ("x", "y"),
        ("x", "z"),
        ("y", "z"),
    ]
    means = {each["system"]: each["mean"] for each in found["systems"]}
    for pair in found["pairs"]:
        assert pair["difference"] == pytest.approx(means[pair["a"]] - means[pair["b"]])
        assert pair["ci"][0] < pair["difference"] < pair["ci"][1]
        assert 0 <= pair["p"] <= pair["p_adjusted"] <= 1
    assert (found["people"]["number"], found["people"]["ratings"]) == (2, 200)
    assert found["people"]["alpha"] > 0.5
    assert found["ratings"] == 100 < found["effective_ratings"]


def test_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", "items.jsonl", "scores.jsonl", "--svg", "e.svg"]) == 0
    output = capsys.readouterr()
    assert "with the metric, your 100 rated replies are worth 1" in output.err
    assert "200 ratings of 2 people from 1 to 5" in output.err
    assert "people alone" in output.out
    svg = Path("e.svg").read_text()
    assert svg.count("metric alone") >= 3 and "x: both" in svg


def test_several_metrics_are_averaged(capsys: pytest.CaptureFixture[str]) -> None:
    """A worthless metric beside a good one costs some of its worth; -m leaves it out."""
    alone = estimated(capsys)
    write(replies(), ("m", "noise"))
    both, good = estimated(capsys), estimated(capsys, "-m", "m")
    worthless = estimated(capsys, "-m", "noise")
    assert both["metrics"] == ["m", "noise"]
    assert good == alone
    effective = [each["effective_ratings"] for each in (worthless, both, good)]
    assert effective == sorted(effective)
    assert effective[0] == pytest.approx(100, rel=0.08)


def test_isotonic_and_replies(capsys: pytest.CaptureFixture[str]) -> None:
    linear = estimated(capsys)
    isotonic = estimated(capsys, "--method", "isotonic", "--folds", "10")
    these = estimated(capsys, "--target", "replies")
    sure = estimated(capsys, "--confidence", "0.8")
    rows = [each["systems"] for each in (linear, isotonic, these, sure)]
    for a, b, c, d in zip(*rows, strict=True):
        width = a["ci"][1] - a["ci"][0]
        assert b["mean"] == pytest.approx(a["mean"], abs=0.15)
        assert b["ci"][1] - b["ci"][0] == pytest.approx(width, rel=0.25)
        assert c["mean"] == a["mean"]
        assert c["ci"][1] - c["ci"][0] < width
        assert d["ci"][1] - d["ci"][0] < 0.7 * width
    assert (isotonic["method"], these["target"], sure["confidence"]) == (
        "isotonic",
        "replies",
        0.8,
    )


def test_inclusion_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    """Good replies of x were chosen three times as often; their weights make up for it."""
    everything = replies()
    rng = np.random.default_rng(2)
    truth = [float(item.response) for item in everything]
    items = []
    for item, value in zip(everything, truth, strict=True):
        chance = 0.6 if value > 3 else 0.2
        rated = rng.random() < chance
        rating = float(np.clip(np.rint(value), 1, 5)) if rated else None
        items.append(msgspec.structs.replace(item, ratings=rating, inclusion_probability=chance))
    write(items, ("noise",))
    known = estimated(capsys)
    write([msgspec.structs.replace(i, inclusion_probability=None) for i in items], ("noise",))
    unknown = estimated(capsys)
    for system in "xyz":
        own = [v for item, v in zip(items, truth, strict=True) if item.system == system]
        true = np.clip(np.rint(own), 1, 5).mean()
        a, b = (
            next(each for each in found["systems"] if each["system"] == system)
            for found in (known, unknown)
        )
        assert a["ci"][0] < true < a["ci"][1]
        assert b["mean"] - true > 0.2


def test_ratings_with_and_without_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    """The first ten contexts were rated before the plan that gives the others theirs; x is known
    throughout, and of y nothing is."""

    def change(item: Item) -> Item:
        known = item.system == "x" or (item.system == "z" and int(item.id[:-1]) >= 10)
        return msgspec.structs.replace(item, inclusion_probability=0.3 if known else None)

    write(replies(change))
    notes = [note for note in estimated(capsys)["notes"] if "inclusion_probability" in note]
    # z is rated in every third context, (n + 2) % 3 == 0: in 1, 4, 7 of the first ten, 33 in all
    assert len(notes) == 1 and notes[0].startswith("z: 3 of 33 rated replies have no")
    assert "--all" in notes[0]


def test_rated_replies_that_are_not_a_random_draw(capsys: pytest.CaptureFixture[str]) -> None:
    def best(item: Item) -> Item:
        rating = 4.0 if float(item.response) > 3.6 else 5.0
        chosen = float(item.response) > 3.3
        return msgspec.structs.replace(item, ratings=rating if chosen else None)

    write(replies(best))
    assert run(["estimate", "items.jsonl", "scores.jsonl"]) == 0
    assert "have other scores than the rest" in capsys.readouterr().err


def rated(rating: Any) -> Change:
    return lambda item: msgspec.structs.replace(item, ratings=rating)


def test_no_rated_item(capsys: pytest.CaptureFixture[str]) -> None:
    write(replies(rated(None)))
    assert "no item has ratings" in failed(capsys, 3)


def test_one_rated_item(capsys: pytest.CaptureFixture[str]) -> None:
    write(replies(lambda item: rated(3.0 if item.id == "0x" else None)(item)))
    assert "one item has ratings" in failed(capsys, 3)


def test_all_ratings_equal(capsys: pytest.CaptureFixture[str]) -> None:
    write(replies(rated({"ann": 3.0})))
    assert "all 300 ratings are 3" in failed(capsys, 3)


def test_one_system_rated_only(capsys: pytest.CaptureFixture[str]) -> None:
    """Of the others there is the metric's word, and no estimate."""
    write(replies(lambda item: item if item.system == "x" else rated(None)(item)))
    found = estimated(capsys)
    x, y, z = found["systems"]
    assert x["ci"] is not None
    for each in (y, z):
        assert each["mean"] is each["ci"] is each["effective_ratings"] is None
        assert each["people_only"] == {"mean": None, "ci": None}
        assert each["metric_only"]["mean"] is not None
    assert found["pairs"] == []
    assert "y, z: no reply is rated" in "\n".join(found["notes"])
    assert run(["estimate", "items.jsonl", "scores.jsonl"]) == 0
    assert "only the metric's word" in capsys.readouterr().err


def test_a_system_with_equal_ratings_has_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    write(replies(lambda item: rated(5.0)(item) if item.system == "x" else item))
    found = estimated(capsys)
    assert found["systems"][0]["mean"] == pytest.approx(5, abs=1e-3)
    assert found["systems"][0]["ci"] is None
    assert [pair["p"] is None for pair in found["pairs"]] == [True, True, False]
    assert "x: all 100 ratings are 5" in "\n".join(found["notes"])


def test_the_metric_alone_says_nothing_that_no_rated_score_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Scores of replies without ratings only: nothing brings them to the scale of the ratings."""
    for method in ("linear", "isotonic"):
        items = replies()
        write_jsonl_file(
            "scores.jsonl",
            [
                {"id": item.id, "metric": "m"}
                | ({"value": 1.0 * n} if item.ratings is None else {"value": None, "unscored": "-"})
                for n, item in enumerate(items)
            ],
        )
        found = estimated(capsys, "--method", method)
        assert [each["metric_only"] for each in found["systems"]] == 3 * [
            {"mean": None, "ci": None}
        ]
        assert all(each["mean"] == each["people_only"]["mean"] for each in found["systems"])
        assert run(["estimate", "items.jsonl", "scores.jsonl", "--svg", "means.svg"]) == 0
        assert "metric alone" not in Path("means.svg").read_text()
        capsys.readouterr()


def test_equal_differences_have_no_interval(capsys: pytest.CaptureFixture[str]) -> None:
    """y is 1 below x in all rated contexts; nothing says by how much differences vary."""
    items = [
        Item(f"{n}{s}", f"{n}", [f"say {n}"], s, ratings=n % 3 + (s == "x") if n < 6 else None)
        for n in range(20)
        for s in "xy"
    ]
    write(items)
    found = estimated(capsys)
    (pair,) = found["pairs"]
    assert pair["difference"] == pytest.approx(1)
    assert pair["ci"] is pair["p"] is pair["p_adjusted"] is pair["people_only"]["ci"] is None
    assert [each["ci"] is None for each in found["systems"]] == [False, False]
    assert "x and y: their ratings differ alike" in "\n".join(found["notes"])
    assert [each["group"] for each in found["systems"]] == ["a", "a"]
    assert run(["estimate", "items.jsonl", "scores.jsonl"]) == 0


def test_ratings_on_different_scales(capsys: pytest.CaptureFixture[str]) -> None:
    def percent(item: Item) -> Item:
        if not isinstance(item.ratings, dict):
            return item
        return rated({**item.ratings, "bob": 20 * item.ratings["bob"]})(item)

    write(replies(percent))
    message = failed(capsys, 3)
    assert "'ann' go from 1 to 5, those of 'bob' from 20 to 100" in message
    assert "--scale" in message
    assert "which is not on the scale from 1 to 5" in failed(capsys, 3, "--scale", "1:5")
    estimated(capsys, "--scale", "0:100")  # their reader says that it is one


def test_scores_that_lack_rated_items(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("scores.jsonl").read_text().splitlines(keepends=True)
    Path("scores.jsonl").write_text("".join(lines[:-1]))
    message = failed(capsys, 3)
    assert "1 of 300 items, the first is '99z', have no score by m in scores.jsonl" in message
    # an item that could not be scored is said, and counts as an average one
    Path("scores.jsonl").write_text(
        "".join(lines[:-1]) + '{"id": "99z", "metric": "m", "value": null, "unscored": "x"}\n'
    )
    found = estimated(capsys)
    assert found["unscored"] == 1
    assert "1 of 300 replies have no score" in "\n".join(found["notes"])


def test_fewer_contexts_than_folds(capsys: pytest.CaptureFixture[str]) -> None:
    write(replies(lambda item: item if int(item.id[:-1]) < 3 else rated(None)(item)))
    message = failed(capsys, 3, "--method", "isotonic")
    assert "3 contexts, fewer than 5 folds" in message
    assert "--folds 3" in message
    estimated(capsys, "--method", "isotonic", "--folds", "3")
    estimated(capsys)  # lines need no folds


def test_one_person(capsys: pytest.CaptureFixture[str]) -> None:
    def one(item: Item) -> Item:
        return rated({"ann": item.ratings["ann"]} if isinstance(item.ratings, dict) else None)(item)

    write(replies(one))
    found = estimated(capsys)
    assert found["people"] == {"number": 1, "ratings": 100, "low": 1, "high": 5, "alpha": None}
    assert "nothing is known about agreement" in "\n".join(found["notes"])


def test_no_scores_of_single_replies(capsys: pytest.CaptureFixture[str]) -> None:
    Path("scores.jsonl").write_text(
        '{"id": "x", "metric": "distinct", "value": 0.1, "level": "system"}\n'
    )
    assert "holds no scores of single replies" in failed(capsys, 3)
    assert "scores sets of replies" in failed(capsys, 2, "-m", "distinct")


@pytest.mark.parametrize(
    "arguments,words",
    [
        (["-m", "n"], "no metric 'n'"),
        (["--scale", "5"], "expected LOW:HIGH"),
        (["--scale", "5:1"], "lowest and the highest"),
        (["--confidence", "2"], "confidence"),
        (["--folds", "1"], "folds"),
        (["--method", "ordinal"], "method"),
        (["--target", "people"], "target"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert words in failed(capsys, 2, *arguments)


def test_swapped_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["estimate", "scores.jsonl", "items.jsonl"]) == 2
    assert "looks like scores" in capsys.readouterr().err


def test_a_metric_learnt_from_these_ratings(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("scores.jsonl").read_text().replace('"m"', '"calibrated(model=c)"')
    Path("scores.jsonl").write_text(text)
    assert run(["estimate", "items.jsonl", "scores.jsonl"]) == 0
    assert "the intervals are too narrow" in capsys.readouterr().err
