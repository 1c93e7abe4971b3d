"""Rendering of the report: template, style, script and data in one file that loads nothing.

Text from users' data can't break the page: Jinja escapes it, the script inserts it as text only,
and the content security policy allows no script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from rejoinder.errors import UsageError
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
    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    style, script = _read("page.css"), _read("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template("page.html.j2")
    return page.render(
        context
        | {"style": Markup(style), "script": Markup(script), "policy": policy}
        | {"payload": Markup(context["payload"])}
    )


def breakable(name: str) -> Markup:
    """Return a name with places for line breaks after its signs and before a bracket."""
    return Markup(re.sub(r"(?<=[_/.:@=,-])(?=\w)|(?<=\w)(?=\()", "<wbr>", str(escape(name))))


def _read(name: str) -> str:
    return (resources.files(PACKAGE) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
