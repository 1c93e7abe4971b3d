"""``rejoinder pairs``: plan, answer, plan again, fit; and wrong input."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rejoinder.pairwise.simulate import Judge
from support import Run

SIZE = 16
CONTEXTS = ("1", "2")


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def item(context: str, number: int, **more: Any) -> dict[str, Any]:
    words = ["no", "yes", "maybe", "well", "sure", "fine", "good", "never"]
    response = f"{words[number % 8]} {words[number // 8]} {context}"
    return {"id": f"{context}-{number}", "context_id": context, "response": response, **more}


def answer(winner: str, a: int, b: int, who: str | None = None, context: str = "1"):
    found = {"context_id": context, "a": f"{context}-{a}", "b": f"{context}-{b}", "winner": winner}
    return found if who is None else {**found, "annotator": who}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Candidates, the first two of each context distractors, and a test set."""
    write(
        tmp_path / "candidates.jsonl",
        [
            item(context, number, system="distractor" if number < 2 else f"bot-{number % 2}")
            for context in CONTEXTS
            for number in range(SIZE)
        ],
    )
    tested = [{"id": f"t{c}", "context_id": c, "response": f"good yes {c}"} for c in CONTEXTS]
    write(tmp_path / "tests.jsonl", tested)
    return tmp_path


def judges(names: tuple[str, ...] = ("ann", "bob", "cy")) -> dict[str, dict[str, Judge]]:
    """Who judge by the number of the candidate; the one called 'coin' judges by chance."""
    rng = np.random.default_rng(0)
    quality = np.arange(SIZE) / 2.0
    return {
        name: {c: Judge.of(quality * (name != "coin"), rng, noise=1.5) for c in CONTEXTS}
        for name in names
    }


def everything(people: dict[str, dict[str, Judge]]) -> list[dict[str, Any]]:
    return [
        answer("a" if judge.wins[i, j] else "b", i, j, name, context)
        for name, own in people.items()
        for context, judge in own.items()
        for i, j in combinations(range(SIZE), 2)
    ]


def test_plan_answer_and_plan_again(run: Run, folder: Path) -> None:
    """Rounds as people work: 30 % of the pairs, planned, tell the order of the candidates."""
    judge = judges(("ann",))["ann"]
    answers: list[dict[str, Any]] = []
    for share in ("0.1", "0.2", "0.3"):
        files = ["answers.jsonl"] if answers else []
        done = run("pairs", "plan", "candidates.jsonl", *files, "--share", share, "-o", "p.jsonl")
        assert done.returncode == 0, done.stderr
        for question in read(folder / "p.jsonl"):
            context = question["context_id"]
            i, j = (int(question[side].split("-")[1]) for side in "ab")
            answers.append({**question, "winner": "a" if judge[context].wins[i, j] else "b"})
        write(folder / "answers.jsonl", answers)
    pairs = SIZE * (SIZE - 1) // 2
    assert len(answers) == len(CONTEXTS) * round(0.3 * pairs)
    assert len({frozenset((a["a"], a["b"])) for a in answers}) == len(answers)
    done = run("pairs", "fit", "candidates.jsonl", "answers.jsonl", "-o", "rated.jsonl")
    assert done.returncode == 0, done.stderr
    ratings = [line["ratings"] for line in read(folder / "rated.jsonl")]
    for place, context in enumerate(CONTEXTS):
        own = ratings[place * SIZE : (place + 1) * SIZE]
        assert np.corrcoef(own, judge[context].rates)[0, 1] > 0.9
    assert all(len(line) <= 80 for line in done.stdout.decode().splitlines())
    assert b"bot-0" in done.stdout


def test_candidates_of_a_table_are_read_by_their_columns(run: Run, folder: Path) -> None:
    rows = [f"{c}-{n},{c},reply {n} to {c}" for c in CONTEXTS for n in range(4)]
    (folder / "candidates.csv").write_text("\n".join(["key,thread,said", *rows]) + "\n")
    columns = ("--columns", "id=key,context_id=thread,reply=said")
    plan = run("pairs", "plan", "candidates.csv", "-n", "6", "-o", "p.jsonl", *columns)
    assert plan.returncode == 0, plan.stderr
    write(folder / "answers.jsonl", [{**q, "winner": "a"} for q in read(folder / "p.jsonl")])
    for verb in ("fit", "curve"):
        files = ("pairs", verb, "candidates.csv", "answers.jsonl")
        refused = run(*files)
        assert refused.returncode == 3
        assert b"no column holds the response" in refused.stderr
        assert b"no column" not in run(*files, *columns).stderr


