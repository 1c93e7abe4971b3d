"""``rejoinder fit`` on the command line: from logs to scores, killed, interrupted, misused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from fitting.toy import QUICK, dialogues, write
from rejoinder.cli.main import run as main
from support import COMMAND, Run

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
CHANGES = [part for change in QUICK for part in ("--set", change)]


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_from_logs_to_scores(run: Run, tmp_path: Path) -> None:
    """With the ranges that the recommended metric needs."""
    rows = [each for each in dialogues(50, 1) if each["context"]]
    lines = [" __eou__ ".join([*r["context"], r["utterance"], r["response"]]) for r in rows]
    (tmp_path / "log.txt").write_text("".join(f"{line} __eou__\n" for line in lines))
    items = [
        {
            "id": f"{number}:{name}",
            "context": ["do you like the soup", "tell me about the soup and also about the bread"],
            "response": reply,
            "system": name,
            "references": ["we like the cheese and the bread"],
        }
        for number in range(5)
        for name, reply in (("a", "we like the cheese too"), ("b", "a ticket for the train"))
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    done = run(
        "fit", "log.txt", "--format", "dailydialog", "--preset", "tiny", "--seed", "1",
        "--set", "validation.max_contexts=8", "--exclude", "items.jsonl", "--json",
        "-o", "evaluator/",
        env=ONE_THREAD,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads(done.stdout)
    assert manifest == json.loads((tmp_path / "evaluator" / "manifest.json").read_bytes())
    assert manifest["seed"] == 1
    assert {"unreferenced", "vbleu", "expanded(d=sentence-cosine)"} <= set(manifest["ranges"])
    assert b"training: unreferenced" in done.stderr
    # dialogues of three turns: no utterance has several responses
    assert b"note: there is no rater" in done.stderr
    assert manifest["data"]["leaks"] == {"exact": 0, "near": 0}
    metrics = ["vbleu", "vbertscore", "unreferenced", "ruber"]
    scored = run(
        "score", "items.jsonl", "--evaluator", "evaluator", "-o", "scores.jsonl",
        *(part for name in metrics for part in ("-m", name)), env=ONE_THREAD,
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr.decode()
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_bytes().splitlines()]
    assert len(scores) == len(items) * len(metrics)
    assert all("value" in score and "coverage" in score for score in scores)
    assert all(0 <= score["value"] <= 1 for score in scores if "ruber" in score["metric"])


def test_a_killed_and_interrupted_fit_gives_the_same_bytes(tmp_path: Path) -> None:
    """Killed while the rater is trained, interrupted while the scorer is. With fastText, whose word
    hashes differ between processes."""
    pairs = write(tmp_path / "pairs.parquet", dialogues(40))
    changes = ["rater.training.steps=300", "unreferenced.training.steps=300",
               "vectors.method=fasttext", "vectors.buckets=500"]  # fmt: skip
    arguments = ["fit", str(pairs), "--preset", "tiny", *CHANGES]
    arguments += [part for change in changes for part in ("--set", change)]

    def stop(part: bytes, kind: signal.Signals) -> int:
        """Start it, and end it at the first training step of a part."""
        process = subprocess.Popen(
            [*COMMAND, *arguments, "-o", "ended"],
            stderr=subprocess.PIPE, cwd=tmp_path, env={**os.environ, **ONE_THREAD},
        )  # fmt: skip
        assert process.stderr is not None
        begun = False
        for line in process.stderr:
            begun = begun or line.startswith(b"training: " + part)
            if begun and line.startswith(b"step "):
                process.send_signal(kind)
                break
        process.communicate(timeout=120)
        return process.returncode

    torch.set_num_threads(1)
    assert main([*arguments, "-o", str(tmp_path / "whole")]) == 0
    assert stop(b"rater", signal.SIGKILL) == -signal.SIGKILL
    assert stop(b"unreferenced", signal.SIGTERM) == 128 + signal.SIGTERM
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".ended.work", "pairs.parquet", "whole",
    ]  # fmt: skip
    (stage,) = (tmp_path / ".ended.work").glob("unreferenced-*")
    assert (stage / "checkpoints" / "state.safetensors").is_file()
    assert main([*arguments, "-o", str(tmp_path / "ended")]) == 0
    assert contents(tmp_path / "ended") == contents(tmp_path / "whole")
    assert not (tmp_path / ".ended.work").exists()


def test_two_processes_train_together(tmp_path: Path) -> None:
    """With torchrun, the main process writes and reports."""
    pairs = write(tmp_path / "pairs.parquet", dialogues(30))
    program = tmp_path / "program.py"
    program.write_text("from rejoinder.cli.main import main\nmain()\n")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(program), "fit", str(pairs), "--preset", "tiny", *CHANGES, "--json",
         "--set", "rater.training.steps=30", "--set", "unreferenced.training.steps=4",
         "-o", str(tmp_path / "evaluator")],
        capture_output=True, check=False, timeout=240, env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    manifest = json.loads(done.stdout)  # one report
    assert manifest["validation"]["rater"]["steps"] == 30
    assert done.stderr.count(b"training: rater") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "evaluator", "pairs.parquet", "program.py",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no.parquet"], 2, "no.parquet: there is no such file"),
        (["log.txt"], 2, "give its format (--format)"),
        (["-", "--format", "chat"], 2, "give files, not stdin"),
        (["log.txt", "-f", "dailydialog"], 3, "log.txt"),
        (["bad.parquet"], 3, "bad.parquet: "),
        (["few.parquet"], 3, "too few"),
        (["log.tsv", "-f", "tsv"], 3, "log.tsv: "),
        (
            ["few.parquet", "--set", "rater.input=vectors(sif_a=0)"],
            2,
            "sif_a=0.0 is not a relative frequency",
        ),
        (
            ["few.parquet", "--set", "rater.input=vectors(char_ngram_buckets=a)"],
            2,
            "char_ngram_buckets=a is not a",
        ),
        (["few.parquet", "--preset", "huge"], 2, "unknown preset 'huge'"),
        (["few.parquet", "--language", "jp"], 2, "did you mean 'ja'"),
        (["few.parquet", "--set", "retrieval.q=3", "--set", "x"], 2, "--set x"),
        (["few.parquet", "--exclude", "none.jsonl"], 2, "none.jsonl: there is no such file"),
    ],
)
def test_wrong_arguments_and_data_are_one_line(
    tmp_path: Path,
    arguments: list[str],
    code: int,
    message: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.txt").write_text("no dialogue\n")
    (tmp_path / "log.tsv").write_text("x\ty\n")
    (tmp_path / "bad.parquet").write_text("no pairs\n")
    write(tmp_path / "few.parquet", [r for r in dialogues(2) if r["dialogue_id"] == "d0"])
    preset = [] if "--preset" in arguments else ["--preset", "tiny"]
    assert main(["fit", *arguments, *preset, "-o", "evaluator"]) == code
    assert message in capfd.readouterr().err
    assert not (tmp_path / "evaluator").exists()
    assert not list(tmp_path.glob(".*")), "no hidden folder is left"


def test_a_wrong_log_format_names_the_first_problem_and_writes_rejects(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "log.jsonl").write_text('{"text": "hello"}\n{"text": "hi"}\n')
    done = run("fit", "log.jsonl", "--format", "twitter", "--preset", "tiny", "-o", "evaluator")
    assert done.returncode == 3
    assert b"log.jsonl:1: " in done.stderr
    assert b"evaluator.rejects.jsonl" in done.stderr
    rejects = (tmp_path / "evaluator.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["line"] for line in rejects] == [1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "evaluator.rejects.jsonl", "log.jsonl",
    ]  # fmt: skip


def test_a_chat_log_in_another_format_is_recognised(run: Run, tmp_path: Path) -> None:
    record = {"messages": [{"role": "user", "content": "hello"}]}
    (tmp_path / "log.jsonl").write_text(json.dumps(record) + "\n")
    done = run("fit", "log.jsonl", "--format", "twitter", "--preset", "tiny", "-o", "e")
    assert done.returncode == 3
    assert b"the records look like --format chat" in done.stderr


def test_arguments_are_checked_before_torch_is_loaded() -> None:
    code = (
        "import sys\nfrom rejoinder.cli.main import run\n"
        "assert run(['fit', 'no.parquet', '-o', 'x']) == 2\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
