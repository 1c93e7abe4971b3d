"""Axes and marks."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.reporting.page.agreement import curve_plots, curve_rows
from rejoinder.reporting.plots.charts import histogram, labelled, line_plot, scatter
from rejoinder.reporting.plots.frame import Frame
from rejoinder.reporting.plots.interval_chart import MAX_ROWS, IntervalRow, interval_svg
from rejoinder.reporting.plots.lines import Line
from rejoinder.reporting.plots.scales import Scale, shown
from rejoinder.reporting.plots.strips import strip
from rejoinder.reporting.plots.svg import key, short, tag

values = st.lists(
    st.floats(-1e9, 1e9, allow_nan=False, allow_subnormal=False), min_size=1, max_size=8
)


@given(values, st.integers(2, 8))
@example([461764154.0, -374900073.0], 2)
def test_an_axis_has_room_for_its_values_and_round_numbers(found: list[float], wanted: int) -> None:
    scale = Scale.over(found, wanted)
    assert all(-1e-9 <= scale(value) <= 1 + 1e-9 for value in found)
    assert all(scale.low <= tick + 1e-6 * abs(tick) for tick in scale.ticks)
    # where only one multiple of 5 is inside, as in (-4.9, 4.9), five of 2 may be
    assert 2 <= len(scale.ticks) <= max(wanted, 4) + 1


@given(values, st.integers(2, 8))
def test_an_axis_from_one_round_number_to_another(found: list[float], wanted: int) -> None:
    scale = Scale.around(found, wanted)
    assert all(-1e-6 <= scale(value) <= 1 + 1e-6 for value in found)
    assert (scale.low, scale.high) == (scale.ticks[0], scale.ticks[-1])
    assert 2 <= len(scale.ticks) <= wanted + 2


def test_ticks_by_hand() -> None:
    # range 1 to 5, a quarter is 1.06: the next round step is 2
    assert Scale.over([1, 5]).ticks == (2.0, 4.0)
    # .0 to 1, an eighth is .1325: steps of .2
    assert Scale.over([0, 1], 8).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert [Scale.over([0, 1]).label(tick) for tick in (0.0, 0.5)] == ["0", ".5"]
    # from .01 to .19 a third is .06, but only .1 of its steps of .1 is inside: steps of .05
    assert Scale.over([0.01, 0.19], 3, spare=0).ticks == (0.05, 0.1, 0.15)
    assert Scale.over([7, 7]).low < 7 < Scale.over([7, 7]).high


def test_numbers_have_a_minus_sign() -> None:
    assert shown(-0.1234) == "−.123"
    assert shown(None) == "–"


def test_coordinates_are_short() -> None:
    assert [short(v) for v in (1.0, 1.26, -0.01, -2.5)] == ["1", "1.3", "0", "-2.5"]


def test_text_is_escaped() -> None:
    assert tag("text", "<script>", x=1) == '<text x="1">&lt;script&gt;</text>'
    assert tag("a", x='"><script>') == '<a x="&#34;&gt;&lt;script&gt;"></a>'


def test_a_mark_lies_where_its_value_is() -> None:
    scale = Scale(0.0, 2.0, (0.0, 1.0, 2.0), 0)
    drawn = strip(scale, 0.5, 0.2, 1.0, 3)
    # 0.5 of 2 is a quarter; the line goes from a tenth to a half
    assert 'x="25.00%"' in drawn
    assert 'x1="10.00%" x2="50.00%"' in drawn
    assert "s3" in drawn
    assert "whisker" not in strip(scale, 0.5, None, None)


def test_systems_beyond_the_palette_have_other_shapes() -> None:
    drawn = [str(key(n)) for n in range(32)]
    assert len(set(drawn)) == 32


def frame() -> Frame:
    scale = Scale(0.0, 1.0, (0.0, 0.5, 1.0), 1)
    return Frame(scale, scale, "<across>", "up", "what & why")


def test_plots_are_well_formed_and_say_what_they_show() -> None:
    plots = [
        scatter(frame(), np.array([0.0, 1]), np.array([0.0, 1]), np.array([0, 1])),
        labelled(frame(), [(0.1, 0.2), (0.1, 0.2)], [0, 1], ["<x>", "y"]),
        histogram(frame(), [0.0, 0.5, 1.0], [1, 0]),
        line_plot(frame(), [Line("a", [0, 1], [0.1, 0.2], [0, 0.1], [0.2, 0.3])]),
    ]
    for plot in plots:
        root = ElementTree.fromstring(str(plot))
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-label"] == "what & why"
    assert "M46 208h0" in plots[0]  # left 46, and 250 - 42 from the top
    assert plots[2].count("<rect") == 1


def test_a_curve_without_a_band_is_not_drawn() -> None:
    """As somebody might write one by hand; the table has what there is."""
    point = CurvePoint(1, 1, 3, {"spearman": 0.1}, {}, {})
    (figure,) = curve_plots({"m": [point]})
    assert "band" not in figure.svg
    assert curve_rows({"m": [point]}) == [["m", "1", ".100 ", "– "]]


def test_names_beside_marks_do_not_cover_each_other() -> None:
    drawn = labelled(frame(), [(0.5, 0.5), (0.5, 0.52), (0.51, 0.5)], [0, 1, 2], ["aaa"] * 3)
    places = re.findall(r'class="who" x="([\d.]+)" y="([\d.]+)"', str(drawn))
    assert len(set(places)) == 3


@pytest.mark.parametrize("found", [[float("nan")], []])
def test_an_axis_without_values(found: list[float]) -> None:
    assert Scale.over(found).ticks


EXTREME = [
    [5e-324],
    [0.0, 5e-324],
    [5e-324, 1e-310],
    [0.0, 1e-305],
    [0.0, 1e-250],
    [1e308],
    [-1.7e308, 1.7e308],
    [0.0, 1.7e308],
    [1e16, 1e16 + 2],
    [1e8, 1.2e8],
    [-3.0, -3.0],
    [0.0, 0.0],
    [1e-320, 1.0],
]


@pytest.mark.parametrize("found", EXTREME)
def test_axes_of_extreme_values(found: list[float]) -> None:
    for scale in (Scale.over(found), Scale.around(found)):
        labels = [scale.label(tick) for tick in scale.ticks]
        assert len(set(labels)) == len(labels) >= 2
        assert all(len(label) <= 16 for label in labels)
        assert all(len(scale.decimal(tick)) <= 16 for tick in scale.ticks)
        assert all(-1e-6 <= scale(value) <= 1 + 1e-6 for value in found)
        assert all(len(shown(value)) <= 16 for value in found)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_axes_of_any_values(found: list[float]) -> None:
    for scale in (Scale.over(found), Scale.around(found)):
        assert len(scale.ticks) >= 2
        assert all(-1e-6 <= scale(value) <= 1 + 1e-6 for value in found)
        assert all(scale.label(tick) and scale.decimal(tick) for tick in scale.ticks)
    assert all(map(shown, found))


@given(st.lists(st.tuples(st.text(), st.floats(), st.floats(), st.floats()), max_size=50))
def test_intervals_of_any_values_are_well_formed(
    rows: list[tuple[str, float, float, float]],
) -> None:
    drawn = interval_svg("title", "value", [IntervalRow(*row) for row in rows])
    root = ElementTree.fromstring(drawn)
    known = sum(np.isfinite(row[1]) for row in rows)
    assert len([e for e in root.iter() if e.get("class") == "dot c0"]) == min(known, MAX_ROWS)
