"""Rehearsals: simulated people with known opinions answer copies of studies over HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import time
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import pytest
from sqlalchemy import create_engine, make_url, text

from annotate.server import COMMAND, run_annotate
from annotate.studies import RATE, answer_all, join, make_study, template_records
from rejoinder.annotate.rehearse.kinds.compare import CompareBehaviour
from rejoinder.annotate.rehearse.opinions import Opinions
from rejoinder.annotate.rehearse.outcome import Rehearsal
from rejoinder.annotate.rehearse.page import read_page
from rejoinder.annotate.store import NextStep, Store
from rejoinder.annotate.study_templates import names
from rejoinder.annotate.tasks.kind import Json
from rejoinder.errors import UsageError
from rejoinder.items import Item
from rejoinder.pairwise.simulate import NOISE, VIEW
from rejoinder.verbs import annotate

COMPARE = """
kind = "compare"
title = "Pairs"
answers_per_task = 2
[compare]
question = "Which reply is better?"
share = 0.5
repeated_share = 0.3
"""


def write_items(path: Path, records: list[Json]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def check_nothing_lost(rehearsal: Rehearsal) -> None:
    """Every task has exactly the answers that are wanted, and all acknowledged ones are stored."""
    assert rehearsal.errors == []
    assert rehearsal.lost == rehearsal.over == 0
    assert rehearsal.complete == rehearsal.tasks > 0
    assert rehearsal.answers == rehearsal.wanted == sum(p.answers for p in rehearsal.people)
    assert rehearsal.repeats_refused == rehearsal.repeats


# every template, with consent and training round


@pytest.mark.parametrize("name", names())
def test_every_template_runs(name: str, tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", template_records(3))
    folder = tmp_path / "study"
    language = "ja" if name.startswith("sugiyama") else "zh" if name.startswith("ruber") else "en"
    made = annotate.init(
        folder,
        template=name,
        items=items,
        language=language,
        text_language="en",
        consent=True,
        training=True,
    )
    people = made.answers_per_task + 3
    found = annotate.rehearse(folder, people=people, careless=1, fast=1, pasting=0).rehearsal
    check_nothing_lost(found)
    training = len((folder / "training.jsonl").read_text().splitlines())
    assert found.acknowledged == found.answers + people * training
    assert found.refused >= found.repeats
    if made.kind == "write":
        assert found.repeats > 0
        assert found.agreement.planted is None
    else:
        assert found.agreement.planted is not None
        assert found.correlation is not None


# what was planted comes out


def test_ratings_come_out_as_planted(tmp_path: Path) -> None:
    """120 replies, each rated by 5 of 12 people, of whom 3 are careless and one is too fast.

    In twelve rehearsals with the seeds 0 to 11, the agreement of those who read differed from the
    planted one by .065 at most, 34 of 36 careless people were found, and nobody else.
    """
    items = write_items(tmp_path / "items.jsonl", template_records(12))
    annotate.init(tmp_path / "study", template="gupta-ratings", items=items)
    found = annotate.rehearse(tmp_path / "study", people=12, careless=3, fast=1, seed=1).rehearsal
    check_nothing_lost(found)
    agreement = found.agreement
    assert abs(agreement.careful - agreement.planted) < 0.1
    assert agreement.everyone < agreement.without_unreliable
    assert found.correlation > 0.7
    assert found.correlation_without_unreliable > found.correlation
    best, worst = found.systems
    assert best.planted > worst.planted
    assert best.found > worst.found
    careless, fast = found.detection
    assert (careless.manner, careless.people, careless.precision) == ("careless", 3, 1)
    assert careless.recall >= 2 / 3
    assert (fast.recall, fast.precision) == (1, 1)
    assert all(("kappa" in each.found_by) <= (each.manner == "careless") for each in found.people)


def test_winning_rates_come_out_as_planted(tmp_path: Path) -> None:
    """Half of the pairs of 16 replies, planned, in two contexts."""
    items = [
        {"id": f"{c}:{n}", "context": [f"Context {c}"], "response": f"Reply {n} to {c}"}
        for c in range(2)
        for n in range(16)
    ]
    folder = make_study(tmp_path / "study", COMPARE, items)
    found = annotate.rehearse(folder, people=8, careless=0, fast=0, keep=tmp_path / "kept")
    rehearsal = found.rehearsal
    # the share of repeated pairs is drawn, so the number of answers is not known beforehand
    assert rehearsal.errors == []
    assert rehearsal.lost == rehearsal.over == 0
    assert rehearsal.complete == rehearsal.tasks == 2 * 60  # half of 120 pairs in each context
    assert rehearsal.correlation > 0.8
    assert abs(rehearsal.agreement.careful - rehearsal.agreement.planted) < 0.35
    # the copy was kept: its answers can be exported
    export = annotate.export(tmp_path / "kept", output=tmp_path / "answers.jsonl")
    assert len(export.records) == rehearsal.answers
    assert set(export.records[0]) == {"a", "b", "winner", "annotator"}
    assert [*export.others] == [str(tmp_path / "answers.items.jsonl")]


def test_distractors_tell_careless_people(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", template_records(24))
    annotate.init(
        tmp_path / "study",
        template="gupta-quality",
        items=items,
        overrides={"quality.min_kappa": -1.0, "answers_per_task": 4},
    )
    found = annotate.rehearse(tmp_path / "study", people=6, careless=2, fast=0, seed=3).rehearsal
    check_nothing_lost(found)
    (careless,) = found.detection
    assert (careless.found, careless.precision) == (2, 1)
    assert all(each.found_by in ([], ["distractors"]) for each in found.people)
    assert found.systems[-1].system == "distractor"


def test_writers_who_paste_or_repeat_are_found(tmp_path: Path) -> None:
    items = write_items(tmp_path / "items.jsonl", template_records(8))
    annotate.init(
        tmp_path / "study",
        template="gupta-references",
        items=items,
        text_language="ja",
        overrides={"answers_per_task": 5},
    )
    found = annotate.rehearse(
        tmp_path / "study", people=6, careless=1, fast=1, pasting=1, seconds=15
    ).rehearsal
    check_nothing_lost(found)
    assert {each.manner: (each.recall, each.precision) for each in found.detection} == {
        "careless": (1, 1),
        "fast": (1, 1),
        "pasting": (1, 1),
    }


def test_entrance_test_keeps_careless_people_out(tmp_path: Path) -> None:
    """Ten questions with five answers each: 75 % right by guessing has the probability 8e-5."""
    known = [
        {"context": [f"Question {n}"], "replies": [f"Answer {n}"], "expected": [[1 + n % 5]]}
        for n in range(10)
    ]
    folder = make_study(
        tmp_path / "study",
        RATE + '\n[training]\ntest = "test.jsonl"\n',
        template_records(2),
        {"test.jsonl": known},
    )
    found = annotate.rehearse(folder, people=4, careless=1, fast=0).rehearsal
    check_nothing_lost(found)
    (failed,) = (each for each in found.people if each.found_by)
    assert (failed.manner, failed.answers, failed.found_by) == ("careless", 0, ["entrance test"])
    assert found.acknowledged == found.answers + 4 * 10


# the study itself stays as it is


def test_study_and_its_database_stay_as_they_are(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", RATE, template_records(2))
    store = Store.open(folder)

    def fives(step: NextStep) -> dict[str, str]:
        return {"appropriateness-0": "5"}

    answered = answer_all(store, join(store, "ann"), fives)
    store.close()

    def digests() -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()
        }

    before = digests()
    assert before
    found = annotate.rehearse(folder, people=2, careless=0, fast=0).rehearsal
    assert found.answers == answered
    assert digests() == before
    assert [person.name for person in annotate.status(folder).status.people] == ["ann"]


def test_postgres_rehearsal_has_a_database_of_its_own(
    tmp_path: Path, postgres_database: str
) -> None:
    folder = make_study(tmp_path / "study", RATE, template_records(2))
    engine = create_engine(make_url(postgres_database).set(drivername="postgresql+psycopg"))

    def databases() -> list[str]:
        with engine.connect() as connection:
            return sorted(connection.scalars(text("SELECT datname FROM pg_database")))

    before = databases()
    found = annotate.rehearse(folder, people=3, database=postgres_database).rehearsal
    check_nothing_lost(found)
    assert found.database == "PostgreSQL"
    assert databases() == before
    with engine.connect() as connection:
        assert not connection.scalars(
            text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        ).all()
    engine.dispose()


def test_server_ends_with_the_rehearsal(tmp_path: Path) -> None:
    """A rehearsal that is killed leaves no server behind."""
    folder = make_study(tmp_path / "study", RATE, template_records(3))
    command = [*COMMAND, "rehearse", str(folder), "--seconds", "2000"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            server = _child_of(process.pid)
        finally:
            process.kill()
    end = time.monotonic() + 30
    while Path(f"/proc/{server}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    if Path(f"/proc/{server}").exists():
        os.kill(server, signal.SIGKILL)
        pytest.fail("the server goes on")


def _child_of(parent: int) -> int:
    """Wait for the child of a process and return its number."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if found := children.read_text().split():
            return int(found[0])
        time.sleep(0.02)
    raise AssertionError("no server was started")


