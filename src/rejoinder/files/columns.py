"""Map the columns of a table to the fields of an item.

People's tables call a reply ``answer``, ``output`` or ``bot_answer``. The columns are named by the
caller (``columns={"response": "bot_answer"}``) or guessed from the synonyms below; a guess is
reported, and two columns that could both be meant are an error.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from rejoinder.errors import UsageError
from rejoinder.wording import option

Columns = Mapping[str, str | Sequence[str]]
"""From a field, or one of its synonyms, to the column or columns that hold it."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "reply_id", "response_id", "example_id", "uid"),
    "response": (
        *("reply", "answer", "output", "generated", "generated_text", "generation", "hypothesis"),
        *("hyp", "prediction", "predicted", "candidate", "completion", "model_output"),
        *("bot_answer", "bot_reply", "bot_response", "model_answer", "model_response"),
        *("generated_response", "system_response", "response_text", "reply_text"),
        *("bot_message", "bot_output", "bot_text", "model_reply", "system_reply", "system_output"),
        *("assistant_response", "assistant_reply", "assistant_message", "assistant_answer"),
        *("agent_response", "agent_reply", "chatbot_response", "chatbot_reply", "llm_response"),
    ),
    "system": (
        *("bot", "model", "system_name", "model_name", "bot_name", "chatbot", "model_id"),
        *("chatbot_name", "system_id", "bot_id"),
    ),
    "references": (
        *("refs", "reference", "ref", "gold", "golds", "target", "targets", "ground_truth"),
        *("gold_response", "gold_reply", "reference_response", "expected", "human_response"),
        *("gold_answer", "reference_answer", "reference_reply", "human_reply", "human_answer"),
        *("expected_answer", "expected_response", "expected_reply", "expected_output"),
        *("correct_answer", "ideal_answer", "ideal_response"),
    ),
    "context": (
        *("history", "dialogue", "dialog", "messages", "prompt", "question", "utterance"),
        *("input", "query", "conversation", "dialogue_history", "dialog_history", "user_message"),
        *("user_input", "user_utterance", "user_query", "user_prompt", "user_turn", "user_text"),
        *("user_question", "user_says", "user_said", "conversation_history", "chat_history"),
        *("dialogue_context", "dialog_context"),
    ),
    "context_id": (),
    "dialogue_id": ("dialog_id", "conversation_id", "thread_id", "chat_id", "session_id"),
    "ratings": (
        *("rating", "score_human", "human_score", "human_rating", "label", "labels", "quality"),
        *("mean_rating", "average_rating", "stars"),
    ),
    "annotator": (
        *("rater", "annotator_id", "rater_id", "worker", "worker_id", "labeler", "labeller"),
        *("annotator_name", "rater_name"),
    ),
    "inclusion_probability": ("sampling_probability", "selection_probability"),
}
"""Names that are read as a field, apart from the field's own name. Case does not matter, nor do
blanks, hyphens and underscores. ``annotator`` marks a table with a row for each rating."""

NAMES_OF_DIALOGUES = ("conversation", "dialogue", "dialog", "thread", "chat", "session")
"""Columns that are the ``dialogue_id`` if their cells are numbers or names such as c0012."""

NUMBERED = {
    "references": r"(references?|refs?|gold|target|ground_truth)_?\d+",
    "ratings": r"(ratings?|rater|annotator|score_human|human_score|human_rating|label)_?\d+",
    "context": r"(context|turn|utterance|history)_?\d+",
}
"""Several columns that make up one field: ``reference_1``, ``reference_2``; ``rater_1`` …"""

ANNOTATED = (
    *(r"rating_(.+)", r"(.+)_rating", r"scores?_?(\d+)"),
    r"(?:rater|annotator|judge|labell?er)_([a-z]|\d+)",
)
"""Ratings with a column for each annotator: ``rating_ann``, ``rating_bob``; ``score_1``;
``rater_a`` … They are read only if there are several, all of them numbers."""

