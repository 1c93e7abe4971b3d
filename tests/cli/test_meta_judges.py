"""What ``rejoinder meta`` says about judges: tables, JSON, messages and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Run

JUDGE = "judge(url=http://127.0.0.1:9/v1,model=qwen3)"
SEEDED = "judge(seed=1,url=http://127.0.0.1:9/v1,model=qwen3)"
SIGNATURE = "judge|model:qwen3|scale:1-5|seed:{seed}|version:0"
FAST = ("--resamples", "200")


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def judged(
    items: list[dict[str, Any]], metric: str, seed: int, rate: Callable[[int], float]
) -> list[dict[str, Any]]:
    return [
        {
            "id": item["id"],
            "metric": metric,
            "value": rate(number),
            "signature": SIGNATURE.format(seed=seed),
            "judging": {"answers": 1, "spread": 0.0, "requests": 1, "tokens": 200, "seconds": 0.5},
        }
        for number, item in enumerate(items)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty contexts with replies of two systems; a judge that likes the length of a reply and
    its own model."""
    rng = np.random.default_rng(0)
    items: list[dict[str, Any]] = []
    quality = rng.normal(3, 1, 80)
    lengths = rng.integers(5, 60, 80)
    for n in range(80):
        rating = np.clip(np.rint(quality[n] + rng.normal(0, 0.6, 4)), 1, 5)
        items.append(
            {
                "id": str(n),
                "context": [f"turn {n // 2}", "well ?"],
                "response": "x" * int(lengths[n]),
                "system": ("openai(url=http://127.0.0.1:9/v1,model=qwen3)", "hred")[n % 2],
                "ratings": {f"ann{k}": float(rating[k]) for k in range(4)},
            }
        )
    biased = quality + rng.normal(0, 0.3, 80) + 0.05 * lengths + (np.arange(80) % 2 == 0)
    fair = quality + rng.normal(0, 0.3, 80)
    write(tmp_path / "items.jsonl", items)
    write(
        tmp_path / "scores.jsonl",
        judged(items, JUDGE, 0, lambda n: float(np.clip(biased[n], 1, 5)))
        + judged(items, SEEDED, 1, lambda n: float(np.clip(fair[n], 1, 5)))
        + [
            {"id": item["id"], "metric": "rouge-l", "value": n % 7 / 7}
            for n, item in enumerate(items)
        ],
    )
    write(tmp_path / "again.jsonl", judged(items, SEEDED, 1, lambda n: float(round(fair[n]))))
    averaged = [item | {"ratings": list(item["ratings"].values())} for item in items]
    write(tmp_path / "unnamed.jsonl", averaged)
    write(
        tmp_path / "answers.jsonl",
        [
            {"a": "0", "b": "1", "winner": "tie", "annotator": "judge-pairs", "orders": [x, y]}
            for x, y in ("ab", "ab", "aa", "ba")
        ],
    )
    return tmp_path


def reviewed(done: Any) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["judges"]
    return found


def test_tables_have_80_columns_and_say_what_was_planted(run: Run, folder: Path) -> None:
    done = run("meta", "items.jsonl", "scores.jsonl", *FAST, "--answers", "answers.jsonl")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert max(map(len, lines)) <= 80
    titles = [line for line in lines if line and not line.startswith(" ")]
    for title in (
        "May it stand in for an annotator?",
        "Biases: what scores say beyond people's ratings",
        "Asked again: agreement of a judge with itself",
        "Cost of 1,000 replies",
        "Position bias",
    ):
        assert any(line.startswith(title) for line in titles), titles
    assert "1 metric was mapped to the scale of people" in done.stderr.decode()


def test_json_says_what_was_planted(run: Run, folder: Path) -> None:
    found = reviewed(run("meta", "items.jsonl", "scores.jsonl", "--json", *FAST))
    biased, fair, words = found["reviews"]
    assert [each["judge"] for each in found["reviews"]] == [True, True, False]
    assert biased["length"]["ci"][0] > 0.3
    assert fair["length"]["ci"][0] < 0 < fair["length"]["ci"][1]
    assert biased["own"]["systems"] == ["openai(url=http://127.0.0.1:9/v1,model=qwen3)"]
    assert biased["own"]["difference"]["ci"][0] > 0.05
    assert fair["own"]["difference"]["ci"][0] < 0 < fair["own"]["difference"]["ci"][1]
    assert fair["alternative"]["passed"] and not words["alternative"]["passed"]
    assert [each["alternative"]["mapped"] for each in found["reviews"]] == [False, False, True]
    assert fair["middle"]["ratio"]["ci"][0] < 1.3
    assert words["middle"] is None and words["own"] is None and words["cost"] is None
    # the same question with two seeds
    assert biased["repeatability"] == fair["repeatability"]
    assert biased["repeatability"]["runs"] == 2 and words["repeatability"] is None
    # 1 request, 200 tokens and half a second a reply
    assert (fair["cost"]["requests"], fair["cost"]["tokens"]) == (1000, 200_000)
    points = 100 * fair["spearman"]["value"]
    assert fair["cost"]["seconds_per_point"] == pytest.approx(500 / points)
    assert found["refused"] is None and not found["constant"]["passed"]


