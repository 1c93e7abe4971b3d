"""Errors that the user can fix, each with the exit code of the command line.

An error message says what is wrong, where, and what to do. Any other exception is a bug of
Rejoinder and ends with exit code 1 and a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence

CPU_TORCH = "2.13.0"
"""The version of torch in constraints.txt, whose package has no CUDA libraries."""


class RejoinderError(Exception):
    """Base class of the errors that the user can fix."""

    exit_code = 1


class UsageError(RejoinderError):
    """Wrong arguments: an unknown metric, a parameter out of range, an unwritable output."""

    exit_code = 2

    def __init__(self, *messages: str) -> None:
        self.messages: Sequence[str] = messages
        super().__init__("\n".join(messages))


class DataError(RejoinderError):
    """Bad data, named as ``file:line: what is wrong, what was expected``."""

    exit_code = 3

    def __init__(self, message: str, *, path: str | None = None, line: int | None = None) -> None:
        self.path, self.line = path, line
        where = ":".join(str(part) for part in (path, line) if part is not None)
        super().__init__(f"{where}: {message}" if where else message)


class MissingExtra(RejoinderError):
    """An optional package, model or data folder is missing; the message says how to get it."""

    exit_code = 4


class ResourceError(RejoinderError):
    """The machine or the cluster failed: disk full, out of memory, no master, a dead worker."""

    exit_code = 4


class GateFailed(RejoinderError):
    """A condition that the user set, such as --fail-under, is not met."""

    exit_code = 5


class Terminated(SystemExit):
    """A signal ends the process; any other exit in the code of a plugin is a mistake of it."""


def missing_extra(extra: str, *packages: str, task: str = "this") -> MissingExtra:
    """Return the error for packages that are not installed, with the command that installs them.

    >>> print(missing_extra("zh", "rjieba", task="tokenizer zh-jieba"))
    tokenizer zh-jieba needs rjieba, not installed; run: pip install 'rejoinder[zh]'
    """
    message = f"{task} needs {', '.join(packages)}, not installed; run: pip install"
    if "torch" in packages:
        # other versions of torch bring gigabytes of CUDA libraries, which a CPU does not need
        message += f" 'rejoinder[{extra}]' torch=={CPU_TORCH} (the build for CPUs; leave out"
        message += f" =={CPU_TORCH} for the newest one, with CUDA)"
    else:
        message += f" 'rejoinder[{extra}]'"
    return MissingExtra(message)
