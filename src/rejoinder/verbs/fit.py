"""``rejoinder.fit``: logs or pairs in, an evaluator out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from rejoinder.errors import DataError, MissingExtra, UsageError
from rejoinder.inputs.items import as_items, is_dataset
from rejoinder.io import open_output, write_jsonl
from rejoinder.verbs.evaluator import Evaluator

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from rejoinder.inputs.items import Given

    Name: TypeAlias = str | os.PathLike[str]

NEEDED = ("utterance", "response")
PAIRS, TEST = "pairs.parquet", "exclude.jsonl"


def fit(
    logs_or_pairs: Name | Sequence[Name] | IntoFrame,
    *,
    output: Name,
    format: str | None = None,
    preset: str = "small",
    language: str = "en",
    exclude: Given | None = None,
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> Evaluator:
    """Make an evaluator for the language and domain of dialogue logs, in the folder ``output``.

    Give files of pairs (.parquet), files of logs in one ``format``, or a frame of pairs with the
    columns ``utterance`` and ``response`` (and ``context``, ``dialogue_id``, ``split``, if there
    are any). ``exclude`` is a test set whose contexts are left out; ``changes`` of the preset are
    as in ``{"data.most": 20_000}``. A run that was interrupted goes on where it stopped.
    """
    try:
        from rejoinder.fitting.fit import fit as run
        from rejoinder.fitting.settings import read_settings
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"fitting needs {error.name}: pip install {error.name} (or rejoinder[fit])"
        ) from None
    told = [f"{key}={_toml(value)}" for key, value in (changes or {}).items()]
    settings = read_settings(preset, language, seed=seed, changes=told)
    target = Path(output).absolute()
    # what was not given as a file, in one whose name is the same next time
    work = target.with_name(f".{target.name}.given")
    fitted = run(
        _inputs(logs_or_pairs, work),
        target,
        settings,
        format=format,
        exclude=_excluded(exclude, work),
    )
    if fitted is None:
        raise UsageError("several processes fit together with 'torchrun … rejoinder fit' only")
    shutil.rmtree(work, ignore_errors=True)
    return Evaluator.load(target)


def _inputs(given: Any, work: Path) -> list[str]:
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    if isinstance(given, Sequence):
        return [os.fspath(name) for name in given]
    import narwhals as nw

    if is_dataset(given):
        given = given.with_format("arrow")[:]
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise DataError(
            f"expected names of files, or a frame of pairs, got {type(given).__name__}"
        ) from None
    whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    if missing := [name for name in NEEDED if name not in whole.columns]:
        raise DataError(
            f"the frame has no column {' and no column '.join(missing)};"
            f" it has {', '.join(whole.columns)}"
        )
    work.mkdir(parents=True, exist_ok=True)
    _write(whole.to_arrow(), work / PAIRS)
    return [str(work / PAIRS)]


def _write(table: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    with open_output(path) as stream:
        pq.write_table(table, stream)


def _excluded(given: Given | None, work: Path) -> list[str]:
    if given is None:
        return []
    if isinstance(given, (str, os.PathLike)):
        return [os.fspath(given)]
    found, _ = as_items(given)
    items = list(found)
    work.mkdir(parents=True, exist_ok=True)
    with open_output(work / TEST) as stream:
        write_jsonl(stream, items)
    return [str(work / TEST)]


def _toml(value: Any) -> str:
    """As ``--set`` reads it."""
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
