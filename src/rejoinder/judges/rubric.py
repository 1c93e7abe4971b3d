"""Rubrics: what a judge is asked, as a Markdown file with named slots.

    ---
    scale: 1-5
    language: en
    ---
    # System
    You rate replies.

    # Question
    {context}
    How good is this reply, from {scale}?
    {reply}

Between the lines of dashes stand settings; below headings of the first level the texts: ``System``
(may be missing), ``Question``, ``Question with references`` (asked instead of ``Question`` where
references are used) and ``Again`` (said after an answer that cannot be read). A rubric with several
``dimensions`` asks for all of them in one answer, a JSON object.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from rejoinder.errors import DataError, UsageError
from rejoinder.files.paths import expand_user, open_regular
from rejoinder.judges.scale import Scale
from rejoinder.llm.texts import DELIMITERS
from rejoinder.spec import did_you_mean

MAX_BYTES = 2**20
"""Of the file of a rubric."""
RATING, COMPARING = "rating", "comparing"
"""Kinds of rubrics: one reply is rated, or two are compared."""

SLOTS = {
    RATING: frozenset({"context", "reply", "references", "scale"}),
    COMPARING: frozenset({"context", "reply_1", "reply_2", "references"}),
}
NEEDED = {RATING: ("reply", "scale"), COMPARING: ("reply_1", "reply_2")}
"""Slots that every question must have."""
SETTINGS = ("scale", "language", "dimensions", "delimiters", "kind")
SYSTEM, QUESTION, WITH_REFERENCES = "System", "Question", "Question with references"
AGAIN = "Again"
SECTIONS = (SYSTEM, QUESTION, WITH_REFERENCES, AGAIN)
LANGUAGES = ("en", "ja", "zh")
"""Languages of the rubrics in this package, and of the default of ``Again``."""

_NAME = re.compile(r"[A-Za-z][\w-]*")
_SLOT = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_HEADING = re.compile(r"^# +(.+?) *$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)

_AGAIN = {
    RATING: {
        "en": "I could not read that. Answer with one whole number from {scale} and nothing else.",
        "ja": "読み取れませんでした。{scale} の整数を一つだけ答えてください。",
        "zh": "无法读取。请只回答 {scale} 中的一个整数。",
    },
    "json": {
        "en": "I could not read that. Answer with the JSON object alone, numbers from {scale}.",
        "ja": "読み取れませんでした。{scale} の整数を値とする JSON だけを答えてください。",
        "zh": "无法读取。请只回答 JSON 对象，其值为 {scale} 中的整数。",
    },
    COMPARING: {
        "en": "I could not read that. Answer with 1, 2 or tie and nothing else.",
        "ja": "読み取れませんでした。1、2、tie のいずれか一つだけを答えてください。",
        "zh": "无法读取。请只回答 1、2 或 tie。",
    },
}


@dataclass(frozen=True)
class Rubric:
    """What a judge is asked."""

    name: str
    digest: str
    """Hash of the file, part of the signature of scores."""
    kind: str
    scale: Scale
    """Of a comparison 0 to 2, which is not used."""
    language: str
    dimensions: tuple[str, ...]
    """Names of several dimensions; empty if there is one answer."""
    delimiters: str
    sections: Mapping[str, str]

    @property
    def takes_references(self) -> bool:
        return WITH_REFERENCES in self.sections

    @property
    def needs_context(self) -> bool:
        return "{context}" in self.sections[QUESTION]

    def fill(self, section: str, texts: Mapping[str, str]) -> str:
        """Return a section with texts in its slots; braces inside the texts stay as they are."""
        texts = {"scale": str(self.scale), **texts}
        return _SLOT.sub(lambda match: texts[match[1]], self.sections[section])

    def __hash__(self) -> int:
        return hash(self.digest)


@cache
def load_rubric(name: str, language: str = "en", kind: str = RATING) -> Rubric:
    """Return the rubric of this package with a name, or that of a file; UsageError lists all
    problems of it."""
    if _NAME.fullmatch(name):
        known = names(kind)
        if name not in known:
            raise UsageError(
                f"unknown rubric '{name}': {did_you_mean(name, known)}"
                f" (a file of your own: ./{name}.md)"
            )
        if language not in LANGUAGES:
            raise UsageError(
                f"the rubric '{name}' is there in {', '.join(LANGUAGES)}, not in '{language}';"
                " write one in a file of your own"
            )
        text = _folder().joinpath(f"{name}.{language}.md").read_text("utf-8")
        return parse_rubric(text, name, kind=kind)
    with open_regular(expand_user(name)) as stream:
        data = stream.read(MAX_BYTES + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError("is not a text in UTF-8; expected a rubric", path=name) from None
    if len(data) > MAX_BYTES:
        raise DataError(f"has more than {MAX_BYTES:,} bytes; expected a rubric", path=name)
    return parse_rubric(text, name, kind=kind)


@cache
def names(kind: str = RATING) -> tuple[str, ...]:
    """Return the names of the rubrics in this package."""
    found = sorted({each.name.partition(".")[0] for each in _folder().iterdir()})
    return tuple(
        name
        for name in found
        if parse_rubric(_folder().joinpath(f"{name}.en.md").read_text("utf-8"), name).kind == kind
    )


def parse_rubric(text: str, name: str, *, kind: str | None = None) -> Rubric:
    """Return the rubric in a text; UsageError lists all its problems."""
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    settings, body = _split(text)
    sections = _sections(_COMMENT.sub("", body))
    own_kind = settings.get("kind", RATING)
    problems = list(_problems(settings, sections, own_kind))
    if kind is not None and own_kind in SLOTS and own_kind != kind:
        problems.append(f"it is for {own_kind} replies, not for {kind} them: 'kind: {kind}'")
    if problems:
        raise UsageError(*(f"rubric {name}: {problem}" for problem in problems))
    dimensions = tuple(_listed(settings.get("dimensions", "")))
    language = settings.get("language", "en")
    which = "json" if dimensions else own_kind
    sections.setdefault(AGAIN, _AGAIN[which].get(language, _AGAIN[which]["en"]))
    return Rubric(
        name,
        hashlib.blake2b(text.encode(), digest_size=4).hexdigest(),
        own_kind,
        Scale.parse(settings["scale"]) if own_kind == RATING else Scale(0, 2),
        language,
        dimensions,
        settings.get("delimiters", DELIMITERS[0]),
        sections,
    )


def _problems(settings: Mapping[str, str], sections: Mapping[str, str], kind: str) -> Iterator[str]:
    for key in settings:
        if key not in SETTINGS:
            yield f"unknown setting '{key}': {did_you_mean(key, SETTINGS)}"
    if kind not in SLOTS:
        yield f"kind '{kind}' is not one of {', '.join(SLOTS)}"
        kind = RATING
    if kind == RATING:
        if "scale" not in settings:
            yield "it has no scale; begin the file with '---', 'scale: 1-5', '---'"
        else:
            try:
                Scale.parse(settings["scale"])
            except ValueError as error:
                yield str(error)
    delimiters = settings.get("delimiters", DELIMITERS[0])
    if delimiters not in DELIMITERS:
        yield f"delimiters '{delimiters}' is not one of {', '.join(DELIMITERS)}"
    dimensions = _listed(settings.get("dimensions", ""))
    for each in dimensions:
        if not _NAME.fullmatch(each):
            yield f"the dimension '{each}' is no name of letters, digits, - and _"
        elif dimensions.count(each) > 1:
            yield f"the dimension '{each}' is given twice"
    if dimensions and kind == COMPARING:
        yield "a comparison has no dimensions"
    for section in sections:
        if section not in SECTIONS:
            yield f"unknown section '# {section}': {did_you_mean(section, SECTIONS)}"
    if QUESTION not in sections:
        yield f"it has no section '# {QUESTION}'"
    for section, text in sections.items():
        used = set(_SLOT.findall(text))
        for slot in sorted(used - SLOTS[kind]):
            yield f"# {section}: unknown slot {{{slot}}}: {did_you_mean(slot, SLOTS[kind])}"
        if section in (QUESTION, WITH_REFERENCES):
            for slot in NEEDED[kind]:
                if slot not in used:
                    yield f"# {section}: the slot {{{slot}}} is missing"
        elif texts := used - {"scale"} & SLOTS[kind]:
            yield f"# {section}: only {{scale}} may be used there, not {_slots(texts)}"
        if section == WITH_REFERENCES and "references" not in used:
            yield f"# {section}: the slot {{references}} is missing"
        if section == QUESTION and "references" in used:
            yield f"# {section}: {{references}} belongs into '# {WITH_REFERENCES}'"


def _slots(names: set[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def _split(text: str) -> tuple[dict[str, str], str]:
    """Return the settings between two lines of dashes, and what follows them."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return {}, text
    end = next((n for n, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}, text
    settings = {}
    for line in lines[1:end]:
        if line.strip():
            key, _, value = line.partition(":")
            settings[key.strip()] = value.strip()
    return settings, "\n".join(lines[end + 1 :])


def _sections(body: str) -> dict[str, str]:
    headings = list(_HEADING.finditer(body))
    ends = [each.start() for each in headings[1:]] + [len(body)]
    return {
        heading[1]: body[heading.end() : end].strip()
        for heading, end in zip(headings, ends, strict=False)
    }


def _listed(text: str) -> Sequence[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _folder() -> Path:
    return Path(str(files("rejoinder.judges").joinpath("rubrics")))
