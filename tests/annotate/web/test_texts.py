"""The words of the pages exist in all languages, and all that are used exist."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

from rejoinder.annotate.study import LANGUAGES
from rejoinder.annotate.web import pages
from rejoinder.annotate.web.translations import read_texts

WEB = Path(pages.__file__).parent
ENGLISH = read_texts("en").messages
BY_NAME = ("messages.", "progress.", "refusals.", "reasons.", "flags.", "stages.", "study.")
"""Sections whose keys are put together from names."""


def placeholders(text: str) -> list[str]:
    return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_languages_say_the_same(language: str) -> None:
    messages = read_texts(language).messages
    assert list(messages) == list(ENGLISH)
    for key, text in messages.items():
        assert placeholders(text) == placeholders(ENGLISH[key]), key
        assert text.strip() == text or key == "study.comma"
        assert text, key


@pytest.mark.parametrize("language, script", [("ja", r"[ぁ-んァ-ヶ一-龠]"), ("zh", r"[一-龠]")])
def test_translations_are_in_their_language(language: str, script: str) -> None:
    for key, text in read_texts(language).messages.items():
        words = re.sub(r"\{\w+\}", "", text)
        if re.search(r"[A-Za-z]{3}", words):
            assert re.search(script, words) or "Krippendorff" in words or "Cohen" in words, key
    if language == "zh":
        assert not any(
            re.search(r"[ぁ-んァ-ヶ]", text) for text in read_texts("zh").messages.values()
        )


def test_used_texts_exist_and_all_are_used() -> None:
    used = set()
    for path in [*WEB.rglob("*.html"), *WEB.glob("*.py")]:
        text = path.read_text()
        for call in re.findall(r"(?:\bt|texts)(?:\.either)?\(([^)]*)", text):
            used |= set(re.findall(r"['\"]([a-z]+\.[a-z0-9_]+)['\"]", call))
    assert len(used) > 60
    assert used <= set(ENGLISH)
    unused = {key for key in ENGLISH if not key.startswith(BY_NAME)} - used
    assert not unused


def test_messages_that_the_pages_name_exist() -> None:
    names = set()
    for path in WEB.glob("*.py"):
        names |= set(re.findall(r"\.message\(\s*\w+, \"(\w+)\"", path.read_text()))
    assert {"forged", "no_session", "too_many"} <= names
    from rejoinder.annotate.web.app import KNOWN_ERRORS

    names |= {f"error_{code}" for code in (*KNOWN_ERRORS, 500)} | {"paused", "failed", "excluded"}
    expected = {f"messages.{name}{end}" for name in names for end in ("", "_title")}
    assert expected == {key for key in ENGLISH if key.startswith("messages.")}


def test_reasons_and_flags_of_all_kinds_are_translated() -> None:
    """Strings that the kinds give as reasons of refusals, and as flags."""
    reasons, flags = set(), set()
    folder = WEB.parent
    for path in [*(folder / "tasks").glob("*.py"), folder / "answering.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            constants = {
                each.value
                for argument in node.args[1 if name == "Refusal" else 0 :][:1]
                for each in ast.walk(argument)
                if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value
            }
            if name == "Refusal":
                reasons |= constants
            if ast.unparse(node.func) == "flags.append":
                flags |= constants
    reasons |= {"repeats_context", "repeats_reference", "repeats_own", "repeats_other"}
    assert len(reasons) >= 10 and len(flags) >= 3
    for reason in reasons:
        assert f"refusals.{reason}" in ENGLISH and f"reasons.{reason}" in ENGLISH
    assert {f"flags.{flag}" for flag in flags} == {k for k in ENGLISH if k.startswith("flags.")}


def test_a_value_that_is_missing_does_not_break_a_page() -> None:
    texts = read_texts("en")
    assert texts("refusals.too_short", characters=1) == (
        "This reply has 1 characters; it needs at least …."
    )
    assert texts.either("refusals.unheard_of", "refusals.other") == (
        "This answer cannot be accepted."
    )
