"""Paths that can't be used are refused with one message that names them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoinder.cli.main import run
from rejoinder.errors import DataError, RejoinderError, UsageError
from rejoinder.files import paths

TOO_LONG = "x" * 300


def loop(folder: Path) -> str:
    (folder / "loop").symlink_to("loop")
    return str(folder / "loop")


BAD: dict[str, Callable[[Path], str]] = {
    "name of 300 letters": lambda folder: str(folder / TOO_LONG),
    "folder of 300 letters": lambda folder: str(folder / TOO_LONG / "x"),
    "path of 6000 letters": lambda folder: str(folder / "/".join(["xxxxx"] * 1000)),
    "loop of links": loop,
    "folder that is a loop": lambda folder: loop(folder) + "/x",
    "NUL byte": lambda folder: str(folder / "a\0b"),
    "half a character": lambda folder: str(folder / "a\ud800b"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("look", [paths.exists, paths.is_file, paths.is_folder, paths.open_input])
def test_an_input_that_cannot_be_looked_at(
    tmp_path: Path, kind: str, look: Callable[[str], object]
) -> None:
    path = BAD[kind](tmp_path)
    with pytest.raises(DataError, match="cannot be read: ") as error:
        look(path)
    assert "\0" not in str(error.value)


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize(
    "check",
    [lambda path: paths.check_output(path, []), paths.check_place, paths.check_new_folder],
    ids=["check_output", "check_place", "check_new_folder"],
)
def test_an_output_that_cannot_be_made(
    tmp_path: Path, kind: str, check: Callable[[Path], None]
) -> None:
    with pytest.raises(UsageError, match="cannot be written: ") as error:
        check(Path(BAD[kind](tmp_path)))
    assert "\0" not in str(error.value)


def test_absent_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "no", tmp_path / "no" / "no", tmp_path / "file" / "no"):
        assert not paths.exists(path)
        assert not paths.is_file(path)
        assert not paths.is_folder(path)
    assert paths.is_file(tmp_path / "file")
    assert paths.is_folder(tmp_path)


def test_reading_a_folder_a_pipe_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: it is a folder"):
        paths.open_input(tmp_path)
    with pytest.raises(DataError, match="cannot be read: no such file"):
        paths.open_input(tmp_path / "no")
    for endless in ("/dev/zero", str(tmp_path / "pipe")):
        if endless.endswith("pipe"):
            os.mkfifo(endless)
        with pytest.raises(DataError, match="it is a pipe or a device"):
            paths.open_regular(endless)


def test_outputs_that_would_destroy_something(tmp_path: Path) -> None:
    (tmp_path / "evaluator").mkdir()
    part = tmp_path / "evaluator" / "part"
    part.touch()
    for inputs in ([part], [tmp_path / "evaluator"], [None, "-", part]):
        with pytest.raises(UsageError, match="the output would overwrite the input"):
            paths.check_output(part, inputs)
    (tmp_path / "link").symlink_to(part)
    with pytest.raises(UsageError, match="the output would overwrite the input"):
        paths.check_output(tmp_path / "link", [part])
    with pytest.raises(UsageError, match="it is a folder"):
        paths.check_place(tmp_path)
    with pytest.raises(UsageError, match="there is no folder"):
        paths.check_place(tmp_path / "no" / "x")
    with pytest.raises(UsageError, match="name a file"):
        paths.check_place("-")
    with pytest.raises(UsageError, match="is a folder with other things"):
        paths.check_new_folder(tmp_path / "evaluator")
    with pytest.raises(UsageError, match="is a file; choose another name"):
        paths.check_new_folder(part)
    paths.check_new_folder(tmp_path / "evaluator", may_replace=lambda folder: True)
    paths.check_output(tmp_path / "new", [part])
    paths.check_output(None, [part])


NO_PERMISSION = """
import os, sys
from rejoinder.errors import RejoinderError
from rejoinder.files import paths
from rejoinder.files.output import only_run, open_output, whole_folder
closed = sys.argv[1]
os.chmod(closed, 0)
os.setuid(65534)
def enter(manager):
    with manager:
        pass
for look in (
    paths.exists, paths.open_input, paths.check_place, paths.check_new_folder,
    lambda path: paths.check_output(path, []),
    lambda path: enter(open_output(path)),
    lambda path: enter(whole_folder(path)),
    lambda path: enter(only_run(path)),
):
    for path in (closed + "/x", closed + "/x/y"):
        try:
            look(path)
        except RejoinderError as error:
            assert str(error).startswith(closed) and str(error).count("permission denied") == 1
        else:
            raise AssertionError(path)
print("refused")
"""


@pytest.mark.skipif(sys.platform == "win32" or os.getuid() != 0, reason="only root changes users")
def test_two_outputs_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths.check_different("a.jsonl", "b.jsonl", None, "-", "-")
    with pytest.raises(UsageError, match=r"\./a\.jsonl: two outputs would be written here"):
        paths.check_different("a.jsonl", None, "./a.jsonl")


@pytest.mark.parametrize(
    "arguments",
    [
        ["score", "items.jsonl", "-m", "bleu", "-o", "same", "--costs", "same"],
        ["plan", "items.jsonl", "--budget", "1", "-o", "same", "--all", "same"],
    ],
    ids=["score", "plan"],
)
def test_verbs_with_two_outputs(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("items.jsonl").write_text('{"id": "1", "response": "a", "references": ["a"]}\n')
    assert run(arguments) == 2
    assert "two outputs would be written here" in capfd.readouterr().err
    assert not Path("same").exists()


def test_no_permission_on_a_folder_on_the_way(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        if folder.owner() == "root" and "pytest" in str(folder):
            folder.chmod(0o755)
    closed = tmp_path / "closed"
    closed.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", NO_PERMISSION, str(closed)], capture_output=True, text=True
    )
    assert done.stdout == "refused\n", done.stderr


def test_hidden_names_are_short_and_distinct(tmp_path: Path) -> None:
    long = [tmp_path / f"{'x' * 249}{end}" for end in "ab"]
    assert paths.work_folder(tmp_path / "pairs.parquet").name == ".pairs.parquet.work"
    assert len({paths.work_folder(path).name for path in long}) == 2
    assert all(len(paths.work_folder(path).name) < 100 for path in long)
    assert issubclass(UsageError, RejoinderError)
