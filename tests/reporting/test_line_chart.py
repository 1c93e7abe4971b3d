"""Line charts: places derived by hand, valid XML for any label, gaps, and empty charts."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.reporting.plots.line_chart import Line, LineChart, line_chart_svg
from rejoinder.reporting.plots.svg import COLOURS, DARK_COLOURS, DASHES

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*lines: Line, **options: object) -> ET.Element:
    return ET.fromstring(line_chart_svg(LineChart("title", "across", "upwards", lines, **options)))  # type: ignore[arg-type]


def of_class(root: ET.Element, name: str) -> list[ET.Element]:
    return [e for e in root.iter() if name in e.get("class", "").split()]


def places(element: ET.Element) -> list[tuple[float, float]]:
    return [
        (float(x), float(y)) for x, y in (p.split(",") for p in element.attrib["points"].split())
    ]


def test_places_by_hand() -> None:
    # across 0 to 10: the axis runs from 66 to 720 - 24 = 696, so 5 stands at 381.
    # upwards 0 to 1 (with the band): from 48 + 320 = 368 up to 48, so .25 stands at 368 - 80
    root = drawn(Line("a", [0, 5, 10], [0.25, 0.5, 0.75], [0, 0.25, 0.75], [0.5, 0.75, 1]))
    (line,) = root.iter(f"{SVG}polyline")
    assert places(line) == [(66, 288), (381, 208), (696, 128)]
    (band,) = root.iter(f"{SVG}polygon")
    # the upper edge, and the lower one back
    assert places(band) == [(66, 208), (381, 128), (696, 48), (696, 128), (381, 288), (66, 368)]
    written = [e.text for e in root.iter(f"{SVG}text")]
    assert [w for w in written if w in ("0", "2", "4", "6", "8", "10")] == [
        "0", "2", "4", "6", "8", "10",
    ]  # fmt: skip
    assert {"0.0", "0.2", "0.4", "0.6", "0.8", "1.0"} <= set(written)
    assert {"title", "across", "upwards", "a"} <= set(written)


def test_the_description_has_the_numbers() -> None:
    root = drawn(Line("a", [0.02, 1], [0.5, 1]), Line("b", [1], [None]), percent=True)
    assert root.get("role") == "img"
    ids = root.attrib["aria-labelledby"].split()
    title, words = (next(e for e in root.iter() if e.get("id") == one) for one in ids)
    assert (title.tag, title.text) == (f"{SVG}title", "title")
    assert words.text == "upwards, over across. a: .500 at 2%, 1.000 at 100%. b: no values."


def test_gaps_and_missing_bands() -> None:
    y = [0.1, None, 0.3, 0.4, math.nan, 0.6]
    root = drawn(Line("a", range(6), y, [0, None, None, 0.3, None, None], [0.2] * 3 + [0.5] * 3))
    assert [len(places(line)) for line in root.iter(f"{SVG}polyline")] == [1, 2, 1]
    assert len(list(root.iter(f"{SVG}circle"))) == 4
    # of the run in the middle one point has a spread; the last has none
    assert [len(places(band)) for band in root.iter(f"{SVG}polygon")] == [2, 4]
    assert not list(drawn(Line("a", [1, 2], [0.5, 0.6])).iter(f"{SVG}polygon"))


def test_light_and_dark_and_without_colour() -> None:
    lines = [Line(f"line {n}", [1, 2], [n, n + 1]) for n in range(len(COLOURS) + 1)]
    root = drawn(*lines)
    (style,) = (e.text or "" for e in root.iter(f"{SVG}style"))
    light, dark = style.split("@media (prefers-color-scheme:dark)")
    assert all(f".line.c{n}{{stroke:{c}}}" in light for n, c in enumerate(COLOURS))
    assert all(f".line.c{n}{{stroke:{c}}}" in dark for n, c in enumerate(DARK_COLOURS))
    assert len(set(DASHES)) == len(COLOURS) == len(DARK_COLOURS) == len(DASHES)
    # the seventh looks like the first: each a line, two points and a row of the legend
    assert len(of_class(root, "c0")) == 2 * 4


@pytest.mark.parametrize("lines", [[], [Line("a", [], [])], [Line("a", [3], [0.5])]])
def test_empty_charts(lines) -> None:
    root = drawn(*lines)
    assert len(list(root.iter(f"{SVG}circle"))) == sum(len(line.x) for line in lines)


finite = st.floats(-1e6, 1e6)


@given(st.text(), st.text(), st.lists(st.tuples(finite, finite, finite, finite), max_size=8))
def test_any_label_and_any_numbers(title, label, rows) -> None:
    x, y, low, high = ([row[n] for row in rows] for n in range(4))
    root = ET.fromstring(
        line_chart_svg(LineChart(title, label, label, [Line(label, x, y, low, high)], label))
    )
    assert len(list(root.iter(f"{SVG}circle"))) == len(rows)
    for line in [*root.iter(f"{SVG}polyline"), *root.iter(f"{SVG}polygon")]:
        # everything stands inside the axes; places are rounded to a tenth
        assert all(65.9 <= a <= 696.1 and 47.9 <= b <= 368.1 for a, b in places(line))


def test_axes_of_counts_have_whole_numbers() -> None:
    written = [e.text for e in drawn(Line("a", [1, 2, 3], [0.1, 0.2, 0.3])).iter(f"{SVG}text")]
    assert {"1", "2", "3"} <= set(written)
    assert "1.5" not in written
    shares = [e.text for e in drawn(Line("a", [0.5, 2], [0.1, 0.2])).iter(f"{SVG}text")]
    assert "1.5" in shares


def test_a_long_label_is_cut() -> None:
    root = drawn(Line("x" * 200, [1, 2], [1, 2]))
    (label,) = (e.text for e in root.iter(f"{SVG}text") if e.text and e.text.startswith("xx"))
    assert label == "x" * 83 + "…"
