"""Plots as SVG, without a plotting library: for the report, for notebooks, and as files.

Every plot states in words what it shows, for screen readers. Plots of the report take their colours
from the page; files bring their own and follow the reader's light or dark setting.
"""

from rejoinder.reporting.plots.interval_chart import correlations_svg, ranking_svg
from rejoinder.reporting.plots.line_chart import Line, LineChart, line_chart_svg

__all__ = ["Line", "LineChart", "correlations_svg", "line_chart_svg", "ranking_svg"]
