"""Turn the template of a rule into a reply."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rejoinder.systems.aiml.parsing import Content, Element, RuleProblem, make_rule
from rejoinder.systems.aiml.substitutions import GENDER, NORMAL, PERSON, PERSON2
from rejoinder.version import __version__

if TYPE_CHECKING:
    from rejoinder.systems.aiml.session import Session

REFUSED = frozenset(("system", "sraix", "learn", "learnf"))
"""Elements that ask for programs, other bots or files: they are not even evaluated."""
UNKNOWN = "unknown"
"""What AIML 2.0 says where a map or predicate has no value."""


@dataclass
class Frame:
    """What the wildcards of a matching rule stand for, and the rule's own variables."""

    star: list[str]
    thatstar: list[str]
    topicstar: list[str]
    variables: dict[str, str] = field(default_factory=dict)


Apply = Callable[[Element, str, "Session", Frame], str]
"""Makes the text of an element of its evaluated content."""


def evaluate(content: Content, session: Session, frame: Frame) -> str:
    """Return the text of a template, or of what is inside an element."""
    session.enter()
    parts: list[str] = []
    for child in content:
        if isinstance(child, str):
            parts.append(child)
            continue
        session.spend(1)
        tag = child.tag
        if tag == "condition":
            for chosen in _alternatives(child, session, frame):
                parts.append(evaluate(chosen, session, frame))
        elif tag == "random":
            parts.append(evaluate(_random(child, session), session, frame))
        elif tag in REFUSED:
            _learn_or_refuse(child, session, frame)
        else:
            inside = evaluate(child.children, session, frame) if child.children else ""
            apply = ELEMENTS.get(tag)
            # other elements, such as those of HTML, are only their content
            parts.append(f" {inside} " if apply is None else apply(child, inside, session, frame))
        session.check_length(sum(map(len, parts[-2:])))
    session.levels -= 1
    text = "".join(parts)
    session.check_length(len(text))
    return text


def _attribute(element: Element, name: str, session: Session, frame: Frame) -> str | None:
    value = element.attributes.get(name)
    return evaluate(value, session, frame).strip() if isinstance(value, tuple) else value


def _index(element: Element, session: Session, frame: Frame) -> int:
    """Return the index of an element, counted from 0."""
    text = (_attribute(element, "index", session, frame) or "1").partition(",")[0].strip()
    return int(text) - 1 if text.isdecimal() and len(text) < 5 and int(text) > 0 else 0


# what is chosen before it is evaluated


def _random(element: Element, session: Session) -> Content:
    choices = _elements(element.children, "li")
    return choices[session.choose(len(choices))].children if choices else ()


def _alternatives(element: Element, session: Session, frame: Frame) -> Iterator[Content]:
    """Yield what holds of a <condition>: one alternative, or more while they contain <loop/>."""
    if _attribute(element, "value", session, frame) is not None:
        if _holds(element, element, session, frame):
            yield element.children
        return
    choices = _elements(element.children, "li")
    while True:
        held = (child for child in choices if _holds(child, element, session, frame))
        chosen = next(held, None)
        if chosen is None:
            return
        session.spend(1)
        yield chosen.children
        if not _elements(chosen.children, "loop"):
            return


def _elements(content: Content, tag: str) -> list[Element]:
    """Return the elements with a tag that stand directly in a content."""
    return [child for child in content if isinstance(child, Element) and child.tag == tag]


def _holds(element: Element, condition: Element, session: Session, frame: Frame) -> bool:
    """Return whether a predicate has the wanted value; without a value the answer is yes."""
    wanted = _attribute(element, "value", session, frame)
    if wanted is None:
        return True
    found = ""
    for place, values in (("var", frame.variables), ("name", session.predicates)):
        name = _attribute(element, place, session, frame)
        if name is None:
            name = _attribute(condition, place, session, frame)
        if name is not None:
            found = values.get(name, "")
            break
    if wanted.strip() == "*":
        return bool(found)
    wanted, found = _folded(wanted), _folded(found)
    return wanted == found or (wanted == UNKNOWN and not found)


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _learn_or_refuse(element: Element, session: Session, frame: Frame) -> None:
    """Learn the categories inside <learn> if that is allowed; files are never read."""
    categories = _elements(element.children, "category")
    if not (session.may_learn and categories and element.tag != "system"):
        session.refused[element.tag] = None
        return
    for category in categories:
        fixed = Element("category", {}, _fix(category.children, session, frame))
        try:
            rule = make_rule(fixed, session.rules.properties)
        except RuleProblem:
            continue
        session.learn(rule)


