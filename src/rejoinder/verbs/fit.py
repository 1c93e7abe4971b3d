"""``fit``: make an evaluator from dialogue logs or pairs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, UsageError, missing_extra
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.files.output import open_output
from rejoinder.inputs.convert import is_dataset
from rejoinder.inputs.items import as_items
from rejoinder.learn.processes import NotMainProcess
from rejoinder.verbs.arguments import as_overrides
from rejoinder.verbs.evaluator import Evaluator
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import to_plain

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from rejoinder.files.paths import AnyPath
    from rejoinder.inputs.items import ItemsLike

REQUIRED_COLUMNS = ("utterance", "response")
REQUIRED_PACKAGES = ("torch", "safetensors", "pyarrow", "duckdb")
PAIRS_FILE, TEST_FILE = "pairs.parquet", "exclude.jsonl"


@keep_notes
def fit(
    logs_or_pairs: AnyPath | Sequence[AnyPath] | IntoFrame,
    *,
    output: AnyPath,
    format: str | None = None,
    preset: str = "small",
    language: str = "en",
    exclude: ItemsLike | Sequence[AnyPath] | None = None,
    learn_from: str | None = None,
    any_language: bool = False,
    overrides: Mapping[str, Any] | Sequence[str] | None = None,
    seed: int = 0,
    monitor: Monitor = SILENT,
) -> Evaluator:
    """Make an evaluator for the language and domain of dialogue logs, in the folder ``output``.

    Give files of pairs (.parquet), files of logs in one ``format``, or a frame of pairs with the
    columns ``utterance`` and ``response`` (and, if known, ``context``, ``dialogue_id``, ``split``).
    ``preset`` is tiny, small, medium, paper or a TOML file; ``overrides`` change its settings, as
    in ``{"data.max_pairs": 20_000}``. Pairs whose utterance is in the test set ``exclude`` are left
    out. ``learn_from`` says whose turns are replies to learn from in formats with roles: user,
    assistant or all. An evaluator in ``output`` is replaced, with a note. An interrupted run
    continues where it stopped.
    """
    # wrong arguments are reported before torch is loaded, which takes seconds
    from rejoinder.fitting.settings import read_settings

    settings = read_settings(preset, language, seed=seed, overrides=as_overrides(overrides))
    target = Path(os.fspath(output).rstrip("/") or "/").absolute()
    # frames and items are written to files, whose names are the same in the next run
    work = target.with_name(f".{target.name}.given")
    inputs = _input_files(logs_or_pairs, work)
    excluded = _excluded_files(exclude, work)
    _check(inputs, excluded, format)
    from rejoinder.fitting.pairs import is_pairs
    from rejoinder.logs.readers.reader import make_reader
    from rejoinder.verbs.table_notes import note_excluded_columns, note_guesses

    note_excluded_columns(excluded, monitor)
    if format is not None:
        logs = [path for path in inputs if not is_pairs(path)]
        note_guesses(logs, make_reader(format, learn_from), monitor)
    for note in settings.notes:
        monitor.message(note)
    from rejoinder.fitting.fit import FitProgress
    from rejoinder.fitting.fit import fit as run

    replaced = _existing(target)
    fitted = run(
        inputs,
        target,
        settings,
        format=format,
        learn_from=learn_from,
        any_language=any_language,
        exclude=excluded,
        progress=FitProgress(monitor.pieces, monitor.training),
    )
    if fitted is None:
        raise NotMainProcess("to fit with several processes, use 'torchrun … rejoinder fit'")
    shutil.rmtree(work, ignore_errors=True)
    evaluator = Evaluator.load(target)
    if replaced is not None:
        evaluator.replaced = replaced
        monitor.note(f"replaced the evaluator {replaced}")
    for note in evaluator.manifest.notes:
        monitor.note(note)
    return evaluator


def _existing(folder: Path) -> str | None:
    """Return name and digest of the evaluator in a folder; None if there is none."""
    from rejoinder.evaluator.manifest import read_manifest

    try:
        _, digest = read_manifest(folder)
    except DataError:
        return None
    return f"{folder.name}@{digest}"


def _check(inputs: Sequence[str], exclude: Sequence[str], format: str | None) -> None:
    from rejoinder.fitting.pairs import check_inputs

    if "-" in inputs:
        raise UsageError("fit reads its logs more than once: give files, not stdin")
    check_inputs(inputs, exclude, format)
    if missing := [name for name in REQUIRED_PACKAGES if not _is_installed(name)]:
        raise missing_extra("fit", *missing, task="fitting")


def _is_installed(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _input_files(logs_or_pairs: Any, work: Path) -> list[str]:
    """Return the paths of the inputs; a frame of pairs is written to a file in ``work``."""
    if isinstance(logs_or_pairs, (str, os.PathLike)):
        return [os.fspath(logs_or_pairs)]
    if isinstance(logs_or_pairs, Sequence):
        return [os.fspath(path) for path in logs_or_pairs]
    try:
        import narwhals as nw
    except ModuleNotFoundError as error:
        raise missing_extra("fit", str(error.name), task="reading a frame") from None

    native = logs_or_pairs
    if is_dataset(native):
        native = native.with_format("arrow")[:]
    try:
        frame = nw.from_native(native)
    except TypeError:
        raise DataError(
            f"expected names of files, or a frame of pairs, got {type(native).__name__}"
        ) from None
    whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if missing := [name for name in REQUIRED_COLUMNS if name not in whole.columns]:
        raise DataError(
            f"the frame has no column {' and no column '.join(missing)};"
            f" it has {', '.join(whole.columns)}"
        )
    import pyarrow.parquet as pq

    work.mkdir(parents=True, exist_ok=True)
    with open_output(work / PAIRS_FILE) as stream:
        pq.write_table(whole.to_arrow(), stream)
    return [str(work / PAIRS_FILE)]


def _excluded_files(exclude: Any, work: Path) -> list[str]:
    """Return the paths of the test sets; items in memory are written to a file in ``work``."""
    if exclude is None:
        return []
    if isinstance(exclude, (str, os.PathLike)):
        return [os.fspath(exclude)]
    if isinstance(exclude, Sequence) and all(isinstance(e, (str, os.PathLike)) for e in exclude):
        return [os.fspath(path) for path in exclude]
    items, _ = as_items(exclude, with_ratings=False)
    work.mkdir(parents=True, exist_ok=True)
    write_jsonl_file(work / TEST_FILE, to_plain(list(items)))  # numbers may be numpy's
    return [str(work / TEST_FILE)]
