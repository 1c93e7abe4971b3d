"""``expand``: add references to items, retrieved ones or those of a language model."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError
from rejoinder.files import paths
from rejoinder.files.item_file import ItemFile
from rejoinder.registry import WRITERS
from rejoinder.spec import parse
from rejoinder.verbs.arguments import MAX_K, check_number, evaluator_folder
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.retrieve.expand_items import ExpansionReport
    from rejoinder.retrieve.written.expand_items import WritingReport
    from rejoinder.verbs.arguments import EvaluatorLike


@dataclass(frozen=True)
class ExpandResult(Result):
    """Where the items are, and what was added to them."""

    items: Path
    k: int
    report: ExpansionReport | WritingReport

    def to_dict(self) -> dict[str, Any]:
        return self.report.to_dict()


@keep_notes
def expand(
    items: str | os.PathLike[str],
    *,
    output: str | os.PathLike[str],
    pool: str | os.PathLike[str] | None = None,
    evaluator: EvaluatorLike | None = None,
    by: str | None = None,
    k: int | None = None,
    parrot: bool | None = None,
    keep_leaks: bool = False,
    split: str | None = None,
    language: str | None = None,
    engine: str | None = None,
    columns: Columns | None = None,
    any_language: bool = False,
    monitor: Monitor = SILENT,
) -> ExpandResult:
    """Add to each item of a file the replies to similar utterances of a pool.

    Give an ``evaluator``, whose pool is searched and which gives every reference a weight from -1
    to 1, or a ``pool``: a file of pairs, or an index of them. ``k`` replies are added (15, or as
    the evaluator has it), and the utterance itself, unless ``parrot`` is False. Pairs whose
    utterance is (nearly) the last turn of an item are left out, unless ``keep_leaks``. To expand
    items in memory, use :meth:`Evaluator.expand`.

    With ``by="llm(url=…,model=…)"``, a language model writes the replies instead, 8 by default and
    without the utterance. An ``evaluator`` then only gives the weights.
    """
    if k is not None:
        check_number("k", k, 1, MAX_K)
    if by is not None and parse(by).name in WRITERS.names():
        from rejoinder.verbs.expand_written import expand_written

        unused = {
            option("pool"): pool is not None,
            option("keep_leaks", True): keep_leaks,
            option("split"): split is not None,
            option("engine"): engine is not None,
        }
        if given := [name for name, used in unused.items() if used]:
            raise UsageError(f"a language model searches nothing: leave out {', '.join(given)}")
        return expand_written(
            ItemFile(os.fspath(items), columns, monitor.note),
            Path(output),
            by,
            k=k,
            parrot=bool(parrot),
            evaluator=evaluator_folder(evaluator),
            language=language,
            any_language=any_language,
            monitor=monitor,
        )
    from rejoinder.retrieve.expand_items import DEFAULT_RETRIEVER
    from rejoinder.retrieve.expand_items import expand as run
    from rejoinder.retrieve.retrieved_references import (
        DEFAULT_SETTINGS,
        ExpansionSettings,
        RateReferences,
        unrated,
    )
    from rejoinder.retrieve.retriever import make_retriever

    source, target = os.fspath(items), Path(output)
    folder = evaluator_folder(evaluator)
    searched = None if pool is None else os.fspath(pool)
    paths.check_place(target)
    paths.check_output(target, [source, searched, folder])
    rate: RateReferences = unrated
    defaults = DEFAULT_SETTINGS
    if folder is not None:
        from rejoinder.evaluator import open_evaluator
        from rejoinder.evaluator.manifest import POOL
        from rejoinder.evaluator.rating import rate_references

        if searched is not None or by is not None or split is not None:
            raise UsageError(
                "the evaluator has a pool and a retriever: leave out"
                f" {option('pool')}, {option('by')}, {option('split')}"
            )
        opened = open_evaluator(folder)
        searched = str(opened.path / POOL)
        retrieval = opened.manifest.retrieval
        defaults = ExpansionSettings(retrieval.k, retrieval.parrot)
        rate = partial(rate_references, opened)
    if searched is None:
        raise UsageError(
            "where should references come from? Give"
            f" {option('evaluator', 'DIR')} or {option('pool', 'PAIRS')}"
        )
    searched = pool_folder(searched)
    settings = ExpansionSettings(
        defaults.k if k is None else k, defaults.parrot if parrot is None else parrot, keep_leaks
    )
    # an index has its own retriever
    has_retriever = by is None and paths.is_folder(searched)
    report = run(
        ItemFile(source, columns, monitor.note),
        searched,
        target,
        None if has_retriever else make_retriever(by or DEFAULT_RETRIEVER, language),
        settings,
        split=split,
        engine=engine,
        rate=rate,
        any_language=any_language,
        on_warning=monitor.warn,
        watch=monitor.pieces,
    )
    return ExpandResult(target, settings.k, report)


def pool_folder(path: str) -> str:
    """Return the folder of the pairs: in an evaluator, that of its pool."""
    from rejoinder.evaluator.manifest import MANIFEST, POOL

    if not paths.is_file(Path(path) / POOL / MANIFEST):
        return path
    from rejoinder.evaluator import open_evaluator

    return str(open_evaluator(path).path / POOL)
