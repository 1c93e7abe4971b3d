"""Read AIML files into rules.

Files are read by expat with handlers of our own: there are no entities but those of XML itself, no
external file is opened, and elements may not be nested too deeply. Elements that AIML does not
know, such as those of HTML, are left out and their content is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from rejoinder.errors import DataError
from rejoinder.files.paths import open_regular
from rejoinder.systems.aiml.normalise import pattern_words

MAX_NESTING = 100
"""Elements within elements: more are refused."""
SET_MARK = "<set>"
"""Begins the key of a pattern's <set>; no word has a <."""
THAT, TOPIC = "<that>", "<topic>"
"""Separate the three parts of a rule's path."""
UNKNOWN_PROPERTY = "<unknown>"
"""Stands for a property that the bot does not have: nothing matches it."""

_SPACES = re.compile(r"\s+")
_ATTRIBUTES = {
    "bot": ("name",),
    "condition": ("name", "var", "value"),
    "date": ("format",),
    "get": ("name", "var"),
    "input": ("index",),
    "li": ("name", "var", "value"),
    "map": ("name",),
    "request": ("index",),
    "response": ("index",),
    "set": ("name", "var"),
    "star": ("index",),
    "that": ("index",),
    "thatstar": ("index",),
    "topicstar": ("index",),
}
"""AIML 2.0: attributes that may be written as elements inside."""


class Element(NamedTuple):
    """An element of a template."""

    tag: str
    attributes: Mapping[str, str | Content]
    children: Content


Content = tuple[str | Element, ...]


class Rule(NamedTuple):
    """A category: the path of its pattern, <that> and <topic>, and its template."""

    path: tuple[str, ...]
    template: Content

    @property
    def pattern(self) -> tuple[str, ...]:
        """The words and wildcards of the pattern."""
        return self.path[: self.path.index(THAT)]

    @property
    def in_any_context(self) -> bool:
        """Whether <that> and <topic> are not restricted."""
        return self.path[-4:] == (THAT, "*", TOPIC, "*")


class RuleProblem(Exception):
    """A category that is not a rule; the message says why."""


@dataclass
class RuleFile:
    """The rules of a file, and what was left out."""

    path: Path
    rules: list[Rule] = field(default_factory=list)
    skipped: list[tuple[int, str]] = field(default_factory=list)
    """Line and reason of categories that are not rules."""


def read_rules(path: Path, properties: Mapping[str, str]) -> RuleFile:
    """Read the rules of an AIML file; ``properties`` stand for <bot name="…"/> in patterns."""
    found = RuleFile(path)
    with open_regular(path) as stream:
        content = stream.read()
    _Reader(found, properties).read(content)
    return found


def make_rule(category: Element, properties: Mapping[str, str], topic: str = "*") -> Rule:
    """Return the rule of a <category> element."""
    parts: dict[str, Element] = {}
    for child in category.children:
        if isinstance(child, Element) and child.tag in ("pattern", "that", "topic", "template"):
            if child.tag in parts:
                raise RuleProblem(f"it has two <{child.tag}>")
            parts[child.tag] = child
    if missing := [tag for tag in ("pattern", "template") if tag not in parts]:
        raise RuleProblem(f"it has no <{missing[0]}>")
    pattern = _path(parts["pattern"].children, properties)
    if not pattern:
        raise RuleProblem("its pattern has no word")
    that = _path(parts["that"].children, properties) if "that" in parts else []
    about = _path(parts["topic"].children, properties) if "topic" in parts else pattern_words(topic)
    path = (*pattern, THAT, *(that or ["*"]), TOPIC, *(about or ["*"]))
    return Rule(path, parts["template"].children)


def _path(children: Content, properties: Mapping[str, str]) -> list[str]:
    """Return the words, wildcards and sets of a pattern."""
    words: list[str] = []
    for child in children:
        if isinstance(child, str):
            words += pattern_words(child)
        elif child.tag == "bot":
            value = properties.get(str(child.attributes.get("name", "")).lower(), "")
            words += pattern_words(value.replace("*", " ")) or [UNKNOWN_PROPERTY]
        elif child.tag == "set" and (name := plain_text(child).strip().lower()):
            words.append(SET_MARK + name)
        else:
            raise RuleProblem(f"its pattern contains <{child.tag}>")
    return words


def plain_text(element: Element) -> str:
    """Return the text directly inside an element, or the name it has as an attribute."""
    text = "".join(child for child in element.children if isinstance(child, str))
    name = element.attributes.get("name")
    return name if not text and isinstance(name, str) else text


class _Reader:
    """Collects the rules of a file from the events of expat."""

    def __init__(self, found: RuleFile, properties: Mapping[str, str]) -> None:
        self.found = found
        self.properties = properties
        self.topic = "*"
        self.line = 0
        self.in_aiml = False
        self.open: list[tuple[str, dict[str, str], list[str | Element]]] = []
        """Open elements, from <category> on."""
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.buffer_size = 1 << 16
        self.parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text
        self.parser.EntityDeclHandler = self.refuse("declares an entity")
        self.parser.SkippedEntityHandler = self.refuse("uses an entity that is not one of XML")
        self.parser.ExternalEntityRefHandler = self.refuse("refers to another file")

    def read(self, content: bytes) -> None:
        try:
            self.parser.Parse(content, True)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise self.wrong(f"not XML: {what}", error.lineno) from None
        except (LookupError, ValueError) as error:
            raise self.wrong(f"cannot be decoded: {error}") from None
        if not self.in_aiml:
            raise self.wrong("not AIML: there is no element <aiml>", 1)

    def wrong(self, message: str, line: int | None = None) -> DataError:
        line = self.parser.CurrentLineNumber if line is None else line
        return DataError(message, path=str(self.found.path), line=line)

    def refuse(self, what: str) -> Callable[..., Any]:
        def handler(*_: object) -> None:
            raise self.wrong(f"the file {what}, which is not read; expected plain AIML")

        return handler

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if ":" in name:
            name = name.rpartition(":")[2]
        if self.open:
            if len(self.open) >= MAX_NESTING:
                raise self.wrong(f"elements are nested more than {MAX_NESTING} deep")
            self.open.append((name, attributes, []))
        elif name == "category":
            self.line = self.parser.CurrentLineNumber
            self.open.append((name, attributes, []))
        elif name == "topic":
            self.topic = attributes.get("name", "*")
        elif name == "aiml":
            self.in_aiml = True

    def text(self, text: str) -> None:
        if len(self.open) > 1:  # there is nothing but space directly inside <category>
            is_plain = "\n" not in text and "  " not in text and "\t" not in text
            self.open[-1][2].append(text if is_plain else _SPACES.sub(" ", text))

    def end(self, name: str) -> None:
        if not self.open:
            if name.rpartition(":")[2] == "topic":
                self.topic = "*"
            return
        element = _element(*self.open.pop())
        if self.open:
            self.open[-1][2].append(element)
            return
        try:
            self.found.rules.append(make_rule(element, self.properties, self.topic))
        except RuleProblem as problem:
            self.found.skipped.append((self.line, str(problem)))


def _element(tag: str, attributes: dict[str, str], children: list[str | Element]) -> Element:
    """Make an element; attributes that are written as elements become attributes."""
    written = _ATTRIBUTES.get(tag)
    if written is None or not children:
        return Element(tag, attributes, tuple(children))
    values: dict[str, str | Content] = dict(attributes)
    own: list[str | Element] = []
    for child in children:
        if isinstance(child, Element) and child.tag in written:
            values[child.tag] = child.children
        else:
            own.append(child)
    return Element(tag, values, tuple(own))
