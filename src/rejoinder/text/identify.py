"""Language identification: by script, which is certain, and by CLD2 where it is installed.

An encoder or an evaluator that was trained on English turns Japanese into vectors, too; its
scores look like scores and mean nothing. :func:`find_other_language` examines a sample of texts
before anything is scored.

Japanese, Chinese, Korean, Russian, Arabic and other languages in a script of their own are told
from English by their letters. Languages that share a script need CLD2, whose tables are part of
the package ``pycld2``; without it, only scripts are compared. On short, slangy posts CLD2 names
rare languages (Klingon for "oh yeah ..."), so its verdict counts only if it is reliable, if it
read enough, and if it is a language that people often post in.

Measured with ``in_other_language``: it removes 0.43 % of the posts of twitter/conversations.txt
(46, of which some 28 are Spanish, French, Portuguese or Hindi indeed), 0.07 % of DailyDialog,
0.002 % of real-persona-chat-ja and none of xdailydialog-zh. Of short sentences in other languages
(Django's messages, 15 to 140 characters) labelled as English, CLD2 and script together remove
79 % (Italian) to 99 % of those in Latin script and 91 % to 100 % of the others; of Chinese
labelled as Japanese 95 %, of Japanese labelled as Chinese 99.9 %. Without the list of languages
and the minimum of 16 bytes, 2.4 % of the real tweets would be removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rejoinder.errors import MissingExtra, missing_extra
from rejoinder.text.languages import codes, is_language, language
from rejoinder.text.scripts import scripts_of

MIN_BYTES = 16
"""Bytes that CLD2 must have read: 16 Latin letters and spaces, or 5 Chinese characters."""
MIN_BYTES_TOGETHER = 40
"""The same for all texts of a sample that only CLD2, not their script, assigns elsewhere."""
MIN_SHARE = 0.2
"""Share of the texts that must be in another language before :func:`find_other_language` says so.

