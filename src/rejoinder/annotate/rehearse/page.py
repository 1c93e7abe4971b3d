"""Read a page of a study as a person reads it: texts and the form."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"input", "meta", "link", "br", "hr", "img"})


@dataclass
class Page:
    """What is on a page."""

    action: str = ""
    """Where its form is sent; empty if it has none."""
    hidden: dict[str, str] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    """The values of each group of radio buttons."""
    boxes: list[str] = field(default_factory=list)
    """Names of the check boxes."""
    texts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The allowed lengths of each text field."""
    turns: list[str] = field(default_factory=list)
    """The dialogue."""
    replies: list[str] = field(default_factory=list)
    """The replies, or the utterance, that are to be judged."""
    is_feedback: bool = False
    """Whether it shows the expected answer to a task of the training round."""
    outcome: str = ""
    """What became of the answer to which this page is the response."""


class _Parser(HTMLParser):
    """Collects the parts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[tuple[str, frozenset[str]]] = []
        self._text: list[str] | None = None
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        classes = frozenset(values.get("class", "").split())
        if tag == "form":
            self.page.action = values["action"]
        elif tag == "input":
            self._input(values)
        elif tag == "textarea" and "data-max" in values:
            limits = int(values["data-min"]), int(values["data-max"])
            self.page.texts[values["name"]] = limits
        self.page.is_feedback |= tag == "div" and "feedback" in classes
        if tag in VOID:
            return
        self._open.append((tag, classes))
        in_turn = tag == "p" and any("turn" in each for _, each in self._open)
        if self._text is None and (in_turn or "reply" in classes):
            target = self.page.turns if in_turn else self.page.replies
            target.append("")
            self._text, self._depth = target, len(self._open)

    def _input(self, values: dict[str, str]) -> None:
        name, value = values.get("name", ""), values.get("value", "")
        if values.get("type") == "hidden":
            self.page.hidden[name] = value
        elif values.get("type") == "radio":
            self.page.choices.setdefault(name, []).append(value)
        elif values.get("type") == "checkbox":
            self.page.boxes.append(name)

    def handle_endtag(self, tag: str) -> None:
        while self._open:
            if len(self._open) == self._depth:
                self._text, self._depth = None, 0
            if self._open.pop()[0] == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text[-1] += data


def read_page(html: str) -> Page:
    """Return what is on a page.

    >>> read_page('<form action="/answer"><input type="radio" name="r-0" value="1"></form>').choices
    {'r-0': ['1']}
    """
    parser = _Parser()
    parser.feed(html)
    parser.close()
    return parser.page
