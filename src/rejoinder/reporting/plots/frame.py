"""The frame of a plot: two axes with their grid and names, and the places of values."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from rejoinder.reporting.plots.scales import Scale
from rejoinder.reporting.plots.svg import short, tag


@dataclass(frozen=True)
class Layout:
    """Size of a plot and of the margins around its axes."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


SMALL = Layout(360, 250, 46, 14, 12, 42)
"""A plot of the report: readable on a phone, and beside others."""


@dataclass(frozen=True)
class Frame:
    """Two axes, their grid and their names; ``label`` is the text for screen readers."""

    x: Scale
    y: Scale
    x_name: str
    y_name: str
    label: str
    layout: Layout = SMALL

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a pair of values."""
        box = self.layout
        return (
            box.left + (box.width - box.left - box.right) * self.x(x),
            box.height - box.bottom - (box.height - box.top - box.bottom) * self.y(y),
        )

    def draw(self, *marks: str) -> Markup:
        """Return the plot as an SVG element of the report."""
        return tag(
            "svg",
            *self._axes(),
            *marks,
            class_="chart",
            viewBox=f"0 0 {self.layout.width} {self.layout.height}",
            role="img",
            aria_label=self.label,
        )

    def _axes(self) -> list[Markup]:
        box = self.layout
        bottom, right = box.height - box.bottom, box.width - box.right
        marks = []
        for tick in self.y.ticks:
            y = self.at(self.x.low, tick)[1]
            marks.append(tag("line", class_="grid", x1=box.left, x2=right, y1=y, y2=y))
            text = self.y.label(tick)
            marks.append(tag("text", text, x=box.left - 7, y=y + 4, text_anchor="end"))
        for tick in self.x.ticks:
            x = self.at(tick, self.y.low)[0]
            marks.append(tag("line", class_="grid", x1=x, x2=x, y1=box.top, y2=bottom))
            marks.append(tag("text", self.x.label(tick), x=x, y=bottom + 16, text_anchor="middle"))
        middle = {"class_": "name", "text_anchor": "middle"}
        marks.append(tag("text", self.x_name, x=(box.left + right) / 2, y=box.height - 6, **middle))
        turned = f"translate(11 {short((box.top + bottom) / 2)}) rotate(-90)"
        marks.append(tag("text", self.y_name, transform=turned, **middle))
        return marks
