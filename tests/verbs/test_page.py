"""The examples of docs/python.md, one after the other, as somebody would try them out."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import rejoinder
from fitted import chatter
from fitting.toy import write

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    Path("items.jsonl").write_bytes(example.read_bytes())
    write(Path("pairs.parquet"), chatter())
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    known: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        names: dict[str, Any] = {}
        code = compile(block, f"python.md, example {number}", "exec")
        if "rejoinder.fit(" not in block:
            exec(code, names)
        else:  # few pairs: notes of the evaluator reach whoever does not look at them
            with pytest.warns(rejoinder.RejoinderWarning) as caught:
                exec(code, names)
            warned = [str(warning.message) for warning in caught]
            assert any(text.startswith("no range for") for text in warned)
            assert set(names["evaluator"].notes) <= set(warned)
        known.append(names)
    assert known[0]["best"].system == "careful"
    assert known[1]["joined"]["rouge-l"].isna().tolist() == [False, False, True]
    assert len(known[2]["more"][0].references) > 5
    assert known[3]["rewards"].shape == (2,)
