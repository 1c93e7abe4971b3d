"""``corpus``: turn dialogue logs into clean, split pairs of utterance and response."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import UsageError, missing_extra
from rejoinder.files import paths
from rejoinder.verbs.arguments import as_names, as_paths
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import Result
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.logs.corpus_report import CorpusReport
    from rejoinder.logs.pipeline import Settings

SHARES = (0.9, 0.05, 0.05)


@dataclass(frozen=True)
class CorpusResult(Result):
    """Where the pairs are, and what became of every record."""

    pairs: Path
    manifest: Path
    rejects: Path | None
    """Bad records with the reason, if there were any."""
    report: CorpusReport

    def to_dict(self) -> dict[str, Any]:
        return self.report.to_dict()


@keep_notes
def corpus(
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str,
    output: str | os.PathLike[str],
    language: str | None = None,
    engine: str = "duckdb",
    off: Sequence[str] = (),
    on: Sequence[str] = (),
    context: int = 4,
    exclude: str | Sequence[str] = (),
    split: Sequence[float] = SHARES,
    split_at: Sequence[str | datetime] = (),
    learn_from: str | None = None,
    salt: str | None = None,
    strict: bool = False,
    memory: str = "2GB",
    monitor: Monitor = SILENT,
) -> CorpusResult:
    """Turn dialogue logs into clean, split pairs of utterance and response (Parquet).

    ``format`` names the log format (see ``rejoinder ls``), ``off`` and ``on`` switch filters,
    ``context`` is the number of turns kept before the utterance. Pairs whose utterance a test set
    of ``exclude`` has are left out. ``split`` are the shares of train, validation and test;
    ``split_at`` splits by time instead. ``learn_from`` says whose turns are replies to learn from
    in formats with roles: user, assistant or all.
    """
    try:
        import duckdb  # noqa: F401
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise missing_extra("logs", str(error.name), task="reading logs") from None
    from rejoinder.logs.pipeline import beside, make_pairs
    from rejoinder.verbs.table_notes import note_excluded_columns, note_guesses

    excluded = as_names(exclude)
    settings = make_settings(
        format,
        language=language,
        off=off,
        on=on,
        context=context,
        exclude=excluded,
        split=split,
        split_at=split_at,
        learn_from=learn_from,
        salt=salt,
        strict=strict,
    )
    names = as_paths(logs)
    target = Path(output)
    paths.check_place(target)
    paths.check_output(target, [log for log in names if log != "-" and paths.is_file(log)])
    note_excluded_columns(excluded, monitor)
    note_guesses(names, settings.reader, monitor)
    with monitor.pieces("reading") as advance:
        report = make_pairs(
            names, target, settings, engine=engine, memory=memory, on_progress=advance
        )
    if not report.pairs:
        hint = ""
        if hasattr(settings.reader, "learn_from"):
            hint = f"; in a chat, user and assistant must take turns (see {option('learn_from')})"
        monitor.warn(f"there are 0 pairs: no post that was kept answers another one{hint}")
    rejects = beside(target, "rejects.jsonl")
    return CorpusResult(
        target,
        beside(target, "manifest.json"),
        rejects if paths.exists(rejects) else None,
        report,
    )


def make_settings(
    format: str,
    *,
    language: str | None,
    off: Sequence[str],
    on: Sequence[str],
    context: int,
    exclude: Sequence[str],
    split: Sequence[float],
    split_at: Sequence[str | datetime],
    learn_from: str | None,
    salt: str | None,
    strict: bool,
) -> Settings:
    """Check all arguments; everything that is wrong is reported at once."""
    from rejoinder.logs.bot_filters import BotFilters
    from rejoinder.logs.clean import FILTERS, Cleaning
    from rejoinder.logs.pipeline import Settings
    from rejoinder.logs.readers.reader import make_reader
    from rejoinder.logs.split import Split
    from rejoinder.logs.threads import Threads
    from rejoinder.spec import did_you_mean

    problems: list[str] = []
    reader = cleaning = parts = None
    try:
        reader = make_reader(format, learn_from)
    except UsageError as error:
        problems += error.messages
    relational = [name for name in off if name in BotFilters.names]
    unknown = [n for n in [*off, *on] if n not in FILTERS and n not in BotFilters.names]
    problems += [
        f"unknown filter '{n}': {did_you_mean(n, [*FILTERS, *BotFilters.names])}" for n in unknown
    ]
    if not unknown:
        try:
            plain_off = [name for name in off if name not in relational]
            cleaning = Cleaning.for_language(language or "en", off=plain_off, on=list(on))
        except UsageError as error:
            problems += error.messages
    try:
        dates = tuple(d if isinstance(d, datetime) else datetime.fromisoformat(d) for d in split_at)
        parts = Split(tuple(split), dates)
    except (ValueError, OverflowError) as error:
        problems.append(f"{option('split')}: {error}")
    problems += [f"{path}: cannot be read" for path in exclude if not paths.is_file(path)]
    if problems or reader is None or cleaning is None or parts is None:
        raise UsageError(*problems)
    return Settings(
        reader=reader,
        cleaning=cleaning,
        bot_filters=BotFilters(off=tuple(relational)),
        threads=Threads(turns=context),
        split=parts,
        exclude=tuple(exclude),
        salt=salt,
        strict=strict,
    )
