"""``rejoinder report`` as a user starts it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fitted import small_evaluator
from rejoinder.cli import main
from support import Run

METRICS = ["bleu(n=2)", "rouge-l"]


def write(folder: Path, *, rated: bool = True, contexts: int = 12) -> None:
    lines = []
    for context in range(contexts):
        for system, reply in (("good", f"the cat sat on mat {context}"), ("dull", "i don't know")):
            item: dict[str, Any] = {
                "id": f"{context}:{system}",
                "context_id": str(context),
                "context": ["where is the cat"],
                "response": reply,
                "system": system,
                "references": [f"the cat sat on a mat {context}", "here is the cat"],
            }
            if rated:
                item["ratings"] = {"ann": 5 if system == "good" else 1 + context % 2}
            lines.append(json.dumps(item))
    (folder / "items.jsonl").write_text("\n".join(lines))


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    write(folder)
    asked = [part for metric in METRICS for part in ("-m", metric)]
    items, scores = str(folder / "items.jsonl"), str(folder / "scores.jsonl")
    assert main.run(["score", items, *asked, "-o", scores]) == 0
    return folder


@pytest.fixture
def folder(scored: Path, tmp_path: Path) -> Path:
    """Items and their scores, where commands run."""
    shutil.copytree(scored, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_report_with_all_parts(run: Run, folder: Path) -> None:
    curve = run("meta", "items.jsonl", "scores.jsonl", "--curve", "--draws", "2", "--json")
    (folder / "curve.json").write_bytes(curve.stdout)
    arguments = ["report", "items.jsonl", "scores.jsonl", "--curve", "curve.json"]
    arguments += ["--title", "Cats & dogs", "--resamples", "200", "--seed", "7"]
    done = run(*arguments, "-o", "report.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    page = (folder / "report.html").read_text()
    size = f"{(folder / 'report.html').stat().st_size / 1e6:.2f} MB"
    assert done.stderr.decode() == f"report in report.html ({size})\n"
    assert "<title>Cats &amp; dogs</title>" in page
    answer = re.search(r'<p class="answer">(.*?)</p>', page)
    assert answer is not None
    assert re.sub("<[^>]*>", "", answer[1]) == ("By people’s ratings, good is better than dull.")
    # the last metric ranks, because there is neither rejoinder nor ruber
    assert "<code>rouge-l</code> separates the same systems, in the same order." in page
    assert "By number of references" in page
    assert "bleu|n:2|" in page
    assert "rejoinder report items.jsonl scores.jsonl --title &#39;Cats &amp; dogs&#39;" in page
    # nothing from elsewhere: no address outside, no script but the page's own
    assert not re.search(r'(?:src|href)="(?!#)', page)
    assert "http" not in re.sub(r"http-equiv", "", page).lower()
    # the same command makes the same page; on stdout it differs in its command only
    again = run(*arguments).stdout.decode()
    assert again == page.replace(" -o report.html", "")


def test_the_metric_that_ranks_can_be_chosen(run: Run, folder: Path) -> None:
    done = run("report", "items.jsonl", "scores.jsonl", "--metric", "bleu(n=2)", "-o", "r.html")
    assert done.returncode == 0
    page = (folder / "r.html").read_text()
    assert "<code>bleu(n=2)</code> has a Spearman correlation with people" in page
    done = run("report", "items.jsonl", "scores.jsonl", "--metric", "bleu(n=3)", "-o", "r2.html")
    assert done.returncode == 2
    assert b"the scores have no 'bleu(n=3)': did you mean 'bleu(n=2)'?" in done.stderr
    assert not (folder / "r2.html").exists()


def test_without_ratings(run: Run, folder: Path) -> None:
    write(folder, rated=False)
    done = run("report", "items.jsonl", "scores.jsonl", "-o", "r.html", "--items", "5")
    assert done.returncode == 0, done.stderr
    page = (folder / "r.html").read_text()
    assert "No item has ratings" in page
    assert "5 of 24 items" in page


def test_contexts_that_the_evaluator_has_seen_are_counted(run: Run, folder: Path) -> None:
    done = run(
        *("report", "items.jsonl", "scores.jsonl", "-o", "r.html"),
        *("--evaluator", str(small_evaluator())),
    )
    assert done.returncode == 0, done.stderr
    assert b"of 12 contexts" in done.stderr
    assert "of 12 contexts" in (folder / "r.html").read_text()


def test_wrong_input_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    (folder / "other.json").write_text('{"results": []}')
    for arguments, code, said in (
        (["items.jsonl", "nowhere.jsonl"], 3, "nowhere.jsonl: cannot be read"),
        (["scores.jsonl", "scores.jsonl"], 2, "scores.jsonl looks like scores"),
        (["items.jsonl", "scores.jsonl", "--curve", "other.json"], 3, "has no curves"),
        (["items.jsonl", "scores.jsonl", "--curve", "items.jsonl"], 3, "items.jsonl: "),
        (["items.jsonl", "scores.jsonl", "--curve", "nowhere"], 3, "nowhere: cannot be read"),
        (["items.jsonl", "scores.jsonl", "--language", "xx"], 2, "unknown language 'xx'"),
        (["items.jsonl", "scores.jsonl", "--evaluator", "."], 3, "not an evaluator"),
    ):
        assert main.run(["report", *arguments, "-o", "r.html"]) == code, arguments
        assert said in capsys.readouterr().err
        assert not (folder / "r.html").exists()
    assert main.run(["report", "items.jsonl", "scores.jsonl", "-o", "items.jsonl"]) == 2
    assert "would overwrite the input" in capsys.readouterr().err


def test_items_from_a_pipe(run: Run, folder: Path) -> None:
    items = (folder / "items.jsonl").read_bytes()
    done = run("report", "-", "scores.jsonl", "-o", "r.html", stdin=items)
    assert done.returncode == 0, done.stderr
    assert "a stream" in (folder / "r.html").read_text()
