"""Instructions in Markdown become HTML in which nothing of the file is executed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.annotate.web.markdown import render_markdown


def test_headings_lists_tables_and_quotes() -> None:
    html = render_markdown(
        "# Title\n\nSome *good* and **bold** text.\n\n- one\n- two\n\n> quoted\n\n"
        "| a | b |\n|---|--:|\n| 1 | 2 |\n"
    )
    for part in (
        "<h2>Title</h2>",
        "<em>good</em> and <strong>bold</strong>",
        "<li>one</li>",
        "<blockquote>\n<p>quoted</p>",
        '<td class="right">2</td>',
    ):
        assert part in html
    assert "style=" not in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "[x](javascript:alert(1))",
        "[x](JaVaScRiPt:alert(1))",
        "[x](data:text/html,<script>)",
        "![x](https://example.org/picture.png)",
        "<https://example.org/\"onclick='x'>",
    ],
)
def test_hostile_markdown_is_text(text: str) -> None:
    html = str(render_markdown(text)).lower()
    assert "<script" not in html and "<img" not in html
    assert 'href="javascript' not in html and 'href="data' not in html
    assert not re.search(r"<[^>]*\son\w+=", html)


def test_links_open_in_their_own_window() -> None:
    html = render_markdown("[our page](https://example.org/?a=1&b=2)")
    assert 'href="https://example.org/?a=1&amp;b=2" target="_blank" rel="noopener' in html


@given(st.text(alphabet="<>\"'&[]()!|*_#`~\\\n -=:/abjsx", max_size=200))
def test_only_known_tags_come_out(text: str) -> None:
    tags = set(re.findall(r"</?([a-z0-9]+)", str(render_markdown(text))))
    known = "p h2 h3 h4 h5 h6 em strong s a code pre ul ol li blockquote hr br table thead tbody"
    assert tags <= {*known.split(), "tr", "th", "td"}


def test_lines_of_japanese_are_joined_without_a_space() -> None:
    text = "適切かを\n**評価**して\n1 から\n選んで。\nOK?\nYes"
    assert render_markdown(text) == (
        "<p>適切かを<strong>評価</strong>して\n1 から選んで。\nOK?\nYes</p>\n"
    )
    assert render_markdown("한국\n말") == "<p>한국\n말</p>\n"
