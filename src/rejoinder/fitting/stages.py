"""Stages of a fit: each has its own folder in the work folder and is run once.

The name of a stage's folder contains a digest of everything that determines its result. So an
interrupted run continues with the unfinished stage, and a run with other settings repeats only the
stages that depend on them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rejoinder.learn.processes import is_main_process
from rejoinder.version import __version__

DONE = "done"
RESULT = "result.json"
"""The report of a stage, for the manifest and the card."""
POLL_SECONDS = 0.2
"""How often a process checks whether the main process has finished a stage."""


@dataclass(frozen=True)
class Stage:
    """A finished stage."""

    folder: Path
    key: str
    """Digest of everything that determines the result; part of the keys of later stages."""

    @property
    def result(self) -> Any:
        return json.loads((self.folder / RESULT).read_bytes())


def run_stage(
    work: Path,
    name: str,
    depends: Any,
    make: Callable[[Path], None],
    *,
    all_processes: bool = False,
) -> Stage:
    """Run a stage unless it is done; ``depends`` (JSON) is everything that determines its result.

    With several processes, the main process runs it and the others wait, unless all take part in
    it (``all_processes``); then the main process marks it as done.
    """
    text = json.dumps([__version__, name, depends], sort_keys=True, default=str)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    stage = Stage(work / f"{name}-{key}", key)
    if (stage.folder / DONE).exists():
        return stage
    if is_main_process() or all_processes:
        stage.folder.mkdir(exist_ok=True)
        make(stage.folder)
    if is_main_process():
        (stage.folder / DONE).touch()
    while not (stage.folder / DONE).exists():
        if all_processes and not stage.folder.exists():  # the main process has finished the fit
            break
        time.sleep(POLL_SECONDS)
    return stage


def write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