def test_a_plan_repeats_and_goes_to_stdout(run: Run, folder: Path) -> None:
    asked = ("pairs", "plan", "candidates.jsonl", "-n", "5")
    one, same = run(*asked), run(*asked)
    other = run(*asked, "--seed", "1", "--texts")
    assert one.stdout == same.stdout
    assert one.stdout != other.stdout
    lines = [json.loads(line) for line in one.stdout.splitlines()]
    assert len(lines) == 5
    # nothing is known of either context: they take turns
    assert [line["context_id"] for line in lines] == ["1", "2", "1", "2", "1"]
    assert set(lines[0]) == {"context_id", "a", "b"}
    assert b"5 pairs of 2 contexts" in one.stderr
    first = json.loads(other.stdout.splitlines()[0])
    assert {"context", "response_a", "response_b"} <= set(first)


def test_questions_are_assigned_to_annotators(run: Run, folder: Path) -> None:
    names = ("--annotator", "ann", "--annotator", "bob", "--shared", "0.5")
    done = run("pairs", "plan", "candidates.jsonl", "-n", "8", *names, "-o", "p.jsonl", "--json")
    assert json.loads(done.stdout) == {
        "pairs": 8,
        "questions": 12,
        "contexts": 2,
        "answers": 0,
        "per_context": {"1": 4, "2": 4},
    }
    annotators = [line["annotator"] for line in read(folder / "p.jsonl")]
    assert annotators.count("ann") == annotators.count("bob") == 6


def test_a_plan_with_fewer_pairs_says_so(run: Run, folder: Path) -> None:
    write(folder / "two.jsonl", [item("1", 0), item("1", 1)])
    done = run("pairs", "plan", "two.jsonl", "-n", "5")
    assert len(done.stdout.splitlines()) == 1
    assert b"4 fewer than asked for" in done.stderr
    write(folder / "a.jsonl", [answer("a", 0, 1)])
    assert run("pairs", "plan", "two.jsonl", "a.jsonl", "-n", "5").stdout == b""
    again = run("pairs", "plan", "two.jsonl", "a.jsonl", "-n", "5", "--again")
    assert len(again.stdout.splitlines()) == 1