In a chat in another language, many short replies ("ok", names) are in no language at all."""
MAX_EXAMINED = 2000
"""Texts of a sample that are examined, at equal distances."""
MAX_CHARACTERS = 10_000
"""Characters of a text that are examined."""
MAIN_PERCENT = 60
"""Percent of the text that CLD2 must assign to a language before it is the main language."""
MIN_HAN = 8
"""Han letters without any kana from which on a text is Chinese, not Japanese."""
MIN_LATIN = 8
"""Letters, in two words or more, from which on a Latin text counts where Latin is foreign."""

_POSTED = """\
ar bg bn cs da de el en es et fa fi fr he hi hr hu id it ja ko lt lv ms nl no pl pt ro ru sk sl sr
sv ta te th tl tr uk ur vi zh"""
POSTED = frozenset(_POSTED.split())
"""Languages that are often posted: any other verdict of CLD2 is probably slang."""

# old codes and other names of the same language; Scots and English differ too little
_SYNONYMS = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "fil": "tl",
    "msa": "ms",
    "nb": "no",
    "nn": "no",
    "sco": "en",
    "cmn": "zh",
    "yue": "zh",
}
# languages that CLD2 confuses in short texts
_ALIKE = ("da no sv", "id ms", "bs hr sl sr", "cs sk", "gl pt es", "be bg mk ru sr uk", "af nl")
# labels for "unknown": und, zxx, art, mis, mul, Twitter's qme, qht, …
_NO_LANGUAGE = re.compile(r"|und|un|unknown|zxx|art|mis|mul|multilingual|q[a-z]{2}|xx.*")
_KANA = re.compile("[\u3041-\u3096\u30a1-\u30fa\uff66-\uff9d]")
_SINGLE = {
    "Hangul": "Korean",
    "Greek": "Greek",
    "Hebrew": "Hebrew",
    "Thai": "Thai",
    "Armenian": "Armenian",
    "Georgian": "Georgian",
    "Khmer": "Khmer",
    "Lao": "Lao",
    "Myanmar": "Burmese",
    "Sinhala": "Sinhala",
    "Tamil": "Tamil",
    "Telugu": "Telugu",
    "Kannada": "Kannada",
    "Malayalam": "Malayalam",
    "Gujarati": "Gujarati",
    "Bengali": "Bengali",
}
"""Scripts of one frequent language."""
HAN, KANA = "Han", "Katakana"
_SCRIPT_LANGUAGES = ("en", "ja", "zh", "ko", "ru", "ar", "el", "he", "th", "hi")
"""One language for each script that is frequent."""


@dataclass(frozen=True)
class OtherLanguage:
    """Another language that :func:`find_other_language` detected in a sample of texts."""

    name: str
    """The most frequent other language (``Japanese``), or its script (``Cyrillic script``)."""
    share: float
    """Share of the texts with letters that are in another language than the expected ones."""
    texts: int
    """Texts with letters that were examined."""
    example: str
    """The first text that is in another language, shortened."""
    expected: tuple[str, ...]
    """Names of the expected languages."""

    def describe(self, subject: str = "the encoder") -> str:
        """Return a sentence for an error or a warning; ``subject`` names the model."""
        some = f"{self.share:.0%} of {self.texts:,} texts are"
        if self.texts == 1:
            some = "the text is"
        languages = ", ".join(self.expected)
        return (
            f"{some} in another language, mostly {self.name} (for example {self.example!r});"
            f" {subject} knows only {languages}"
        )


def language_code(tag: str) -> str:
    """Return the language of a tag or a platform's label; an empty string if it names none.

    >>> [language_code(tag) for tag in ("zh-Hant", "iw", "en_GB", "und")]
    ['zh', 'he', 'en', '']
    """
    first = re.split("[-_]", tag.strip().lower())[0]
    return "" if _NO_LANGUAGE.fullmatch(first) else _SYNONYMS.get(first, first)


def find_other_language(
    texts: Sequence[str], languages: Collection[str] | None, *, min_share: float = MIN_SHARE
) -> OtherLanguage | None:
    """Return in which other language a sample of texts is, or None if it is in ``languages``.

    ``languages`` are codes of ISO 639-1; None stands for any language. The result is also
    None if the language is unknown: texts without letters, a shared script without ``pycld2``, or
    fewer than ``min_share`` of the texts in another language.

    >>> found = find_other_language(["今日は暑いですね。", "映画が好きです。"], ["en"])
    >>> found.name, found.share
    ('Japanese', 1.0)
    >>> find_other_language(["lol", "ok :)", "haha 😂", "¯\\\\_(ツ)_/¯", "42"], ["en"])
    """
    own = {language_code(code) for code in languages or ()}
    if not own or not all(map(is_language, own)):
        return None
    step = -(-len(texts) // MAX_EXAMINED) or 1
    beginnings = (text[:MAX_CHARACTERS] for text in texts[::step])
    sample = [text for text in beginnings if any(map(str.isalpha, text))]
    by_script = [_other_by_script(text, frozenset(own)) for text in sample]
    by_classifier: list[str | None] = [None] * len(sample)
    if own <= POSTED and classifier_is_available():
        by_classifier = [
            None if other else _other_by_classifier(text, _with_alike(own))
            for text, other in zip(sample, by_script, strict=True)
        ]
        judged = (t for t, other in zip(sample, by_classifier, strict=True) if other)
        if sum(len(text.encode("utf-8", "replace")) for text in judged) < MIN_BYTES_TOGETHER:
            by_classifier = [None] * len(sample)
    kana = KANA in by_script
    other_languages = [
        _name(script, text, kana=kana) if script else other
        for text, script, other in zip(sample, by_script, by_classifier, strict=True)
    ]
    numbers = [number for number, other in enumerate(other_languages) if other]
    if not numbers or len(numbers) < min_share * len(sample):
        return None
    name = Counter(str(other_languages[number]) for number in numbers).most_common(1)[0][0]
    return OtherLanguage(
        name=name,
        share=len(numbers) / len(sample),
        texts=len(sample),
        example=_shortened(sample[numbers[0]]),
        expected=tuple(language(code).name for code in sorted(own)),
    )


def main_language(texts: Sequence[str]) -> str | None:
    """Return the language that most of the texts are in, or None if it is not clear.

    Without ``pycld2`` it is a language of their script, English for Latin letters, which still
    tells texts in another script apart.

    >>> main_language(["今日は暑いですね。", "映画が好きです。", "OK"])
    'ja'
    """
    step = -(-len(texts) // MAX_EXAMINED) or 1
    sample = [text[:MAX_CHARACTERS] for text in texts[::step] if any(map(str.isalpha, text))]
    if not sample:
        return None
    if not classifier_is_available():
        fitting = (c for c in _SCRIPT_LANGUAGES if find_other_language(sample, [c]) is None)
        return next(fitting, None)
    cld2 = classifier()
    try:
        reliable, size, guesses = cld2.detect("\n".join(sample), bestEffort=True)
    except cld2.error:
        return None
    name, percent = language_code(guesses[0][1]), guesses[0][2]
    clear = reliable and size >= MIN_BYTES_TOGETHER and percent >= MAIN_PERCENT and name in POSTED
    return name if clear else None


def language_among(texts: Sequence[str], usual: str | None) -> str | None:
    """Return the language of a few of many texts: the ``usual`` one of all, unless these are in
    another; None if it is not clear in which.

    >>> language_among(["ok"], "en"), language_among(["今日は暑いですね。映画が好きです。"], "en")
    ('en', 'ja')
    """
    if usual is not None and find_other_language(texts, [usual]) is None:
        return usual
    return main_language(texts)


def in_other_language(texts: Iterable[str], expected: str) -> list[bool]:
    """Return for each text whether CLD2 is sure that it is in another language.

    Raises MissingExtra without ``pycld2``.
    """
    own = frozenset([language_code(expected)])
    classifier()
    return [_other_by_classifier(text, own) is not None for text in texts]


def classifier_is_available() -> bool:
    """Return whether ``pycld2`` is installed."""
    try:
        classifier()
    except MissingExtra:
        return False
    return True


@cache
def classifier() -> Any:
    """Return the module ``pycld2``, imported at the first call."""
    try:
        import pycld2
    except ImportError:
        raise missing_extra("logs", "pycld2", task="the language classifier") from None
    return pycld2


def _other_by_classifier(text: str, own: Collection[str]) -> str | None:
    """Return the name of the other language that CLD2 is sure of, or None."""
    cld2 = classifier()
    try:
        reliable, size, guesses = cld2.detect(text, bestEffort=True)
    except cld2.error:  # a code point that it takes for broken text
        return None
    verdict = language_code(guesses[0][1])
    if not reliable or size < MIN_BYTES or verdict in own or verdict not in POSTED:
        return None
    if "zh" in own and verdict == "ja" and not _KANA.search(text):
        return None  # Han only, as in 当然可以: the label may decide, letters cannot
    if any(language_code(code) in own and percent >= 20 for _, code, percent, _ in guesses):
        return None
    return language(verdict).name


def _other_by_script(text: str, own: frozenset[str]) -> str | None:
    """Return the script of a text that none of the languages is written in, or None.

    Two letters in a row are needed: ``¯\\_(ツ)_/¯`` is not Japanese, nor ``ಠ_ಠ`` Kannada. In
    languages with a script of their own, short Latin words (``OK``, names) are usual.
    """
    letters = len(_pattern(r"\p{L}").findall(text))
    kana = len(_KANA.findall(text))
    if "zh" in own and "ja" not in own and 3 * kana > letters:
        return KANA
    if "ja" in own and "zh" not in own and not kana:
        han = len(_pattern(r"\p{Script=Han}").findall(text))
        if han >= MIN_HAN and 2 * han > letters:
            return HAN
    foreign = _foreign_letters(own).findall(text)
    if not foreign or 2 * sum(map(len, foreign)) <= letters:
        return None
    run = max(foreign, key=len)
    scripts = {_script(letter) for letter in run[:2]}
    if len(run) < 2 or len(scripts - {HAN, KANA}) + bool(scripts & {HAN, KANA}) > 1:
        return None
    if scripts == {"Latin"} and (len(foreign) < 2 or letters < MIN_LATIN):
        return None
    return KANA if kana and HAN in scripts else scripts.pop()


def _script(letter: str) -> str:
    if _KANA.match(letter) or letter in "ーｰ々":
        return KANA
    for script in _scripts():
        if _pattern(rf"\p{{Script={script}}}").match(letter):
            return script
    return "another"


@cache
def _scripts() -> list[str]:
    return sorted({name for code in codes() for name in scripts_of(code)} | {"Latin"})


def _name(script: str, text: str, *, kana: bool) -> str:
    """Return the language of a text in this script; ``kana`` if there is any in the sample."""
    if script in (HAN, KANA):
        return "Japanese" if kana else "Chinese"
    if script in _SINGLE:
        return _SINGLE[script]
    named = _other_by_classifier(text, ()) if classifier_is_available() else None
    return named or f"{script} script"


def _foreign_letters(own: frozenset[str]) -> Any:
    """Runs of letters in scripts that none of the languages uses; Common belongs to all."""
    scripts = sorted({script for code in own for script in scripts_of(code)})
    own_scripts = "".join(rf"\p{{Script={script}}}" for script in ("Common", "Inherited", *scripts))
    return _pattern(rf"[\p{{L}}--[{own_scripts}]]+")


@cache
def _pattern(pattern: str) -> Any:
    import regex

    return regex.compile(pattern, flags=regex.V1)


def _with_alike(own: Collection[str]) -> frozenset[str]:
    """Add the languages that CLD2 confuses with these."""
    alike = [group.split() for group in _ALIKE]
    return frozenset(own).union(*(group for group in alike if set(group) & set(own)))


def _shortened(text: str, width: int = 40) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"
