"""Pages in one file that load nothing: template, style, script and data.

Text from users' data can't break a page: Jinja escapes it, scripts insert it as text only, and the
content security policy allows no script but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape


def fill_page(package: str, context: dict[str, Any], styles: list[str] | None = None) -> str:
    """Return the page of a package's templates: page.html.j2, page.css and page.js.

    ``styles`` are texts of other style sheets that come before page.css.
    """
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = breakable
    style = "\n".join([*(styles or []), read_template(package, "page.css")])
    script = read_template(package, "page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " base-uri 'none'; form-action 'none'"
    )
    page = environment.get_template("page.html.j2")
    return page.render(
        context | {"style": Markup(style), "script": Markup(script), "policy": policy}
    )


def breakable(name: str) -> Markup:
    """Return a name with places for line breaks after its signs and before a bracket."""
    return Markup(re.sub(r"(?<=[_/.:@=,-])(?=\w)|(?<=\w)(?=\()", "<wbr>", str(escape(name))))


def read_template(package: str, name: str) -> str:
    """Return the text of a style sheet or script."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