def test_weights_for_delta_bleu(run: Run, folder: Path) -> None:
    write(folder / "a.jsonl", everything(judges()))
    done = run(
        *("pairs", "fit", "candidates.jsonl", "a.jsonl", "--by", "rate"),
        *("--into", "tests.jsonl", "-o", "weighted.jsonl", "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["into"] == {
        "items": 2,
        "references": 2 * SIZE,
        "replaced": 0,
        "without": 0,
        "unscored": 0,
    }
    first = read(folder / "weighted.jsonl")[0]
    weights = [reference["weight"] for reference in first["references"]]
    assert np.mean(weights) == pytest.approx(0, abs=1e-12)  # half of all comparisons are won
    assert weights[0] < -0.5 < 0.5 < weights[-1]
    done = run("score", "weighted.jsonl", "-m", "delta-bleu(n=1)")
    assert done.returncode == 0, done.stderr
    assert all(json.loads(line)["value"] is not None for line in done.stdout.splitlines())


def test_unreliable_annotators_are_listed_and_left_out(run: Run, folder: Path) -> None:
    write(folder / "a.jsonl", everything(judges(("ann", "bob", "cy", "coin"))))
    asked = ("pairs", "fit", "candidates.jsonl", "a.jsonl", "-o", "rated.jsonl")
    listed = run(*asked)
    assert listed.returncode == 0, listed.stderr
    assert b"unreliable: preferred a distractor" in b" ".join(listed.stderr.split())
    assert b"without those dropped" not in listed.stderr
    kept = (folder / "rated.jsonl").read_bytes()
    found = json.loads(run(*asked, "--drop-unreliable", "--json").stdout)
    assert [each["name"] for each in found["unreliable"]] == ["coin"]
    assert found["before"]["kappa"] < found["after"]["kappa"]
    assert found["after"]["answers"] == 0.75 * found["answers"]
    assert (folder / "rated.jsonl").read_bytes() != kept
    said = run(*asked, "--drop-annotator", "coin").stderr
    assert b"without those dropped: 720 answers of 3 named annotators" in said
    # with other limits no annotator is unreliable
    lenient = ("--min-kappa", "-1", "--max-distractor", "1", "--json")
    assert json.loads(run(*asked, *lenient).stdout)["unreliable"] == []


def test_disconnected_candidates_and_circular_triads_are_reported(run: Run, folder: Path) -> None:
    circle = [answer("a", 0, 1), answer("a", 1, 2), answer("a", 2, 0)]
    apart = [answer("a", 5, 6), answer("b", 6, 7)]
    twice = [answer("a", 8, 9, "ann"), answer("b", 8, 9, "ann"), answer("tie", 9, 10, "bob")]
    write(folder / "a.jsonl", [*circle, *apart, *twice])
    done = run("pairs", "fit", "candidates.jsonl", "a.jsonl", "-o", "rated.jsonl")
    assert done.returncode == 0, done.stderr
    said = done.stderr.decode()
    assert "23 of 32 candidates have no score: they were never compared" in said
    assert "1 contexts fall into parts that no comparison connects" in said
    assert "2 candidates always won, or lost" in said
    assert "1 of 1 triads are circular" in said
    assert "1 answers contradict an earlier one" in said
    lines = read(folder / "rated.jsonl")
    assert "ratings" not in lines[3]
    assert lines[8]["ratings"] == pytest.approx(0.5)
    strict = run("pairs", "fit", "candidates.jsonl", "a.jsonl", "-o", "no.jsonl", "--strict")
    assert strict.returncode == 3
    assert b"a.jsonl:7: 'ann' gave another answer to this pair in a.jsonl:6" in strict.stderr
    assert not (folder / "no.jsonl").exists()


def test_an_annotator_with_one_answer_is_marked(run: Run, folder: Path) -> None:
    people = everything(judges(("ann", "bob")))
    write(folder / "a.jsonl", [*people, answer("b", 0, 1, "once")])
    done = run("pairs", "fit", "candidates.jsonl", "a.jsonl", "-o", "r.jsonl", "--per-annotator")
    assert b"only one answer" in done.stderr
    first = read(folder / "r.jsonl")[0]
    assert set(first["ratings"]) == {"ann", "bob", "once"}
    # meta computes agreement from ratings by annotator
    rated = read(folder / "r.jsonl")
    scores = [{"id": line["id"], "metric": "m", "value": n} for n, line in enumerate(rated)]
    write(folder / "s.jsonl", scores)
    done = run("meta", "r.jsonl", "s.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["humans"]["annotators"] == 3


def test_curve(run: Run, folder: Path) -> None:
    write(folder / "a.jsonl", everything(judges(("ann", "bob"))))
    asked = ("pairs", "curve", "candidates.jsonl", "a.jsonl", "--draws", "3")
    found = json.loads(run(*asked, "--json").stdout)["curve"]
    assert found[-1]["share"] == 1
    assert found[-1]["within"] == pytest.approx(1)
    assert found[-1]["between"] < 1
    table = run(*asked, "--svg", "curve.svg").stdout.decode()
    assert "100%" in table
    assert all(len(line) <= 80 for line in table.splitlines())
    picture = ET.parse(folder / "curve.svg")
    lines = [e for e in picture.iter() if e.tag.endswith("polyline")]
    assert [len(line.attrib["points"].split()) for line in lines] == [len(found)] * 2
    (words,) = (e.text or "" for e in picture.iter() if e.tag.endswith("desc"))
    assert " at 2%, 1.000 at 100%. between annotators: " in words


@pytest.mark.parametrize(
    ("arguments", "complaints"),
    [
        (["plan", "candidates.jsonl"], ["either -n or --share"]),
        (["plan", "candidates.jsonl", "-n", "1", "--share", ".1"], ["either -n or --share"]),
        (
            ["plan", "candidates.jsonl", "--share", "2", "--annotator", "a", "--annotator", "a"],
            ["--share must be from 0 to 1, got 2", "--annotator a: given twice"],
        ),
        (["plan", "candidates.jsonl", "--share", "nan"], ["--share must be from 0 to 1, got nan"]),
        (
            ["plan", "candidates.jsonl", "--share", ".1", "--again"],
            ["--again needs -n: with --share"],
        ),
        (["plan", "-", "-", "-n", "1", "--json"], ["only one input", "add -o FILE"]),
        (
            ["fit", "candidates.jsonl", "a.jsonl", "--by", "bradly", "--min-kappa", "7"],
            ["--by bradly: did you mean 'bradley-terry'?", "--min-kappa must be from -1 to 1"],
        ),
        (["fit", "candidates.jsonl", "a.jsonl", "-o", "a.jsonl"], ["would overwrite the input"]),
        (["curve", "candidates.jsonl", "a.jsonl", "--svg", "-"], ["--svg -", "name a file"]),
        (
            ["fit", "candidates.jsonl", "a.jsonl", "--drop-annotator", "an"],
            ["--drop-annotator an: did you mean 'ann'?"],
        ),
        (
            ["fit", "candidates.jsonl", "a.jsonl", "--distractor", "plant"],
            ["--distractor plant: no reply is of this system"],
        ),
        (
            ["fit", "candidates.jsonl", "a.jsonl", "--into", "tests.jsonl", "--per-annotator"],
            ["choose one"],
        ),
    ],
)
def test_wrong_usage(run: Run, folder: Path, arguments: list[str], complaints: list[str]) -> None:
    write(folder / "a.jsonl", [answer("a", 0, 1, "ann")])
    done = run("pairs", *arguments)
    assert done.returncode == 2, done.stderr
    for complaint in complaints:
        assert complaint in done.stderr.decode()
    assert done.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["plan", "tests.jsonl", "-n", "1"], "no two candidates reply to the same context"),
        (["fit", "candidates.jsonl", "self.jsonl"], "self.jsonl:1: '1-0' is compared with itself"),
        (["fit", "candidates.jsonl", "none.jsonl"], "none.jsonl:1: b: '1-99' is not among"),
        (["fit", "candidates.jsonl", "empty.jsonl"], "the file is empty"),
        (["curve", "candidates.jsonl", "a.jsonl"], "a.jsonl: no answer names its annotator"),
        (
            ["fit", "candidates.jsonl", "ann.jsonl", "--drop-annotator", "ann"],
            "no answers are left",
        ),
        (
            ["fit", "candidates.jsonl", "a.jsonl", "--into", "elsewhere.jsonl"],
            "elsewhere.jsonl: no item replies to a context of a scored candidate",
        ),
    ],
)
def test_bad_data(run: Run, folder: Path, arguments: list[str], complaint: str) -> None:
    write(folder / "a.jsonl", [answer("a", 0, 1)])
    write(folder / "ann.jsonl", [answer("a", 0, 1, "ann")])
    write(folder / "self.jsonl", [answer("a", 0, 0)])
    write(folder / "none.jsonl", [answer("a", 0, 99)])
    write(folder / "empty.jsonl", [])
    write(folder / "elsewhere.jsonl", [{"id": "e", "context_id": "e", "response": "r"}])
    output = [] if arguments[0] == "curve" else ["-o", "out.jsonl"]
    done = run("pairs", *arguments, *output)
    assert done.returncode == 3, done.stderr
    assert complaint in done.stderr.decode()
    assert not list(folder.glob("*out.jsonl*"))


