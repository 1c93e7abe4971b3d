"""The card of a calibration: what it was made from, what it is worth, and how to use it."""

from __future__ import annotations

from typing import Any

from rejoinder.metrics.calibrated.folder import Manifest

USE = """    rejoinder score items.jsonl -m 'calibrated(model={name})' -o scores.jsonl

Add `--evaluator DIR` if one of the metrics needs it. Each score is an expected rating; `interval`
is where the rating of this one reply is expected. A calibration holds for replies of the kind that
was rated: other systems, another domain, or other annotators need ratings of their own."""


def calibration_card(manifest: Manifest, counts: dict[str, int], name: str) -> str:
    """Return README.md, without date and path, so that the same ratings write the same bytes."""
    measured: dict[str, Any] = manifest.measured
    after, before = measured["cross_validated"], measured["uncalibrated"]
    intervals, mean = measured["intervals"], measured["mean_only"]
    inputs = "\n".join(f"- `{each.metric}`: `{each.signature}`" for each in manifest.metrics)
    scale = manifest.scale
    step = "" if scale.step is None else f", in steps of {scale.step:g}"
    warnings = "".join(f"**Warning:** {each}\n\n" for each in measured["warnings"])
    systems = "\n".join(
        f"| {each['name']} | {each['n']:,} | {each['covered']:.3f} | {each['width']:.2f} |"
        for each in (*intervals["by_system"], *intervals["by_pool"])
    )
    return f"""# Scores on the scale of people

Made by Rejoinder {manifest.rejoinder} (`rejoinder calibrate`, method `{manifest.method}`) from the
ratings of {counts["rated"]:,} replies to {counts["contexts"]:,} contexts, from {scale.low:g} to \
{scale.high:g}{step}.

{inputs}

## What it is worth

{warnings}Measured by cross-validation over contexts ({manifest.settings["folds"]} folds):

| | Spearman | Pearson | root mean squared error |
|---|---:|---:|---:|
{_row("calibrated", after)}
{_row("without ratings", before)}
| the mean rating | | | {mean["rmse"]:.3f} |

Intervals were made to cover {intervals["wanted"]:.0%} of the ratings of single replies, and \
covered {intervals["covered"]:.1%}; their mean length is {intervals["width"]:.2f}.

| replies | number | covered | length |
|---|---:|---:|---:|
{systems}

## How to use it

{USE.format(name=name)}
"""


def _row(name: str, errors: dict[str, Any]) -> str:
    spearman, pearson = _number(errors["spearman"]), _number(errors["pearson"])
    return f"| {name} | {spearman} | {pearson} | {errors['rmse']:.3f} |"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
