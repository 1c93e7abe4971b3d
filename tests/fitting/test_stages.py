"""Stages: run once, continued after a failure, one folder per settings."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rejoinder.fitting.stages import DONE, run_stage, write_json


def test_a_stage_is_run_once(tmp_path: Path) -> None:
    done: list[Path] = []

    def make(folder: Path) -> None:
        done.append(folder)
        write_json(folder / "result.json", {"n": 1})

    one = run_stage(tmp_path, "pool", {"k": 1}, make)
    again = run_stage(tmp_path, "pool", {"k": 1}, make)
    other = run_stage(tmp_path, "pool", {"k": 2}, make)
    assert one == again != other
    assert done == [one.folder, other.folder]
    assert one.result == {"n": 1}


def test_a_failed_stage_is_continued(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("1")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stage(tmp_path, "pool", 1, fail)
    found: list[str] = []
    run_stage(tmp_path, "pool", 1, lambda folder: found.append((folder / "half").read_text()))
    assert found == ["1"]


def test_other_processes_wait_for_the_main_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    first = run_stage(tmp_path, "pool", 1, lambda folder: None)
    (first.folder / DONE).unlink()
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    later = threading.Timer(0.3, (first.folder / DONE).touch)
    later.start()
    assert run_stage(tmp_path, "pool", 1, lambda folder: made.append("second")) == first
    assert (first.folder / DONE).exists()
    assert made == []
    # a stage in which all processes take part
    (first.folder / DONE).unlink()
    later = threading.Timer(0.3, (first.folder / DONE).touch)
    later.start()
    run_stage(tmp_path, "pool", 1, lambda folder: made.append("second"), all_processes=True)
    assert made == ["second"]