def test_simulated_judges_from_comparisons_to_estimates(run: Run, tmp_path: Path) -> None:
    """Everything that was made up can be read again, and the estimate follows the truth."""
    sizes = ("--contexts", "2", "--references", "25", "--tests", "15", "--seed", "7")
    done = run("pairs", "simulate", *sizes, "-o", "judges", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"candidates": 50, "answers": 2 * 2 * 300, "tests": 30}
    files = ("judges/candidates.jsonl", "judges/answers.jsonl")
    done = run("pairs", "fit", *files, "--into", "judges/tests.jsonl", "-o", "items.jsonl")
    assert done.returncode == 0, done.stderr
    done = run("score", "items.jsonl", "-m", "svr(d=wer,share=never)", "-o", "scores.jsonl")
    assert done.returncode == 0, done.stderr
    done = run("meta", "items.jsonl", "scores.jsonl", "--json")
    (result,) = json.loads(done.stdout)["results"]
    assert result["n"] == 30
    assert result["pearson"] > 0.3
    (tmp_path / "file").write_text("")
    done = run("pairs", "simulate", "-o", "file/inside")
    assert done.returncode == 2
    assert b"cannot be made" in done.stderr


def system_duels(folder: Path, winners: dict[str, str]) -> None:
    """Three systems in twelve contexts; ann and bob prefer x to y to z in all but every fourth
    context, and 'judge-pairs(model=m)' always the first reply of the pair."""
    ratings = {"x": 5, "y": 4, "z": 1}
    items, answers = [], []
    for c in range(12):
        for name, rating in ratings.items():
            rated = {"ratings": rating - (c % 4 == 0)} if winners else {}
            items.append(
                {"id": f"{c}{name}", "context_id": f"{c}", "response": "r", "system": name, **rated}
            )
        for a, b in ("xy", "yz", "zx"):
            right = "a" if ratings[a] > ratings[b] else "b"
            wrong = "b" if right == "a" else "a"
            for who in ("ann", "bob", "judge-pairs(model=m)"):
                chosen = winners.get(who) or (wrong if c % 4 == 0 and who == "ann" else right)
                answers.append({"a": f"{c}{a}", "b": f"{c}{b}", "winner": chosen, "annotator": who})
    write(folder / "systems.jsonl", items)
    write(folder / "duels.jsonl", answers)


