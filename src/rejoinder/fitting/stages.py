"""Stages: each has a folder of its own in the work folder, and is done once.

The name of a stage's folder says what decides its outcome. So a run that was killed goes on with
the stage that was under way, and a run with other settings repeats only what they change.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rejoinder.learn.processes import is_first
from rejoinder.version import __version__

DONE = "done"
PATIENCE = 0.2
"""Seconds between two looks of a process that waits for another."""


@dataclass(frozen=True)
class Stage:
    """A finished stage."""

    folder: Path
    key: str
    """What decided its outcome; the next stage's key is made with it."""

    def read(self, name: str) -> Any:
        return json.loads((self.folder / f"{name}.json").read_bytes())


def run_stage(
    work: Path,
    name: str,
    decides: Any,
    make: Callable[[Path], None],
    *,
    together: bool = False,
) -> Stage:
    """Do a stage, unless it is done. ``decides`` (JSON) is all that its outcome depends on.

    Where several processes fit together, the first one does it and the others wait, unless all
    have their share of it (``together``); then the first one says that it is done.
    """
    told = json.dumps([__version__, name, decides], sort_keys=True, default=str)
    key = hashlib.sha256(told.encode()).hexdigest()[:16]
    stage = Stage(work / f"{name}-{key}", key)
    if (stage.folder / DONE).exists():
        return stage
    if is_first() or together:
        stage.folder.mkdir(exist_ok=True)
        make(stage.folder)
    if is_first():
        (stage.folder / DONE).touch()
    while not (stage.folder / DONE).exists():
        if together and not stage.folder.exists():  # the first one has finished everything
            break
        time.sleep(PATIENCE)
    return stage


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
