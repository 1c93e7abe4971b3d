"""``rejoinder``: finds the verb, and turns every failure into one line and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from rejoinder.cli import compare, datasets, demo, explain, ls, meta, score
from rejoinder.errors import RejoinderError, UsageError
from rejoinder.version import __version__

app = typer.Typer(
    name="rejoinder",
    help="How good are a chatbot's replies when many different replies would be right?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.command("score")(score.score)
app.command("compare")(compare.compare)
app.command("meta")(meta.meta)
app.add_typer(datasets.app, name="datasets")
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


def main() -> None:
    """The entry point of the ``rejoinder`` command."""
    # a polite kill cleans up like an interrupt: no half-written file stays behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    try:
        return _run(arguments)
    except RejoinderError as error:
        messages = error.messages if isinstance(error, UsageError) else [str(error)]
        for message in messages:
            sys.stderr.write(f"rejoinder: {message}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("rejoinder: interrupted\n")
        return 130
    except BrokenPipeError:
        # the reader of our output (head, less) has gone; that is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


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
        sys.stderr.write(f"rejoinder: {message.rstrip('.')} (see {help_command})\n")
        return 2
    return 0
