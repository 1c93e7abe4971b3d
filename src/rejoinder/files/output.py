"""Write files and folders that appear whole or not at all, and lock folders of work.

An output is written under a hidden name beside its target and renamed at the end. A lock is held
by the open file: the system releases it when the process ends, even when it is killed.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import gzip
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import zstandard

from rejoinder.errors import RejoinderError, ResourceError, UsageError
from rejoinder.files.paths import AnyPath, hidden_beside, output_mode, reason, resolve

LOCK = "lock"
"""Name of the lock file in a work folder."""

PIPE_SECONDS = 10.0
"""How long a named pipe may be without a reader before it is an error."""

_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)


@contextlib.contextmanager
def open_output(path: AnyPath | None) -> Iterator[IO[bytes]]:
    """Open a binary stream to ``path``; the file appears whole, or not at all.

    None and ``-`` are stdout. Names that end in .gz or .zst are compressed. A target that is no
    regular file (a pipe, /dev/null) is written directly: renaming would replace it. A named pipe
    needs a reader within ``PIPE_SECONDS``.
    """
    if path is None or str(path) == "-":
        with _explained("stdout"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    mode = output_mode(path)
    special = mode is not None and not stat.S_ISREG(mode)
    with _explained(path):
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        target = resolve(path)  # a link stays a link, to a new file
        hidden = target if special else hidden_beside(target, f"{os.getpid()}.part")
        if not special:
            _remove_parts_of_dead_runs(target)
        is_pipe = mode is not None and stat.S_ISFIFO(mode)
        raw = _open_pipe(path) if is_pipe else open(hidden, "wb")
        if not special:
            with contextlib.suppress(OSError):  # not all file systems have locks
                take_lock(raw)
    try:
        with _explained(path):
            with raw, _compressed(raw, target.suffix) as stream:
                yield stream
            if not special:
                os.replace(hidden, target)
    except BaseException:
        if not special:
            hidden.unlink(missing_ok=True)
        raise


def _open_pipe(path: AnyPath) -> IO[bytes]:
    """Open a named pipe for writing; a plain ``open`` would wait for a reader for ever."""
    end = time.monotonic() + PIPE_SECONDS
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise UsageError(
                    f"{path}: nobody opened this pipe for reading within {PIPE_SECONDS:g} seconds;"
                    " start its reader first"
                ) from None
            time.sleep(0.05)
        else:
            os.set_blocking(descriptor, True)
            return open(descriptor, "wb")


def _remove_parts_of_dead_runs(target: Path) -> None:
    """Remove the unfinished files of earlier runs with this target that were killed.

    A run locks its file. Its process id alone would not do: in another container, or on another
    machine, the process may run.
    """
    prefix = hidden_beside(target, "").name
    for part in target.parent.glob(f"{glob.escape(prefix)}*.part"):
        pid = part.name[len(prefix) : -len(".part")]
        if not pid.isdecimal() or _is_running(int(pid)):
            continue
        with contextlib.suppress(OSError), open(part, "rb") as file:
            if take_lock(file):
                part.unlink()


def _is_running(pid: int) -> bool:
    """Return whether a process may run; always True on Windows, where asking would end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # a process of somebody else
        return True
    return True


@contextlib.contextmanager
def whole_folder(target: AnyPath) -> Iterator[Path]:
    """Yield a hidden folder to fill; it becomes ``target`` if the block ends without an error."""
    target = resolve(target)
    hidden = hidden_beside(target, f"{os.getpid()}.part")
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir()
        yield hidden
        replace_folder(hidden, target)
    except OSError as error:
        raise unwritable(target, error) from None
    finally:
        shutil.rmtree(hidden, ignore_errors=True)


def replace_folder(folder: Path, target: Path) -> None:
    """Rename a finished folder to ``target``, in place of the folder that is there, if any."""
    if not target.exists():
        os.rename(folder, target)
        return
    # two renames: between them there is no folder, but never half of one
    old = hidden_beside(target, f"{os.getpid()}.old")
    shutil.rmtree(old, ignore_errors=True)
    os.rename(target, old)
    os.rename(folder, target)
    shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def only_run(folder: AnyPath, name: str = LOCK) -> Iterator[IO[bytes]]:
    """Make a work folder and keep other runs out of it; yields the open lock file.

    A process that inherits the lock file keeps the lock. Close it to release the lock early.
    """
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / name, "wb")
    except (OSError, ValueError) as error:
        why = reason(error) if isinstance(error, OSError) else "the name is not valid"
        raise UsageError(f"{folder}: the work folder cannot be written: {why}") from None
    with lock:
        if not take_lock(lock):
            raise ResourceError(f"{folder}: another run is using this work folder; wait for it")
        yield lock


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, waiting for another process that holds it."""
    try:
        lock = open(path, "wb")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {reason(error)}") from None
    with lock:
        while not take_lock(lock):
            time.sleep(0.1)
        yield


def take_lock(file: IO[bytes]) -> bool:
    """Lock an open file for this process; False if another one holds it."""
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unwritable(target: AnyPath, error: OSError) -> RejoinderError:
    """Return the message for an output that can't be written: a full disk is not the user's."""
    kind = ResourceError if error.errno in _FULL else UsageError
    return kind(f"{target}: cannot be written: {reason(error)}")


@contextlib.contextmanager
def _explained(target: AnyPath) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {reason(error)}") from None


def _compressed(raw: IO[bytes], suffix: str) -> contextlib.AbstractContextManager[IO[bytes]]:
    if suffix == ".gz":
        # neither name nor time stamp: the same scores make the same bytes
        return cast(IO[bytes], gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0))
    if suffix == ".zst":
        return zstandard.ZstdCompressor(write_checksum=True).stream_writer(raw, closefd=False)
    return contextlib.nullcontext(raw)
