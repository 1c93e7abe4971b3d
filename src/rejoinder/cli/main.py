"""``rejoinder``: finds the verb, and turns every failure into one line and an exit code."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import Annotated

import typer

from rejoinder.cli import (
    compare,
    contexts,
    corpus,
    datasets,
    demo,
    expand,
    explain,
    fit,
    index,
    join,
    ls,
    meta,
    pairs,
    reply,
    report,
    sample,
    score,
    show,
    train,
)
from rejoinder.cli import run as recipes
from rejoinder.cli.common import harmless
from rejoinder.errors import MissingExtra, RejoinderError, UsageError
from rejoinder.version import __version__

app = typer.Typer(
    name="rejoinder",
    help="How good are a chatbot's replies when many different replies would be right?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",  # which fills lines; the others keep the breaks of docstrings
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.command("fit")(fit.fit)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.command("meta")(meta.meta)
app.command("report")(report.report)
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
app.command("ls")(ls.ls)
app.command("explain")(explain.explain)
app.command("demo")(demo.demo)


@app.callback(invoke_without_command=True)
def options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        sys.stdout.write(f"rejoinder {__version__}\n")
        raise typer.Exit


# Typer brings its own copy of click, older releases used the package: take what it raises
_CLICK_ERROR: type[Exception] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


CLEANING_UP = 10
"""Seconds after which a signal is raised once more, if the process still lives."""


def main() -> None:
    """The entry point of the ``rejoinder`` command."""
    # a polite kill cleans up like an interrupt: no half-written file stays behind
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup wants to live on
            signal.signal(number, _leave)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what an old terminal can't show becomes a ?
            stream.reconfigure(errors="replace")
    try:
        code = run()
    finally:
        signal.alarm(0)  # cleaned up: however long the interpreter takes to end, it is leaving
    sys.exit(code)


def _leave(number: int, _: object) -> None:
    """Exit by exception. Where the signal met a callback of a library, such as a compiler's,
    the exception is swallowed there: then once more, when cleaning up should be over."""
    signal.signal(signal.SIGALRM, lambda *_: _leave(number, None))
    signal.alarm(CLEANING_UP)
    sys.exit(128 + number)


def run(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    try:
        if sys.stdout is None:
            raise UsageError("stdout is closed; send it to a file or to /dev/null")
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except RejoinderError as error:
        messages = error.messages if isinstance(error, UsageError) else [str(error)]
        for message in messages:
            sys.stderr.write(f"rejoinder: {harmless(message)}\n")
        _drop_unwritten()
        return error.exit_code
    except ModuleNotFoundError as error:
        # of an extra that is not installed, where nobody has said so in better words
        package = (error.name or "rejoinder").partition(".")[0]
        if package == "rejoinder":
            raise
        sys.stderr.write(f"rejoinder: this needs {package}: pip install {package}\n")
        return MissingExtra.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("rejoinder: interrupted\n")
        return 130
    except BrokenPipeError:
        _drop_unwritten()
        return 0
    except SystemExit as stop:
        if not isinstance(stop.__context__, BrokenPipeError):  # with which rich exits
            raise
        _drop_unwritten()
        return 0
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        _drop_unwritten()
        sys.stderr.write("rejoinder: stdout: cannot be written: no space left on device\n")
        return 2


def _drop_unwritten() -> None:
    """The reader of our output (head, less) has gone, which is its right, or the disk is full:
    what waits to be written must not fail once more at the end."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _run(arguments: list[str] | None) -> int:
    """Parse and invoke without Typer's own ``main``, which swallows interrupts and broken pipes."""
    command = typer.main.get_command(app)
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
        sys.stderr.write(f"rejoinder: {harmless(message).rstrip('.')} (see {help_command})\n")
        return 2
    return 0
