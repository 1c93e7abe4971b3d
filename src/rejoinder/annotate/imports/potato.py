"""Read the answers of a study in Potato: https://www.potatoannotator.com.

Read are the output folder of a study (``user_state.json`` of version 2, and
``annotated_instances.jsonl`` of version 1, in a folder a person), a single file of these, and the
exports as CSV, TSV and JSON lines of both versions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rejoinder.annotate.imports.interpret import (
    Labels,
    Meanings,
    RawAnswer,
    interpret,
    plain_number,
)
from rejoinder.annotate.imports.potato_schemes import Stored, numeric_schemes, scheme_answer
from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.annotate.imports.rows import read_table
from rejoinder.errors import DataError
from rejoinder.files.checked import MAX_BYTES, read_json
from rejoinder.files.jsonl import JsonLines
from rejoinder.files.paths import AnyPath, is_folder

STATE, INSTANCES = "user_state.json", "annotated_instances.jsonl"
EXPECTED = (
    f"expected the output folder of a study in Potato, its {STATE} or {INSTANCES}, or an export"
    " as .csv, .tsv or .jsonl"
)

_LABELS = "instance_id_to_label_to_value"
_OWN_COLUMNS = {"user", "user_id", "instance_id", "displayed_text", "annotator_origin"}
_OWN_COLUMNS |= {"annotator_origin_detail", "engine_purpose", "engine_request"}
_TIME = re.compile(r"Time spent: (\d+)d (\d+)h (\d+)m (\d+)s\s*")

Answers = Iterator[tuple[RawAnswer, Stored]]


def read_potato(
    path: AnyPath,
    *,
    labels: Labels | None = None,
    dimensions: Collection[str] | None = None,
    unread: Counter[str] | None = None,
) -> Iterator[ImportedAnswer]:
    """Yield the answers of a study in Potato, in the order of the export.

    ``labels`` says what a label means: a number, ``a``, ``b`` or ``tie``, or None to leave the
    answer out; a label that is a number needs no entry. ``dimensions`` chooses schemes. What is no
    rating and no choice between two replies is counted in ``unread`` by scheme and kind, until the
    last answer is read.
    """
    unread = Counter() if unread is None else unread
    meanings = Meanings(labels or {}, dimensions)
    stored = [pair for file in _files(path) for pair in _read(file, unread)]
    numeric = numeric_schemes(schemes for _, schemes in stored)
    for answer, schemes in stored:
        for scheme, given in schemes.items():
            answer.given |= scheme_answer(answer, scheme, given, numeric)
    return interpret([answer for answer, _ in stored], meanings, unread, str(path))


def _files(path: AnyPath) -> list[Path]:
    if not is_folder(path):
        return [Path(path)]
    found = [*Path(path).glob(f"*/{STATE}"), *Path(path).glob(f"*/{INSTANCES}")]
    if not found:
        raise DataError(f"no folder in it has {STATE} or {INSTANCES}; {EXPECTED}", path=str(path))
    return sorted(found)


def _read(path: Path, unread: Counter[str]) -> Answers:
    """Yield the answers of a file with what is stored for each."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _table(path)
    elif suffix == ".jsonl":
        for line, record in JsonLines(path).decode(dict):
            yield _record(path, line, record)
    elif suffix == ".json":
        yield from _state(path, unread)
    else:
        raise DataError(f"the name ends in '{suffix}'; {EXPECTED}", path=str(path))


def _state(path: Path, unread: Counter[str]) -> Answers:
    """Yield the answers of a ``user_state.json``."""
    state = read_json(path, max_bytes=MAX_BYTES)
    if not isinstance(state, dict) or not isinstance(state.get(_LABELS), dict):
        raise _foreign(path, _LABELS)
    person = _id(path, None, "user_id", state.get("user_id"))
    unread.update(_beside_labels(state))
    behaviour = _entries(state.get("instance_id_to_behavioral_data"))
    for item, schemes in state[_LABELS].items():
        answer = RawAnswer(str(path), person, item, {}, place=f"instance '{item}'")
        tracked = _entries(behaviour.get(item))
        milliseconds = plain_number(tracked.get("total_time_ms"))
        answer.seconds = milliseconds / 1000 if milliseconds else None  # 0: not tracked
        answer.time = _time(answer, plain_number(tracked.get("session_end")))
        yield answer, _schemes(answer, schemes)


