"""Folders in the cache that are made once, such as unpacked models, whoever needs them first."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from rejoinder.errors import ResourceError
from rejoinder.files.cache import cache_folder
from rejoinder.files.paths import is_folder, reason


def made_once(name: str, make: Callable[[Path], Path], *, what: str, done: str) -> Path:
    """Return the folder ``name`` of the cache; if there is none, ``make`` makes it.

    ``make`` gets an empty folder to work in and returns the one that is kept. It is renamed when it
    is complete, so that several processes can do the same at once. ``what`` ("model 'mpnet'") and
    ``done`` ("unpacked") are words of the messages.
    """
    cache = cache_folder()
    if cache is None:
        raise ResourceError(
            f"{what} has to be {done} once, but the cache is switched off:"
            " set REJOINDER_CACHE to a folder"
        )
    target = cache / name
    if not is_folder(target):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{done}-") as work:
                whole = make(Path(work))
                try:
                    whole.rename(target)
                except OSError:
                    if not target.is_dir():  # else another process was faster
                        raise
        except OSError as error:
            raise ResourceError(
                f"{what} can't be {done} to {target.parent}: {reason(error)}"
            ) from None
    return target
