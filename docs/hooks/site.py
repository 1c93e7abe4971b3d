"""What mkdocs does before it builds: adds a page for each metric, and leaves out of the navigation
what is not there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from metric_pages import names, overview, page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

FOLDER = "metrics"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = _present(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    pages = {"index": overview(), **{name: page(name) for name in names()}}
    for name, text in pages.items():
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text))
    return files


def _present(entry: Any, folder: Path) -> Any:
    """The navigation with a page for each metric in place of ``metrics``."""
    if isinstance(entry, dict):
        return {title: _present(inside, folder) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [_present(each, folder) for each in entry if _exists(each, folder)]
    if entry == FOLDER:
        return [f"{FOLDER}/index.md", *({name: f"{FOLDER}/{name}.md"} for name in names())]
    return entry


def _exists(entry: Any, folder: Path) -> bool:
    return not isinstance(entry, str) or entry == FOLDER or (folder / entry).is_file()
