"""Write what people answered, in the formats that other verbs read, and as one row per answer."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rejoinder.annotate.status import quality_limits
from rejoinder.annotate.store import Store
from rejoinder.annotate.tasks.kind import StoredAnswer
from rejoinder.errors import DataError, UsageError, missing_extra
from rejoinder.files.jsonl import write_jsonl_file
from rejoinder.files.output import open_output
from rejoinder.files.paths import check_different, check_output
from rejoinder.spec import did_you_mean
from rejoinder.wording import option

if TYPE_CHECKING:
    from rejoinder.files.paths import AnyPath

Record = dict[str, Any]


def export_study(
    store: Store,
    *,
    output: AnyPath | None,
    raw: AnyPath | None,
    pseudonyms: bool,
    drop_unreliable: bool,
    drop_annotators: Sequence[str],
    dimension: str | None,
) -> dict[str, Any]:
    """Write the files and return what was written (the fields of ``ExportResult``)."""
    _check_dimension(store, dimension)
    study_file = store.study.folder / store.settings.items
    for path in (output, raw):
        check_output(path, [study_file])
    check_different(output, raw)
    given = store.stored_answers(named=not pseudonyms)
    if not given:
        raise DataError("the study has no answers yet", path=str(store.study.folder))
    left_out = _left_out(store, given, drop_unreliable, drop_annotators)
    kept = [answer for answer in given if answer.person not in left_out]
    if not kept:
        raise DataError(
            "no answers are left after these people are dropped", path=str(store.study.folder)
        )
    made = store.kind.export(store.study.items, kept, dimension)
    rows = [answer_record(store, answer) for answer in kept]
    records = made.records if store.plan is None else store.plan.exported(made.records)
    write_jsonl_file(output, records)
    others = {}
    if output is not None and str(output) != "-":
        for name, further in made.others.items():
            path = beside(Path(output), name)
            write_jsonl_file(path, further)
            others[str(path)] = name
    if raw is not None:
        write_answers(raw, rows)
    return {
        "kind": store.settings.kind,
        "records": records,
        "content": made.what,
        "others": others,
        "answers": rows,
        "left_out": left_out,
        "notes": _notes(store, kept),
    }


def _check_dimension(store: Store, dimension: str | None) -> None:
    known = store.kind.dimensions()
    if dimension is not None and dimension not in known:
        hint = did_you_mean(dimension, known) if known else "this study has only one question"
        raise UsageError(f"{option('dimension', dimension)}: {hint}")


def _left_out(
    store: Store, given: Sequence[StoredAnswer], unreliable: bool, by_name: Sequence[str]
) -> list[str]:
    """Return the people whose answers are not exported."""
    people = list(dict.fromkeys(answer.person for answer in given))
    if unknown := [name for name in by_name if name not in people]:
        raise UsageError(
            *(f"{option('drop_annotators', n)}: {did_you_mean(n, people)}" for n in unknown)
        )
    left_out = list(by_name)
    if unreliable:
        kept = [answer for answer in given if answer.person not in left_out]
        review = store.kind.review(kept, quality_limits(store))
        left_out += [] if review is None else [each.name for each in review.unreliable]
    return left_out


def _notes(store: Store, kept: Sequence[StoredAnswer]) -> list[str]:
    """Return what the user should know about the export."""
    with store.database.reading() as connection:
        _, wanted = store.kind.expected(connection)
    notes = []
    if len(kept) < wanted:
        notes.append(f"the study is not complete: {len(kept):,} of {wanted:,} answers")
    return notes


def answer_record(store: Store, answer: StoredAnswer) -> Record:
    """Return an answer as one row, with times in ISO 8601."""
    received = datetime.fromtimestamp(answer.received, UTC)
    return {
        "task": answer.key,
        "kind": store.settings.kind,
        "person": answer.person,
        "received": received.isoformat(timespec="milliseconds"),
        "seconds": answer.seconds,
        "flags": answer.flags,
        "comment": answer.comment,
        "view": answer.view,
        "answer": answer.value,
        "content": answer.content,
    }


def beside(output: Path, name: str) -> Path:
    """Return the name of a further file beside the output: items.jsonl, items.candidates.jsonl.

    >>> str(beside(Path("a/items.jsonl.gz"), "candidates"))
    'a/items.candidates.jsonl.gz'
    """
    stem, dot, ending = output.name.partition(".")
    return output.with_name(f"{stem}.{name}{dot}{ending}")


def write_answers(path: AnyPath, rows: Sequence[Record]) -> None:
    """Write one row per answer; the ending of the name decides the format."""
    name = str(path)
    if name.endswith(".parquet"):
        _write_parquet(path, rows)
    elif name.removesuffix(".gz").removesuffix(".zst").endswith((".csv", ".tsv")):
        _write_csv(path, rows, "\t" if ".tsv" in Path(name).suffixes else ",")
    else:
        write_jsonl_file(path, list(rows))


def _flat(row: Record) -> Record:
    """Return a row whose nested values are JSON texts, for tables."""
    return {
        key: msgspec.json.encode(value).decode() if isinstance(value, (dict, list)) else value
        for key, value in row.items()
    }


def _write_csv(path: AnyPath, rows: Sequence[Record], delimiter: str) -> None:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(map(_flat, rows))
    with open_output(path) as stream:
        stream.write(text.getvalue().encode())


def _write_parquet(path: AnyPath, rows: Sequence[Record]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError:
        raise missing_extra("logs", "pyarrow", task="a Parquet file") from None
    table = pa.Table.from_pylist([_flat(row) for row in rows])
    with open_output(path) as stream:
        pq.write_table(table, stream)
