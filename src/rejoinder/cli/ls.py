"""``rejoinder ls``."""

from __future__ import annotations

from rejoinder.cli.monitor import TerminalMonitor
from rejoinder.cli.options import JsonOption, PluginOption, load_plugins
from rejoinder.cli.terminal import print_json, show

TITLES = {
    "formats": "Log formats",
    "systems": "Dialogue systems",
    "writers": "Writers of references",
    "pair_judges": "Judges of pairs",
}


def ls(plugin: PluginOption = None, json: JsonOption = False) -> None:
    """List metrics, tokenizers, log formats, retrievers, dialogue systems, writers and judges."""
    from rejoinder.verbs.ls import ls as run

    load_plugins(plugin)
    result = run(monitor=TerminalMonitor())
    if json:
        print_json(result)
        return
    from rejoinder.reporting.tables import plain_table

    for name, rows in result.entries.items():
        title = TITLES.get(name, name.capitalize())
        table = plain_table("name", "what it is", "parameters and defaults", title=title)
        for row in rows:
            settings = ", ".join(
                key if value is None else f"{key}={value}"
                for key, value in row["parameters"].items()
            )
            table.add_row(row["name"], row["summary"], settings)
        show(table)