def _beside_labels(state: dict[str, Any]) -> Iterator[str]:
    """Yield the kind of each answer that is no label of an item."""
    for name in ("span", "link", "event"):
        for marks in _entries(state.get(f"instance_id_to_{name}_to_value")).values():
            if marks:
                yield f"{name}s of texts"
    for phase, pages in _entries(state.get("phase_to_page_to_label_to_value")).items():
        for labels in _entries(pages).values():
            if labels:
                yield f"{phase} (page of a survey)"


def _record(path: Path, line: int, record: dict[str, Any]) -> tuple[RawAnswer, Stored]:
    """Read a line of ``annotated_instances.jsonl`` or of an export as JSON lines."""
    if "labels" in record and "instance_id" in record:  # version 2
        schemes, marks = record["labels"], [record.get("spans"), record.get("links")]
    elif "label_annotations" in record:
        schemes, marks = record["label_annotations"], [record.get("span_annotations")]
    else:
        raise _foreign(path, "labels or label_annotations", line)
    item = _id(path, line, "instance_id", record.get("instance_id", record.get("id")))
    person = record.get("user_id", path.parent.name if path.name == INSTANCES else None)
    answer = RawAnswer(str(path), _id(path, line, "user_id", person), item, {}, line=line)
    answer.seconds = _spent(_entries(record.get("behavioral_data")).get("time_string"))
    found = dict(_schemes(answer, schemes))
    if any(marks):
        found["spans"] = {"_marked in texts": True}
    return answer, found


def _table(path: Path) -> Answers:
    """Yield the rows of an export as CSV or TSV; a column is a label of a scheme."""
    for line, row in read_table(path):
        person = "user_id" if "user_id" in row else "user"  # version 2, version 1
        if person not in row or "instance_id" not in row:
            raise _foreign(path, "the column instance_id, user_id or user", line)
        who = _id(path, line, person, row[person])
        item = _id(path, line, "instance_id", row["instance_id"])
        schemes: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        for column, cell in row.items():
            if cell not in ("", "[]", "{}") and column not in _OWN_COLUMNS:
                scheme, _, label = column.partition(":::" if person == "user" else ".")
                schemes[scheme][label] = cell
        yield RawAnswer(str(path), who, item, {}, line=line), schemes


def _schemes(answer: RawAnswer, found: Any) -> Stored:
    """Return scheme → label → value, which is also stored as a list of labels with values."""
    if isinstance(found, dict) and all(isinstance(labels, dict) for labels in found.values()):
        return found
    schemes: defaultdict[str, dict[str, Any]] = defaultdict(dict)
    for entry in found if isinstance(found, list) else [None]:
        match entry:
            case [{"schema": str(scheme), "name": str(label)}, value]:
                schemes[scheme][label] = value
            case _:
                raise answer.wrong(
                    "the labels have an unknown form; expected scheme, label and value of each"
                )
    return schemes


def _spent(text: Any) -> float | None:
    """Return the seconds of ``Time spent: 0d 0h 1m 5s``; None for any other text."""
    if not isinstance(text, str) or not (found := _TIME.fullmatch(text)):
        return None
    days, hours, minutes, seconds = map(int, found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _time(answer: RawAnswer, stamp: float | None) -> datetime | None:
    if not stamp:
        return None
    try:
        return datetime.fromtimestamp(stamp, UTC)
    except (ValueError, OverflowError, OSError):
        raise answer.wrong(f"session_end is {stamp}; expected seconds since 1970") from None


def _id(path: Path, line: int | None, field: str, value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value:
        raise DataError(f"{field} is {value!r}; expected an id", path=str(path), line=line)
    return value


def _entries(value: Any) -> dict[str, Any]:
    """Return an optional object, empty if there is none."""
    return value if isinstance(value, dict) else {}


def _foreign(path: Path, missing: str, line: int | None = None) -> DataError:
    message = f"not of Potato: {missing} is missing; {EXPECTED}"
    return DataError(message, path=str(path), line=line)
