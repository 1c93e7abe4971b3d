"""Rejoinder tells how good a chatbot's replies are when many different replies would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.api import Scores, agreement, compare, diversity, load, score, score_one
    from rejoinder.io import read_items
    from rejoinder.items import Item, Reference

__all__ = [
    "Item",
    "Reference",
    "Scores",
    "__version__",
    "agreement",
    "compare",
    "diversity",
    "load",
    "read_items",
    "score",
    "score_one",
]

_HOMES = {"Item": "items", "Reference": "items", "read_items": "io"}


def __getattr__(name: str) -> Any:
    """Load the API when it is first used: ``rejoinder --help`` needs none of it."""
    if name not in __all__:
        raise AttributeError(f"module 'rejoinder' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"rejoinder.{_HOMES.get(name, 'api')}"), name)


def __dir__() -> list[str]:
    return __all__
