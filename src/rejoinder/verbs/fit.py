"""``fit``: make an evaluator from dialogue logs or pairs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from rejoinder.errors import DataError, UsageError, missing_extra
from rejoinder.files.jsonl import write_jsonl
from rejoinder.files.output import open_output
from rejoinder.inputs.convert import is_dataset
from rejoinder.inputs.items import as_items
from rejoinder.verbs.evaluator import Evaluator
from rejoinder.verbs.monitor import SILENT, Monitor

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from rejoinder.inputs.items import ItemsLike

    Name: TypeAlias = str | os.PathLike[str]

REQUIRED_COLUMNS = ("utterance", "response")
REQUIRED_PACKAGES = ("torch", "safetensors", "pyarrow", "duckdb")
PAIRS_FILE, TEST_FILE = "pairs.parquet", "exclude.jsonl"


def fit(
    logs_or_pairs: Name | Sequence[Name] | IntoFrame,
    *,
    output: Name,
    format: str | None = None,
    preset: str = "small",
    language: str = "en",
    exclude: ItemsLike | Sequence[Name] | None = None,
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
    assistant or all. An interrupted run continues where it stopped.
    """
    fitted = fit_in_group(
        logs_or_pairs,
        output=output,
        format=format,
        preset=preset,
        language=language,
        exclude=exclude,
        learn_from=learn_from,
        any_language=any_language,
        overrides=overrides,
        seed=seed,
        monitor=monitor,
    )
    if fitted is None:
        raise UsageError("to fit with several processes, use 'torchrun … rejoinder fit'")
    return fitted


def fit_in_group(
    logs_or_pairs: Any,
    *,
    output: Name,
    format: str | None,
    preset: str,
    language: str,
    exclude: Any,
    learn_from: str | None,
    any_language: bool,
    overrides: Mapping[str, Any] | Sequence[str] | None,
    seed: int,
    monitor: Monitor,
) -> Evaluator | None:
    """Fit like :func:`fit`; under ``torchrun``, all processes but the main one return None."""
    # wrong arguments are reported before torch is loaded, which takes seconds
    from rejoinder.fitting.settings import read_settings

    if isinstance(overrides, Mapping):
        overrides = [f"{key}={_toml(value)}" for key, value in overrides.items()]
    settings = read_settings(preset, language, seed=seed, overrides=list(overrides or []))
    target = Path(os.fspath(output).rstrip("/") or "/").absolute()
    # inputs that are no files are written to one, whose name is the same in the next run
    work = target.with_name(f".{target.name}.given")
    inputs = _inputs(logs_or_pairs, work)
    excluded = _excluded(exclude, work)
    _check(inputs, excluded, format)
    from rejoinder.fitting.fit import FitProgress
    from rejoinder.fitting.fit import fit as run

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
        return None
    shutil.rmtree(work, ignore_errors=True)
    return Evaluator.load(target)


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


def _inputs(given: Any, work: Path) -> list[str]:
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    if isinstance(given, Sequence):
        return [os.fspath(name) for name in given]
    try:
        import narwhals as nw
    except ModuleNotFoundError as error:
        raise missing_extra("fit", str(error.name), task="reading a frame") from None

    if is_dataset(given):
        given = given.with_format("arrow")[:]
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise DataError(
            f"expected names of files, or a frame of pairs, got {type(given).__name__}"
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


def _excluded(exclude: Any, work: Path) -> list[str]:
    if exclude is None:
        return []
    if isinstance(exclude, (str, os.PathLike)):
        return [os.fspath(exclude)]
    if isinstance(exclude, Sequence) and all(isinstance(e, (str, os.PathLike)) for e in exclude):
        return [os.fspath(name) for name in exclude]
    items, _ = as_items(exclude)
    work.mkdir(parents=True, exist_ok=True)
    with open_output(work / TEST_FILE) as stream:
        write_jsonl(stream, list(items))
    return [str(work / TEST_FILE)]


def _toml(value: Any) -> str:
    """Return a value as ``--set`` reads it."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