NO_ANNOTATORS = re.compile(
    r"(mean|avg|average|median|std|sd|var|min|max|sum|total|count|num|n|scale|id|date|time|type"
    r"|comment|reason|source|overall|quality|fluency|coherence|relevance|relevancy|engagement"
    r"|engagingness|interestingness|specificity|appropriateness|naturalness|understandability"
    r"|consistency|humanness|empathy|sensibleness|informativeness|groundedness|safety|grammar)"
)
"""What ``rating_…`` says apart from an annotator."""

RATING_LIKE = ("score", "label", "quality", "overall")
"""Columns of numbers that may be ratings, or scores of a metric: the first becomes the rating only
beside a column of annotators; otherwise it is mentioned."""

SEVERAL = ("references", "context", "ratings")
"""Fields that may be made up of several columns: ``ratings=r1+r2``."""

FirstCells = Callable[[str], Iterable[Any]]
"""Gives the first cells of a column."""

FIELDS = tuple(SYNONYMS)
ITEM_FIELDS = (frozenset(FIELDS) - {"annotator"}) | {"turn", "dialogue_ratings"}
DSTC10 = {
    "dialogue_id": ["id", "context_id"],
    "model": ["id", "system"],
    "reference": ["references"],
    "annotations": ["ratings"],
}
"""Columns of DSTC10, with the fields that are made of them."""

_DSTC10_NEEDED = {"dialogue_id", "response", "annotations"}
_FIELD_OF = {name: name for name in FIELDS} | {
    synonym: name for name, synonyms in SYNONYMS.items() for synonym in synonyms
}
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "-"))
_SHOWN = 20
"""Names of columns in a message."""
_LARGEST_CELL = 2**20
"""Characters of a cell that is looked at as a printed Python list."""


class ColumnError(Exception):
    """The columns of a table can't be mapped to fields; the message says why."""