def test_ratings_without_names_are_no_test(run: Run, folder: Path) -> None:
    """The place of a rating in a list says nothing about who gave it."""
    done = run("meta", "unnamed.jsonl", "scores.jsonl", "--json", *FAST)
    found = reviewed(done)
    assert "name no annotator" in found["refused"]
    assert found["constant"] is None
    assert all(each["alternative"] is None for each in found["reviews"])
    assert all(each["length"]["value"] is not None for each in found["reviews"])
    done = run("meta", "unnamed.jsonl", "scores.jsonl", *FAST)
    assert "no alternative-annotator test: the ratings name no annotator" in done.stderr.decode()


def test_a_second_run_and_the_position_of_pairs(run: Run, folder: Path) -> None:
    done = run(
        *("meta", "items.jsonl", "scores.jsonl", "--json", *FAST),
        *("--again", "again.jsonl", "--answers", "answers.jsonl"),
    )
    found = reviewed(done)
    # two seeds, and the second run of one of them
    assert [each["repeatability"]["runs"] for each in found["reviews"][:2]] == [2, 3]
    (position,) = found["position"]
    # a b, a b: first twice; a a: the same reply; b a: second twice → (2 + 2 + 1 + 0) / 8
    assert (position["pairs"], position["consistent"]) == (4, 1)
    assert (position["first"], position["second"]) == (2, 1)
    assert position["share_first"]["value"] == pytest.approx(5 / 8)


def test_without_a_judge_a_review_is_made_on_request(run: Run, folder: Path) -> None:
    words = [
        line for line in (folder / "scores.jsonl").read_text().splitlines() if "rouge-l" in line
    ]
    (folder / "words.jsonl").write_text("\n".join(words))
    plain = run("meta", "items.jsonl", "words.jsonl", "--json", *FAST)
    assert json.loads(plain.stdout)["judges"] is None
    found = reviewed(run("meta", "items.jsonl", "words.jsonl", "--json", "--as-judges", *FAST))
    assert [each["metric"] for each in found["reviews"]] == ["rouge-l"]


def test_costs_of_score_are_read_by_meta(run: Run, folder: Path) -> None:
    metrics = ("-m", "repetition", "-m", "self-similarity")
    done = run("score", "items.jsonl", *metrics, "-o", "s.jsonl", "--costs", "costs.json")
    assert done.returncode == 0, done.stderr
    costs = json.loads((folder / "costs.json").read_bytes())["costs"]
    assert [each["replies"] for each in costs.values()] == [80, 80]
    assert all(each["seconds"] > 0 and each["requests"] == 0 for each in costs.values())
    first = (folder / "s.jsonl").read_bytes()
    again = run("score", "items.jsonl", *metrics, "-o", "s.jsonl", "--costs", "costs.json")
    assert again.returncode == 0
    assert (folder / "s.jsonl").read_bytes() == first  # times are not in the scores
    costs = json.loads((folder / "costs.json").read_bytes())["costs"]
    options = ("--as-judges", "--costs", "costs.json", "--json", *FAST)
    for each in reviewed(run("meta", "items.jsonl", "s.jsonl", *options))["reviews"]:
        seconds = costs[each["metric"]]["seconds"]
        assert each["cost"]["seconds"] == pytest.approx(1000 * seconds / 80)
        assert each["cost"]["requests"] == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--own-system", "hrd"], 2, "--own-system hrd: no reply is of this system: did you mean"),
        (["--level", "system", "--as-judges"], 2, "--as-judges can only be used with level item"),
        (["--correct", "hred", "--costs", "c.json"], 2, "--costs c.json: with correct systems"),
        (["--epsilon", "0", "--level", "system"], 2, "--epsilon 0.0 can only be used with level"),
        (["--epsilon", "1.5"], 2, "1.5 is not in the range"),
        (["--costs", "items.jsonl"], 3, "items.jsonl: is not JSON"),
        (["--again", "items.jsonl"], 3, "items.jsonl:1:"),
        (["--answers", "unnamed.jsonl"], 3, "unnamed.jsonl:1:"),
        (["--answers", "plain.jsonl"], 3, "has no answer with 'orders'"),
    ],
)
def test_bad_options(run: Run, folder: Path, options: list[str], code: int, message: str) -> None:
    write(folder / "plain.jsonl", [{"a": "0", "b": "1", "winner": "a"}])
    done = run("meta", "items.jsonl", "scores.jsonl", *options)
    assert done.returncode == code, done.stderr
    assert message in done.stderr.decode().replace("\n  ", " ")
