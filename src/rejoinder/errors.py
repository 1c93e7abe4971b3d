"""Failures that are the user's to mend, each with the exit code of the command line.

An error message says what is wrong, where, and what to do. Everything that is not one
of these classes is a bug of ours and ends with exit code 1 and a traceback.
"""

from __future__ import annotations

from collections.abc import Sequence


class RejoinderError(Exception):
    """Base of every failure that a user can mend."""

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
    """An optional package, model or data folder is not here; the message says how to get it."""

    exit_code = 4


class ResourceError(RejoinderError):
    """The machine or the cluster gave out: no disk, no memory, no master, a worker that died."""

    exit_code = 4