@dataclass(frozen=True)
class ColumnMap:
    """The columns of one table: which of them make up each field."""

    fields: dict[str, list[str]]
    guessed: dict[str, list[str]] = field(default_factory=dict)
    """The fields that were recognised by a synonym."""
    unused: list[str] = field(default_factory=list)
    named: bool = False
    """Whether the caller named columns."""
    context_like: str | None = None
    """If there is no context: a column of text that is not read."""
    rating_like: str | None = None
    """If there are no ratings: a column of numbers that may hold them."""
    is_dstc10: bool = False

    @property
    def names(self) -> list[str]:
        """All columns that are read."""
        return [name for names in self.fields.values() for name in names]

    def note(self, hints: bool = True) -> str | None:
        """Return what was guessed, and what was not read; None if there is nothing to say.

        ``hints`` say how the caller names other columns, where that is possible.
        """
        read = [f"{name} = {' + '.join(columns)}" for name, columns in self.guessed.items()]
        parts = [f"columns recognised by name: {', '.join(read)}"] if read else []
        if self.context_like:
            parts += [
                f"no column was recognised as context; not read: {_some(self.unused)}"
                + (f"; add {option('columns', {'context': self.context_like})}" if hints else "")
            ]
        elif self.unused and (
            read or self.named or self.rating_like or any(map(_is_field, self.unused))
        ):
            parts += [f"not read: {_some(self.unused)}"]
        if self.rating_like and hints:
            name = self.rating_like
            parts += [f"if '{name}' holds ratings, add {option('columns', {'ratings': name})}"]
        note = "; ".join(parts)
        return (f"{note} ({_named('FIELD')} changes it)" if read and hints else note) or None

    def record(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Convert a row to a record of the items format.

        An empty cell means that the field is absent, except for the response: a reply may be empty.
        """
        record: dict[str, Any] = {}
        for name, columns in self.fields.items():
            cells = {column: row.get(column) for column in columns}
            if name != "response":
                cells = {column: None if cell == "" else cell for column, cell in cells.items()}
            value = _CONVERT[name](cells)
            if value is not None:
                record[name] = value
        if self.id_of_content:
            record["id"] = ""
        return record

    @property
    def id_of_content(self) -> bool:
        """Whether records get an id that is made of their content, though they have a
        ``dialogue_id``, which is not that of one reply."""
        return "dialogue_id" in self.fields and "id" not in self.fields and not self.is_dstc10


def map_columns(
    names: Iterable[str],
    columns: Columns | None = None,
    needed: Iterable[str] = ("response",),
    first_cells: FirstCells = lambda name: (),
) -> ColumnMap:
    """Decide which columns hold which field: those that are named, then those that are guessed.

    A table with the columns ``dialogue_id``, ``response`` and ``annotations``, and without ``id``,
    is one of DSTC10: its records keep these names, which :func:`rejoinder.items.item_from` knows.
    A column such as ``conversation_id`` names the dialogue; it is the ``context_id`` only if there
    is no context, because a dialogue may have several replies, each with a context of its own.
    """

    def is_numeric(name: str) -> bool:
        return are_numbers(first_cells(name))

    names = list(names)
    counts = Counter(names)
    if double := [name for name, count in counts.items() if count > 1 and name]:
        raise ColumnError(f"two columns are called '{double[0]}'; rename one of them")
    if not columns and "id" not in counts and counts.keys() >= _DSTC10_NEEDED:
        return _dstc10(names)
    named = {f: _resolve(f, wanted, names) for f, wanted in _fields_of(columns).items()}
    texts = [name for f, chosen in named.items() if not f.endswith("id") for name in chosen]
    if double := [name for name, count in Counter(texts).items() if count > 1]:
        raise ColumnError(f"the column '{double[0]}' is named for two fields")
    taken = {name for chosen in named.values() for name in chosen}
    free = [name for name in names if name and name not in taken]
    fields, guessed = dict(named), {}
    for field_name in FIELDS:
        if field_name in fields:
            continue
        chosen = _guess(field_name, free, first_cells)
        if not chosen:
            continue
        if field_name == "dialogue_id" and not {"context", "context_id"} & fields.keys():
            field_name = "context_id"
        fields[field_name] = chosen
        if chosen != [field_name]:
            guessed[field_name] = chosen
    for name in needed:
        if name not in fields:
            quoted = _some([f"'{each}'" for each in names])
            raise ColumnError(
                f"no column holds the {name}; the columns are {quoted}. Name it: {_named(name)}"
            )
    used = {name for chosen in fields.values() for name in chosen}
    unused = [name for name in names if name and name not in used]
    rating_like = None
    if "ratings" not in fields:
        alike = [name for name in unused if plain_name(name) in RATING_LIKE and is_numeric(name)]
        if "annotator" in fields and len(alike) == 1:
            fields["ratings"] = guessed["ratings"] = alike
        elif "annotator" not in fields and (several := _annotated(unused, is_numeric)):
            fields["ratings"] = guessed["ratings"] = several
        elif alike:
            rating_like = alike[0]
    if "annotator" in fields and "ratings" not in fields:
        unused = sorted([*unused, *fields.pop("annotator")], key=names.index)
        guessed.pop("annotator", None)
    unused = [name for name in unused if name not in fields.get("ratings", ())]
    context_like = None
    if "context" not in fields and unused:
        text = [name for name in unused if not (_is_field(name) or are_names(first_cells(name)))]
        context_like = text[0] if text else None
    ordered = {name: fields[name] for name in FIELDS if name in fields}
    guessed = {name: guessed[name] for name in FIELDS if name in guessed}
    return ColumnMap(ordered, guessed, unused, bool(columns), context_like, rating_like)


def _dstc10(names: list[str]) -> ColumnMap:
    """Map the columns of a table of DSTC10."""
    read = [name for name in names if name in DSTC10 or name in ITEM_FIELDS]
    guessed: dict[str, list[str]] = {}
    for name in read:
        for field_name in DSTC10.get(name, ()):
            guessed.setdefault(field_name, []).append(name)
    unused = [name for name in names if name and name not in read]
    return ColumnMap({name: [name] for name in read}, guessed, unused, is_dstc10=True)


def are_numbers(cells: Iterable[Any]) -> bool:
    """Return whether cells are numbers, or missing, and not all missing."""
    found = False
    for cell in cells:
        if cell is None or cell != cell:
            continue
        try:
            value = number(cell) if isinstance(cell, str) else cell
        except ValueError:
            return False
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        found = True
    return found


def are_names(cells: Iterable[Any]) -> bool:
    """Return whether cells are numbers or short names with a digit, such as c0012, or missing."""
    found = False
    for cell in cells:
        if cell is None or cell != cell or cell == "":
            continue
        if not re.fullmatch(r"(?=.*\d)[\w.:#/-]{1,64}", str(cell), re.ASCII):
            return False
        found = True
    return found


def _annotated(names: list[str], is_numeric: Callable[[str], bool]) -> list[str]:
    """Return the columns of ratings that are named after annotators; none if it isn't certain."""
    for pattern in ANNOTATED:
        matches = {name: re.fullmatch(pattern, plain_name(name)) for name in names}
        who = {name: match[1] for name, match in matches.items() if match}
        if (
            len(who) > 1
            and not any(NO_ANNOTATORS.fullmatch(each) for each in who.values())
            and all(map(is_numeric, who))
        ):
            return list(who)
    return []


def rename_fields(record: dict[str, Any], columns: Columns) -> dict[str, Any]:
    """Return a JSON record in which the named fields have the names of the items format."""
    wanted = {f: _split(f, names, record) for f, names in _fields_of(columns).items()}
    taken = {name for names in wanted.values() for name in names}
    renamed = {name: value for name, value in record.items() if name not in taken}
    for field_name, names in wanted.items():
        present = {name: record[name] for name in names if record.get(name) is not None}
        values = list(present.values())
        if len(names) == 1 and values:
            renamed[field_name] = values[0]
        elif field_name == "ratings" and not any(isinstance(v, (list, dict)) for v in values):
            renamed |= {field_name: present} if present else {}
        elif values:
            renamed[field_name] = [
                each for value in values for each in (value if isinstance(value, list) else [value])
            ]
    return renamed


def missing_fields(columns: Columns, names: Collection[str]) -> str | None:
    """Return what is wrong if columns are named that no JSON record has; None if all are there."""
    for field_name, wanted in _fields_of(columns).items():
        for name in _split(field_name, wanted, names):
            if name not in names:
                quoted = _some([f"'{each}'" for each in sorted(names)])
                return f"no record has the field '{name}'; the fields are {quoted}"
    return None


def names_any(columns: Columns, names: Collection[str]) -> bool:
    """Return whether any of the columns that are named is among ``names``."""
    known = {plain_name(name) for name in names}
    return any(
        plain_name(name) in known
        for field_name, wanted in _fields_of(columns).items()
        for name in _split(field_name, wanted, names)
    )


def lookalikes(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of a JSON record that are not read but look like ones that are missing.

    >>> lookalikes({"id": "1", "response": "hi", "refs": ["hello"], "colour": "red"})
    {'refs': 'references'}
    """
    if "dialogue_id" in record and "id" not in record:
        return {}
    odd = record.keys() - ITEM_FIELDS
    alike = {name: field_like(name) for name in odd if isinstance(name, str)}
    return {
        name: field_name
        for name, field_name in sorted(alike.items())
        if field_name and field_name not in record
    }


def field_like(name: str) -> str:
    """Return the field that a name may stand for; "" if it looks like none."""
    return _FIELD_OF.get(plain_name(name), "")


def number(text: str) -> float | None:
    """Return the number that a cell holds; None if it is marked as missing.

    A decimal comma is read where it can't separate thousands: ``4,5``, but not ``1,234``.
    """
    plain = text.strip()
    if plain.lower() in _MISSING:
        return None
    if re.fullmatch(r"[+-]?\d+,\d{1,2}|[+-]?0,\d+", plain):
        plain = plain.replace(",", ".")
    try:
        value = float(plain)
    except ValueError:
        raise ValueError(f"Expected a number, got '{text[:40]}'") from None
    if "_" in plain:  # Python's own 1_000
        raise ValueError(f"Expected a number, got '{text[:40]}'")
    return value


def _fields_of(columns: Columns | None) -> dict[str, list[str]]:
    """Return the columns that the caller named, by field."""
    if columns is not None and not (
        isinstance(columns, Mapping) and all(map(_is_named, columns, columns.values()))
    ):
        raise UsageError(
            "columns: expected fields with their columns, as in {'response': 'answer'}, got"
            f" {columns!r}"
        )
    fields: dict[str, list[str]] = {}
    for key, value in (columns or {}).items():
        name = _FIELD_OF.get(plain_name(key))
        if name is None:
            raise UsageError(
                f"columns: '{key}' is no field of an item; the fields are {', '.join(FIELDS)}"
            )
        if name in fields:
            raise UsageError(f"columns: '{name}' is named twice")
        fields[name] = [value] if isinstance(value, str) else list(value)
        if len(fields[name]) != 1 and (name not in SEVERAL or not fields[name]):
            raise UsageError(f"columns: '{key}' needs one column, got {len(fields[name])}")
    return fields


def _is_named(field_name: Any, names: Any) -> bool:
    several = [names] if isinstance(names, str) else names
    return isinstance(several, (list, tuple)) and all(
        isinstance(each, str) for each in (field_name, *several)
    )


def _split(field_name: str, wanted: list[str], names: Container[str]) -> list[str]:
    """Return the columns that are wanted, ``r1+r2`` as two if no column has this name."""
    if field_name not in SEVERAL:
        return wanted
    return [
        each.strip() for name in wanted for each in ([name] if name in names else name.split("+"))
    ]


def _resolve(field_name: str, wanted: list[str], names: list[str]) -> list[str]:
    resolved = []
    for name in _split(field_name, wanted, names):
        if name not in names:
            alike = [each for each in names if plain_name(each) == plain_name(name)]
            if len(alike) != 1:
                quoted = _some([f"'{each}'" for each in names])
                raise ColumnError(f"there is no column '{name}'; the columns are {quoted}")
            name = alike[0]
        resolved.append(name)
    return resolved


def _guess(field_name: str, names: list[str], first_cells: FirstCells) -> list[str]:
    exact = [name for name in names if plain_name(name) == field_name]
    if len(exact) == 1:
        return exact
    alike = exact or [name for name in names if plain_name(name) in SYNONYMS[field_name]]
    if field_name == "context":
        alike = [name for name in alike if not are_names(first_cells(name))]
    if field_name == "dialogue_id" and not alike:
        also = [name for name in names if plain_name(name) in NAMES_OF_DIALOGUES]
        alike = [name for name in also if are_names(first_cells(name))]
    numbered = []
    if pattern := NUMBERED.get(field_name):
        numbered = [name for name in names if re.fullmatch(pattern, plain_name(name))]
    if field_name == "references" and len(alike) <= 1:
        return alike + numbered
    candidates = alike or numbered
    if alike and len(candidates) > 1:
        quoted = " and ".join(f"'{name}'" for name in candidates)
        raise ColumnError(f"{quoted} could all be the {field_name}; name one: {_named(field_name)}")
    return candidates


def _named(field_name: str) -> str:
    """Return how the reader names the column of a field."""
    return option("columns", {field_name: "NAME"})


def _some(names: list[str]) -> str:
    """Return the first names as a list in words."""
    shown = ", ".join(name[:80] for name in names[:_SHOWN]) or "none"
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} more"


def _is_field(name: str) -> bool:
    """Return whether a column has a name of a field, though another one may have been read."""
    plain = plain_name(name)
    return plain in _FIELD_OF or any(re.fullmatch(each, plain) for each in NUMBERED.values())


def plain_name(name: str) -> str:
    """Return the name of a column without differences of case, blanks, hyphens, underscores.

    >>> plain_name(" Bot-Answer")
    'bot_answer'
    """
    return re.sub(r"[\s\-_]+", "_", str(name).strip().lower())


def _text(cells: dict[str, Any]) -> Any:
    return next(iter(cells.values()))


def _references(cells: dict[str, Any]) -> Any:
    references = []
    for name, cell in cells.items():
        entries = _list_in_cell(name, cell)
        references += entries if isinstance(entries, list) else [] if entries is None else [entries]
    return references or None


def _context(cells: dict[str, Any]) -> Any:
    if len(cells) == 1:
        ((name, cell),) = cells.items()
        return _list_in_cell(name, cell)
    return [cell for cell in cells.values() if cell is not None] or None


def _ratings(cells: dict[str, Any]) -> Any:
    if len(cells) > 1:
        ratings = {name: _rating(name, cell) for name, cell in cells.items()}
        return {name: value for name, value in ratings.items() if value is not None} or None
    ((name, cell),) = cells.items()
    return _rating(name, cell)


def _rating(name: str, cell: Any) -> Any:
    cell = _parsed(cell)
    if isinstance(cell, list) and cell and all(isinstance(each, tuple) for each in cell):
        cell = dict(cell)  # a map of Arrow
    if isinstance(cell, dict):
        return {name: value for name, value in cell.items() if value is not None} or None
    if not isinstance(cell, str):
        return cell
    try:
        return number(cell)
    except ValueError as error:
        raise msgspec.ValidationError(f"{error} - at `${name}`") from None


def _single_number(cells: dict[str, Any]) -> Any:
    ((name, cell),) = cells.items()
    return _rating(name, cell)


def _annotations(cells: dict[str, Any]) -> Any:
    return _parsed(_text(cells))


def _parsed(cell: Any) -> Any:
    """Return the list or dictionary that a cell holds, as JSON or as Python prints it; else the
    cell."""
    if not isinstance(cell, str) or cell.lstrip()[:1] not in ("[", "{"):
        return cell
    try:
        value = msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError, OverflowError):
        value = _printed(cell.strip())
    return cell if value is None else value


def _annotator(cells: dict[str, Any]) -> Any:
    ((name, cell),) = cells.items()
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    if cell is None or cell != cell:
        return None
    if not isinstance(cell, (int, str)):
        raise msgspec.ValidationError(f"Expected a name or a whole number - at `${name}`")
    return str(cell)


def _list_in_cell(name: str, cell: Any) -> Any:
    """Return the list that a cell of text holds, as JSON or as Python prints it; else the cell."""
    if not isinstance(cell, str) or cell.lstrip()[:1] != "[":
        return cell
    try:
        value = msgspec.json.decode(cell)
    except (msgspec.DecodeError, RecursionError, OverflowError):
        value = _printed(cell.strip())
    if isinstance(value, list) and all(isinstance(each, (str, dict)) for each in value):
        return value
    if value is not None or re.match(r"""\s*\[\s*["'{]""", cell):
        raise msgspec.ValidationError(
            f"Expected a list of texts as JSON, got '{cell[:40]}' - at `${name}`"
        )
    return cell


def _printed(cell: str) -> Any:
    """Return the list or dictionary that pandas wrote as Python prints it: ``['a', "b's"]``."""
    if len(cell) > _LARGEST_CELL:
        return None
    try:
        value = ast.literal_eval(cell)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    # ['a' 'b'], a printed numpy array, would be read as one text
    if repr(value) != cell:
        return None
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError):  # half a character, or a tuple as a key
        return None
    return value


_CONVERT: dict[str, Callable[[dict[str, Any]], Any]] = {
    "id": _text,
    "response": _text,
    "system": _text,
    "references": _references,
    "context": _context,
    "context_id": _text,
    "ratings": _ratings,
    "annotator": _annotator,
    "inclusion_probability": _single_number,
    "dialogue_id": _text,
    "model": _text,
    "reference": _references,
    "annotations": _annotations,
}
