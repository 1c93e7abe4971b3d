"""SVG elements as escaped text, the look of systems and lines, and SVG files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from rejoinder.reporting.tables import printable

PALETTE = 8
"""Colours of systems, distinguishable with any colour vision; more systems have other shapes."""

SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0Z",
    "M-4.5-4.5h9v9h-9Z",
    "M0-6L6 0L0 6L-6 0Z",
    "M0-5.5L5.5 4.5H-5.5Z",
)

# colours of lines in files, on white and on black, distinguishable with any colour vision
COLOURS = ("#0072b2", "#d55e00", "#00805d", "#a83279", "#7a5c00", "#444444")
DARK_COLOURS = ("#56b4e9", "#ff9950", "#2ecc9b", "#f09ac5", "#e5c100", "#bbbbbb")
DASHES = ("", "8 4", "2 3", "8 3 2 3", "12 3", "4 4")


def tag(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element; ``class_`` becomes class and ``stroke_width`` stroke-width."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def text(words: str, x: float, y: float, **attributes: str) -> Markup:
    """Return a text element without control characters."""
    return tag("text", printable(words), x=x, y=y, **attributes)


def _attribute(value: str | float) -> str:
    return str(escape(value)) if isinstance(value, str) else short(value)


def short(value: float) -> str:
    """Return a coordinate with one decimal, which is finer than the eye sees."""
    number = f"{value:.1f}".removesuffix(".0")
    return "0" if number == "-0" else number


def colour(system: int) -> str:
    """Return the CSS class of a system's colour; -1 is no system."""
    return "plain" if system < 0 else f"s{system % PALETTE}"


def shape(system: int) -> str:
    """Return the outline of a system's mark around the origin."""
    return SHAPES[system // PALETTE % len(SHAPES)] if system >= 0 else SHAPES[0]


def key(system: int) -> Markup:
    """Return a system's mark for running text."""
    path = tag("path", d=shape(system))
    return tag(
        "svg",
        path,
        class_=f"key {colour(system)}",
        viewBox="-7 -7 14 14",
        aria_hidden="true",
        focusable="false",
    )


def svg_file(
    title: str, description: str, width: float, height: float, marks: Sequence[str]
) -> str:
    """Return an SVG file with its own style, one element per line so that diffs are readable."""
    picture = tag(
        "svg",
        tag("title", printable(title), id="title"),
        tag("desc", printable(description), id="words"),
        tag("style", Markup(_style())),
        tag("rect", class_="paper", width=width, height=height),
        *marks,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {short(width)} {short(height)}",
        width=width,
        height=height,
        role="img",
        aria_labelledby="title words",
    )
    return f"{picture}\n".replace("><", ">\n<")


def _style() -> str:
    """Return colours by class, with others for readers who prefer dark pages."""
    rules = [
        "svg{color:#1f2328;font:13px system-ui,sans-serif}",
        "text{fill:currentColor}.head{font-size:15px;font-weight:600}",
        ".paper{fill:#fff}.axis{fill:none;stroke:currentColor}",
        ".grid{stroke:currentColor;opacity:.15}",
        ".line{fill:none;stroke-width:2}.band{opacity:.2;stroke:none}",
        *(f".line.c{n}{{stroke-dasharray:{dash}}}" for n, dash in enumerate(DASHES) if dash),
        *_coloured(COLOURS),
        "@media (prefers-color-scheme:dark){svg{color:#e6edf3}.paper{fill:#0d1117}",
        *_coloured(DARK_COLOURS),
        "}",
    ]
    return "".join(rules)


def _coloured(colours: Sequence[str]) -> Iterator[str]:
    for n, each in enumerate(colours):
        yield f".line.c{n}{{stroke:{each}}}.band.c{n},.dot.c{n}{{fill:{each}}}"
