"""Elements of SVG as escaped text."""

from __future__ import annotations

from markupsafe import Markup, escape

PALETTE = 8
"""Colours that people with any colour vision can tell apart; then other shapes begin."""

SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M0-6L6 0L0 6L-6 0Z",
    "M0-5.5L5.5 4.5H-5.5Z",
)


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """An element; ``class_`` is class and ``stroke_width`` is stroke-width."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{name}{given}>{inside}</{name}>")


def _attribute(value: str | float) -> str:
    return str(escape(value)) if isinstance(value, str) else short(value)


def short(value: float) -> str:
    """A coordinate: a tenth is finer than anybody sees."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def colour(system: int) -> str:
    """The class that gives a system its colour; -1 is no system."""
    return "plain" if system < 0 else f"s{system % PALETTE}"


def shape(system: int) -> str:
    """The outline of a system's mark, around the origin."""
    return SHAPES[system // PALETTE % len(SHAPES)] if system >= 0 else SHAPES[0]


def key(system: int) -> Markup:
    """A system's mark as it stands in running text."""
    path = tag("path", d=shape(system))
    return tag(
        "svg",
        path,
        class_=f"key {colour(system)}",
        viewBox="-7 -7 14 14",
        aria_hidden="true",
        focusable="false",
    )
