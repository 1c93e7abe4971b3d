"""Files and folders appear whole or not at all, and one run at a time uses a work folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.errors import ResourceError, UsageError
from rejoinder.files.output import (
    locked,
    only_run,
    open_output,
    replace_folder,
    take_lock,
    unwritable,
    whole_folder,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    for content in ("first", "second"):
        with whole_folder(target) as filling:
            (filling / "part").write_text(content)
            assert filling.name.startswith(".out.")
        assert (target / "part").read_text() == content
        assert names(tmp_path) == ["out"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are not looked up there")
def test_the_unfinished_file_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from rejoinder.files.output import open_output\n"
        "with open_output(sys.argv[1]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    target = tmp_path / "o.jsonl"
    subprocess.run([sys.executable, "-c", code, str(target)], check=False)
    (killed,) = names(tmp_path)
    assert killed.endswith(".part")
    kept = [".o.jsonl.1.part", ".o.jsonl.x.part", ".other.999999999.part"]
    for name in kept:
        (tmp_path / name).touch()
    with (tmp_path / ".o.jsonl.999999999.part").open("wb") as held:  # of another container
        assert take_lock(held)
        with open_output(target) as stream:
            stream.write(b"x")
        assert names(tmp_path) == sorted([*kept, ".o.jsonl.999999999.part", "o.jsonl"])


def test_a_folder_that_is_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.mkdir()
    (target / "part").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_folder(target) as filling:
        (filling / "part").write_text("new")
        _ = 1 / 0
    assert (target / "part").read_text() == "old"
    assert names(tmp_path) == ["out"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(UsageError, match="cannot be written: not a directory"),
        whole_folder(tmp_path / "file" / "out"),
    ):
        pass
    with (
        pytest.raises(UsageError, match="cannot be written: no such file"),
        whole_folder(tmp_path / "no" / "out"),
    ):
        pass


def test_a_full_disk_is_no_wrong_usage() -> None:
    assert isinstance(unwritable("x", OSError(28, "No space left on device")), ResourceError)
    assert isinstance(unwritable("x", PermissionError(13, "Permission denied")), UsageError)


def test_replacing_a_folder_whose_name_is_long(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 250)
    for _ in range(2):
        (tmp_path / "new").mkdir()
        replace_folder(tmp_path / "new", target)
    assert names(tmp_path) == [target.name]


def test_an_output_through_a_loop_of_links_or_a_bad_name(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path / "loop", tmp_path / "a\0b", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="cannot be written"), open_output(path):
            pass
    assert names(tmp_path) == ["loop"]


HOLDS = """
import sys, time
from rejoinder.files.output import only_run
with only_run(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_another_process_is_kept_out_until_it_is_killed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(work)], stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(ResourceError, match="another run is using this work folder"),
            only_run(work),
        ):
            pass
        holder.kill()
    with only_run(work) as lock:
        assert not lock.closed
    with locked(work / "other"):
        assert (work / "other").exists()


def test_a_work_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "x", tmp_path / ("x" * 300)):
        with pytest.raises(UsageError, match="the work folder cannot be written"), only_run(folder):
            pass
