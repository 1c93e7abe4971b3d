"""Running steps: what is done is not done again, and nothing else is taken for done.

The steps here are small Python programs in place of Rejoinder's own command line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rejoinder.errors import DataError, ResourceError, UsageError
from rejoinder.recipe import run as running
from rejoinder.recipe.file import Recipe, Step
from rejoinder.recipe.run import StepFailed, pending, run_recipe

COPY = "import sys; a, b = sys.argv[1:]; open(b, 'w').write(open(a).read().strip() + '!\\n')"


@pytest.fixture(autouse=True)
def small_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``-c CODE ARGUMENTS`` instead of ``rejoinder ARGUMENTS``."""
    monkeypatch.setattr(running, "PROGRAM", (sys.executable, "-c"))
    monkeypatch.chdir(tmp_path)
    Path("in").write_text("a\n")


def chain(code: str = COPY) -> Recipe:
    """in → w/one → w/two"""
    one = Step("one", (code, "in", "w/one"), ("w/one",), ("in",))
    two = Step("two", (COPY, "w/one", "w/two"), ("w/two",), ("w/one",))
    return Recipe("r.toml", "", (one, two), None)


def do(recipe: Recipe) -> list[str]:
    """Run, and tell which steps were done."""
    outcomes = run_recipe(recipe, Path("w"), on_start=lambda *_: None, on_finish=lambda *_: None)
    return [outcome.name for outcome in outcomes if outcome.state == "done"]


def test_nothing_is_done_twice() -> None:
    assert do(chain()) == ["one", "two"]
    assert Path("w/two").read_text() == "a!!\n"
    assert do(chain()) == []


def test_a_changed_input_goes_all_the_way() -> None:
    do(chain())
    Path("in").write_text("b\n")
    assert pending(chain(), Path("w")) == [True, True]
    assert do(chain()) == ["one", "two"]
    assert Path("w/two").read_text() == "b!!\n"


def test_an_equal_result_stops_the_chain() -> None:
    """The input changed, what was made of it did not: the second step has nothing to do."""
    do(chain())
    Path("in").write_text("a   \n")
    assert do(chain()) == ["one"]


def test_a_new_command_line_is_another_step() -> None:
    do(chain())
    assert do(chain(COPY + " # changed")) == ["one"]


@pytest.mark.parametrize("how", ["deleted", "edited"])
def test_a_step_is_repeated_if_its_output_was_deleted_or_changed(how: str) -> None:
    do(chain())
    Path("w/one").unlink() if how == "deleted" else Path("w/one").write_text("cut")
    assert do(chain()) == ["one"]
    assert Path("w/one").read_text() == "a!\n"


def test_another_version_does_everything_again(monkeypatch: pytest.MonkeyPatch) -> None:
    do(chain())
    monkeypatch.setattr("rejoinder.recipe.state.code_version", lambda: "99.9")
    assert pending(chain(), Path("w")) == [True, True]
    assert do(chain()) == ["one", "two"]


def test_the_version_tells_any_change_of_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rejoinder.recipe import state

    code = tmp_path / "rejoinder" / "recipe" / "state.py"
    code.parent.mkdir(parents=True)
    code.write_text("a = 1\n")
    monkeypatch.setattr(state, "__file__", str(code))
    state.code_version.cache_clear()
    before = state.code_version()
    for path, text in ((code, "a = 2\n"), (code.parents[1] / "new.toml", "a = 2\n")):
        path.write_text(text)
        assert state.code_version() == before  # looked for once
        state.code_version.cache_clear()
        assert state.code_version() != before
        before = state.code_version()
    (code.parent / "__pycache__").mkdir()
    (code.parent / "__pycache__" / "state.pyc").touch()
    state.code_version.cache_clear()
    assert state.code_version() == before
    state.code_version.cache_clear()


def test_a_damaged_memory_is_no_memory() -> None:
    do(chain())
    Path("w/.run.json").write_text('{"one": ')
    assert do(chain()) == ["one", "two"]


def test_digests_of_folders_depend_on_names_and_content() -> None:
    make = "import os, sys; os.makedirs('w/d/e', exist_ok=True); open('w/d/e/f', 'w').write('1')"
    step = Step("folder", (make,), ("w/d",), ())
    last = Step("last", (COPY, "w/d/e/f", "w/x"), ("w/x",), ("w/d",))
    recipe = Recipe("r.toml", "", (step, last), None)
    assert do(recipe) == ["folder", "last"]
    assert do(recipe) == []
    os.rename("w/d/e", "w/d/g")
    assert pending(recipe, Path("w")) == [True, True]


def test_stdout_appears_whole_or_not_at_all() -> None:
    def printing(code: str) -> Recipe:
        return Recipe("r.toml", "", (Step("p", (code,), ("w/out",), (), "w/out"),), None)

    do(printing("print('kept')"))
    with pytest.raises(StepFailed, match="step 'p' failed with exit code 3") as failure:
        do(printing("import sys; print('half'); print('why', file=sys.stderr); sys.exit(3)"))
    assert failure.value.exit_code == 3
    assert failure.value.log.read_text() == "why\n"
    assert Path("w/out").read_text() == "kept\n"
    assert {path.name for path in Path("w").iterdir()} == {"out", "logs", ".run.json", ".run.lock"}
    # what is left is the result of another command
    assert do(printing("print('new')")) == ["p"]


