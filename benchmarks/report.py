"""``rejoinder report`` over 100,000 items: how long it takes to make, and Chromium to open.

There is no other program that makes such a page; the peer is a limit in seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from browser import FLAGS, MISSING, find_chromium
from table import show

CONTEXTS, SYSTEMS = 25_000, 4
TO_MAKE, TO_OPEN = 60.0, 1.0


def write(folder: Path) -> None:
    chance = np.random.default_rng(0)
    with (folder / "items.jsonl").open("w") as items, (folder / "scores.jsonl").open("w") as scores:
        for context in range(CONTEXTS):
            for system in range(SYSTEMS):
                words = [f"word{n}" for n in chance.integers(0, 5000, 12)]
                item = {
                    "id": f"{context}:{system}",
                    "context_id": str(context),
                    "context": [f"what do you think of {context}"],
                    "response": " ".join(words),
                    "system": f"system {system}",
                    "references": [" ".join(words[:4]), {"text": "no", "weight": -0.5}],
                    "ratings": int(chance.integers(1, 6)),
                }
                items.write(json.dumps(item) + "\n")
                for metric in ("bleu(n=2)", "rejoinder"):
                    score = {"id": item["id"], "metric": metric, "value": chance.random()}
                    scores.write(json.dumps(score) + "\n")


def interactive(page: Path, chromium: str) -> float:
    """Seconds until the table of items is there: the best of three."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        found = []
        for _ in range(3):
            shown = browser.new_page()
            shown.goto(page.as_uri())
            shown.wait_for_selector("html[data-ready]")
            timing = "performance.getEntriesByType('navigation')[0].domInteractive"
            found.append(shown.evaluate(timing) / 1000)
            shown.close()
        browser.close()
    return min(found)


def run() -> list[dict[str, Any]]:
    chromium = find_chromium()
    if chromium is None:
        sys.exit(MISSING)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        code = "from rejoinder.cli.main import main; main()"
        arguments = ["report", "items.jsonl", "scores.jsonl", "-o", "report.html"]
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, *arguments], cwd=folder, check=True)
        made = time.perf_counter() - began
        size = (folder / "report.html").stat().st_size / 1e6
        seconds = interactive(folder / "report.html", chromium)
    rows = [
        (f"report of 100,000 items ({size:.2f} MB), against a minute", made, TO_MAKE),
        ("until it can be used in Chromium, against a second", seconds, TO_OPEN),
    ]
    return [
        {
            "name": name,
            "ours_seconds": ours,
            "peer_seconds": limit,
            "ratio": limit / ours,
            "required": 1,
        }
        for name, ours, limit in rows
    ]


if __name__ == "__main__":
    show(run())
