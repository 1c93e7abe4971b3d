"""Rendering of the report, with as many items as it has room for."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from rejoinder.errors import UsageError
from rejoinder.reporting.offline_page import fill_page
from rejoinder.reporting.page.analysis import Analysis
from rejoinder.reporting.page.build import Provenance, browser_variables, build
from rejoinder.reporting.page.item_browser import browser_data
from rejoinder.reporting.page.sample import choose
from rejoinder.text.tokenizers.tokenizer import Tokenizer

MAX_BYTES = 3_000_000
SPARE = 50_000
MIN_ITEM_BYTES = 100_000
PACKAGE = "rejoinder.reporting.page"


def render(
    analysis: Analysis, provenance: Provenance, tokenizer: Tokenizer, *, max_items: int
) -> bytes:
    """Return the page with as many of the items as it has room for."""
    context = build(analysis, provenance)
    nothing = {"browse": None, "payload": "null", "max_items": max_items}
    bare = len(_fill(context | nothing).encode())
    room = MAX_BYTES - SPARE - bare
    if room < MIN_ITEM_BYTES:
        raise UsageError(
            f"the page would be larger than {MAX_BYTES / 1e6:g} MB: there are too many metrics, or"
            " names are too long; make a report of fewer metrics"
        )
    sample = choose(analysis.data, max_items, analysis.settings.seed)
    items = browser_data(analysis.data, sample, tokenizer, max_bytes=room)
    return _fill(context | browser_variables(items, max_items)).encode()


def _fill(context: dict[str, Any]) -> str:
    return fill_page(PACKAGE, context | {"payload": Markup(context["payload"])})
