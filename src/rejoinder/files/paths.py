"""Look at, open and check the paths that a user names.

Every ``stat`` and ``open`` of a user's path goes through this module: a missing permission, a
name that is too long, a loop of links or a NUL byte become one message with the path in it.
Paths of inputs raise DataError (exit code 3), paths of outputs UsageError (exit code 2).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
from collections.abc import Callable, Iterable
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from rejoinder.errors import DataError, UsageError
from rejoinder.wording import option

AnyPath = str | os.PathLike[str]
"""A path as users pass it."""

_ABSENT = (FileNotFoundError, NotADirectoryError)


def reason(error: OSError) -> str:
    """Return what the operating system says about an error, in lower case.

    >>> reason(PermissionError(13, "Permission denied"))
    'permission denied'
    """
    return (error.strerror or str(error)).lower()


def read_error(path: AnyPath, error: Exception, damage: str) -> DataError:
    """Return the DataError for a file that a library could not read.

    The message is the reason of the operating system if it refused, else ``damage``, in which
    ``{}`` is replaced by the first line of the library's message.
    """
    if isinstance(error, OSError) and error.strerror:
        return DataError(f"cannot be read: {reason(error)}", path=str(path))
    return DataError(damage.format(str(error).partition("\n")[0]), path=str(path))


def exists(path: AnyPath) -> bool:
    """Return whether there is a file, folder, pipe or device of this name."""
    return _input_mode(path) is not None


def is_file(path: AnyPath) -> bool:
    """Return whether the path is a regular file."""
    mode = _input_mode(path)
    return mode is not None and stat.S_ISREG(mode)


def is_folder(path: AnyPath) -> bool:
    """Return whether the path is a folder."""
    mode = _input_mode(path)
    return mode is not None and stat.S_ISDIR(mode)


def open_input(path: AnyPath) -> BufferedReader:
    """Open a file, pipe or device for reading; a folder is refused."""
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(0, "it is a folder")
        return open(path, "rb")
    except OSError as error:
        raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None
    except ValueError:
        raise DataError("cannot be read: the name is not valid", path=_shown(path)) from None


def open_regular(path: AnyPath) -> BufferedReader:
    """Open a regular file for reading; a pipe or a device, which may have no end, is refused."""
    if exists(path) and not is_file(path) and not is_folder(path):
        raise DataError("cannot be read: it is a pipe or a device, not a file", path=str(path))
    return open_input(path)


def open_stdin() -> IO[bytes]:
    """Return stdin as a binary stream."""
    if sys.stdin is None:
        raise UsageError("stdin is closed; give the name of a file instead of -")
    return sys.stdin.buffer


def file_digest(path: AnyPath, kind: str | Callable[[], Any] = "sha256") -> bytes:
    """Return the digest of a file's content."""
    with open_input(path) as stream:
        try:
            return hashlib.file_digest(stream, kind).digest()
        except OSError as error:
            raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None


def check_output(path: AnyPath | None, inputs: Iterable[AnyPath | None]) -> None:
    """Refuse, before any work, an output that can't be a file, would overwrite an input, or would
    be written into an input folder, such as an evaluator."""
    if path is None or str(path) == "-":
        return
    mode = output_mode(path)
    if mode is None:
        _check_parent(Path(path))
        return
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path}: cannot be written: it is a folder")
    for name in inputs:
        if name is None or str(name) == "-" or not exists(name):
            continue
        if os.path.samefile(path, name) or resolve(name) in resolve(path).parents:
            raise UsageError(f"{path}: the output would overwrite the input; choose another name")


def check_different(*outputs: AnyPath | None) -> None:
    """Refuse, before any work, two outputs of one name: the second would replace the first."""
    seen: set[Path] = set()
    for path in outputs:
        if path is None or str(path) == "-":
            continue
        if (place := resolve(path)) in seen:
            raise UsageError(f"{path}: two outputs would be written here; choose another name")
        seen.add(place)


def check_place(path: AnyPath) -> None:
    """Refuse, before any work, an output that has to be a file and can't be one."""
    if str(path) == "-":
        raise UsageError(f"{option('output', '-')}: this is not written to stdout; name a file")
    mode = output_mode(path)
    if mode is None:
        _check_parent(Path(path))
    elif stat.S_ISDIR(mode):
        raise UsageError(f"{path}: cannot be written: it is a folder")


def check_new_folder(
    path: AnyPath, may_replace: Callable[[Path], bool] = lambda path: False
) -> None:
    """Refuse, before any work, a folder that can't be made or that would replace other files.

    ``may_replace`` says whether the folder that is already there may be replaced.
    """
    path = Path(path)
    mode = output_mode(path)
    if mode is None:
        _check_parent(path)
    elif not stat.S_ISDIR(mode):
        raise UsageError(f"{path}: is a file; choose another name, a folder is written")
    else:
        try:
            empty = not any(path.iterdir())
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {reason(error)}") from None
        if not empty and not may_replace(path):
            raise UsageError(f"{path}: is a folder with other things; choose another name")


def make_parent(path: AnyPath) -> None:
    """Make the folder that a new folder is to be in, such as bots/ of bots/hred, if only that one
    is missing; what can't be made is reported by :func:`check_new_folder`."""
    with contextlib.suppress(OSError):
        Path(path).absolute().parent.mkdir(exist_ok=True)


def resolve(path: AnyPath) -> Path:
    """Return the absolute path without links; where links form a loop, the path as it is."""
    return Path(os.path.realpath(path))


def expand_user(path: AnyPath) -> Path:
    """Return a path with its ``~`` replaced by the home folder; without such a user, as it is.

    ``Path.expanduser`` raises RuntimeError for names such as ``~~``.
    """
    return Path(os.path.expanduser(path))


def hidden_beside(target: Path, suffix: str) -> Path:
    """Return a hidden name beside the target, such as ``.scores.jsonl.71.part``.

    A target's name may be as long as the system allows: the hidden name keeps 40 characters.
    """
    return target.with_name(f".{target.name[:40]}.{suffix}")


def work_folder(target: Path) -> Path:
    """Return the hidden folder beside ``target`` in which an interrupted run is kept."""
    target = target.absolute()
    name = target.name
    if len(name.encode()) > 200:  # still another name for each target
        name = f"{name[:40]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return target.with_name(f".{name}.work")


def _input_mode(path: AnyPath) -> int | None:
    """Return the file mode of what the path names, None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except _ABSENT:
        return None
    except OSError as error:
        raise DataError(f"cannot be read: {reason(error)}", path=str(path)) from None
    except ValueError:
        raise DataError("cannot be read: the name is not valid", path=_shown(path)) from None


def output_mode(path: AnyPath) -> int | None:
    """Return the file mode of what an output would replace, None if there is nothing."""
    try:
        return os.stat(path).st_mode
    except _ABSENT:
        return None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {reason(error)}") from None
    except ValueError:
        raise UsageError(f"{_shown(path)}: cannot be written: the name is not valid") from None


def _check_parent(path: Path) -> None:
    parent = path.absolute().parent
    mode = output_mode(parent)
    if mode is None or not stat.S_ISDIR(mode):
        raise UsageError(f"{path}: cannot be written: there is no folder {path.parent}")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path}: cannot be written: permission denied in {path.parent}")


def _shown(path: AnyPath) -> str:
    """Return a path that holds a NUL byte or half a character as it can be printed."""
    return str(path).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
