"""``report``: ranking, agreement with people and browsable items, as one HTML page."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.errors import DataError
from rejoinder.files.checked import read_json
from rejoinder.files.jsonl import JsonLines
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output, file_digest
from rejoinder.items import Item
from rejoinder.meta_evaluation.evaluation import MetaSettings
from rejoinder.meta_evaluation.reference_curve import CurvePoint
from rejoinder.registry import TOKENIZERS
from rejoinder.text.languages import language as find_language
from rejoinder.verbs.arguments import (
    MAX_REPORT_ITEMS,
    RESAMPLES,
    SEED,
    check_resampling,
    evaluator_folder,
)
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result
from rejoinder.verbs.safeguards import check_contamination
from rejoinder.verbs.scores import check_order, open_scores, warn_of_other_evaluator
from rejoinder.verbs.source import naming, open_items, path_of
from rejoinder.wording import choose

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.inputs.items import ItemsLike
    from rejoinder.reporting.page.analysis import EvaluatorInfo
    from rejoinder.verbs.arguments import EvaluatorLike
    from rejoinder.verbs.scores import ScoresLike


@dataclass(frozen=True)
class ReportResult(Result):
    """The page; a notebook shows it."""

    html: bytes = field(repr=False)
    path: Path | None

    def to_dict(self) -> dict[str, Any]:
        return {"path": None if self.path is None else str(self.path), "bytes": len(self.html)}

    def _repr_html_(self) -> str:
        from html import escape

        page = escape(self.html.decode(), quote=True)
        return f'<iframe srcdoc="{page}" style="width:100%;height:60em;border:0"></iframe>'


@keep_notes
def report(
    items: ItemsLike,
    scores: ScoresLike,
    *,
    output: str | os.PathLike[str] | None = None,
    evaluator: EvaluatorLike | None = None,
    title: str | None = None,
    metric: str | None = None,
    max_items: int = MAX_REPORT_ITEMS,
    curve: str | os.PathLike[str] | None = None,
    columns: Columns | None = None,
    language: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    monitor: Monitor = SILENT,
) -> ReportResult:
    """Make an HTML page: which system is better, how sure that is, and why.

    ``items`` may be a file, a frame or a list; ``scores`` a file or the result of :func:`score`. It
    has the ranking, agreement with people (where items have ratings), plots, and a table of
    ``max_items`` items to browse. ``metric`` ranks the systems; with an ``evaluator``, contexts of
    its training data are counted; ``curve`` is a file with the JSON of :func:`meta` with
    its parameter ``curve``.
    """
    from rejoinder.reporting.page.analysis import analyse
    from rejoinder.reporting.page.build import Provenance
    from rejoinder.reporting.page.render import render
    from rejoinder.reporting.page.report_data import load_report_data

    items_path, scored = path_of(items), open_scores(scores)
    items_name = items_path or "the items"
    check_order(items, scores)
    curve_path = None if curve is None else os.fspath(curve)
    check_resampling(resamples, seed)
    folder = evaluator_folder(evaluator)
    target = None if output is None else Path(output)
    files = [name for name in (items_path, scored.path, curve_path) if name is not None]
    check_output(target, [*files, folder])
    if language is not None:
        find_language(language)  # a wrong one is reported before any work
    options = {
        "--evaluator": folder,
        "--title": title,
        "--metric": metric,
        "--items": None if max_items == MAX_REPORT_ITEMS else str(max_items),
        "--curve": curve_path,
        "--columns": _columns_text(columns),
        "--language": language,
        "--resamples": None if resamples == RESAMPLES else str(resamples),
        "--seed": str(seed),
        "-o": None if target is None else str(target),
    }
    with monitor.steps() as step:
        step("reading")
        curves = {} if curve_path is None else _curves(curve_path)
        with open_items(items, columns=columns, monitor=monitor) as source:
            replies = list(source.read())
        data = load_report_data(
            replies,
            scored.lines,
            metric=metric,
            items_name=items_name,
            scores_name=scored.name,
        )
        warn_of_other_evaluator(data.joined.signatures, folder, scored.name, monitor)
        info = None if folder is None else _evaluator_info(folder, replies, monitor)
        code = language or (info.language if info else None) or "en"
        tokenizer = TOKENIZERS.make(find_language(code).tokenizer)
        systems = data.systems
        many = f"{len(systems):,} systems" if len(systems) > 1 else systems[0]
        provenance = Provenance(
            title or f"Replies of {many}",
            _command([items_path or "ITEMS", scored.path or "SCORES"], options),
            [(name, _digest(name)) for name in files],
        )
        settings = MetaSettings(resamples, seed)
        with naming(items_name):
            analysis = analyse(data, settings, evaluator=info, curves=curves, step=step)
        step("writing the page")
        page = render(analysis, provenance, tokenizer, max_items=max_items)
        if target is not None:
            with open_output(target) as stream:
                stream.write(page)
    return ReportResult(page, target)


def _command(arguments: list[str], options: dict[str, str | None]) -> str:
    """Return the command line that makes this page again."""
    flags = [part for name, value in options.items() if value is not None for part in (name, value)]
    return shlex.join(["rejoinder", "report", *arguments, *flags])


def _columns_text(columns: Columns | None) -> str | None:
    """Return columns as the command line takes them."""
    if not columns:
        return None
    pairs = [
        (f, n)
        for f, names in columns.items()
        for n in ([names] if isinstance(names, str) else names)
    ]
    return ",".join(f"{field}={name}" for field, name in pairs)


def _digest(name: str) -> str:
    """Return the digest of a file; a stream can't be read again."""
    return "a stream" if JsonLines(name).once else f"sha256 {file_digest(Path(name)).hex()}"


def _evaluator_info(folder: str, replies: list[Item], monitor: Monitor) -> EvaluatorInfo:
    """Return the evaluator's name, origin and coverage, and its contamination by these replies."""
    from rejoinder.evaluator import open_evaluator
    from rejoinder.reporting.page.analysis import EvaluatorInfo

    evaluator = open_evaluator(folder)
    checked = check_contamination(replies, [evaluator], strict=False, monitor=monitor)
    manifest = evaluator.manifest
    return EvaluatorInfo(
        evaluator.name,
        f"rejoinder {manifest.rejoinder}",
        evaluator.digest,
        manifest.language,
        checked.contamination[str(evaluator)],
        manifest.coverage,
        manifest.preset,
    )


def _curves(path: str) -> dict[str, list[CurvePoint]]:
    """Return the curves in the JSON of :func:`meta`."""
    command = choose(
        command_line="rejoinder meta ITEMS SCORES --curve --json",
        python="rejoinder.meta(items, scores=scores, curve=True).to_dict()",
    )
    read = read_json(path, dict[str, Any])
    try:
        curves = msgspec.convert(read.get("curves", {}), dict[str, list[CurvePoint]])
    except msgspec.ValidationError as error:
        raise DataError(f"{error}; expected the JSON of {command}", path=path) from None
    if not curves:
        raise DataError(f"has no curves; make them with {command}", path=path)
    return curves