# the command line


def test_command_line_prints_the_result(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", RATE, template_records(1))
    done = run_annotate("rehearse", folder, "--people", 3, "--careless", 0, "--fast", 0, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    result = annotate.rehearse(folder, people=3, careless=0, fast=0)
    expected = result.to_dict()
    # who answers what, and how long it takes, depends on the machine; what they think does not
    assert printed.keys() == expected.keys()
    same = ("kind", "database", "tasks", "complete", "answers", "wanted", "lost", "errors")
    assert {key: printed[key] for key in same} == {key: expected[key] for key in same}
    assert printed["agreement"]["planted"] == expected["agreement"]["planted"]
    assert result.frame("pandas")["manner"].tolist() == ["careful"] * 3


def test_command_line_prints_tables(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", RATE, template_records(1))
    done = run_annotate("rehearse", folder, "--people", 3, "--careless", 1, "--fast", 1)
    assert done.returncode == 0, done.stderr
    assert "10 of 10 tasks complete" in done.stderr
    assert "careless people" in done.stdout


def test_wrong_numbers_of_people_are_reported_at_once(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", RATE, template_records(1))
    done = run_annotate("rehearse", folder, "--people", 2, "--careless", 3, "--pasting", 1)
    assert done.returncode == 2
    assert "5 people are careless, fast or pasting, but there are only 2" in done.stderr
    assert "nobody can paste" in done.stderr
    with pytest.raises(UsageError, match="only a rehearsal with SQLite can be kept"):
        annotate.rehearse(folder, keep=tmp_path / "kept", database="postgresql://nowhere/x")


def test_too_few_people_leave_the_study_incomplete(tmp_path: Path) -> None:
    settings = RATE.replace('title = "Ratings"', 'title = "Ratings"\nanswers_per_task = 3')
    folder = make_study(tmp_path / "study", settings, template_records(1))
    found = annotate.rehearse(folder, people=2, careless=0, fast=0).rehearsal
    assert (found.answers, found.wanted, found.complete) == (20, 30, 0)
    assert found.errors == []


# opinions and pages


def test_planted_winning_rates(tmp_path: Path) -> None:
    """The rate of a reply is the mean probability that it beats each other one."""
    items = [{"id": n, "context": ["c"], "response": f"r{n}"} for n in range(3)]
    store = Store.open(make_study(tmp_path / "study", COMPARE, items))
    behaviour = CompareBehaviour(store, 1, VIEW)
    qualities = {("", f"r{n}"): quality for n, quality in enumerate((0.0, 1.0, -1.0))}
    behaviour.opinions = Opinions(1, qualities, VIEW)
    spread = (2 * VIEW**2 + NOISE**2) ** 0.5
    one, two = NormalDist().cdf(1 / spread), NormalDist().cdf(2 / spread)
    rates = behaviour.planted_rates([Item(str(n), f"r{n}") for n in range(3)])
    assert rates == pytest.approx([0.5, (one + two) / 2, 1 - (one + two) / 2])
    store.close()


def test_people_always_think_the_same() -> None:
    units = {("", f"r{n}"): "s" for n in range(20)}
    opinions = Opinions.of(7, units, VIEW)
    for first, second in combinations(units, 2):
        there = opinions.preference("ann", first, second)
        assert there == -opinions.preference("ann", second, first) != 0


def test_page_is_read_as_a_person_reads_it() -> None:
    page = read_page(
        '<form method="post" action="/answer"><input type="hidden" name="lease" value="a&amp;b">'
        '<ol><li class="turn other"><span>A</span><p lang="en">Hi <b>there</b></p></li></ol>'
        '<blockquote class="reply">One &lt;br&gt; two</blockquote>'
        '<label><input type="radio" name="r-0" value="1"><span>1</span></label>'
        '<label><input type="radio" name="r-0" value="2"><span>2</span></label>'
        '<input type="checkbox" name="fits-0" value="1">'
        '<textarea name="reply-0" data-min="2" data-max="9"></textarea>'
        '<textarea name="comment"></textarea></form>'
    )
    assert page.action == "/answer"
    assert page.hidden == {"lease": "a&b"}
    assert page.turns == ["Hi there"]
    assert page.replies == ["One <br> two"]
    assert page.choices == {"r-0": ["1", "2"]}
    assert page.boxes == ["fits-0"]
    assert page.texts == {"reply-0": (2, 9)}
    assert not page.is_feedback
