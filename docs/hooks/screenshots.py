"""Take the pictures of docs/annotate.md: a task, and the researcher's page.

    python docs/hooks/screenshots.py

Needs Chromium, see tests/browser.py. People who answer are simulated; the replies are the examples
of the package.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from annotate.rating_studies import FakeClock, join, open_store  # noqa: E402
from annotate.server import run_annotate, running_server  # noqa: E402
from browser import FLAGS, chromium  # noqa: E402

ASSETS = ROOT / "docs" / "assets"
QUALITY = {"careful": 5, "generic": 3, "off-topic": 1, "distractor": 1}
PEOPLE = {"Aiko": (48, 6.0), "Ben": (41, 4.5), "Chen": (44, 8.0), "Dana": (25, 1.5)}
"""How many tasks each person does, and in how many seconds each; Dana does not read."""
SETTINGS = ("answers_per_task=4", "rate.distractors=1", "tasks_per_batch=50", "seed=6")


def main() -> None:
    example = files("rejoinder").joinpath("examples", "replies-en.jsonl")
    with tempfile.TemporaryDirectory() as name:
        study = Path(name) / "study"
        changes = [part for setting in SETTINGS for part in ("--set", setting)]
        done = run_annotate("init", study, "-t", "gupta-ratings", "--items", example, *changes)
        assert done.returncode == 0, done.stderr
        answer(study, random.Random(7))
        with running_server(study) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            size = {"width": 1100, "height": 640}
            page = browser.new_page(viewport=size, reduced_motion="reduce")
            invited = run_annotate("invite", study, "--name", "Ebba", "--json")
            page.goto(json.loads(invited.stdout)["links"][0])
            page.locator('form[action$="/start"] button').click()
            page.wait_for_selector('input[name="lease"]', state="attached")
            page.locator("input[type=radio]").first.check()
            page.screenshot(path=ASSETS / "annotate-task.png", full_page=True)
            page.goto(server.researcher)
            page.screenshot(path=ASSETS / "annotate-study.png", full_page=True)
            browser.close()


def answer(study: Path, rng: random.Random) -> None:
    """Let people answer in turns, in the last quarter of an hour."""
    total = sum(count * seconds for count, seconds in PEOPLE.values())
    clock = FakeClock(time.time() - 1.3 * total)
    store = open_store(study, clock=clock)
    turns = [name for name, (count, _) in PEOPLE.items() for _ in range(count)]
    rng.shuffle(turns)
    people = {name: join(store, name) for name in PEOPLE}
    for name in turns:
        step = store.next_step(people[name])
        assert step.task is not None and step.lease is not None
        clock.time += PEOPLE[name][1] * rng.uniform(0.6, 1.6)
        system = step.task.content["replies"][0]["system"]
        mean = rng.randint(1, 5) if name == "Dana" else QUALITY[system]
        rating = min(5, max(1, mean + rng.choice([-1, 0, 0, 1])))
        form = {"lease": step.lease.code, "appropriateness-0": str(rating)}
        assert store.submit(people[name], form).outcome == "stored"
    store.close()


if __name__ == "__main__":
    main()
