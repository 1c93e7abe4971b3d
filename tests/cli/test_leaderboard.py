"""``leaderboard`` on real command lines: standings, JSON, page, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

import rejoinder
from browser import opened
from docs.blocks import ROOT
from fitted import chatter, small_evaluator
from rejoinder.cli.main import run
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.items import Item
from rejoinder.verbs.monitor import RejoinderWarning

BOARD = """
title = "A <b>board</b>"

[[sets]]
name = "one"
label = "The first"
items = "one.jsonl"
scores = ["one-scores.jsonl"]
costs = ["costs.json"]

[[sets]]
name = "two"
items = "two.jsonl"
scores = ["two-scores.jsonl"]
"""
NOISE = {"good": 0.3, "poor": 3.0}


def write_set(name: str, noise: dict[str, float], seed: int, contexts: int = 80) -> list[Item]:
    """Two systems reply to each context; scores are ratings plus noise."""
    rng = np.random.default_rng(seed)
    items, scores = [], []
    for number in range(contexts):
        for system in ("x", "y"):
            rating = float(rng.normal())
            identity = f"{number}{system}"
            items.append(
                Item(identity, "fine", [f"how is number {number}"], system, ratings=[rating])
            )
            scores += [
                {"id": identity, "metric": metric, "value": rating + sd * float(rng.normal())}
                for metric, sd in noise.items()
            ]
    write_jsonl_file(f"{name}.jsonl", items)
    write_jsonl_file(f"{name}-scores.jsonl", scores)
    return items


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_set("one", NOISE, 1)
    write_set("two", NOISE, 2)
    costs = {"good": {"replies": 160, "seconds": 0.8}}
    (tmp_path / "costs.json").write_text(json.dumps({"costs": costs}))
    (tmp_path / "board.toml").write_text(BOARD)
    return tmp_path


def board(capfd: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    code = run(["leaderboard", "board.toml", "--resamples", "300", "--json", *more])
    printed, messages = capfd.readouterr()
    assert code == 0, messages
    made: dict[str, Any] = json.loads(printed)
    return made


def test_the_example_of_the_docs(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "leaderboard.md").read_text("utf-8")
    (folder / "sets.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
    for name in ("convai2", "dstc7"):
        write_set(name, NOISE, 3)
    items = [json.loads(line) for line in Path("dstc7.jsonl").read_text().splitlines()]
    write_jsonl_file(
        "dstc7.jsonl", [{**i, "system": "Human" if i["system"] == "x" else "b"} for i in items]
    )
    colleague = [{**line, "metric": "colleague"} for line in lines("convai2-scores.jsonl")[::2]]
    write_jsonl_file("convai2-of-a-colleague.jsonl", colleague)
    (folder / "costs.json").rename("convai2-costs.json")
    command = text.partition("```sh\n")[2].partition("\n")[0]
    assert command == "rejoinder leaderboard sets.toml -o leaderboard.html"
    assert run(command.split()[1:]) == 0
    printed, messages = capfd.readouterr()
    assert "colleague (fitted to these ratings)" in printed
    assert messages.startswith("ranks: ")
    assert b"A judge of the last turn." in Path("leaderboard.html").read_bytes()


def on_set(made: dict[str, Any], number: int, metric: str) -> dict[str, Any]:
    rows = made["sets"][number]["metrics"]
    return next(row for row in rows if row["metric"] == metric)


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def test_figures_equal_those_of_meta(capfd: pytest.CaptureFixture[str]) -> None:
    made = board(capfd)
    result = rejoinder.meta("one.jsonl", scores="one-scores.jsonl", resamples=300)
    for each in result.results:
        row = on_set(made, 0, each.metric)
        assert row["spearman"]["value"] == pytest.approx(each.correlations.spearman.value)
        assert row["spearman"]["low"] == pytest.approx(each.correlations.spearman.low)
        assert row["kendall"]["value"] == pytest.approx(each.correlations.kendall.value)
    assert [place["metric"] for place in made["overall"]] == ["good", "poor"]
    assert [place["ranks"] for place in made["overall"]] == [[1, 1], [2, 2]]
    facts = {each["metric"]: each for each in made["metrics"]}
    assert facts["good"]["seconds"] == pytest.approx(5.0)  # .8 s for 160 replies: 5 s for 1,000
    assert facts["poor"]["seconds"] is None


def test_a_file_that_lacks_items_is_shown_with_its_coverage_and_not_ranked(
    capfd: pytest.CaptureFixture[str],
) -> None:
    some = [line for line in lines("one-scores.jsonl") if line["metric"] == "good"][:40]
    write_jsonl_file("part.jsonl", [{**line, "metric": "part"} for line in some])
    Path("board.toml").write_text(
        BOARD.replace('"one-scores.jsonl"', '"one-scores.jsonl", "part.jsonl"')
    )
    row = on_set(board(capfd), 0, "part")
    assert (row["scored"], row["coverage"], row["standing"], row["ranks"]) == (
        40, 0.25, "incomplete", None,
    )  # fmt: skip
    assert run(["leaderboard", "board.toml", "--resamples", "300"]) == 0
    assert "part (scored 25 % of the replies)" in capfd.readouterr().out


def test_a_metric_fitted_to_the_ratings_is_ranked_apart(capfd: pytest.CaptureFixture[str]) -> None:
    note = '\n[[metrics]]\nname = "good"\nfitted_to = ["one"]\nchosen_on = ["two"]\n'
    Path("board.toml").write_text(BOARD + note)
    made = board(capfd)
    assert (on_set(made, 0, "good")["standing"], on_set(made, 0, "good")["ranks"]) == (
        "fitted", [1, 1],
    )  # fmt: skip
    assert on_set(made, 0, "poor")["ranks"] == [1, 1]  # alone among those that are ranked
    assert on_set(made, 1, "good")["standing"] == "chosen"
    assert [row["metric"] for row in made["overall"]] == ["poor"]


def test_sets_that_were_chosen_on_do_not_count_for_the_mean(
    capfd: pytest.CaptureFixture[str],
) -> None:
    Path("board.toml").write_text(BOARD.replace('name = "two"', 'name = "two"\nchosen_on = true'))
    made = board(capfd)
    assert made["overall_sets"] == ["one"]
    value = on_set(made, 0, "good")["spearman"]["value"]
    assert made["overall"][0]["value"] == pytest.approx(value)


def test_lower_is_better(capfd: pytest.CaptureFixture[str]) -> None:
    first = on_set(board(capfd), 0, "good")["spearman"]["value"]
    turned = [{**line, "value": -line["value"]} for line in lines("one-scores.jsonl")]
    write_jsonl_file("one-scores.jsonl", turned)
    note = "".join(f'\n[[metrics]]\nname = "{name}"\nlower_is_better = true\n' for name in NOISE)
    Path("board.toml").write_text(BOARD + note)
    assert on_set(board(capfd), 0, "good")["spearman"]["value"] == pytest.approx(first)


def test_systems_can_be_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    Path("board.toml").write_text(BOARD.replace('name = "two"', 'name = "two"\nwithout = ["y"]'))
    made = board(capfd)
    assert (made["sets"][1]["replies"], made["sets"][1]["systems"]) == (80, 1)
    assert on_set(made, 1, "good")["coverage"] == 1


def test_contamination_of_an_evaluator(capfd: pytest.CaptureFixture[str], folder: Path) -> None:
    """Two of four contexts of the second set end with utterances of the evaluator's logs."""
    evaluator = small_evaluator()
    known = list(dict.fromkeys(each["utterance"] for each in chatter()))[:2]
    turns = [*known, "what do whales eat at night", "who painted this old bridge"]
    items = [
        Item(f"{n}{system}", "fine", [turn], system, ratings=[float(n + len(system))])
        for n, turn in enumerate(turns)
        for system in ("x", "yy")
    ]
    write_jsonl_file("two.jsonl", items)
    name = rejoinder.Evaluator(evaluator)
    scores = [
        {"id": item.id, "metric": "vbleu", "value": n % 3, "signature": f"evaluator:{name}"}
        for n, item in enumerate(items)
    ]
    write_jsonl_file("two-scores.jsonl", scores)
    made = board(capfd, "--evaluator", str(evaluator))
    by_set = {row["set"]: row for row in made["contamination"]}
    assert (by_set["two"]["contexts"], by_set["two"]["exact"]) == (4, 2)
    assert by_set["one"]["contexts"] == 80
    assert on_set(made, 1, "vbleu")["seen_contexts"] == 2
    facts = next(each for each in made["metrics"] if each["metric"] == "vbleu")
    assert "pairs of " in facts["trained_on"]
    assert "evaluator" in facts["needs"]


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (("scores = [\"one-scores.jsonl\"]", "scores = []"), 3, "set 'one' has no scores"),
        (('name = "two"', 'name = "one"'), 3, "two sets are named 'one'"),
        (('items = "one.jsonl"', 'items = "none.jsonl"'), 3, "none.jsonl: "),
        (('name = "two"', 'name = "two"\nwithout = ["z"]'), 3, "no reply is of the system 'z'"),
        (('name = "two"', 'name = "two"\nlable = "x"'), 3, "lable"),
        (('title = ', 'title = 3 #'), 3, "title"),
        (('scores = ["two-scores.jsonl"]', 'scores = ["one-scores.jsonl", "one-scores.jsonl"]'),
         3, "good is in another file of scores of this set, too"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_file(
    change: tuple[str, str], code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = BOARD.replace(*change)
    assert text != BOARD
    Path("board.toml").write_text(text)
    assert run(["leaderboard", "board.toml", "-o", "page.html"]) == code
    assert message in capfd.readouterr().err
    assert not Path("page.html").exists()


def test_all_problems_of_the_file_are_named_at_once(capfd: pytest.CaptureFixture[str]) -> None:
    notes = '\n[[metrics]]\nname = "m"\nfitted_to = ["on"]\nseconds = -1\n'
    Path("board.toml").write_text(BOARD.replace('["two-scores.jsonl"]', "[]") + notes)
    assert run(["leaderboard", "board.toml"]) == 3
    error = capfd.readouterr().err
    assert "set 'two' has no scores" in error
    assert "metric 'm': no set is named 'on': did you mean 'one'?" in error
    assert "metric 'm': seconds is -1; expected 0 or more" in error


def test_scores_of_other_items_are_refused(capfd: pytest.CaptureFixture[str]) -> None:
    with Path("one-scores.jsonl").open("a") as file:
        file.write('{"id": "no", "metric": "good", "value": 1}\n')
    assert run(["leaderboard", "board.toml"]) == 3
    assert "one-scores.jsonl:321: the item 'no' is not in the items" in capfd.readouterr().err


def test_a_calibrated_metric_must_say_to_what_it_was_fitted(
    capfd: pytest.CaptureFixture[str],
) -> None:
    name = "calibrated(model=cal)"
    scores = [
        {**line, "metric": name} for line in lines("one-scores.jsonl") if line["metric"] == "good"
    ]
    write_jsonl_file("cal.jsonl", scores)
    text = BOARD.replace('"one-scores.jsonl"', '"one-scores.jsonl", "cal.jsonl"')
    Path("board.toml").write_text(text)
    assert run(["leaderboard", "board.toml"]) == 3
    assert f"board.toml: '{name}' was fitted to ratings: add [[metrics]]" in capfd.readouterr().err
    Path("board.toml").write_text(f'{text}\n[[metrics]]\nname = "{name}"\nfitted_to = []\n')
    assert on_set(board(capfd), 0, name)["standing"] == "ranked"


@pytest.mark.parametrize("name", ["board.toml", "one.jsonl", "two-scores.jsonl", "costs.json"])
def test_no_input_is_overwritten(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = Path(name).read_bytes()
    assert run(["leaderboard", "board.toml", "-o", name]) == 2
    assert f"{name}: the output would overwrite the input" in capfd.readouterr().err
    assert Path(name).read_bytes() == before


def test_a_set_without_ratings_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    write_jsonl_file("two.jsonl", [Item("0x", "fine", ["hello"], "x")])
    assert run(["leaderboard", "board.toml"]) == 3
    assert "two.jsonl: no reply has a rating" in capfd.readouterr().err


def test_a_described_metric_without_scores_is_a_warning() -> None:
    Path("board.toml").write_text(BOARD + '\n[[metrics]]\nname = "absent"\n')
    with pytest.warns(RejoinderWarning, match="no file of scores has the metric 'absent'"):
        rejoinder.leaderboard("board.toml", resamples=100)


@pytest.mark.xdist_group("browser")
def test_the_page_sorts_and_loads_nothing(browser: Browser) -> None:
    result = rejoinder.leaderboard("board.toml", output="page.html", resamples=200)
    assert Path("page.html").read_bytes() == result.html
    address = Path("page.html").absolute().as_uri()
    with opened(browser, address) as (page, complaints, asked):
        assert page.locator("h1").inner_text() == "A <b>board</b>"
        first = page.locator("#set-1 tbody th").all_inner_texts()
        assert [text.strip() for text in first] == ["good", "poor"]
        page.locator("#set-1 thead button", has_text="Spearman").click()
        turned = page.locator("#set-1 tbody th").all_inner_texts()
        assert [text.strip() for text in turned] == ["poor", "good"]
        page.locator("#matrix thead button", has_text="Metric").focus()
        page.keyboard.press("Enter")
        head = page.locator("#matrix thead th").first
        assert head.get_attribute("aria-sort") == "ascending"
        assert complaints == []
        assert asked == [address]
    with opened(browser, address, width=390) as (page, complaints, _):
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert complaints == []
