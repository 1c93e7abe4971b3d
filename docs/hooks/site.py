"""The mkdocs hook of the site: generate the pages of metrics and the API reference.

``metrics`` and ``api`` in the navigation become the generated pages; pages that do not exist are
omitted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import api_pages
import metric_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

METRICS = "metrics"
API = "api"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = _navigation(config.nav, Path(config.docs_dir))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    names = metric_pages.names()
    pages = {f"{METRICS}/{name}": metric_pages.page(name) for name in names}
    pages[f"{METRICS}/index"] = metric_pages.overview()
    pages |= {f"{API}/{name}": text for name, text in api_pages.pages().items()}
    for name, text in pages.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    return files


def _navigation(entry: Any, folder: Path) -> Any:
    """Return the navigation with generated pages in place of ``metrics`` and ``api``."""
    if isinstance(entry, dict):
        return {title: _navigation(inside, folder) for title, inside in entry.items()}
    if isinstance(entry, list):
        return [_navigation(each, folder) for each in entry if _exists(each, folder)]
    if entry == METRICS:
        names = metric_pages.names()
        return [f"{METRICS}/index.md", *({name: f"{METRICS}/{name}.md"} for name in names)]
    if entry == API:
        return [{title: f"{API}/{name}.md"} for name, title in api_pages.TITLES.items()]
    return entry


def _exists(entry: Any, folder: Path) -> bool:
    return not isinstance(entry, str) or entry in (METRICS, API) or (folder / entry).is_file()