def test_rank(run: Run, folder: Path) -> None:
    system_duels(folder, {"judge-pairs(model=m)": "a"})
    asked = ("pairs", "rank", "systems.jsonl", "duels.jsonl", "--resamples", "300")
    done = run(*asked, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["system"] for row in found["systems"]] == ["x", "y", "z"]
    assert [row["rank_ci"] for row in found["systems"]] == [[1, 1], [2, 2], [3, 3]]
    assert [row["group"] for row in found["systems"]] == ["a", "b", "c"]
    judges = {row["name"]: row for row in found["judges"]}
    # the first of xy and yz is the better one, and that of zx the worse one: 24 of 36 agree
    assert judges["judge-pairs(model=m)"]["agrees"] == pytest.approx(2 / 3)
    assert judges["judge-pairs(model=m)"]["model"] and not judges["ann"]["model"]
    assert judges["bob"]["reliability"] > judges["ann"]["reliability"]
    assert judges["ann"]["reliability"] > judges["judge-pairs(model=m)"]["reliability"]
    assert found["by_ratings"] == {
        "groups": {"x": "a", "y": "b", "z": "c"}, "pairs": 3, "alike": 3, "opposite": 0,
    }  # fmt: skip
    words = run(*asked)
    assert b"judge-pairs(model=m) (model)" in words.stdout and b"1 to 1" in words.stdout
    assert b"say the same of 3 of 3 pairs of systems" in words.stderr
    people = run(*asked, "--drop-annotator", "judge-pairs(model=m)", "--json")
    assert [row["rate_by_people"] for row in json.loads(people.stdout)["systems"]] == [None] * 3


def test_rank_with_wrong_input(run: Run, folder: Path) -> None:
    system_duels(folder, {})
    done = run("pairs", "rank", "systems.jsonl", "duels.jsonl", "--model", "gpt")
    assert done.returncode == 2 and b"gpt" in done.stderr
    lines = read(folder / "duels.jsonl")
    within = [{"a": "0x", "b": "0x2", "winner": "a"}]
    write(folder / "same.jsonl", within)
    extra = {"id": "0x2", "context_id": "0", "response": "other", "system": "x"}
    write(folder / "systems.jsonl", [*read(folder / "systems.jsonl"), extra])
    done = run("pairs", "rank", "systems.jsonl", "same.jsonl")
    assert done.returncode == 3
    assert b"same.jsonl: no answer compares replies of two systems" in done.stderr
    write(folder / "one.jsonl", [line for line in lines if line["a"].startswith("1x")][:1])
    done = run("pairs", "rank", "systems.jsonl", "one.jsonl", "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["systems"][0]["rank_ci"] is None
    assert b"only: there are no intervals" in done.stderr
