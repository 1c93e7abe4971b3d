"""Rejoinder tells how good a chatbot's replies are when many different replies would be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.io import read_items
    from rejoinder.items import Item, Reference
    from rejoinder.verbs import (
        Agreement,
        Evaluator,
        Items,
        Rankings,
        Results,
        Scores,
        SetResults,
        compare,
        diversity,
        fit,
        load,
        meta,
        score,
        score_one,
    )
    from rejoinder.verbs import meta as agreement

__all__ = [
    "Agreement",
    "Evaluator",
    "Item",
    "Items",
    "Rankings",
    "Reference",
    "Results",
    "Scores",
    "SetResults",
    "__version__",
    "agreement",
    "compare",
    "diversity",
    "fit",
    "load",
    "meta",
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

    home = importlib.import_module(f"rejoinder.{_HOMES.get(name, 'verbs')}")
    return getattr(home, "meta" if name == "agreement" else name)


def __dir__() -> list[str]:
    return __all__
