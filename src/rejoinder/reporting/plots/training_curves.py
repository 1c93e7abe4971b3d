"""The loss of a network during its training, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rejoinder.reporting.plots.line_chart import Line, LineChart, line_chart_svg


def training_curves_svg(name: str, history: Sequence[Mapping[str, Any]]) -> str:
    """Return training and validation loss over the steps as the text of an SVG file.

    ``history`` is that of a training result: one entry per validation.
    """
    steps = [float(entry["step"]) for entry in history]
    lines = [
        Line("held-out dialogues", steps, [entry["validation_loss"] for entry in history]),
        Line("training, mean since the last validation", steps, [e["loss"] for e in history]),
    ]
    return line_chart_svg(LineChart(f"{name}: loss during training", "step", "loss", lines))
