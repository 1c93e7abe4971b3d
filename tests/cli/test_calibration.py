"""``rejoinder train calibration``, and scores that use what it made.

In this process: the network need not be loaded anew for each command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.cli.main import run

Line = Callable[..., tuple[int, str]]
TEXTS = ["I am fine.", "See you on Monday!", "Where is the station?", "It rained all day."]


@pytest.fixture
def line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Line:
    """Runs a command line in an empty folder: its exit code, and what it says on stderr."""
    monkeypatch.chdir(tmp_path)

    def start(*arguments: str) -> tuple[int, str]:
        return run(list(arguments)), capfd.readouterr().err

    return start


@pytest.fixture
def items(tmp_path: Path) -> str:
    lines = [
        {"id": str(i), "response": "I am fine, thanks.", "references": [text, text]}
        for i, text in enumerate(TEXTS)
    ]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return "items.jsonl"


def test_from_texts_to_scores(line: Line, tmp_path: Path, items: str) -> None:
    (tmp_path / "lines.txt").write_text("\n".join([*TEXTS, "", *TEXTS]) + "\n")
    pq.write_table(pa.table({"response": [*TEXTS, *TEXTS]}), tmp_path / "pairs.parquet")
    made = []
    rows = "".join(f'fine,"{text}","{text}"\n' for text in TEXTS)
    (tmp_path / "items.csv").write_text(f"said,gold_1,other\n{rows}")
    columns = ["--columns", "reply=said,references=other"]
    for source in ([items], ["lines.txt"], ["pairs.parquet"], ["items.csv", *columns]):
        code, said = line("train", "calibration", *source, "-o", "c.json", "--pairs", "20")
        assert code == 0, said
        assert ("8 texts, " if source[0] != "items.csv" else "4 texts, ") in said
        made.append(json.loads((tmp_path / "c.json").read_text()))
    assert (made[0]["texts"], made[0]["layer"], made[0]["model"]) == (8, 6, "minilm")
    assert made[0]["counts"] == made[1]["counts"] == made[2]["counts"]
    # two times the same lines in the same order
    assert made[1] == made[2]
    spec = "bertscore(idf=true,rescale=true,calibration=c.json)"
    code, said = line("score", items, "-m", "bertscore", "-m", spec, "-o", "scores.jsonl")
    assert code == 0, said
    scores = [json.loads(row) for row in (tmp_path / "scores.jsonl").read_text().splitlines()]
    plain, rescaled = (
        [row["value"] for row in scores if row["metric"] == name] for name in ("bertscore", spec)
    )
    # the spread grows: a random pair is 0 now
    assert max(rescaled) - min(rescaled) > max(plain) - min(plain)
    other = spec.replace("idf", "layer=5,idf")
    code, said = line("score", items, "-m", other, "-o", "no.jsonl")
    assert (code, said.count("\n")) == (3, 1)
    assert "c.json: the calibration was made with layer 6" in said
    assert not (tmp_path / "no.jsonl").exists()


def test_bad_input(line: Line, tmp_path: Path, items: str) -> None:
    (tmp_path / "same.txt").write_text("Hello.\nHello.\n")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    pq.write_table(pa.table({"reply": ["x"]}), tmp_path / "columns.parquet")
    (tmp_path / "alone.jsonl").write_text('{"id": "1", "response": "Hello."}\n')
    before = sorted(tmp_path.iterdir())
    for arguments, code, complaint in (
        (["same.txt"], 3, "same.txt: a calibration needs at least two different texts"),
        (["alone.jsonl"], 3, "alone.jsonl: a calibration needs at least two different texts"),
        (["latin.txt"], 3, "latin.txt:1: the line is not UTF-8"),
        (["none.txt"], 3, "none.txt: cannot be read"),
        (["none.parquet"], 3, "none.parquet: cannot be read: no such file"),
        (["other.parquet"], 3, "other.parquet: not a Parquet file"),
        (["columns.parquet"], 3, "columns.parquet: has no column response"),
        ([items, "--layer", "7"], 2, "layer=7: minilm has the layers 0 to 6"),
        ([items, "--model", "nobody/nothing"], 4, "nobody/nothing"),
        ([items, "-o", items], 2, "would overwrite the input"),
    ):
        found, said = line("train", "calibration", "-o", "c.json", *arguments)
        assert (found, said.count("\n")) == (code, 1), said
        assert complaint in said
        assert sorted(tmp_path.iterdir()) == before
