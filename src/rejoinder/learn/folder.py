"""Folders: one that a single run works in, and one that appears whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from rejoinder.errors import ResourceError, UsageError
from rejoinder.machine import locked


@contextlib.contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Make a folder and keep other runs out of it; the system lets go of it after a kill."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / "lock", "wb")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{folder}: the work folder cannot be written: {reason}") from None
    with lock:
        if not locked(lock):
            raise ResourceError(f"{folder}: another run is using this work folder; wait for it")
        yield


def check_new_folder(path: Path, may_replace: Callable[[Path], bool] = lambda path: False) -> None:
    """Before any work: the folder can be made, and nobody's files would be lost."""
    if path.is_dir():
        if any(path.iterdir()) and not may_replace(path):
            raise UsageError(f"{path}: is a folder with other things; choose another name")
    elif path.exists():
        raise UsageError(f"{path}: is a file; choose another name, a folder is written")
    elif not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: cannot be written: there is no folder {path.parent}")


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """A hidden folder to fill, which takes the place of ``path`` in the end."""
    path = path.absolute()
    hidden = path.with_name(f".{path.name[:40]}.{os.getpid()}.part")
    old = hidden.with_suffix(".old")
    try:
        shutil.rmtree(hidden, ignore_errors=True)
        hidden.mkdir()
        yield hidden
        if path.exists():
            # two renames: between them there is no folder, but never half of one
            os.rename(path, old)
        os.rename(hidden, path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ResourceError(f"{path}: cannot be written: {reason}") from None
    finally:
        for rest in (hidden, old):
            shutil.rmtree(rest, ignore_errors=True)