def _fix(content: Content, session: Session, frame: Frame) -> Content:
    """Return a category with the text of its <eval> elements in their place."""
    return tuple(
        child
        if isinstance(child, str)
        else evaluate(child.children, session, frame)
        if child.tag == "eval"
        else Element(child.tag, child.attributes, _fix(child.children, session, frame))
        for child in content
    )


# what is done with the evaluated content


def _at(texts: list[str], index: int) -> str:
    return texts[index] if index < len(texts) else ""


def _star(kind: str) -> Apply:
    def apply(element: Element, inside: str, session: Session, frame: Frame) -> str:
        return _at(getattr(frame, kind), _index(element, session, frame))

    return apply


def _history(kind: str) -> Apply:
    def apply(element: Element, inside: str, session: Session, frame: Frame) -> str:
        return _at(getattr(session, kind)[::-1], _index(element, session, frame))

    return apply


def _text(change: Callable[[str], str], *, star: bool = False) -> Apply:
    """Change the content; an element without content may stand for the first wildcard."""

    def apply(element: Element, inside: str, session: Session, frame: Frame) -> str:
        return change(_at(frame.star, 0) if star and not element.children else inside)

    return apply


def _srai(element: Element, inside: str, session: Session, frame: Frame) -> str:
    return session.call(inside if element.tag == "srai" else _at(frame.star, 0))


def _set(element: Element, inside: str, session: Session, frame: Frame) -> str:
    variable = _attribute(element, "var", session, frame)
    if variable is not None:
        frame.variables[variable] = inside.strip()
    elif name := _attribute(element, "name", session, frame):
        session.predicates[name] = inside.strip()
    return inside


def _get(element: Element, inside: str, session: Session, frame: Frame) -> str:
    variable = _attribute(element, "var", session, frame)
    if variable is not None:
        return frame.variables.get(variable, UNKNOWN)
    return session.predicates.get(_attribute(element, "name", session, frame) or "", "")


def _bot(element: Element, inside: str, session: Session, frame: Frame) -> str:
    name = _attribute(element, "name", session, frame) or ""
    return session.rules.properties.get(name.lower(), "")


def _map(element: Element, inside: str, session: Session, frame: Frame) -> str:
    values = session.rules.maps.get((_attribute(element, "name", session, frame) or "").lower(), {})
    return values.get(" ".join(inside.upper().split()), UNKNOWN)


def _javascript(element: Element, inside: str, session: Session, frame: Frame) -> str:
    session.refused["javascript"] = None
    return ""


def _date(element: Element, inside: str, session: Session, frame: Frame) -> str:
    wanted = _attribute(element, "format", session, frame)
    now = session.clock()
    try:
        return now.strftime(wanted) if wanted else now.ctime()
    except ValueError:
        return now.ctime()


def _size(element: Element, inside: str, session: Session, frame: Frame) -> str:
    return str(session.rules.graph.size)


def _sentence(text: str) -> str:
    first, space, rest = text.strip().partition(" ")
    return first.capitalize() + space + rest


ELEMENTS: dict[str, Apply] = {
    "bot": _bot,
    "date": _date,
    "denormalize": _text(str.strip),
    "explode": _text(lambda text: " ".join("".join(text.split()))),
    "first": _text(lambda text: text.split()[0] if text.split() else ""),
    "formal": _text(string.capwords),
    "gender": _text(GENDER.apply, star=True),
    "get": _get,
    "gossip": _text(lambda text: ""),
    "id": _text(lambda text: "user"),
    "input": _history("inputs"),
    "javascript": _javascript,
    "loop": _text(lambda text: ""),
    "lowercase": _text(str.lower),
    "map": _map,
    "normalize": _text(NORMAL.apply),
    "person": _text(PERSON.apply, star=True),
    "person2": _text(PERSON2.apply, star=True),
    "program": _text(lambda text: f"Rejoinder {__version__}"),
    "request": _history("inputs"),
    "response": _history("outputs"),
    "rest": _text(lambda text: " ".join(text.split()[1:])),
    "sentence": _text(_sentence),
    "set": _set,
    "size": _size,
    "sr": _srai,
    "srai": _srai,
    "star": _star("star"),
    "that": _history("outputs"),
    "thatstar": _star("thatstar"),
    "think": _text(lambda text: ""),
    "topicstar": _star("topicstar"),
    "uppercase": _text(str.upper),
    "version": _text(lambda text: f"Rejoinder {__version__}"),
}
