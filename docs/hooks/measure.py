"""Measure how well metrics agree with people, and write measured.json beside this file.

    REJOINDER_DATA=… python docs/hooks/measure.py

Every item metric that needs no evaluator, with its defaults, on the public sets with ratings; those
that need weights on the good and the adversarially wrong replies of DailyDialog++ dev. The pages of
the metrics show these figures. Metrics that need an evaluator are measured in the evaluator study,
whose table the pages quote. Takes a few minutes on one core, most of it for the encoder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rejoinder.files.output import open_output
from rejoinder.metrics.metric import ItemMetric
from rejoinder.registry import METRICS
from rejoinder.version import __version__

MEASURED = Path(__file__).with_name("measured.json")
COMMAND = [sys.executable, "-c", "from rejoinder.cli.main import main; main()"]

RATED = {
    "DailyDialog, one reference": ("dailydialog-multiref", "--references", "single"),
    "DailyDialog, four references": ("dailydialog-multiref", "--references", "multi"),
    "GRADE-ConvAI2, one reference": ("grade-convai2", "--references", "single"),
    "GRADE-Empathetic, one reference": ("grade-empathetic", "--references", "single"),
}
SCORED = {
    "DailyDialog++ dev, good against adversarially wrong replies": (
        *("dailydialog-plusplus-dev", "--references", "scored"),
        *("--system", "good", "--system", "adversarial"),
    )
}
MORE = ("bleu(n=2)", "bertscore(part=p)")
"""Settings used in the studies, in addition to the defaults."""
SEPARATELY = ("likelihood",)
"""Metrics that are measured with several models and settings, on a page of their own."""


def specs() -> tuple[list[str], list[str]]:
    """Return the specs of metrics without weights, and of those with weights."""
    plain, weighted = list(MORE), ["am"]
    for name in METRICS.builtin:
        cls = METRICS.find(name)
        if name in SEPARATELY:
            continue
        ready = cls().missing_requirement() is None
        if issubclass(cls, ItemMetric) and "evaluator" not in cls.needs and ready:
            (weighted if "weights" in cls.needs else plain).append(name)
    # without an evaluator these are delta-bleu and bertscore over the weights of the file
    return plain, [spec for spec in weighted if spec not in ("vbleu", "vbertscore")]


def measure(name: str, export: Iterable[str], metrics: list[str]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as work:
        _rejoinder("datasets", "export", *export, "-o", f"{work}/items.jsonl")
        asked = [part for spec in metrics for part in ("-m", spec)]
        _rejoinder("score", f"{work}/items.jsonl", *asked, "-o", f"{work}/scores.jsonl")
        found = json.loads(
            _rejoinder("meta", f"{work}/items.jsonl", f"{work}/scores.jsonl", "--json")
        )
    kept = ("metric", "n", "unscored", "spearman", "spearman_ci", "pearson", "pearson_ci", "auc")
    return [
        {"set": name} | {key: _short(result[key]) for key in kept if key in result}
        for result in found["results"]
    ]


def _short(value: Any) -> Any:
    """Round to four decimals, more than these sets can resolve."""
    if isinstance(value, list):
        return [_short(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def _rejoinder(*arguments: str) -> str:
    sys.stderr.write(f"rejoinder {' '.join(arguments)}\n")
    done = subprocess.run([*COMMAND, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def main() -> None:
    if not os.environ.get("REJOINDER_DATA"):
        sys.exit("set REJOINDER_DATA to the folder of public corpora")
    plain, weighted = specs()
    results = [row for name, export in RATED.items() for row in measure(name, export, plain)]
    for name, export in SCORED.items():
        results += measure(name, export, weighted)
    with open_output(MEASURED) as stream:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in results)
        stream.write(f'{{"version": "{__version__}", "results": [\n{lines}\n]}}\n'.encode())


if __name__ == "__main__":
    main()
