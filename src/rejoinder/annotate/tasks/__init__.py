"""Kinds of task, one file each: what is shown, what is checked, what is exported."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_CLASSES = {
    "rate": "Rate",
    "write": "Write",
    "compare": "Compare",
    "diversity": "Diversity",
    "comprehension": "Comprehension",
}


def kind_of(name: str) -> Any:
    """Return the class of a kind of task (a subclass of ``tasks.kind.Kind``)."""
    return getattr(import_module(f"rejoinder.annotate.tasks.{name}"), _CLASSES[name])
