"""Read the exports of Label Studio as JSON-MIN, CSV and TSV: one flat record an answer.

A record holds fields of the task and answers side by side. Ratings, numbers and pairwise choices
are marked by their form, but a choice is a plain text like a field of the task.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rejoinder.annotate.imports.interpret import Given, Label, Meanings, Other, RawAnswer
from rejoinder.annotate.imports.label_studio_fields import EXPECTED, TaskFields, winner
from rejoinder.errors import DataError

Record = dict[str, Any]
Numbered = Sequence[tuple[int | None, Record]]
"""Records with their lines, None in JSON."""

_OWN = {"id", "annotation_id", "annotator", "created_at", "updated_at", "lead_time"}


def minimal_answers(
    path: str, records: Numbered, fields: TaskFields, meanings: Meanings
) -> list[RawAnswer]:
    """Return the answers of flat records."""
    if not records:
        raise DataError(f"no answers; {EXPECTED}", path=path)
    for line, record in records:
        if missing := [name for name in ("id", "annotator", "annotation_id") if name not in record]:
            why = f"not of Label Studio: {', '.join(missing)} is missing; {EXPECTED}"
            raise DataError(why, path=path, line=line)
    kinds = _plain_answers([record for _, record in records], fields, meanings)
    answers = []
    for line, record in records:
        place = "" if line else f"annotation {record['annotation_id']}"
        answer = RawAnswer(path, "", str(record["id"]), {}, line=line, place=place)
        fields.fill(answer, record["annotator"], record, record)
        for name, value in record.items():
            if name not in _OWN and (given := _given(answer, name, value, kinds)) is not None:
                answer.given[name] = given
        answers.append(answer)
    return answers


def parse_cells(row: Mapping[str, str]) -> Record:
    """Return a row of a table with its structured cells parsed."""
    return {name: _parsed(cell) for name, cell in row.items()}


def _parsed(cell: str) -> Any:
    if cell.startswith(("[{", "{")):
        try:
            return json.loads(cell)
        except (ValueError, RecursionError):
            return cell  # a text that begins with a bracket
    return cell


def _given(answer: RawAnswer, name: str, value: Any, kinds: Mapping[str, str]) -> Given | None:
    match value:
        case None | "":
            return None
        case [{"rating": number}] | [{"number": number}]:
            return answer.number(name, number)
        case [{"selected": side}]:
            return winner(answer, name, side)
        case {"choices": [_, *_]}:
            return Other("several choices")
        case [dict(first), *_]:
            marked = {"rating", "number", "selected"} & first.keys()
            return Other("several values" if marked else ", ".join(first))
        case str() | int() | float() if name in kinds:
            return Other(kinds[name]) if kinds[name] else Label(str(value))
    return None


def _plain_answers(records: list[Record], fields: TaskFields, meanings: Meanings) -> dict[str, str]:
    """Return the names of plain values that are answers: with their kind, "" for a choice.

    Choices are those that were asked for, or of which a text has a meaning. Another name is an
    answer if it differs between the annotations of one task, and may be one if no task has two.
    """
    if meanings.dimensions is not None:
        return dict.fromkeys(meanings.dimensions, "")
    tasks: defaultdict[str, list[Record]] = defaultdict(list)
    for record in records:
        tasks[str(record["id"])].append(record)
    repeated = [group for group in tasks.values() if len(group) > 1]
    kinds: dict[str, str] = {}
    names = dict.fromkeys(name for record in records for name in record)
    for name in names.keys() - _OWN - fields.names:
        values = [record.get(name) for record in records]
        if any(isinstance(value, str) and value in meanings.labels for value in values):
            kinds[name] = ""
        elif any(len({str(one.get(name, "")) for one in group}) > 1 for group in repeated):
            kinds[name] = "text"
        elif not repeated:
            kinds[name] = "field of the task, or a text as answer"
    return kinds