def test_a_failed_step_is_not_done_though_its_file_is_there() -> None:
    half = "import sys; open('w/one', 'w').write('half'); sys.exit(1)"
    do(chain())
    with pytest.raises(StepFailed):
        do(chain(half))
    assert do(chain()) == ["one"]


def test_a_step_that_does_not_write_its_outputs_fails() -> None:
    with pytest.raises(StepFailed, match="step 'one' did not write w/one") as failure:
        do(chain("pass"))
    assert failure.value.exit_code == 3


def test_a_step_whose_input_is_not_there() -> None:
    Path("in").unlink()
    with pytest.raises(StepFailed, match="step 'one' needs in, which does not exist"):
        do(chain())


def test_a_killed_step_is_named() -> None:
    with pytest.raises(StepFailed, match="was killed by signal 9") as failure:
        do(chain("import os; os.kill(os.getpid(), 9)"))
    assert failure.value.exit_code == 137


def test_two_runs_do_not_share_a_folder() -> None:
    inside = [""]

    def start(step: Step, number: int) -> None:
        with pytest.raises(ResourceError, match="another run is using") as error:
            do(chain())
        inside[0] = str(error.value)

    run_recipe(chain(), Path("w"), on_start=start, on_finish=lambda *_: None)
    assert inside[0].startswith("w: ")


def test_an_interrupted_run_stops_its_step_and_goes_on_later(tmp_path: Path) -> None:
    """The first step ends; the second sleeps until the run is stopped."""
    child = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    program = f"""
import sys
from pathlib import Path
from rejoinder.recipe import run as running
from rejoinder.recipe.file import Recipe, Step
import signal
signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
running.PROGRAM = (sys.executable, "-c")
one = Step("one", ({COPY!r}, "in", "w/one"), ("w/one",), ("in",))
two = Step("two", ({child!r},), ("w/two",), ("w/one",))
running.run_recipe(Recipe("r", "", (one, two), None), Path("w"),
                   on_start=lambda *_: None, on_finish=lambda *_: None)
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    deadline = time.monotonic() + 60
    pid = tmp_path / "pid"
    while time.monotonic() < deadline and not (pid.exists() and pid.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert do(chain()) == ["two"]


def test_a_step_that_outlives_its_run_keeps_the_lock(tmp_path: Path) -> None:
    """A run that is killed at once cannot stop its step: the folder stays locked until it ends."""
    child = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    program = f"""
import sys
from pathlib import Path
from rejoinder.recipe import run as running
from rejoinder.recipe.file import Recipe, Step
running.PROGRAM = (sys.executable, "-c")
one = Step("one", ({child!r},), ("w/one",), ())
running.run_recipe(Recipe("r", "", (one,), None), Path("w"),
                   on_start=lambda *_: None, on_finish=lambda *_: None)
"""
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path)
    deadline = time.monotonic() + 60
    pid = tmp_path / "pid"
    while time.monotonic() < deadline and not (pid.exists() and pid.read_text()):
        time.sleep(0.05)
    process.kill()
    process.wait(30)
    with pytest.raises(ResourceError, match="another run is using this work folder"):
        do(chain())
    os.kill(int(pid.read_text()), signal.SIGKILL)
    while time.monotonic() < deadline:
        try:
            assert do(chain()) == ["one", "two"]
            break
        except ResourceError:
            time.sleep(0.05)
    assert Path("w/two").read_text() == "a!!\n"


def test_recipes_that_run_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    see = f"import os; open('w/one', 'w').write(os.environ[{running.RUNNING!r}])"
    assert do(Recipe("r.toml", "", (Step("one", (see,), ("w/one",), ()),), None)) == ["one"]
    monkeypatch.setenv(running.RUNNING, Path("w/one").read_text())
    with pytest.raises(UsageError, match="the recipe runs itself, which would never end"):
        do(chain())
    other = Recipe("other.toml", "", (Step("two", (see,), ("w/one",), ()),), None)
    assert do(other) == ["two"]
    home = os.getcwd()
    assert Path("w/one").read_text() == f"{home}/r.toml{os.pathsep}{home}/other.toml"


@pytest.mark.parametrize("path", ["/dev/zero", "pipe", "folder-with-a-pipe"])
def test_an_input_without_an_end_is_refused(path: str) -> None:
    os.mkfifo("pipe")
    Path("folder-with-a-pipe").mkdir()
    os.mkfifo("folder-with-a-pipe/pipe")
    step = Step("one", (COPY, path, "w/one"), ("w/one",), (path,))
    with pytest.raises(DataError, match="cannot be read: it is a pipe or a device"):
        do(Recipe("r.toml", "", (step,), None))


def test_a_log_that_cannot_be_written() -> None:
    Path("w/logs/one.txt").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"w/logs/one\.txt: cannot be written: is a directory"):
        do(chain())


def test_a_long_step_reports_that_it_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "INTERVAL", 0.1)
    code = "import time; print('loading', flush=True); time.sleep(1); open('w/one', 'w')"
    step = Step("one", (code,), ("w/one",), ())
    reports: list[tuple[str, str]] = []
    run_recipe(
        Recipe("r.toml", "", (step,), None),
        Path("w"),
        on_start=lambda step, number: None,
        on_finish=lambda outcome, number: None,
        on_wait=lambda step, seconds, log: reports.append((step.name, log.read_text())),
    )
    assert ("one", "loading\n") in reports
