"""``rejoinder join`` refuses what the readers of its output would refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.cli import main


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('{"response": ""}', "expected a text in the field id"),
        ('{"id": ["x"], "response": ""}', "expected a text in the field id"),
        # names as they are read: a number, and a level that need not be said
        ('{"id": 1, "response": ""}\n{"id": "1", "response": ""}', "'1' is already in"),
        (
            '{"id": "1", "metric": "m", "value": 1}\n'
            '{"id": "1", "metric": "m", "value": 1, "level": "item"}',
            "'1' is already in",
        ),
    ],
)
def test_lines_that_can_not_be_joined(
    lines: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.jsonl").write_text(lines)
    assert main.run(["join", str(tmp_path / "a.jsonl"), "-o", str(tmp_path / "b.jsonl")]) == 3
    assert said in capsys.readouterr().err
    assert not (tmp_path / "b.jsonl").exists()
