"""``write``: people write several different replies to a context.

Each slot has its own minimum and maximum of characters. Some of the people may see the context
with a part of its words masked, so that bad replies are collected on purpose (Sugiyama, Meguro &
Higashinaka 2019, section 2.1). A reply that nearly repeats another is refused at once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from rejoinder.annotate.masking import mask_words, word_spans
from rejoinder.annotate.settings_file import Problem
from rejoinder.annotate.study import Slot, Study, StudySettings, WriteSettings
from rejoinder.annotate.tasks.kind import (
    Accepted,
    EarlierReplies,
    Export,
    Form,
    Json,
    Kind,
    Known,
    NewTask,
    Refusal,
    StoredAnswer,
)
from rejoinder.annotate.tasks.known import read_known
from rejoinder.annotate.tasks.written_records import export_written
from rejoinder.errors import DataError, UsageError
from rejoinder.items import Item
from rejoinder.registry import TOKENIZERS
from rejoinder.text.languages import language
from rejoinder.text.repeats import MIN_CHARACTERS, Texts, normal_form
from rejoinder.text.scripts import unsplit_script
from rejoinder.text.tokenizers.tokenizer import Tokenizer

MAX_CHARACTERS = 10_000
MAX_SLOTS = 50
SHORT, LONG_SLOT = 5, 20
"""A reply of fewer than SHORT characters in a slot that allows LONG_SLOT is noted as ``short``."""


class Write(Kind[WriteSettings]):
    """Replies written by people."""

    name = "write"
    template = "write.html"

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self.slots: list[Slot] = [slot for slot in self.options.slots for _ in range(slot.count)]
        self._tokenizer: Tokenizer | None = None
        if (
            self.options.masks
        ):  # fails now, not at the first task, if the tokenizer is not installed
            self._tokenizer = TOKENIZERS.make(language(study.settings.text_language).tokenizer)

    @classmethod
    def setting_problems(cls, options: WriteSettings, settings: StudySettings) -> list[Problem]:
        problems: list[Problem] = []
        if not options.question.strip():
            problems.append((("write", "question"), "must not be empty"))
        if not 1 <= sum(max(slot.count, 0) for slot in options.slots) <= MAX_SLOTS:
            problems.append((("write", "slots"), f"needs from 1 to {MAX_SLOTS} replies"))
        for number, slot in enumerate(options.slots):
            problems += _slot_problems(slot, ("write", "slots", number))
        for number, mask in enumerate(options.masks):
            path = ("write", "masks", number)
            if not 0 <= mask.share <= 1:
                problems.append(((*path, "share"), "must be from 0 to 1"))
            if mask.people < 1:
                problems.append(((*path, "people"), "must be at least 1"))
            if mask.share in [each.share for each in options.masks[:number]]:
                problems.append(((*path, "share"), "is given twice; add up the people instead"))
        people = sum(mask.people for mask in options.masks)
        if people > 0 and settings.answers_per_task % people:
            problems.append(
                (
                    ("answers_per_task",),
                    f"is {settings.answers_per_task}, but the masks are for {people} people:"
                    f" must be {people}, or a multiple of it",
                )
            )
        if not 0 <= options.max_similarity <= 1:
            problems.append((("write", "max_similarity"), "must be from 0 to 1"))
        try:
            language(settings.text_language)
        except UsageError as error:
            problems.append((("text_language",), str(error)))
        return problems

    def item_problems(self, items: Sequence[Item]) -> list[str]:
        if not items:
            return ["there are no items whose contexts could be replied to"]
        problems = []
        without = [item.id for item in items if not any(turn.strip() for turn in item.context)]
        if without:
            problems.append(
                f"{len(without)} of {len(items)} items have no context to reply to,"
                f" such as '{without[0]}'"
            )
        if self._tokenizer is not None:
            problems += self._mask_problems(self._tokenizer, items)
        return problems

    def _mask_problems(self, tokenizer: Tokenizer, items: Sequence[Item]) -> list[str]:
        """Return whether there are contexts in which words cannot be masked."""
        longest = tokenizer.max_word_length
        for item in items:
            spans = [span for turn in item.context for span in word_spans(tokenizer, turn)]
            if item.context and not spans:
                return [f"the context of '{item.id}' has no words that could be masked"]
            if longest is None:
                continue
            for tokens in tokenizer.tokenize(item.context):
                if script := unsplit_script(tokens, longest):
                    return [
                        f"the context of '{item.id}' is {script.name}, but text_language is"
                        f" {self.settings.text_language}: its words cannot be masked"
                    ]
        return []

    def tasks(self, items: Sequence[Item], rng: np.random.Generator) -> list[NewTask]:
        groups: dict[str, list[Item]] = {}
        for item in items:
            groups.setdefault(item.group, []).append(item)
        made = []
        for number, members in enumerate(groups.values()):
            texts = [
                text
                for item in members
                for text in (item.response, *(each.text for each in item.references))
                if text.strip()
            ]
            content = {
                "context": next(item.context for item in members if item.context),
                "context_id": members[0].context_id,
                "item": members[0].id,
                "given": list(dict.fromkeys(texts)),
            }
            made.append(NewTask(f"context-{number}", number, -1, content))
        return made

    def replies(self, value: Json) -> list[str]:
        return list(value["replies"])

    def variants(self) -> list[int]:
        return [mask.people for mask in self.options.masks]

    def view(self, content: Json, variant: int, rng: np.random.Generator) -> Json:
        share = self.options.masks[variant].share if self.options.masks else 0.0
        if not share or self._tokenizer is None or content.get("as_is"):
            return {"mask": 0.0}
        masked = mask_words(self._tokenizer, content["context"], share, rng)
        return {"mask": share, "context": masked}

    def page(self, content: Json, view: Json) -> Json:
        return {
            "context": view.get("context", content["context"]),
            "masked": bool(view["mask"]),
            "question": self.options.question,
            "slots": [
                {"min_characters": slot.min_characters, "max_characters": slot.max_characters}
                for slot in self.slots
            ],
        }

    def check(
        self, content: Json, view: Json, form: Form, earlier: EarlierReplies
    ) -> Accepted | list[Refusal]:
        replies = [clean(form.get(f"reply-{number}", "")) for number in range(len(self.slots))]
        refusals: dict[int, Refusal] = {}
        for number, (text, slot) in enumerate(zip(replies, self.slots, strict=True)):
            if refusal := length_refusal(text, slot, f"reply-{number}"):
                refusals[number] = refusal
        written = [(n, text) for n, text in enumerate(replies) if n not in refusals]
        refusals |= self._repeats(content, written, earlier)
        if refusals:
            return [refusals[number] for number in sorted(refusals)]
        flags = []
        if any(form.get(f"pasted-{number}") == "1" for number in range(len(self.slots))):
            flags.append("pasted")
        if any(
            characters(text) < SHORT and slot.max_characters >= LONG_SLOT
            for text, slot in zip(replies, self.slots, strict=True)
        ):
            flags.append("short")
        return Accepted({"replies": replies}, flags)

    def _repeats(
        self, content: Json, written: Sequence[tuple[int, str]], earlier: EarlierReplies
    ) -> dict[int, Refusal]:
        """Return the replies that nearly repeat another text, each with the first reason."""
        before = earlier()
        everyone = self.options.compare_with == "everyone"
        sources = {
            "repeats_context": Texts(content["context"]),
            "repeats_reference": Texts(content["given"]),
            "repeats_own": Texts([e.text for e in before if e.same_context and e.is_own]),
            "repeats_other": Texts(
                [e.text for e in before if e.same_context and not e.is_own and everyone]
            ),
        }
        elsewhere = {normal_form(each.text) for each in before if not each.same_context}
        refusals: dict[int, Refusal] = {}
        for place, (number, text) in enumerate(written):
            field = f"reply-{number}"
            similar = Texts([other for _, other in written[:place]])
            form = normal_form(text)
            for reason, texts in sources.items():
                if self._is_repeat(texts, text).any():
                    refusals[number] = Refusal(field, reason)
                    break
            else:
                if len(form) > MIN_CHARACTERS and form in elsewhere:
                    refusals[number] = Refusal(field, "repeats_own")
                elif (repeated := self._is_repeat(similar, text)).any():
                    first = written[int(repeated.argmax())][0]
                    refusals[number] = Refusal(field, "repeats_slot", {"slot": first + 1})
        return refusals

    def _is_repeat(self, texts: Texts, text: str) -> np.ndarray:
        limit = self.options.max_similarity
        found = texts.similarities(text, limit)
        return np.asarray((found > limit) | (found == 1))

    def known_tasks(self, path: str) -> list[Known]:
        """Read lines such as ``{"context": [...], "expected": {"examples": ["…"], "contains":
        ["…"]}, "explanation": "…"}``.

        ``examples`` are good replies, which people see after their own; ``contains`` are texts of
        which the replies must contain at least one. Without ``contains``, all replies that are
        accepted are right. ``expected`` may also be a list of examples. Everybody sees the context
        as it is; it may contain ``***`` of its own, to explain masks.
        """
        known = []
        for line, record in read_known(path):
            expected = record.expected
            if isinstance(expected, list):
                expected = {"examples": expected}
            if (
                not record.context
                or not isinstance(expected, dict)
                or not set(expected) <= {"examples", "contains"}
                or not all(_is_texts(texts) for texts in expected.values())
            ):
                raise DataError(
                    "expected 'context', and in 'expected' a list of examples, or an object with"
                    " the lists 'examples' and 'contains'",
                    path=path,
                    line=line,
                )
            content = {
                "context": record.context,
                "context_id": None,
                "item": "",
                "given": [],
                "as_is": True,
            }
            known.append(Known(content, expected, record.explanation))
        return known

    def is_expected(self, known: Json, value: Json) -> bool:
        wanted = [normal_form(text) for text in known["expected"].get("contains", [])]
        replies = [normal_form(text) for text in value["replies"]]
        return not wanted or any(text in reply for text in wanted for reply in replies)

    def expected_fields(self, known: Json, view: Json) -> dict[str, list[str]]:
        """Return examples of good replies: the fields themselves have no single right value."""
        return {"examples": list(known["expected"].get("examples", []))}

    def rated_items(self, answers: Sequence[StoredAnswer]) -> list[Item]:
        return []

    def export(
        self, items: Sequence[Item], answers: Sequence[StoredAnswer], dimension: str | None = None
    ) -> Export:
        """Return the items with the written replies as references, and these as candidates.

        See :mod:`rejoinder.annotate.tasks.written_records`.
        """
        return export_written(items, answers, self.slots)


def _slot_problems(slot: Slot, path: tuple[str | int, ...]) -> list[Problem]:
    problems: list[Problem] = []
    if slot.count < 1:
        problems.append(((*path, "count"), "must be at least 1"))
    if slot.min_characters < 1:
        problems.append(((*path, "min_characters"), "must be at least 1"))
    if not slot.min_characters <= slot.max_characters <= MAX_CHARACTERS:
        problems.append(
            (
                (*path, "max_characters"),
                f"must be from min_characters ({slot.min_characters}) to {MAX_CHARACTERS}",
            )
        )
    return problems


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) and each for each in value)


def clean(text: str) -> str:
    """Return a reply as it is stored: on one line, without control characters, in Unicode's NFC."""
    line = re.sub(r"\s*[\n\r\t\v\f\x1c-\x1e\x85\u2028\u2029]+\s*", " ", text)
    visible = "".join(each for each in line if unicodedata.category(each) not in ("Cc", "Cs"))
    return unicodedata.normalize("NFC", visible).strip()


def characters(text: str) -> int:
    """Return the number of characters as people count them: letters with their accents.

    >>> characters("e\\u0301te\\u0301"), characters("👩‍👧")
    (3, 1)
    """
    import regex

    return len(regex.findall(r"\X", text))


def length_refusal(text: str, slot: Slot, field: str) -> Refusal | None:
    """Return why the length of a reply is not accepted."""
    if all(unicodedata.category(each)[0] in "ZC" for each in text):
        return Refusal(field, "empty")
    count = characters(text)
    values = {
        "characters": count,
        "min": slot.min_characters,
        "max": slot.max_characters,
    }
    if count < slot.min_characters:
        return Refusal(field, "too_short", values)
    if count > slot.max_characters:
        return Refusal(field, "too_long", values)
    return None
