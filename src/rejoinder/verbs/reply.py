"""``reply``: let dialogue systems reply to contexts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rejoinder.errors import DataError, RejoinderError, UsageError
from rejoinder.files.item_file import ItemFile, read_items
from rejoinder.files.jsonl import JsonLines, write_jsonl
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_output
from rejoinder.systems import records
from rejoinder.systems.contexts import read_contexts
from rejoinder.verbs.arguments import as_names
from rejoinder.verbs.expand import pool_folder
from rejoinder.verbs.items import Items
from rejoinder.verbs.monitor import SILENT, Monitor
from rejoinder.verbs.notes import keep_notes
from rejoinder.verbs.results import FrameColumns, TableResult
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.columns import Columns
    from rejoinder.items import Item
    from rejoinder.retrieve.pool import Pool
    from rejoinder.systems.contexts import Context
    from rejoinder.systems.system import Mask, Replies, System


@dataclass(frozen=True)
class SystemOutcome:
    """The number of replies of one system."""

    system: str
    replies: int
    without_reply: dict[str, int]
    """Reason → number of contexts without a reply."""

    @classmethod
    def of(cls, system: str, replies: Sequence[Replies]) -> SystemOutcome:
        reasons = Counter(answer.reason for answer in replies if answer.reason is not None)
        return cls(system, sum(len(answer.texts) for answer in replies), dict(reasons))


@dataclass(frozen=True)
class ReplyResult(TableResult):
    """The replies as items. The frame has a row per item."""

    items: Items
    contexts: int
    leaks: int
    """Pairs of the pool that were left out, because a context ends with their utterance."""
    systems: list[SystemOutcome]

    def columns(self) -> FrameColumns:
        return self.items.columns()

    def to_dict(self) -> dict[str, Any]:
        return {
            "contexts": self.contexts,
            "leaks": self.leaks,
            "systems": [vars(outcome) for outcome in self.systems],
        }


@keep_notes
def reply(
    contexts: str | os.PathLike[str],
    systems: str | Sequence[str],
    *,
    pool: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    replies: int = 1,
    seed: int | None = None,
    as_references: bool = False,
    keep_leaks: bool = False,
    columns: Columns | None = None,
    any_language: bool = False,
    problems: Sequence[str] = (),
    monitor: Monitor = SILENT,
) -> ReplyResult:
    """Let dialogue systems reply to the contexts of a file.

    ``pool`` is a file of pairs, an index or an evaluator. Items with the same context count as one
    context; references are carried along. Pairs whose utterance is (nearly) the last turn of a
    context are not used, unless ``keep_leaks``. ``as_references`` returns the items of the file
    with the replies as references. ``output`` is the file to write ("-": stdout).
    """
    path = os.fspath(contexts)
    pool_path = None if pool is None else os.fspath(pool)
    problems = list(problems)
    if as_references and JsonLines(path).once:
        problems.append(
            f"{option('as_references', True)} reads the items twice: give a file, not a pipe"
        )
    made = _make_systems(as_names(systems), seed, pool_path, problems)
    check_output(output, [path, pool_path])
    needed = ("context", "response") if as_references else ("context",)
    source = ItemFile(path, columns, monitor.note, needed)
    distinct = read_contexts(source)
    answers: dict[str, list[Replies]] = {}
    items: list[Item] = []
    with (
        nullcontext() if output is None else open_output(output) as stream,
        _opened(pool_path, made) as opened,
    ):
        _check_language(opened, made, distinct, path, any_language=any_language, monitor=monitor)
        leaks = None if keep_leaks else _leaks(opened, distinct, monitor)
        for system in made:
            with monitor.pieces(str(system)) as advance:
                answers[str(system)] = system.reply(
                    [context.turns for context in distinct],
                    opened,
                    n=replies,
                    leaks=leaks,
                    on_progress=advance,
                    on_note=partial(_name, monitor.note, system),
                    on_message=partial(_name, monitor.message, system),
                )
            _check_reply_language(system, distinct, answers[str(system)], monitor)
            if not as_references:
                own = records.as_items(
                    str(system), distinct, answers[str(system)], numbered=replies > 1
                )
                items += _written(list(own), stream)
        if as_references:
            items += _written(
                list(records.as_references(read_items(source), distinct, answers)), stream
            )
    return ReplyResult(
        Items(items),
        len(distinct),
        0 if leaks is None else int(leaks.sum()),
        [SystemOutcome.of(name, own) for name, own in answers.items()],
    )


def _name(say: Callable[[str], None], system: System, text: str) -> None:
    say(f"{system}: {text}")


def _written(items: list[Item], stream: Any) -> list[Item]:
    if stream is not None:
        write_jsonl(stream, items)
    return items


def _make_systems(
    specs: Sequence[str], seed: int | None, pool: str | None, problems: list[str]
) -> list[System]:
    """Make the systems; everything that is wrong with the arguments is reported at once."""
    from rejoinder.systems.system import make_system

    wrong: list[str] = []
    missing: list[RejoinderError] = []
    systems: dict[str, System] = {}
    for spec in specs:
        try:
            made = make_system(spec, seed)
        except UsageError as error:
            wrong += error.messages
            continue
        except RejoinderError as error:
            missing.append(error)
            continue
        if str(made) in systems:
            wrong.append(f"the system '{made}' is given twice")
        systems[str(made)] = made
    need_pool = [name for name, each in systems.items() if each.needs_pool]
    if need_pool and pool is None:
        wrong.append(f"{', '.join(need_pool)}: add {option('pool', 'PAIRS')} to take replies from")
    if wrong + problems:
        raise UsageError(*wrong, *problems)
    if missing:
        raise missing[0]
    return list(systems.values())


@contextmanager
def _opened(path: str | None, systems: Sequence[System]) -> Iterator[Pool | None]:
    """Open the pool, if a system needs one."""
    if path is None or not any(system.needs_pool for system in systems):
        yield None
        return
    from rejoinder.retrieve.index_folder import open_pool

    with open_pool(pool_folder(path)) as pool:
        yield pool


def _check_language(
    pool: Pool | None,
    systems: Sequence[System],
    contexts: Sequence[Context],
    path: str,
    *,
    any_language: bool,
    monitor: Monitor,
) -> None:
    """Refuse contexts, or a pool, in a language that a system's encoder does not know."""
    from rejoinder.retrieve.language_check import check_language, check_pool_language
    from rejoinder.systems.retrieval import RetrievalSystem
    from rejoinder.text.identify import find_other_language

    turns = [context.turns[-1] for context in contexts if context.turns]
    for system in systems:
        if isinstance(system, RetrievalSystem) and pool is not None:
            retriever = system.retriever()
            check_language(
                retriever, turns, path, any_language=any_language, on_warning=monitor.warn
            )
            check_pool_language(pool, retriever, any_language=any_language, on_warning=monitor.warn)
        elif other := find_other_language(turns, system.languages):
            message = other.describe(f"the network of '{system}'")
            if not any_language:
                advice = f"train one for this language, or add {option('any_language', True)}"
                raise DataError(f"{message}; {advice}", path=path)
            monitor.warn(f"{path}: {message}; its replies mean little")


def _check_reply_language(
    system: System, contexts: Sequence[Context], replies: Sequence[Replies], monitor: Monitor
) -> None:
    """Warn of replies in another language than that of the contexts."""
    if not system.generates:
        return
    from rejoinder.text.identify import find_other_language, main_language

    language = main_language([turn for context in contexts for turn in context.turns])
    texts = [text for answer in replies for text in answer.texts]
    other = None if language is None else find_other_language(texts, [language])
    if other is not None:
        monitor.warn(
            f"{system}: {other.share:.0%} of {other.texts:,} replies are in another language than"
            f" the contexts ({other.expected[0]}), mostly {other.name}, for example"
            f" {other.example!r}"
        )


def _leaks(pool: Pool | None, contexts: Sequence[Context], monitor: Monitor) -> Mask | None:
    """Return the rows of the pool whose utterance is (nearly) the last turn of a context."""
    if pool is None:
        return None
    from rejoinder.retrieve.leaks import find_leaks

    with monitor.pieces("looking for leaks") as advance:
        mask, _ = find_leaks(pool, [c.turns[-1] for c in contexts if c.turns], advance)
    return mask
