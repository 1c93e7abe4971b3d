"""Markdown of instructions as HTML: no raw HTML, no pictures, no inline styles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

WIDE = re.compile(r"[\u2E80-\uA4CF\uF900-\uFAFF\uFE30-\uFE4F\uFF00-\uFFEF\U00020000-\U0003FFFF]")
"""Characters of Chinese and Japanese, which have no spaces between words."""

ALIGNMENT = {"text-align:right": "right", "text-align:center": "center"}


def render_markdown(text: str, level: int = 2) -> Markup:
    """Return Markdown as HTML in which everything else is escaped; headings begin at ``level``.

    >>> render_markdown("# A *b* <i>")
    Markup('<h2>A <em>b</em> &lt;i&gt;</h2>\\n')
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(6, int(token.tag[1]) + level - 1)}"
        elif token.type in ("th_open", "td_open"):  # the content security policy forbids styles
            style = str(token.attrs.pop("style", ""))
            if style in ALIGNMENT:
                token.attrs["class"] = ALIGNMENT[style]
        elif token.children:
            _prepare_links(token.children)
            _join_lines(token.children)
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _prepare_links(tokens: Sequence[Any]) -> None:
    """Let links open in a window of their own, so that nobody loses a page."""
    for token in tokens:
        if token.type == "link_open":
            token.attrs |= {"target": "_blank", "rel": "noopener noreferrer"}


def _join_lines(tokens: Sequence[Any]) -> None:
    """Let no space stand where a line ended between characters of Chinese or Japanese."""
    for number, token in enumerate(tokens):
        if token.type == "softbreak":
            before = next((each.content for each in tokens[:number][::-1] if each.content), "")
            after = next((each.content for each in tokens[number + 1 :] if each.content), "")
            if WIDE.match(before[-1:]) and WIDE.match(after[:1]):
                token.type = "text"
