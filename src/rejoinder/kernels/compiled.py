"""The one way to compile a kernel: numba, with what it compiled kept on disk where it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Numba's decorator with the type of the function kept."""
    return _compile(function)


def regrouped(function: F) -> F:
    """The same; sums may be regrouped, so that they run in vector registers. NaN stays NaN."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: F, **options: Any) -> F:
    try:
        return cast(F, njit(function, cache=True, nogil=True, **options))
    except RuntimeError:
        # neither the package's folder nor the user's can be written (a read-only installation,
        # no home): every process compiles for itself
        return cast(F, njit(function, nogil=True, **options))
