"""One file: the template, its style, its script and its data, and nothing from elsewhere.

Text from data can't break the page: Jinja escapes it, the script writes it as text only, and the
policy at the head of the page lets nothing run but the page's own script.
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
from rejoinder.reporting.page.browse import browsable
from rejoinder.reporting.page.build import Made, browsing, build
from rejoinder.reporting.page.findings import Findings
from rejoinder.reporting.page.sample import choose
from rejoinder.text.tokenizers.base import Tokenizer

MOST_BYTES = 3_000_000
SPARE = 50_000
FEWEST_ITEM_BYTES = 100_000
PACKAGE = "rejoinder.reporting.page"


def render(findings: Findings, made: Made, tokenizer: Tokenizer, *, most_items: int) -> bytes:
    """The page; as many of the items as it has room for."""
    context = build(findings, made)
    nothing = {"browse": None, "payload": "null", "asked": most_items}
    bare = len(_fill(context | nothing).encode())
    room = MOST_BYTES - SPARE - bare
    if room < FEWEST_ITEM_BYTES:
        raise UsageError(
            f"the page would be larger than {MOST_BYTES / 1e6:g} MB: metrics are too many, or names"
            " too long; make a report of fewer metrics"
        )
    sample = choose(findings.material, most_items, findings.settings.seed)
    items = browsable(findings.material, sample, tokenizer, most_bytes=room)
    return _fill(context | browsing(items, most_items)).encode()


def _fill(context: dict[str, Any]) -> str:
    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    style, script = _own("page.css"), _own("page.js")
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
    """A name that may go on in the next line after its signs, and before a bracket."""
    return Markup(re.sub(r"(?<=[_/.:@=,-])(?=\w)|(?<=\w)(?=\()", "<wbr>", str(escape(name))))


def _own(name: str) -> str:
    return (resources.files(PACKAGE) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
