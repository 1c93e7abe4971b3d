"""Read the answers of a study in Label Studio: https://labelstud.io.

Read are its exports as JSON, JSON-MIN, CSV and TSV. JSON is the best of them: it alone says which
texts are answers and who skipped a task.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from rejoinder.annotate.imports.interpret import (
    Given,
    Label,
    Labels,
    Meanings,
    Other,
    RawAnswer,
    interpret,
)
from rejoinder.annotate.imports.label_studio_fields import EXPECTED, TaskFields, winner
from rejoinder.annotate.imports.label_studio_minimal import minimal_answers, parse_cells
from rejoinder.annotate.imports.record import ImportedAnswer
from rejoinder.annotate.imports.rows import read_table
from rejoinder.errors import DataError
from rejoinder.files.checked import MAX_BYTES, read_json
from rejoinder.files.paths import AnyPath


def read_label_studio(
    path: AnyPath,
    *,
    item: str | None = None,
    pair: tuple[str, str] | None = None,
    labels: Labels | None = None,
    dimensions: Collection[str] | None = None,
    unread: Counter[str] | None = None,
) -> Iterator[ImportedAnswer]:
    """Yield the answers of an export of Label Studio, in its order.

    ``item`` is the field of the task that holds the id of the item, by default the number of the
    task, and ``pair`` are the fields that hold the ids of the two items of a pair. ``labels`` says
    what a choice means: a number, ``a``, ``b`` or ``tie``, or None to leave the answer out; a
    choice that is a number needs no entry. ``dimensions`` chooses answers by their name. What is
    no rating and no choice between two replies is counted in ``unread`` by name and kind, until
    the last answer is read.
    """
    unread = Counter() if unread is None else unread
    meanings = Meanings(labels or {}, dimensions)
    answers = _answers(str(path), TaskFields(item, pair), meanings, unread)
    return interpret(answers, meanings, unread, str(path))


def _answers(
    path: str, fields: TaskFields, meanings: Meanings, unread: Counter[str]
) -> list[RawAnswer]:
    suffix = Path(path).suffix.lower()
    if suffix in (".csv", ".tsv"):
        rows = [(line, parse_cells(row)) for line, row in read_table(path)]
        return minimal_answers(path, rows, fields, meanings)
    if suffix != ".json":
        raise DataError(f"the name ends in '{suffix}'; {EXPECTED}", path=path)
    found = read_json(path, max_bytes=MAX_BYTES)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise DataError(f"not of Label Studio: no list of tasks; {EXPECTED}", path=path)
    if any("annotations" in each for each in found):
        return [
            answer
            for number, task in enumerate(found, 1)
            for answer in _task(path, number, task, fields, unread)
        ]
    return minimal_answers(path, [(None, each) for each in found], fields, meanings)


def _task(
    path: str, number: int, task: Mapping[str, Any], fields: TaskFields, unread: Counter[str]
) -> Iterator[RawAnswer]:
    """Yield the answers to a task of an export as JSON."""
    place = f"task {task.get('id', f'in place {number}')}"
    expected = {"id": int, "data": dict, "annotations": list}
    if wrong := [name for name, kind in expected.items() if not isinstance(task.get(name), kind)]:
        what = f"{', '.join(wrong)} is missing or of an unknown form"
        raise DataError(f"{place}: {what}; {EXPECTED}", path=path)
    for name, kind in (("drafts", "drafts"), ("predictions", "predictions of models")):
        if isinstance(task.get(name), list) and task[name]:
            unread[kind] += len(task[name])
    for annotation in task["annotations"]:
        answer = RawAnswer(path, "", str(task["id"]), {}, place=place)
        if not isinstance(annotation, dict):
            raise answer.wrong("an annotation is no object; expected one")
        answer.place = f"{place}, annotation {annotation.get('id')}"
        if annotation.get("was_cancelled"):
            unread["skipped tasks"] += 1
            continue
        fields.fill(answer, annotation.get("completed_by"), task["data"], annotation)
        if not isinstance(annotation.get("result"), list):
            raise answer.wrong("result is missing; expected a list of answers")
        for region in annotation["result"]:
            name, given = _region(answer, region)
            # a second value of a name belongs to another part of the text
            answer.given[name] = Other("several values") if name in answer.given else given
        yield answer


def _region(answer: RawAnswer, region: Any) -> tuple[str, Given]:
    """Return the name and the content of one result of an annotation."""
    if not isinstance(region, dict) or not isinstance(region.get("type"), str):
        raise answer.wrong("a result has no type; expected an object with type and value")
    kind, name, value = region["type"], region.get("from_name"), region.get("value")
    if kind not in ("rating", "number", "pairwise", "choices"):
        return str(name or kind), Other(kind)
    if not isinstance(name, str) or not isinstance(value, dict):
        raise answer.wrong(f"a result of type {kind} lacks from_name or value; expected both")
    if kind == "pairwise":
        return name, winner(answer, name, value.get("selected"))
    if kind == "choices":
        chosen = value.get("choices")
        if not isinstance(chosen, list) or not all(isinstance(each, str) for each in chosen):
            raise answer.wrong(f"{name}: the choices are {chosen!r}; expected a list of texts")
        return name, Label(chosen[0]) if len(chosen) == 1 else Other("several choices")
    return name, answer.number(name, value.get(kind))
