"""``rejoinder``: run a verb, and turn every error into one line and an exit code."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys
from typing import Annotated, Any

import typer

from rejoinder.cli import (
    annotate,
    calibrate,
    compare,
    contexts,
    corpus,
    datasets,
    demo,
    estimate,
    expand,
    explain,
    fit,
    index,
    join,
    leaderboard,
    ls,
    meta,
    pairs,
    plan,
    reply,
    report,
    sample,
    score,
    show,
    train,
)
from rejoinder.cli import run as recipes
from rejoinder.cli.options import flag
from rejoinder.cli.terminal import printable
from rejoinder.errors import DataError, RejoinderError, Terminated, UsageError
from rejoinder.version import __version__
from rejoinder.wording import for_command_line

app = typer.Typer(
    name="rejoinder",
    help="Evaluate chatbot replies where many different answers would be right.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the other modes keep the line breaks of docstrings
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.command("fit")(fit.fit)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.command("meta")(meta.meta)
app.command("calibrate")(calibrate.calibrate)
app.command("estimate")(estimate.estimate)
app.command("plan")(plan.plan)
app.command("report")(report.report)
app.command("leaderboard")(leaderboard.leaderboard)
app.add_typer(datasets.app, name="datasets")
app.command("corpus")(corpus.corpus)
app.command("sample")(sample.sample)
app.command("contexts")(contexts.contexts)
app.command("join")(join.join)
app.add_typer(train.app, name="train")
app.command("index")(index.index)
app.command("expand")(expand.expand)
app.command("show")(show.show)
app.command("reply")(reply.reply)
app.command("run")(recipes.run)
app.add_typer(pairs.app, name="pairs")
app.add_typer(annotate.app, name="annotate")
app.command("ls")(ls.ls)
app.command("explain")(explain.explain)
app.command("demo")(demo.demo)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, flag("--version", "Print the version.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"rejoinder {__version__}\n")
        raise typer.Exit


# Typer brings its own copy of click, older releases used the package: take what it raises
_CLICK_ERROR: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


COMPLETION = "_REJOINDER_COMPLETE"
"""Environment variable with which the shell asks for completions."""
RESUMABLE = ("fit", "corpus", "index", "expand", "run", "demo", "train dapt", "train system")
"""Verbs that keep finished work in a hidden folder, or as finished steps, when interrupted."""
CLEANUP_SECONDS = 10
"""Seconds after which a signal is raised once more, if the process is still running."""


class _Stderr(io.TextIOWrapper):
    """stderr without its errors: if it is full, or nobody reads it, the work is still done, and
    the exit code says how it ended."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def main() -> None:
    """The entry point of the ``rejoinder`` command."""
    if os.environ.get(COMPLETION):
        app(prog_name="rejoinder")  # the shell asks for completions
        return
    # SIGTERM and SIGHUP clean up like an interrupt: no half-written file stays behind
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _leave)
    if os.environ.get("NO_COLOR"):
        os.environ.pop("FORCE_COLOR", None)  # Typer's help would follow it
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    elif isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Stderr(
            sys.stderr.buffer, sys.stderr.encoding, errors="replace", line_buffering=True
        )
    if isinstance(sys.stdout, io.TextIOWrapper):  # characters that it can't show become "?"
        sys.stdout.reconfigure(errors="replace")
    try:
        code = run()
    finally:
        _alarm(0)  # everything is cleaned up; the interpreter may take its time to end
    sys.exit(code)


def _leave(number: int, _: object) -> None:
    """Exit by exception.

    If the signal arrives inside a callback of a library, such as a compiler's, the exception is
    swallowed there: then it is raised once more, when cleaning up should be over.
    """
    if hasattr(signal, "SIGALRM"):  # Windows has none
        signal.signal(signal.SIGALRM, lambda *_: _leave(number, None))
    _alarm(CLEANUP_SECONDS)
    raise Terminated(128 + number)


def _alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    try:
        if sys.stdout is None:
            raise UsageError("stdout is closed; send it to a file or to /dev/null")
        with for_command_line():
            code = _run(arguments)
        sys.stdout.flush()
        return code
    except RejoinderError as error:
        messages = error.messages if isinstance(error, UsageError) else [str(error)]
        for message in messages:
            sys.stderr.write(f"rejoinder: {printable(message)}\n")
        _drop_unwritten()
        return error.exit_code
    except ModuleNotFoundError as error:
        # an extra that is not installed, where the code raised no MissingExtra
        package = (error.name or "rejoinder").partition(".")[0]
        if package == "rejoinder":
            raise
        return _fail(f"this needs {package}, not installed; run: pip install {package}", 4)
    except KeyboardInterrupt:
        hint = "; the same command continues where it stopped" * is_resumable(arguments)
        return _fail(f"interrupted{hint}", 130)
    except BrokenPipeError:
        _drop_unwritten()
        return 0
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # with which rich exits
            raise
        _drop_unwritten()
        return 0
    except OSError as error:
        _drop_unwritten()
        if error.errno == errno.ENOSPC and error.filename is None:
            return _fail("stdout: cannot be written: no space left on device", 2)
        where = "" if error.filename is None else f"{error.filename}: "
        return _fail(f"{where}{(error.strerror or str(error)).lower()}", DataError.exit_code)
    except MemoryError:
        return _fail("out of memory; try fewer items, metrics or references at a time", 4)
    except RecursionError:
        return _fail("the input is nested too deeply", DataError.exit_code)


def is_resumable(arguments: list[str] | None) -> bool:
    """Return whether a command keeps what it has done, and continues if it is repeated."""
    given = sys.argv[1:] if arguments is None else arguments
    verb = " ".join(given[: 2 if given[:1] == ["train"] else 1])
    return verb in RESUMABLE


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"rejoinder: {printable(message)}\n")
    return code


def _drop_unwritten() -> None:
    """Discard buffered output: its reader (head, less) has gone, or the disk is full, and writing
    must not fail once more at the end."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str] | None) -> int:
    """Parse and invoke without Typer's own ``main``, which swallows interrupts and broken pipes."""
    command = typer.main.get_command(app)
    _hide_types(command)
    try:
        with command.make_context(
            "rejoinder", sys.argv[1:] if arguments is None else arguments
        ) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return stop.exit_code
    except _CLICK_ERROR as error:
        where = getattr(error, "ctx", None)
        message = getattr(error, "format_message")()  # noqa: B009
        if not message:  # a verb without arguments: its help has been printed
            return 2
        help_command = f"{where.command_path if where else 'rejoinder'} --help"
        sys.stderr.write(f"rejoinder: {printable(message).rstrip('.')} (see {help_command})\n")
        return 2
    return 0


def _hide_types(command: Any) -> None:
    """Show flags and arguments without their types in the help, such as "<bool>"."""
    for parameter in command.params:
        if getattr(parameter, "is_flag", False) or parameter.param_type_name == "argument":
            parameter.display_type_rich = lambda ctx: None
    show_help = command.get_help_option

    def help_option(context: Any) -> Any:
        option = show_help(context)
        if option is not None:
            option.display_type_rich = lambda ctx: None
        return option

    command.get_help_option = help_option
    for each in getattr(command, "commands", {}).values():
        _hide_types(each)
