"""A study from ``init`` to the verbs that use its answers, by real commands and a real server."""

from __future__ import annotations

import csv
import json
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annotate.rating_studies import items
from annotate.server import Browser, run_annotate, running_server
from rejoinder.cli.main import run

QUALITY = {"careful": "5", "dull": "3", "rude": "1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with items and a study that was made of them by the real command."""
    folder = tmp_path_factory.mktemp("made")
    text = "".join(json.dumps(item) + "\n" for item in items(contexts=6))
    (folder / "items.jsonl").write_text(text)
    done = run_annotate(
        "init", folder / "study", "--template", "gupta-ratings", "--items",
        folder / "items.jsonl", "--set", "answers_per_task=2", "--set", "tasks_per_batch=7",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "18 tasks" in done.stderr
    return folder


@pytest.fixture
def study(tmp_path: Path, made: Path) -> Path:
    """A study folder of the test's own."""
    return Path(shutil.copytree(made / "study", tmp_path / "study"))


def by_system(page: str) -> dict[str, str]:
    """Rate a reply by its system, which its text names in these items."""
    found = re.search("I was (careful|dull|rude)", page)
    assert found is not None
    return {"appropriateness-0": QUALITY[found[1]]}


def people(folder: Path, count: int) -> Iterator[Browser]:
    done = run_annotate("invite", folder, "-n", count, "--json")
    assert done.returncode == 0, done.stderr
    for link in json.loads(done.stdout)["links"]:
        browser = Browser(link)
        browser.post("/start")
        yield browser
        browser.close()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_from_init_to_compare(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_server(study):
        assert [browser.answer_all(by_system) for browser in people(study, 2)] == [18, 18]
        status = json.loads(run_annotate("status", study, "--json").stdout)
    assert (status["tasks"], status["answers"], status["complete"]) == (18, 36, 18)
    assert status["agreement"]["alpha"] == 1.0
    assert {(p["answers"], p["kappa"]) for p in status["people"]} == {(18, 1.0)}
    table = run_annotate("status", study)
    assert "36 of 36 answers, 18 of 18 tasks complete" in table.stderr
    assert max(map(len, table.stdout.splitlines())) <= 80
    rated, raw = tmp_path / "rated.jsonl", tmp_path / "raw.csv"
    done = run_annotate("export", study, "-o", rated, "--raw", raw)
    assert done.returncode == 0, done.stderr
    assert "18 items from 36 answers" in done.stderr
    for record in read(rated):
        expected = float(QUALITY[record["system"]])
        assert record["ratings"] == {"annotator-1": expected, "annotator-2": expected}
    with open(raw, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 36
    assert {row["person"] for row in rows} == {"annotator-1", "annotator-2"}
    assert json.loads(rows[0]["answer"])["ratings"][0]["appropriateness"] in (1, 3, 5)
    # the answers flow into the other verbs
    assert run(["compare", str(rated), "--by", "people", "--json"]) == 0
    systems = json.loads(capsys.readouterr().out)["results"][0]["systems"]
    assert [(each["system"], each["value"]) for each in systems] == [
        ("careful", 5.0),
        ("dull", 3.0),
        ("rude", 1.0),
    ]
    scores = tmp_path / "scores.jsonl"
    assert run(["score", str(rated), "-m", "rouge-l", "-o", str(scores)]) == 0
    capsys.readouterr()
    assert run(["meta", str(rated), str(scores), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["humans"]["alpha"] == 1.0


def test_pseudonyms_and_forgetting(study: Path, tmp_path: Path) -> None:
    done = run_annotate("invite", study, "--name", "Ann Smith", "--json")
    (link,) = json.loads(done.stdout)["links"]
    with running_server(study) as server:
        browser = Browser(server.address + "/p/" + link.rpartition("/")[2])
        browser.post("/start")
        browser.answer_all(by_system, most=3)
        browser.close()
    out = tmp_path / "rated.jsonl"
    assert run_annotate("export", study, "-o", out, "--pseudonyms").returncode == 0
    assert "Ann Smith" not in out.read_text()
    assert run_annotate("forget", study, "Ann Smith").returncode == 0
    assert run_annotate("forget", study, "Ann Smith").returncode == 2
    assert run_annotate("export", study, "-o", out).returncode == 0
    assert "Ann Smith" not in out.read_text()
    assert sum(len(record.get("ratings") or {}) for record in read(out)) == 3
    content = b"".join(path.read_bytes() for path in study.glob("answers.sqlite*"))
    assert b"Ann Smith" not in content


def test_the_researchers_page(study: Path) -> None:
    with running_server(study) as server:
        for first in people(study, 1):
            assert first.lease is not None
        researcher = Browser(server.researcher)
        assert "annotator-1" in researcher.page.text
        researcher.post("/study/pause")
        browser = Browser(run_invited(study))
        browser.post("/start")
        assert browser.lease is None  # paused
        researcher.post("/study/resume")
        browser.page = browser.client.get(browser.address + "/")
        assert browser.lease is not None
        for each in (researcher, browser):
            each.close()


def run_invited(study: Path) -> str:
    (link,) = json.loads(run_annotate("invite", study, "-n", 1, "--json").stdout)["links"]
    return str(link)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["init", "{new}", "-t", "gupta-rating", "--items", "{items}"], 2, "gupta-ratings"),
        (["init", "{study}", "-t", "gupta-ratings", "--items", "{items}"], 2, "{study}"),
        (["init", "{new}", "-t", "gupta-ratings", "--items", "{none}"], 3, "{none}"),
        (["init", "{new}", "-t", "gupta-ratings", "--items", "{items}", "-l", "fr"], 2, "en, ja"),
        (["init", "{new}", "-t", "gupta-diversity", "--items", "{items}"], 3, "5"),
        (["init", "{new}", "-t", "gupta-ratings", "--items", "{items}", "--set", "x=1"], 2, "x"),
        (["serve", "{none}"], 3, "rejoinder annotate init"),
        (["status", "{none}"], 3, "rejoinder annotate init"),
        (["invite", "{study}"], 2, "number of people or their names"),
        (["invite", "{study}", "-n", "0"], 2, "from 1 to"),
        (["invite", "{study}", "--name", "a", "--name", "a"], 2, "given twice"),
        (["export", "{study}", "-o", "{new}"], 3, "no answers yet"),
        (["export", "{study}", "-o", "{new}", "--dimension", "wit"], 2, "appropriateness"),
        (["forget", "{study}", "nobody"], 2, "nobody has this name"),
        (["serve", "{study}", "--database", "mysql://x/y"], 2, "postgresql://"),
        (["serve", "{study}", "--database", "postgresql://127.0.0.1:1/x"], 4, "does not answer"),
        (["serve", "{study}", "--host", "no.such.host.invalid"], 2, "no host"),
    ],
)
def test_bad_input(
    study: Path,
    made: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    places = {
        "new": tmp_path / "new",
        "study": study,
        "items": made / "items.jsonl",
        "none": tmp_path / "none",
    }
    filled_in = [argument.format(**places) for argument in arguments]
    assert run(["annotate", *filled_in]) == code
    assert message.format(**places) in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_port_in_use(study: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_annotate("serve", study, "--port", port)
    assert done.returncode == 2
    assert f"port {port} is in use" in done.stderr


def test_a_second_server(study: Path) -> None:
    with running_server(study):
        done = run_annotate("serve", study, "--port", 0)
    assert done.returncode == 4
    assert "another server uses this database" in done.stderr


def test_a_name_is_invited_once(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["annotate", "invite", str(study), "--name", "Ann", "--name", "Bob"]) == 0
    assert run(["annotate", "invite", str(study), "--name", "Cid", "--name", "Ann"]) == 2
    assert "Ann has been invited already" in capsys.readouterr().err
    assert run(["annotate", "invite", str(study), "--name", "Cid"]) == 0


def test_a_consent_text_must_be_filled_in(
    tmp_path: Path, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "study"
    options = ["--template", "gupta-ratings", "--items", str(made / "items.jsonl"), "--consent"]
    assert run(["annotate", "init", str(folder), *options]) == 0
    assert run(["annotate", "serve", str(folder), "--port", "0"]) == 2
    assert "consent.md: 12 places are marked [[ ]]; fill them in" in capsys.readouterr().err


def test_a_changed_study_file(study: Path) -> None:
    with running_server(study):
        for browser in people(study, 1):
            browser.answer_all(by_system, most=1)
    text = (study / "study.toml").read_text()
    (study / "study.toml").write_text(text.replace("scale = [1, 2, 3, 4, 5]", "scale = [0, 1]"))
    done = run_annotate("serve", study, "--port", 0)
    assert done.returncode == 3
    assert "labels" in done.stderr  # five labels do not fit to two values
    (study / "study.toml").write_text(text.replace("seed = 12345", "seed = 1"))
    done = run_annotate("status", study)
    assert done.returncode == 3
    assert "seed: was 12345 when the first answer came in, now 1" in done.stderr
