"""How well `annotate rehearse` finds what was planted, for every template: the tables of
docs/annotate-rehearse.md.

    python benchmarks/rehearse.py [TEMPLATE …] [--seeds 5]

Each template is rehearsed over HTTP with several seeds, by 7 people more than a task needs answers,
of whom 3 are careless and 2 too fast; where people write, 2 more paste. There are as many contexts
as give everybody some dozens of answers, with replies of two systems. Alpha and correlation are
means over the seeds with the standard deviation between them; recall and precision are counted over
the people of all seeds together.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rejoinder.annotate.rehearse.outcome import Rehearsal
from rejoinder.annotate.study_templates import names
from rejoinder.verbs import annotate

SYSTEMS = ("a", "b")
SIZES = {
    "gupta-diversity": (60, 5),
    "gupta-quality": (60, 1),
    "gupta-references": (240, 1),
    "sugiyama-comprehension": (160, 1),
    "sugiyama-pairs": (4, 20),
    "sugiyama-references": (40, 1),
    "tsuta-appropriateness": (40, 5),
    "tsuta-references": (40, 1),
}
"""Contexts of a template's study, and replies of each system to each of them."""
USUAL_SIZE = (20, 5)
MORE_PEOPLE, CARELESS, FAST, PASTING = 7, 3, 2, 2
MANNERS = ("careless", "fast", "pasting")


def records(contexts: int, replies: int) -> list[dict[str, Any]]:
    """Items that fit every template: replies of two systems, references of all kinds."""
    return [
        {
            "id": f"{context}:{system}:{number}",
            "context_id": f"c{context}",
            "context": [f"Question {context}?", f"Remark {context}."],
            "response": f"Reply {number} of {system} to {context}.",
            "system": system,
            "references": [
                f"Original {context}.",
                {"text": f"Collected {context}.", "source": "human"},
                {"text": f"Retrieved {context}.", "source": "retrieved", "score": 0.5},
                {"text": f"Remark {context}.", "source": "parrot"},
            ],
        }
        for context in range(contexts)
        for system in SYSTEMS
        for number in range(replies)
    ]


def rehearsals(template: str, seeds: int) -> list[Rehearsal]:
    """Rehearse a template; every acknowledged answer must be stored, and none twice."""
    size = SIZES.get(template, USUAL_SIZE)
    with tempfile.TemporaryDirectory() as name:
        items, folder = Path(name) / "items.jsonl", Path(name) / "study"
        items.write_text("".join(json.dumps(record) + "\n" for record in records(*size)))
        made = annotate.init(folder, template=template, items=items)
        found = []
        for seed in range(seeds):
            done = annotate.rehearse(
                folder,
                people=made.answers_per_task + MORE_PEOPLE,
                careless=CARELESS,
                fast=FAST,
                pasting=PASTING if made.kind == "write" else 0,
                seed=seed,
            ).rehearsal
            assert not (done.errors or done.lost or done.over), (template, seed, done.errors[:3])
            assert done.complete == done.tasks, (template, seed)
            found.append(done)
    return found


def found_people(done: Sequence[Rehearsal], manner: str) -> str:
    """Return recall and precision of finding people of a manner, over all seeds together."""
    rows = [each for one in done for each in one.detection if each.manner == manner]
    if not rows:
        return "| "
    right = sum(row.found for row in rows)
    named = sum(round(row.found / row.precision) for row in rows if row.precision)
    named += sum(
        bool(set(person.found_by))
        for one, row in zip(done, rows, strict=True)
        if row.precision == 0
        for person in one.people
    )
    precision = f"{right / named:.2f}" if named else "–"
    return f"| {right / sum(row.people for row in rows):.2f}, {precision} "


def spread(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return "| "
    return f"| {np.mean(known):.2f} ± {np.std(known, ddof=1):.2f} "


def row(template: str, done: Sequence[Rehearsal]) -> str:
    answers = [each.answers for each in done]
    cells = f"| `{template}` | {len(done[0].people)} | {round(np.mean(answers)):,} "
    cells += "".join(found_people(done, manner) for manner in MANNERS)
    cells += spread([each.agreement.planted for each in done])
    cells += spread([each.agreement.careful for each in done])
    cells += spread([each.agreement.everyone for each in done])
    return f"{cells}{spread([each.correlation for each in done])}|"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("templates", nargs="*", metavar="TEMPLATE", default=names())
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    print("| template | people | answers | careless | too fast | pasting ", end="")
    print("| alpha planted | found | of everybody | correlation |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for template in arguments.templates:
        print(row(template, rehearsals(template, arguments.seeds)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
