"""Packages that are verbs, too: ``rejoinder.meta`` and ``rejoinder.fit`` can be called.

The command line has these verbs, and so has the Python API; but as soon as a module inside such a
package is imported, Python binds its name to the package. So the package itself is callable, and
hands over to the function of the same name in :mod:`rejoinder.api`.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    @property
    def _verb(self) -> Any:
        return getattr(importlib.import_module("rejoinder.api"), self.__name__.split(".")[1])

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._verb(*given, **named)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._verb)


def also_a_verb(package: str) -> None:
    """Let a package be called."""
    sys.modules[package].__class__ = _Verb
