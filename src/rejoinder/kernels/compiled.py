"""Decorators that compile kernels with numba; machine code is cached on disk if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function; its type is kept for type checkers."""
    return _compile(function)


def regrouped(function: F) -> F:
    """Compile a function whose sums may be reordered, to use vector registers; NaN stays NaN."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def _compile(function: F, **options: Any) -> F:
    try:
        return cast(F, njit(function, cache=True, nogil=True, **options))
    except RuntimeError:
        # neither the folder of the package nor that of the user can be written (a read-only
        # installation, no home): every process compiles again
        return cast(F, njit(function, nogil=True, **options))
