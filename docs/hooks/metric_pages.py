"""Generate a page for each metric of the registry, and an overview, as Markdown.

Formula, citation and options come from the docstring, parameters from the dataclass, so that pages
and program agree. uses.toml says when to use a metric. Figures come from measured.json (written by
measure.py) and, for metrics that need an evaluator, from the table of the evaluator study.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rejoinder.metrics.metric import Metric, SetMetric
from rejoinder.registry import METRICS
from rejoinder.spec import parameters, parse, print_value

HERE = Path(__file__).resolve().parent
STUDY = HERE.parent / "evaluator-study.md"

NEEDS = {
    "references": "references",
    "weights": "references with weights from -1 to 1",
    "context": "the context",
    "evaluator": "an [evaluator](../evaluators.md)",
    "language model": "a [language model](../judges.md)",
}


def names() -> list[str]:
    """Return the built-in metrics; those of other packages are documented there."""
    return list(METRICS.builtin)


def page(name: str) -> str:
    cls = METRICS.find(name)
    metric = METRICS.make(name)
    return "\n\n".join(
        [
            f"# {name}",
            *definition(cls),
            f"**Needs** {_needs(cls)}. **Scores** "
            + ("several replies together." if issubclass(cls, SetMetric) else "each reply.")
            + " Cited works: [literature](../literature.md).",
            "## When to use it",
            uses()[name]["use"].strip(),
            "## Parameters",
            _parameters(metric),
            f"Signature with all defaults:\n\n```text\n{metric.signature()}\n```",
            "## Agreement with people, measured here",
            measured(name),
        ]
    )


def overview() -> str:
    """Return a table of all metrics."""
    rows = ["| metric | what | needs |", "|---|---|---|"]
    for name in names():
        cls = METRICS.find(name)
        rows.append(f"| [`{name}`]({name}.md) | {cls.summary} | {_needs(cls)} |")
    return "\n".join(
        [
            "# All metrics",
            "",
            "Generated from the registry, like the output of `rejoinder ls`. Which one to take:"
            " [choosing a metric](../choosing.md).",
            "",
            *rows,
            "",
        ]
    )


def uses() -> dict[str, dict[str, str]]:
    with (HERE / "uses.toml").open("rb") as stream:
        return tomllib.load(stream)


def definition(cls: type[Metric]) -> list[str]:
    """Return the docstring of the metric's file as Markdown, with examples as code blocks."""
    text = inspect.getdoc(sys.modules[cls.__module__]) or ""
    text = re.sub(r"\bdocs/([\w-]+)\.md", r"[\1](../\1.md)", text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    return [
        f"```python\n{block}\n```" if block.startswith(">>>") else block
        for block in text.split("\n\n")
    ]


def _needs(cls: type[Metric]) -> str:
    found = [NEEDS[need] for need in NEEDS if need in cls.needs]
    if {"references", "weights"} <= cls.needs:
        found.remove("references")
    known = parameters(cls)
    if "model" in known and "language model" not in cls.needs:
        found.append("an encoder")
    if "vectors" in known:
        found.append("[word vectors](../vectors.md)")
    return ", ".join(found) or "replies only"


def _parameters(metric: Metric) -> str:
    rows = ["| parameter | default |", "|---|---|"]
    for key in parameters(type(metric)):
        value = getattr(metric, key)
        rows.append(f"| `{key}` | {'' if value is None else f'`{print_value(value)}`'} |")
    return "\n".join(rows)


def measured(name: str) -> str:
    """Return the figures of the metric's agreement with people, or why there are none."""
    figures = [*_from_file(name), *_from_study(name)]
    return (
        "\n\n".join(figures) if figures else uses()[name].get("unmeasured", "Not measured.").strip()
    )


def _from_file(name: str) -> Iterator[str]:
    with (HERE / "measured.json").open() as stream:
        record = json.load(stream)
    rows = [row for row in record["results"] if parse(row["metric"]).name == name]
    if not rows:
        return
    labelled = [row for row in rows if "auc" in row]
    rated = [row for row in rows if "auc" not in row]
    if rated:
        table = ["| metric | set | replies | Spearman | Pearson |", "|---|---|---|---|---|"]
        table += [
            f"| `{row['metric']}` | {row['set']} | {row['n']} "
            f"| {_interval(row, 'spearman')} | {_interval(row, 'pearson')} |"
            for row in rated
        ]
        yield "\n".join(table)
    if labelled:
        table = ["| metric | set | replies | area under the ROC curve |", "|---|---|---|---|"]
        table += [
            f"| `{row['metric']}` | {row['set']} | {row['n']:,} | {_number(row['auc'])} |"
            for row in labelled
        ]
        yield "\n".join(table)
    yield (
        f"Version {record['version']}, 95 % intervals over contexts, made by"
        " `docs/hooks/measure.py`. The sets: [Published results beside ours](../agreement.md)."
        if rated
        else f"Version {record['version']}, made by `docs/hooks/measure.py`; more in"
        " [good and bad references](../estimators.md)."
    )


def _from_study(name: str) -> Iterator[str]:
    """Yield the rows of the study's table for this metric."""
    head, rows = study_table()
    found = [row for spec, row in rows if spec.name == name]
    if not found or "evaluator" not in parameters(METRICS.find(name)):
        return
    yield "\n".join([head, "|---" * (head.count("|") - 1) + "|", *found])
    yield (
        "Spearman with people; quoted from the [evaluator study](../evaluator-study.md), which has"
        " sets, version and seed."
    )


def study_table() -> tuple[str, list[tuple[Any, str]]]:
    lines = STUDY.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("| metric | one reference"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        spec = re.search(r"`([^`]+)`", line)
        assert spec, f"{STUDY.name}: a row without a metric: {line}"
        rows.append((parse(spec[1]), line))
    return lines[start], rows


def _interval(row: dict[str, Any], key: str) -> str:
    if row[key] is None:
        return "undefined"
    low, high = row[f"{key}_ci"]
    return f"{_number(row[key])} [{_number(low, 2)}, {_number(high, 2)}]"


def _number(value: float, digits: int = 3) -> str:
    """Format a number as papers print correlations: .317, -.05."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)
