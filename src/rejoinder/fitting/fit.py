"""From logs to an evaluator.

What is made on the way lies in a hidden folder beside the output until that is whole; a run that
was killed, wherever, goes on there.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from rejoinder.evaluator.manifest import KIND, MANIFEST, Manifest
from rejoinder.fitting.assemble import RESULT, assemble
from rejoinder.fitting.pairs import check_inputs
from rejoinder.fitting.run import Run, Watch
from rejoinder.fitting.settings import Fitting
from rejoinder.learn.folder import check_new_folder, only_run
from rejoinder.learn.processes import is_first


@dataclass(frozen=True)
class Fitted:
    """What came out."""

    folder: Path
    manifest: Manifest


def fit(
    inputs: Sequence[str],
    output: Path,
    settings: Fitting,
    *,
    format: str | None = None,
    exclude: Sequence[str] = (),
    watch: Watch | None = None,
) -> Fitted | None:
    """Write the evaluator ``output``, whole or not at all.

    With ``torchrun``, every process calls this, and the first one gets the result.
    """
    check_new_folder(output, may_replace=is_evaluator)
    check_inputs(inputs, exclude, format)
    target = output.absolute()
    work = target.with_name(f".{target.name}.work")
    run = Run(list(inputs), work, settings, format, list(exclude), watch or Watch())
    run.check()
    if not is_first():
        _ = run.networks  # its share of the training
        return None
    with only_run(work):
        figures = run.figures.read(RESULT)
        manifest = run.parts.manifest(settings, run.retriever, figures)
        manifest = assemble(run.parts, manifest, figures, target)
    shutil.rmtree(work, ignore_errors=True)
    return Fitted(output, manifest)


def is_evaluator(folder: Path) -> bool:
    """Whether this is an evaluator, which another one may replace."""
    try:
        record = msgspec.json.decode((folder / MANIFEST).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return isinstance(record, dict) and record.get("kind") == KIND
