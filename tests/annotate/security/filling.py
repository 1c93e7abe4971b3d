"""Fill in the form of a page of any kind, as a person would who sees only the page."""

from __future__ import annotations

from collections.abc import Iterable
from html.parser import HTMLParser

import numpy as np

Tag = tuple[str, dict[str, str]]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))


def tags(html: str) -> list[Tag]:
    """Return the tags of a page with their attributes."""
    parser = _Tags()
    parser.feed(html)
    parser.close()
    return parser.found


def hidden(html: str) -> dict[str, str]:
    """Return the hidden fields of a page."""
    return {
        each["name"]: each.get("value", "")
        for tag, each in tags(html)
        if tag == "input" and each.get("type") == "hidden"
    }


def filled_in(html: str, rng: np.random.Generator, word: str = "") -> dict[str, str]:
    """Return the form of a page with an answer to everything; written replies begin with ``word``,
    if it fits."""
    form = hidden(html)
    choices: dict[str, list[str]] = {}
    for tag, each in tags(html):
        name = each.get("name", "")
        if tag == "input" and each.get("type") == "radio":
            choices.setdefault(name, []).append(each["value"])
        elif tag == "input" and each.get("type") == "checkbox":
            form[name] = each["value"]
        elif tag == "textarea" and name.startswith("reply-"):
            form[name] = _text(int(each["data-min"]), int(each["data-max"]), rng, word)
    for name, values in choices.items():
        form[name] = str(rng.choice(values))
    return form


def _text(least: int, most: int, rng: np.random.Generator, word: str) -> str:
    """Return a text of random letters whose length is allowed."""
    length = int(rng.integers(max(least, min(most, 5)), min(most, least + 30) + 1))
    letters = "".join(rng.choice(list("bcdfghklmnprstvw"), most))
    return (f"{word} {letters}" if len(word) + 5 < most else letters)[: max(length, len(word) + 5)][
        :most
    ]


def inline_code(html: str) -> list[Tag]:
    """Return tags with scripts, styles or event handlers in the page itself."""
    found: Iterable[Tag] = tags(html)
    return [
        (tag, each)
        for tag, each in found
        if (tag == "script" and not each.get("src", "").startswith("/static/"))
        or tag in ("style", "base", "iframe", "object", "embed")
        or any(name == "style" or name.startswith("on") for name in each)
        or any("javascript:" in value.lower() for value in each.values())
    ]
