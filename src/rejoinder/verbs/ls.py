"""``ls``: everything that a spec can name."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from rejoinder.errors import RejoinderError
from rejoinder.registry import (
    METRICS,
    PAIR_JUDGES,
    READERS,
    RETRIEVERS,
    SYSTEMS,
    TOKENIZERS,
    WRITERS,
    Registry,
)
from rejoinder.spec import parameters, print_value
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.results import FrameColumns, TableResult

REGISTRIES = {
    "metrics": METRICS,
    "tokenizers": TOKENIZERS,
    "formats": READERS,
    "retrievers": RETRIEVERS,
    "systems": SYSTEMS,
    "writers": WRITERS,
    "pair_judges": PAIR_JUDGES,
}


@dataclass(frozen=True)
class LsResult(TableResult):
    """Names by kind, each with its summary and parameters. The frame has a row per name."""

    entries: dict[str, list[dict[str, Any]]]

    def to_dict(self) -> dict[str, Any]:
        return self.entries

    def columns(self) -> FrameColumns:
        rows = [(kind, row) for kind, rows in self.entries.items() for row in rows]
        return {
            "kind": [kind for kind, _ in rows],
            "name": [row["name"] for _, row in rows],
            "summary": [row["summary"] for _, row in rows],
        }


def ls(*, monitor: Monitor = SILENT) -> LsResult:
    """List metrics, tokenizers, log formats, retrievers, dialogue systems, writers and judges."""
    return LsResult({name: _entries(r, monitor) for name, r in REGISTRIES.items()})


def _entries(registry: Registry[Any], monitor: Monitor) -> list[dict[str, Any]]:
    """Describe all that can be loaded; a plugin that can't is reported and left out."""
    rows = []
    for name in registry.names():
        try:
            rows.append(_describe(name, registry.find(name)))
        except RejoinderError as error:
            monitor.warn(str(error))
    return rows


def _describe(name: str, cls: type) -> dict[str, Any]:
    def default(field: Any) -> str | None:
        if field.default is MISSING:
            return "(required)"
        return None if field.default is None else print_value(field.default)

    return {
        "name": name,
        "kind": getattr(cls, "level", None) or getattr(cls, "kind", "tokenizer"),
        "summary": getattr(cls, "summary", None) or _first_line(cls),
        "needs": sorted(getattr(cls, "needs", ())),
        "parameters": {key: default(field) for key, field in parameters(cls).items()},
    }


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")
