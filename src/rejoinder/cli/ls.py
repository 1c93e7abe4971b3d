"""``rejoinder ls``: everything that a spec can name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rejoinder.cli.common import JsonOption, print_json, say, show
from rejoinder.errors import RejoinderError

if TYPE_CHECKING:
    from rejoinder.registry import Registry


def ls(json: JsonOption = False) -> None:
    """List metrics, tokenizers, log formats, retrievers and dialogue systems."""
    from rejoinder.registry import METRICS, READERS, RETRIEVERS, SYSTEMS, TOKENIZERS

    registries = {
        "metrics": METRICS,
        "tokenizers": TOKENIZERS,
        "formats": READERS,
        "retrievers": RETRIEVERS,
        "systems": SYSTEMS,
    }
    listed = {name: _listed(registry) for name, registry in registries.items()}
    if json:
        print_json(listed)
        return
    from rejoinder.reporting.tables import plain_table

    titles = {"formats": "Log formats", "systems": "Dialogue systems"}
    for name, rows in listed.items():
        title = titles.get(name, name.capitalize())
        table = plain_table("name", "what", "parameters and defaults", title=title)
        for row in rows:
            settings = ", ".join(
                key if value is None else f"{key}={value}"
                for key, value in row["parameters"].items()
            )
            table.add_row(row["name"], row["summary"], settings)
        show(table)


def _listed(registry: Registry[Any]) -> list[dict[str, Any]]:
    """All that can be loaded; what can't is named and does not stand in the way."""
    rows = []
    for name in registry.names():
        try:
            rows.append(_describe(name, registry.find(name)))
        except RejoinderError as error:
            say(str(error))
    return rows


def _describe(name: str, cls: type) -> dict[str, Any]:
    from dataclasses import MISSING

    from rejoinder.spec import parameters, print_value

    def default(field: Any) -> str | None:
        if field.default is MISSING:
            return "(required)"
        return None if field.default is None else print_value(field.default)

    return {
        "name": name,
        "kind": getattr(cls, "judges", None) or getattr(cls, "kind", "tokenizer"),
        "summary": getattr(cls, "summary", None) or _first_line(cls),
        "needs": sorted(getattr(cls, "needs", ())),
        "parameters": {key: default(field) for key, field in parameters(cls).items()},
    }


def _first_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")
